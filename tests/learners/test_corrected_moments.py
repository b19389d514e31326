"""Corrected moments: against the listing, and certificates of the matrices and regressors that the solvers return."""

import numpy as np
import pytest

from budgetreg.algorithms.corrected_moments import (
    SOLVERS,
    corrected_moments,
    nearest_by_maximum,
    nearest_by_weights,
    pair_sums,
    regressor,
    ridge_of,
    stationary,
)
from budgetreg.revealed.collection import Block


def seen_examples(m, d, k, seed=0):
    """Return examples, targets, and k attributes of each, drawn uniformly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, X @ np.linspace(-1, 1, d) + 0.3 * rng.normal(size=m), rng.random((m, d)).argsort(axis=1)[:, :k]


def inclusion(d, k):
    pi = np.full((d, d), k * (k - 1) / (d * (d - 1)))
    np.fill_diagonal(pi, k / d)
    return pi


def stored(X, y, shown):
    """Return what a learner has stored of one stream."""
    attributes = np.column_stack([shown, np.full(len(y), X.shape[1])])
    return [Block(attributes[None], np.column_stack([np.take_along_axis(X, shown, 1), y])[None])]


def test_sums_are_those_of_the_listing_with_shares_in_place_of_probabilities():
    X, y, shown = seen_examples(300, 5, 3)
    sums = pair_sums(stored(X, y, shown), 0, 5, centred=False, intercept=False)
    C, shares = sums.moments(np.arange(5))
    Gamma, gamma = corrected_moments(X, y, list(shown), shares[:5, :5])
    np.testing.assert_allclose(C[:5, :5], Gamma)
    np.testing.assert_allclose(C[:5, 5], gamma)
    np.testing.assert_allclose(shares[:5, :5], inclusion(5, 3), atol=0.1)
    Gamma, gamma = corrected_moments(X, y, list(shown), inclusion(5, 3))
    w = np.linspace(1, 0, 5)[:, None]
    losses = [sums.held_out(part, w)[0] for part in range(5)]
    assert np.mean(losses) == pytest.approx((w.T @ Gamma @ w)[0, 0] - 2 * gamma @ w[:, 0], rel=0.1)


@pytest.mark.parametrize("rank", [1, 4])
@pytest.mark.parametrize("nearest", [nearest_by_maximum, nearest_by_weights])
def test_semidefinite_moments_are_their_own_nearest(nearest, rank):
    root = np.random.default_rng(0).normal(size=(4, rank))
    np.testing.assert_allclose(nearest(root @ root.T, np.ones((4, 4))), root @ root.T, atol=1e-12)


def indefinite(d, k=3):
    X, y, shown = seen_examples(6 * d, d, k)
    C, shares = pair_sums(stored(X, y, shown), 0, d, centred=False, intercept=False).moments(np.arange(5))
    assert np.linalg.eigvalsh(C[:d, :d]).min() < -0.3
    return C[:d, :d], C[:d, d], shares[:d, :d]


def clipped(matrix):
    s, V = np.linalg.eigh(matrix)
    return (V * np.maximum(s, 0)) @ V.T


def test_no_semidefinite_matrix_is_clearly_nearer_in_the_maximum_norm():
    """The distance of any is at least ``-<Z, Gamma>``, with Z semidefinite of entries that add up to 1 in size."""
    Gamma, _, shares = indefinite(20)
    A = nearest_by_maximum(Gamma, shares)
    assert np.linalg.eigvalsh(A).min() > -1e-10
    distance, bound = np.abs(A - Gamma).max(), 0.0
    for share in (0.9, 0.95, 0.98, 0.99):  # Z lives where the distance is nearly reached
        Z = clipped(np.where(np.abs(A - Gamma) >= share * distance, A - Gamma, 0.0))
        for _ in range(300):  # alternating: where the distance is not reached, Z is 0
            Z = clipped(np.where(np.abs(A - Gamma) >= share * distance, Z, 0.9 * Z))
        bound = max(bound, -np.vdot(Z, Gamma) / np.abs(Z).sum())
    assert bound > 0
    assert distance < 0.9 * np.abs(clipped(Gamma) - Gamma).max()
    for step in np.geomspace(1e-3, 1, 4):
        for seed in range(20):
            root = np.random.default_rng(seed).normal(size=Gamma.shape)
            other = (1 - step) * A + step * (root @ root.T / len(Gamma) + clipped(Gamma)) / 2
            assert np.abs(other - Gamma).max() > 0.98 * distance


def test_the_weighted_nearest_matrix_satisfies_the_optimality_conditions():
    """The gradient ``shares (A - Gamma)`` is semidefinite, and orthogonal to A."""
    Gamma, _, shares = indefinite(20)
    A = nearest_by_weights(Gamma, shares)
    gradient = shares * (A - Gamma)
    size = np.linalg.norm(gradient)
    assert np.linalg.eigvalsh(A).min() > -1e-10
    assert np.linalg.eigvalsh(gradient).min() > -0.02 * size
    assert abs(np.vdot(gradient, A)) < 0.02 * size * np.linalg.norm(A)
    assert (shares * (A - Gamma) ** 2).sum() < 0.95 * (shares * (clipped(Gamma) - Gamma) ** 2).sum()


def test_projected_gradient_ends_at_a_stationary_point_of_the_indefinite_loss():
    Gamma, gamma, _ = indefinite(12)
    radii = np.array([0.2, 1.0, 5.0])
    for w, R in zip(stationary(Gamma, gamma, radii).T, radii, strict=True):
        gradient = Gamma @ w - gamma
        assert np.abs(w).sum() <= R * (1 + 1e-12)
        assert gradient @ w + R * np.abs(gradient).max() < 1e-6 * R * np.abs(gamma).max()


def test_ridge_solves_with_negative_eigenvalues_set_to_0():
    Gamma, gamma, _ = indefinite(12)
    w = ridge_of(Gamma, gamma, np.array([0.3]))[:, 0]
    np.testing.assert_allclose((clipped(Gamma) + 0.3 * np.eye(12)) @ w, gamma)


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_find_the_regressor_from_many_examples(solver):
    X, y, shown = seen_examples(20_000, 6, 3)
    w = regressor(solver, pair_sums(stored(X, y, shown), 0, 6, centred=True, intercept=True))
    np.testing.assert_allclose(w, np.linspace(-1, 1, 6), atol=0.1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_size_is_chosen_on_held_out_examples(solver):
    """A target that no attribute explains leads to 0, nearly, though there are as many examples as attributes."""
    X, _, shown = seen_examples(60, 30, 4)
    y = np.random.default_rng(1).normal(size=60)
    w = regressor(solver, pair_sums(stored(X, y, shown), 0, 30, centred=True, intercept=True))
    assert w @ w < 0.1

"""Baseline and naive: unbiased estimates by enumeration, the listing, and optimality certificates."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import minimize

from budgetreg.algorithms import cesa_bianchi_2010
from budgetreg.algorithms.cesa_bianchi_2010 import Baseline
from budgetreg.algorithms.learner import SideInformation
from budgetreg.common.streams import BLOCK
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table

D = 3
ALL_PAIRS = list(product(range(D), repeat=2))
RADII = np.array([0.05, 0.4, 1.5, 6.0, 40.0])


def estimates(monkeypatch, X, y, k, drawn=None, seed=0, orders=None, checkpoints=None):
    """Return (A, v) of each stream at the last checkpoint, and the accessor."""
    recorded = []
    with monkeypatch.context() as patch:
        patch.setattr(
            cesa_bianchi_2010,
            "correlation",
            lambda A, v, B: recorded.append((A.copy(), v.copy())) or np.zeros((len(v), 1)),
        )
        if drawn is not None:
            patch.setattr(cesa_bianchi_2010, "subset", lambda rng, n, size: np.tile(drawn, (BLOCK, 1)))
        orders = np.arange(len(X))[None] if orders is None else orders
        checkpoints = [orders.shape[1]] if checkpoints is None else checkpoints
        accessor = Accessor(Table(X, y), orders, 1, k, checkpoints)
        rngs = [np.random.default_rng([seed, f]) for f in range(len(orders))]
        learner = Baseline(name="naive", update="correlation")
        list(learner.fit(accessor, {"B": np.ones(1)}, checkpoints, rngs, SideInformation(k)))
    return recorded[-len(orders) :], accessor


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_estimates_are_unbiased_over_all_sets_of_pairs(monkeypatch, k):
    x, y = np.array([[0.7, -1.3, 0.4]]), np.array([-1.5])
    A, v = np.zeros((D, D)), np.zeros(D)
    sets = list(combinations(range(len(ALL_PAIRS)), k // 2))
    for drawn in sets:
        ((a, b),), _ = estimates(monkeypatch, x, y, k, drawn)
        A += a / len(sets)
        v += b / len(sets)
    np.testing.assert_allclose(A, x.T @ x, rtol=1e-12)
    np.testing.assert_allclose(v, 2 * y[0] * x[0], rtol=1e-12)


def test_core_equals_listing(monkeypatch):
    rng = np.random.default_rng(1)
    m, d, k = 300, 5, 6  # more than a block
    X, y = rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.6), rng.normal(size=m)
    ((found_A, found_v),), accessor = estimates(monkeypatch, X, y, k, seed=4, checkpoints=[7, m])
    draws = np.random.default_rng([4, 0])
    codes = np.concatenate([cesa_bianchi_2010.subset(draws, d * d, k // 2) for _ in range(2)])
    A, v = cesa_bianchi_2010.baseline(X, y, np.stack(np.divmod(codes[:m], d), axis=-1))
    np.testing.assert_allclose(found_A, A, atol=1e-12)
    np.testing.assert_allclose(found_v, v, atol=1e-12)
    assert (accessor.bill().at[7] == 7 * k).all()
    assert (accessor.bill().total == m * k).all()


def test_pairs_are_uniform_ordered_and_not_repeated():
    drawn = np.concatenate([cesa_bianchi_2010.subset(np.random.default_rng(s), 9, 2) for s in range(80)])
    assert (drawn[:, 0] != drawn[:, 1]).all()
    counts = np.bincount(drawn.ravel(), minlength=9) / len(drawn)
    np.testing.assert_allclose(counts, 2 / 9, atol=4 * np.sqrt(2 / 9 / len(drawn)))


def test_odd_budgets_leave_one_attribute_unseen(monkeypatch):
    X, y = np.ones((5, 4)), np.ones(5)
    _, accessor = estimates(monkeypatch, X, y, 3)
    assert (accessor.bill().total == 10).all()


def estimate(seed, integers):
    """Return estimates with an indefinite A, and v outside the range of the clipped A."""
    rng = np.random.default_rng(seed)
    d, n = rng.integers(1, 12), rng.integers(1, 60)
    A, v = np.zeros((d, d)), np.zeros(d)
    for _ in range(n):
        i, j = rng.integers(0, d, 2)
        x = rng.integers(-2, 3, 2) if integers else rng.normal(size=2) * (rng.random(2) < 0.6)
        A[i, j] += x[0] * x[1]
        A[j, i] += x[0] * x[1]
        y = rng.choice([-1, 1])
        v[i] += y * x[0]
        v[j] += y * x[1]
    return A, v


@pytest.mark.parametrize("integers", [False, True])
def test_minimisers_have_certificates_for_unbounded_losses(integers):
    for seed in range(150):
        A, v = estimate(seed, integers)
        s, V = np.linalg.eigh(A)
        P = (V * np.maximum(s, 0)) @ V.T
        for w, B in zip(cesa_bianchi_2010.minimisers(A, v, RADII).T, RADII, strict=True):
            assert np.abs(w).sum() <= B * (1 + 1e-9)
            g = 2 * P @ w - v
            # By convexity, no point of the ball is better by more than the largest <g, w - z>.
            assert g @ w + B * np.abs(g).max() <= 1e-6 * (B * np.abs(v).max() + w @ P @ w), seed


def test_minimisers_agree_with_another_solver():
    A, v = estimate(17, False)
    s, V = np.linalg.eigh(A)
    P, d = (V * np.maximum(s, 0)) @ V.T, len(v)
    signs = np.hstack([np.eye(d), -np.eye(d)])
    for B, w in zip(RADII, cesa_bianchi_2010.minimisers(A, v, RADII).T, strict=True):
        loss = minimize(
            lambda z: (signs @ z) @ P @ (signs @ z) - v @ signs @ z,
            np.full(2 * d, B / (4 * d)),
            jac=lambda z: signs.T @ (2 * P @ signs @ z - v),
            bounds=[(0, None)] * (2 * d),
            constraints={"type": "ineq", "fun": lambda z, B=B: B - z.sum(), "jac": lambda z: -np.ones(2 * d)},
            options={"maxiter": 500, "ftol": 1e-13},
        ).fun
        assert w @ P @ w - w @ v == pytest.approx(loss, rel=1e-5, abs=1e-7)


def test_naive_has_the_correlations_direction_and_the_given_norm():
    v = np.array([1.0, -3.0, 0.0])
    np.testing.assert_allclose(
        cesa_bianchi_2010.correlation(np.eye(3), v, np.array([2.0, 8.0])), np.outer(v, [0.5, 2.0])
    )
    assert not cesa_bianchi_2010.correlation(np.eye(3), np.zeros(3), RADII).any()

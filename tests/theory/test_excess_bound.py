"""The least excess loss for normal data: full rows, published check values, derivatives and a simulation."""

import numpy as np
import pytest

from budgetreg.algorithms.normal_ml import maximum_likelihood
from budgetreg.analysis.theory import excess_bound, known_covariance, uniform_subsets
from budgetreg.revealed.collection import Block

D, NOISE = 20, 0.2


def joint(Sigma, w):
    """Return the covariance of attributes and a target of variance 1, of which a share is noise."""
    w = w * np.sqrt((1 - NOISE) / (w @ Sigma @ w))
    return np.block([[Sigma, (Sigma @ w)[:, None]], [(Sigma @ w)[None], np.ones((1, 1))]])


def factors():
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((D, 3))
    Sigma = loadings @ loadings.T + np.eye(D)
    units = np.sqrt(np.diag(Sigma))
    return joint(Sigma / np.outer(units, units), rng.standard_normal(D))


def chain(rho):
    apart = np.abs(np.subtract.outer(np.arange(D), np.arange(D)))
    return joint(float(rho) ** apart, np.random.default_rng(0).standard_normal(D))


@pytest.mark.parametrize(("C", "free", "known"), [(chain(0), 360, 78), (chain(0.9), 216, 80), (factors(), 224, 64)])
def test_values_of_four_attributes(C, free, known):
    """Independent attributes, a chain and three factors, of d = 20."""
    assert excess_bound(C, 4) == pytest.approx(free, abs=0.6)
    assert excess_bound(C, 4, tangent=known_covariance(D)) == pytest.approx(known, abs=0.6)


@pytest.mark.slow
@pytest.mark.parametrize(("C", "bound"), [(chain(0), 62.5), (factors(), 31.5), (chain(0.9), 24.2)])
def test_values_of_eight_attributes(C, bound):
    """There are 125,970 subsets, of which 20,000 are drawn."""
    assert excess_bound(C, 8) == pytest.approx(bound, rel=0.01)


@pytest.mark.parametrize(("k", "value"), [(4, 20), (8, 10)])
def test_full_rows_of_as_many_attributes(k, value):
    """With all attributes the bound is the noise times d; n examples of k pay for n k/d full rows."""
    C = factors()
    assert excess_bound(C, D) == pytest.approx(NOISE * D)
    assert excess_bound(C, D) * D / k == pytest.approx(value)


def regressor(C):
    return np.linalg.solve(C[:-1, :-1], C[:-1, -1])


def test_it_follows_from_derivatives_of_the_likelihood():
    """With d = 3 and k = 2, from numerical derivatives of the expected log-likelihood and of w."""
    root = np.random.default_rng(1).normal(size=(4, 4))
    C, h, p = root @ root.T + np.eye(4), 1e-4, 4
    entries = [(i, j) for i in range(p) for j in range(i, p)]

    def moved(entry, size):
        i, j = entry
        E = np.zeros((p, p))
        E[i, j] = E[j, i] = size
        return E

    def likelihood(other):
        total = 0.0
        for S in uniform_subsets(3, 2):
            at = np.ix_([*S, 3], [*S, 3])
            total -= (np.linalg.slogdet(other[at])[1] + np.trace(np.linalg.solve(other[at], C[at]))) / 6
        return total

    def second(a, b):
        signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
        return sum(s * t * likelihood(C + moved(a, s * h) + moved(b, t * h)) for s, t in signs) / (4 * h * h)

    information = -np.array([[second(a, b) for b in entries] for a in entries])
    J = np.stack([(regressor(C + moved(e, h)) - regressor(C - moved(e, h))) / (2 * h) for e in entries], axis=1)
    bound = np.trace(C[:3, :3] @ J @ np.linalg.solve(information, J.T))
    assert excess_bound(C, 2) == pytest.approx(bound, rel=1e-3)


def test_a_design_may_be_better_than_uniform_draws():
    """If only the first two attributes count, examples that show them together teach more."""
    C = joint(np.eye(D), np.eye(D)[0] + np.eye(D)[1])
    subsets = uniform_subsets(D, 4)
    both = (np.isin([0, 1], row).all() for row in subsets)
    favoured = np.concatenate([subsets, np.repeat(subsets[list(both)], 20, axis=0)])
    assert excess_bound(C, 4, favoured) < 0.8 * excess_bound(C, 4)


def test_nothing_is_learned_of_attributes_that_are_never_seen_together():
    C = chain(0.9)
    assert excess_bound(C, 1) == np.inf
    assert np.isfinite(excess_bound(C, 1, tangent=known_covariance(D)))
    assert excess_bound(C, 4, uniform_subsets(D - 1, 4)) == np.inf


@pytest.mark.slow
def test_maximum_likelihood_reaches_it():
    """The mean over 60 samples of n times the excess loss is within three of its standard errors."""
    d, k, n, samples = 6, 3, 3000, 60
    C = chain(0.7)[np.ix_([*range(d), D], [*range(d), D])]
    root, w, losses = np.linalg.cholesky(C), regressor(C), []
    for seed in range(samples):
        rng = np.random.default_rng(seed)
        joint = rng.standard_normal((n, d + 1)) @ root.T
        shown = np.column_stack([rng.random((n, d)).argsort(axis=1)[:, :k], np.full(n, d)])
        block = Block(shown[None], np.take_along_axis(joint, shown, axis=1)[None])
        _, fitted = maximum_likelihood([block], 0, d + 1, np.ones(d + 1, dtype=bool))
        off = regressor(fitted) - w
        losses.append(n * off @ C[:-1, :-1] @ off)
    error = np.std(losses) / np.sqrt(samples)
    assert abs(np.mean(losses) - excess_bound(C, k)) < 3 * error
    assert error < 0.12 * np.mean(losses)

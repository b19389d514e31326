"""Baseline and naive: the listing, and optimality certificates."""

import numpy as np
import pytest

from budgetreg.algorithms import cesa_bianchi_2010
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table

RADII = np.array([0.05, 0.4, 1.5, 6.0, 40.0])


@pytest.mark.parametrize("k", [6, 7])
def test_core_equals_listing(k):
    """An odd budget leaves one attribute unseen."""
    rng, m, d = np.random.default_rng(1), 300, 5  # more than a block
    X, y = rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.6), rng.normal(size=m)
    accessor = Accessor(Table(X, y), np.arange(m)[None], 1, k, [7, m])
    found = list(cesa_bianchi_2010.estimates(accessor, [7, m], [np.random.default_rng(4)], k))
    draws = np.random.default_rng(4)
    codes = np.concatenate([cesa_bianchi_2010.subset(draws, d * d, k // 2) for _ in range(2)])
    pairs = np.stack(np.divmod(codes[:m], d), axis=-1)
    for end, A, v in found:
        expected_A, expected_v = cesa_bianchi_2010.baseline(X[:end], y[:end], pairs[:end])
        np.testing.assert_allclose(A[0], expected_A, atol=1e-12)
        np.testing.assert_allclose(v[0], expected_v, atol=1e-12)
        assert (accessor.bill().at[end] == end * 6).all()


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


def test_naive_has_the_correlations_direction_and_the_given_norm():
    v = np.array([1.0, -3.0, 0.0])
    np.testing.assert_allclose(
        cesa_bianchi_2010.correlation(np.eye(3), v, np.array([2.0, 8.0])), np.outer(v, [0.5, 2.0])
    )
    assert not cesa_bianchi_2010.correlation(np.eye(3), np.zeros(3), RADII).any()

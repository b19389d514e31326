"""Conditional means and covariances, compared with the formula for one row at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetreg.algorithms.conditional import conditional, conditional_means, conditional_variances


def problem(seed: int, n: int, d: int, rank: int, present: float) -> tuple[np.ndarray, ...]:
    """Return mean, covariance, weights and rows with holes, in units that differ by six orders of magnitude."""
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.uniform(-3, 3, d)
    loadings = rng.standard_normal((d, rank))
    covariance = (loadings @ loadings.T + np.diag(rng.uniform(0.05, 1, d))) * np.outer(units, units)
    mean, w = rng.standard_normal(d) * units, rng.standard_normal(d) / units
    X = mean + rng.multivariate_normal(np.zeros(d), covariance, size=n)
    return mean, covariance, w, np.where(rng.random((n, d)) < present, X, np.nan)


def one_by_one(mean: np.ndarray, S: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of a row given what is present, by the textbook's formula."""
    a = ~np.isnan(x)
    gain = S[:, a] @ np.linalg.inv(S[np.ix_(a, a)])
    expected, V = mean + gain @ (x - mean)[a], S - gain @ S[a]
    expected[a], V[a], V[:, a] = x[a], 0, 0
    return expected, V


@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), d=st.integers(1, 9), present=st.sampled_from([0, 0.3, 0.8, 1]))
def test_conditional_moments_are_those_of_each_row_alone(seed: int, n: int, d: int, present: float) -> None:
    mean, S, w, X = problem(seed, n, d, min(d, 2), present)
    units = np.sqrt(np.diag(S))
    given = conditional(mean, S, X)
    for row, p, expectation, variance in zip(
        X, given.pattern, given.means, conditional_variances(S, w, X), strict=True
    ):
        expected, V = one_by_one(mean, S, row)
        np.testing.assert_array_equal(given.present[p], ~np.isnan(row))
        np.testing.assert_allclose((expectation - expected) / units, 0, atol=1e-8)
        np.testing.assert_allclose(given.covariances[p] / np.outer(units, units), V / np.outer(units, units), atol=1e-8)
        np.testing.assert_allclose(variance, w @ V @ w, atol=1e-8 * (w @ S @ w))
    np.testing.assert_array_equal(conditional_means(mean, S, X), given.means)


def test_rows_of_a_common_pattern_and_a_single_row_agree() -> None:
    """Patterns that many rows share are multiplied together; the numbers are those of rows alone, but for rounding."""
    mean, S, _, X = problem(0, 200, 4, 2, 1.0)
    X[:, 1] = np.nan
    X[::7, 2] = np.nan
    together = conditional(mean, S, X)
    assert len(together.present) == 2
    for t in (0, 1, 7, 199):
        alone = conditional(mean, S, X[t])
        assert alone.means.shape == (4,)
        np.testing.assert_allclose(alone.means, together.means[t], rtol=1e-10)
        np.testing.assert_allclose(alone.covariances[alone.pattern], together.covariances[together.pattern[t]])


@given(seed=st.integers(0, 10**6), present=st.sampled_from([0.1, 0.5, 0.9]))
def test_numbers_of_a_row_depend_on_no_other_row(seed: int, present: float) -> None:
    mean, S, w, X = problem(seed, 30, 8, 2, present)
    means, variances, given = conditional_means(mean, S, X), conditional_variances(S, w, X), conditional(mean, S, X)
    for t in (0, 17):
        row = X[[t]]
        np.testing.assert_array_equal(conditional_means(mean, S, row)[0], means[t])
        np.testing.assert_array_equal(conditional_variances(S, w, row)[0], variances[t])
        np.testing.assert_array_equal(conditional(mean, S, row).covariances[0], given.covariances[given.pattern[t]])


def test_present_values_are_kept_bit_by_bit() -> None:
    mean, S, w, X = problem(1, 50, 6, 2, 0.5)
    X[0] = mean * np.pi
    given = conditional(mean, S, X)
    np.testing.assert_array_equal(given.means[~np.isnan(X)], X[~np.isnan(X)])
    assert conditional_variances(S, w, X)[0] == 0
    assert not given.covariances[given.present].any()


@pytest.mark.parametrize("known", [0, 1])
def test_constants_and_copies_can_be_conditioned_on(known: int) -> None:
    """An attribute of variance 0 has no information, and of two copies one determines the other."""
    S = np.array([[4.0, 4.0, 0.0], [4.0, 4.0, 0.0], [0.0, 0.0, 0.0]])
    row = np.array([np.nan, np.nan, 7.0])
    row[known] = 3.0
    given = conditional(np.array([1.0, 1.0, 7.0]), S, row)
    np.testing.assert_allclose(given.means, [3.0, 3.0, 7.0])
    np.testing.assert_allclose(given.covariances[given.pattern], 0, atol=1e-10)
    both = conditional(np.zeros(3), S, np.array([2.0, 2.0, np.nan]))
    np.testing.assert_allclose(both.means, [2.0, 2.0, 0.0])


@pytest.mark.slow
def test_more_patterns_than_fit_into_a_batch() -> None:
    mean, S, w, X = problem(2, 600, 100, 3, 0.5)  # 419 systems of 100 equations are a batch
    means, variances = conditional_means(mean, S, X), conditional_variances(S, w, X)
    for t in (0, 418, 419, 599):
        expected, V = one_by_one(mean, S, X[t])
        np.testing.assert_allclose((means[t] - expected) / np.sqrt(np.diag(S)), 0, atol=1e-7)
        np.testing.assert_allclose(variances[t], w @ V @ w, rtol=1e-6)

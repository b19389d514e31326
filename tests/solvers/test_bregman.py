"""The projection onto weight matrices agrees with other solvers; the decomposition is exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

from budgetreg.algorithms.gonen_2016.mbeg import decompose, project

CASES = [(1, 1), (2, 1), (5, 1), (5, 3), (5, 4), (5, 5), (12, 7), (40, 6)]


def projected(theta, n):
    return np.exp(np.minimum(0, theta + project(theta, n)[..., None]))


@st.composite
def spectra(draw):
    d = draw(st.integers(1, 12))
    values = st.one_of(st.floats(-800, 800), st.sampled_from([-2.0, 0.0, 1.0]))
    return np.sort(draw(st.lists(values, min_size=d, max_size=d))), draw(st.integers(1, d))


@given(spectra())
def test_projection_satisfies_the_optimality_conditions(case):
    theta, n = case
    log_c = project(theta, n)
    w = projected(theta, n)
    assert w.sum() == pytest.approx(n, abs=1e-9)
    assert w.max() <= 1
    # The derivative of the divergence, log w - theta, is constant where w < 1, and no larger where w = 1.
    assert np.all(np.log(w[w == 1]) - theta[w == 1] <= log_c + 1e-9 * (1 + abs(log_c)))


@pytest.mark.parametrize(("d", "n"), CASES)
@pytest.mark.parametrize("spread", [0.1, 3.0, 300.0])
def test_projection_agrees_with_bisection(d, n, spread):
    rng = np.random.default_rng(d + n)
    theta = np.sort(rng.normal(scale=spread, size=(20, d)))
    theta[::3, d // 2 :] = theta[::3, -1:]  # ties among entries that may be capped
    for row, log_c in zip(theta, project(theta, n), strict=True):

        def missing(c, row=row):
            return np.exp(np.minimum(0, row + c)).sum() - n

        found = brentq(missing, -row[-1] - np.log(d) - 1, -row[0] + 1, xtol=1e-13)
        np.testing.assert_allclose(np.exp(np.minimum(0, row + log_c)), np.exp(np.minimum(0, row + found)), atol=1e-9)


def test_projection_minimises_the_divergence():
    for seed in range(5):
        u = np.random.default_rng(seed).exponential(size=6) ** 2 + 1e-3
        solution = minimize(
            lambda w, u=u: (w * np.log(w / u) - w + u).sum(),
            np.full(6, 0.5),
            jac=lambda w, u=u: np.log(w / u),
            bounds=[(1e-9, 1)] * 6,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 3, "jac": lambda w: np.ones(6)},
            options={"ftol": 1e-14, "maxiter": 300},
        ).x
        np.testing.assert_allclose(projected(np.sort(np.log(u)), 3), solution[np.argsort(u)], atol=1e-5)


def test_projections_are_independent_of_each_other():
    theta = np.sort(np.random.default_rng(0).normal(scale=4, size=(9, 17)))
    together = project(theta, 5)
    for row, log_c in zip(theta, together, strict=True):
        np.testing.assert_array_equal(project(row[None], 5), log_c)


@pytest.mark.parametrize(("d", "n"), CASES)
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
def test_decomposition_averages_to_the_weight_matrix(d, n, spread):
    rng = np.random.default_rng(10 * d + n)
    for _ in range(10):
        eigenvalues = projected(np.sort(rng.normal(scale=spread, size=d)), n)
        U = np.linalg.qr(rng.normal(size=(d, d)))[0]
        weights, members = decompose(eigenvalues, n)
        assert len(weights) == len(members) <= d
        assert (weights > 0).all()
        assert weights.sum() == pytest.approx(1, abs=1e-14)
        assert all(len(set(own)) == n for own in members)
        mean = sum(weight * U[:, own] @ U[:, own].T for weight, own in zip(weights, members, strict=True))
        np.testing.assert_allclose(mean, (U * eigenvalues) @ U.T, rtol=0, atol=1e-12)


def test_decomposition_tolerates_rounding_errors_of_eigenvalues():
    for error in (1e-16, 1e-13):
        eigenvalues = np.array([-error, error, 0.5 - error, 0.5 + 2 * error, 1 + error, 1 - error])
        weights, members = decompose(eigenvalues, 3)
        mean = (weights[:, None] * [np.isin(np.arange(6), own) for own in members]).sum(axis=0)
        np.testing.assert_allclose(mean, eigenvalues, atol=10 * error)


def test_a_projection_is_its_own_decomposition():
    weights, members = decompose(np.array([0.0, 1.0, 0.0, 1.0]), 2)
    np.testing.assert_array_equal(weights, [1.0])
    assert set(members[0]) == {1, 3}

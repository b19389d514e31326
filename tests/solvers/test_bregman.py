"""The projection onto weight matrices agrees with other solvers; the decomposition is exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetreg.algorithms.gonen_2016 import decompose, project

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

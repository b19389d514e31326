"""Eigenvectors of matrices with ties do not depend on rounding, which differs between processors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from budgetreg.algorithms.eigenspaces import basis, eigenspaces, leading, leading_of_sum


def _rounded(C, rng, size=1e-14):
    """Return a symmetric matrix with other rounding errors."""
    noise = rng.uniform(-size, size, C.shape) * np.abs(C).max()
    return C + noise + noise.T


def _tied(rng, values):
    """Return a matrix with given eigenvalues."""
    V = ortho_group.rvs(len(values), random_state=rng)
    C = (V * np.array(values)) @ V.T
    return (C + C.T) / 2


def _projection(V):
    return V @ V.T


@st.composite
def spectra(draw):
    values = draw(st.lists(st.sampled_from([-1.0, 0.0, 0.25, 1.0, 3.0]), min_size=2, max_size=9))
    return values, draw(st.integers(1, len(values))), draw(st.integers(0, 2**32 - 1))


@given(spectra())
def test_the_leading_subspace_does_not_depend_on_rounding(case):
    values, n, seed = case
    rng = np.random.default_rng(seed)
    C = _tied(rng, values)
    V = leading(C, n)
    np.testing.assert_allclose(V.T @ V, np.eye(n), atol=1e-12)
    best = np.sort(values)[::-1][:n]
    np.testing.assert_allclose(np.diag(V.T @ C @ V), best, atol=1e-9)
    np.testing.assert_allclose(_projection(leading(_rounded(C, rng), n)), _projection(V), atol=1e-9)


@given(spectra())
def test_eigenspaces_do_not_depend_on_rounding(case):
    values, _, seed = case
    rng = np.random.default_rng(seed)
    C = _tied(rng, values)
    values, V = eigenspaces(C)
    again, U = eigenspaces(_rounded(C, rng))
    np.testing.assert_allclose((V * values) @ V.T, C, atol=1e-12)
    np.testing.assert_allclose(values, np.sort(values)[::-1], atol=1e-12)
    for value in set(values):
        same = np.isclose(values, value, atol=1e-6)
        assert np.ptp(values[same]) == 0  # ties are exactly equal, so that sorting does not depend on rounding
        if same.sum() > 1:
            np.testing.assert_allclose(U[:, same], V[:, same], atol=1e-9)
    np.testing.assert_allclose(again, values, atol=1e-12)


@pytest.mark.parametrize(("d", "c"), [(2, 1), (5, 3), (7, 7), (40, 25)])
def test_a_basis_depends_on_the_space_alone(d, c):
    rng = np.random.default_rng(d)
    U = ortho_group.rvs(d, random_state=rng)[:, :c]
    chosen = basis(U)
    np.testing.assert_allclose(_projection(chosen), _projection(U), atol=1e-12)
    turned = U @ ortho_group.rvs(c, random_state=rng) if c > 1 else -U
    np.testing.assert_allclose(basis(turned), chosen, atol=1e-12)


def test_unseen_attributes_stand_for_themselves_in_order():
    C = np.zeros((6, 6))
    C[np.ix_([1, 4], [1, 4])] = [[2.0, 1.0], [1.0, 2.0]]
    expected = np.zeros((6, 5))
    expected[[1, 4], 0] = expected[[1, 4], 1] = np.sqrt(0.5)
    expected[4, 1] *= -1
    expected[[0, 2, 3], [2, 3, 4]] = 1
    np.testing.assert_allclose(leading(C, 5), expected, atol=1e-15)
    np.testing.assert_array_equal(leading(np.zeros((5, 5)), 2), np.eye(5)[:, :2])


def test_gaps_wider_than_a_tie_are_respected():
    C = np.diag([1.0, 1.0 - 1e-9, 1.0 + 1e-9])
    np.testing.assert_allclose(np.abs(leading(C, 1)[:, 0]), [0, 0, 1], atol=1e-6)


@pytest.mark.slow
def test_few_eigenvectors_above_many_near_ties_are_found():
    """LAPACK fails for a few in a thousand of these when asked for one eigenvector, or returns none."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        w = rng.normal(size=8) * 0.05
        C = np.outer(w, w) + rng.random() * np.eye(8)
        for n in range(1, 8):
            np.testing.assert_allclose(abs(w @ leading(C, n)[:, 0]), np.linalg.norm(w), rtol=1e-6)


@pytest.mark.parametrize("u", [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [-1e-9, -3.0, 2.0]])
def test_the_sign_of_a_column_does_not_depend_on_rounding(u):
    u = np.array(u) / np.linalg.norm(u)
    C = np.outer(u, u)
    for noise in (0, 1e-15, -1e-15):
        v = leading(C + noise * np.diag([1.0, 0, 0]), 1)[:, 0]
        np.testing.assert_allclose(v, u * np.sign(u[np.abs(u) > 0.1][0]), atol=1e-12)


# Of a low-rank matrix plus a diagonal one, compared with those of the whole matrix


@given(st.integers(0, 2**32), st.integers(1, 12), st.data())
def test_leading_eigenvectors_are_exact_for_a_constant_diagonal(seed, d, data):
    q = data.draw(st.integers(1, d))
    n = data.draw(st.integers(1, q))
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.normal(size=(d, q)))[0] * np.arange(q, 0, -1) @ np.linalg.qr(rng.normal(size=(q, q)))[0]
    V, best = leading_of_sum(W, np.full(d, 0.7), n), leading(W @ W.T + 0.7 * np.eye(d), n)
    np.testing.assert_allclose(np.abs((V * best).sum(axis=0)), 1, atol=1e-9)


@pytest.mark.parametrize("n", [1, 3])
def test_leading_eigenvectors_are_near_for_an_uneven_diagonal(n):
    rng = np.random.default_rng(0)
    W, psi = rng.normal(size=(30, 4)) * [3.0, 2.5, 2.0, 0.2], rng.uniform(0, 20, 30)
    C = W @ W.T + np.diag(psi)
    V, best = leading_of_sum(W, psi, n), leading(C, n)
    np.testing.assert_allclose(V.T @ V, np.eye(n), atol=1e-12)
    assert (np.diff(np.einsum("in,ij,jn->n", V, C, V)) < 0).all()
    of_loadings = np.linalg.svd(W)[0][:, :n]
    off, at_first = (np.abs(basis @ basis.T - best @ best.T).max() for basis in (V, of_loadings))
    assert off < 0.02 * at_first > 1e-4

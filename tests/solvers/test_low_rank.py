"""Leading eigenvectors of a low-rank matrix plus a diagonal one agree with those of the whole matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetreg.algorithms.eigenspaces import leading, leading_of_sum


@given(st.integers(0, 2**32), st.integers(1, 12), st.data())
@settings(max_examples=50, deadline=None)
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

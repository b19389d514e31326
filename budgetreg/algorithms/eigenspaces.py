"""Eigenvectors of symmetric matrices, with ties between equal eigenvalues broken by a rule.

Where eigenvalues are equal, any orthonormal basis of their eigenspace is correct, and the one that LAPACK returns
depends on the processor. If only a part of the basis is used, so would results. The rule: the basis is found by
Gram-Schmidt from the projections of the standard basis vectors onto the eigenspace, in their order, except that vectors
with a small remainder are taken later. Attributes that were never seen thus stand for themselves, in ascending order.
Eigenvalues are equal if no gap between neighbours is above `TIE` times the norm of the matrix. Wider gaps turn the
rounding errors of a matrix into angles of at most ``1e-16 / TIE``, and rarely as large as that.
"""

import numpy as np
from scipy.linalg import eigh

TIE = 1e-11
"""Largest gap between equal eigenvalues, relative to the Frobenius norm: a hundred times the rounding error."""
_CLEARLY = 0.3
"""Share of the largest entry that one must have to be chosen first; no ratio of small powers of 2."""
_ITERATIONS = 5
"""Subspace iterations of `leading_of_sum`; each multiplies the error by the range of psi over an eigenvalue."""


def leading(C: np.ndarray, n: int) -> np.ndarray:
    """Return the leading eigenvectors of a symmetric matrix.

    Parameters
    ----------
    C : ndarray of float64, shape (d, d)
        Symmetric.
    n : int
        Number of eigenvectors, from 1 to d.

    Returns
    -------
    ndarray of float64, shape (d, n)
        Orthonormal columns, that of the largest eigenvalue first. Where the n-th eigenvalue is equal to the next one,
        the rule of this module selects columns from their eigenspace. The sign of a column is such that its first
        large entry (at least half as large as the largest one) is positive.
    """
    d = len(C)
    values, ascending = _last(C, n)
    V = ascending[:, ::-1]
    if n < d:
        following = np.linalg.eigvalsh(C)[d - n - 1]  # of all, see `_last`
        if values[0] - following <= TIE * np.linalg.norm(C):
            V = eigenspaces(C)[1][:, :n]
    large = np.abs(V) >= np.abs(V).max(axis=0) / 2  # not the largest, as rounding may decide between equal ones
    signs = np.sign(np.take_along_axis(V, large.argmax(axis=0)[None], axis=0))
    return np.ascontiguousarray(V * signs)


def _last(C: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the n largest eigenvalues, ascending, and their eigenvectors.

    LAPACK computes a few of them faster than all, but where others are nearly equal it sometimes fails or misses some.
    """
    d = len(C)
    try:
        values, V = eigh(C, subset_by_index=[d - n, d - 1])
    except np.linalg.LinAlgError:
        values = np.empty(0)
    if len(values) < n:
        values, V = (array[..., d - n :] for array in np.linalg.eigh(C))
    return values, V


def eigenspaces(C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenvalues and eigenvectors of a symmetric matrix.

    Parameters
    ----------
    C : ndarray of float64, shape (d, d)
        Symmetric.

    Returns
    -------
    values : ndarray of float64, shape (d,)
        Descending; equal ones are replaced by their mean.
    V : ndarray of float64, shape (d, d)
        Orthonormal columns; those of equal eigenvalues follow the rule of this module.
    """
    ascending, columns = np.linalg.eigh(C)
    values, V = ascending[::-1].copy(), columns[:, ::-1].copy()
    gaps = np.flatnonzero(-np.diff(values) > TIE * np.linalg.norm(C)) + 1
    for first, last in zip([0, *gaps], [*gaps, len(C)], strict=True):
        if last - first > 1:
            values[first:last] = values[first:last].mean()
            V[:, first:last] = basis(V[:, first:last])
    return values, V


def basis(U: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis that depends on the spanned space alone.

    Parameters
    ----------
    U : ndarray of float64, shape (d, c)
        Orthonormal columns that span the space.

    Returns
    -------
    ndarray of float64, shape (d, c)
        Orthonormal columns: each is the normalised remainder, after the columns before it, of the projection of a
        standard basis vector. The vector is the first one whose squared remainder is at least 0.3 of the largest.
    """
    chosen = np.empty_like(U)
    rest = U.copy()  # its rows are the projections of the standard basis vectors, in coordinates
    for column in range(U.shape[1]):
        left = np.einsum("ij,ij->i", rest, rest)
        row = int((left >= _CLEARLY * left.max()).argmax())
        direction = rest[row] / np.sqrt(left[row])
        chosen[:, column] = U @ direction
        rest -= np.outer(rest @ direction, direction)
    return chosen


def leading_of_sum(W: np.ndarray, psi: np.ndarray, n: int) -> np.ndarray:
    """Return approximate leading eigenvectors of ``W W' + diag(psi)``, which is never formed: O(d q) numbers.

    They lie in the span of W if psi is constant. Subspace iteration begins with this span, and uses ``W W' +
    diag(psi - min psi)``, whose eigenvectors are the same.

    Parameters
    ----------
    W : ndarray of float, shape (d, q)
        q at most d.
    psi : ndarray of float, shape (d,)
        The diagonal.
    n : int
        Number of eigenvectors, at most q.

    Returns
    -------
    ndarray of float, shape (d, n)
        Orthonormal columns, that of the largest eigenvalue first.
    """
    uneven = (psi - psi.min())[:, None]
    V = np.linalg.qr(W)[0]
    for _ in range(_ITERATIONS):
        V = np.linalg.qr(W @ (W.T @ V) + uneven * V)[0]
    _, rotation = np.linalg.eigh(V.T @ (W @ (W.T @ V) + uneven * V))
    return np.asarray(V @ rotation[:, : -n - 1 : -1])

"""Eigenvectors of symmetric matrices, with ties between equal eigenvalues broken by a rule.

Where eigenvalues are equal, any orthonormal basis of their eigenspace will do, and which one LAPACK finds depends on
the processor.  Where only a part of it is wanted, that would decide numbers.  The rule: an eigenspace is spanned by the
projections of the standard basis vectors onto it, taken in their order by Gram and Schmidt, those of which too little
remains left for later; so attributes that were never seen stand for themselves, the first ones first.  Eigenvalues are
equal if no gap between neighbours is above `TIE` times the norm of the matrix.  Wider gaps turn the rounding errors of
a matrix into angles of at most ``1e-16 / TIE``, and hardly ever into any that large.
"""

import numpy as np
from scipy.linalg import eigh

TIE = 1e-11
"""Gap between equal eigenvalues at most, relative to the Frobenius norm: a hundred times what rounding leaves."""
_CLEARLY = 0.3
"""Share of the largest that an entry must have to come first; no ratio of small powers of 2."""


def leading(C: np.ndarray, n: int) -> np.ndarray:
    """Return the leading eigenvectors of a symmetric matrix.

    Parameters
    ----------
    C : ndarray of float64, shape (d, d)
        Symmetric.
    n : int
        How many, from 1 to d.

    Returns
    -------
    ndarray of float64, shape (d, n)
        Orthonormal columns, that of the largest eigenvalue first; where the n-th is equal to the next one, the rule
        of this module says what is taken of their eigenspace. Of each column and its negative it is the one whose
        first large entry (at least half as large as the largest one) is positive.
    """
    d = len(C)
    values, ascending = _last(C, n)
    V = ascending[:, ::-1]
    if n < d:
        following = np.linalg.eigvalsh(C)[d - n - 1]  # of all, for the same reason
        if values[0] - following <= TIE * np.linalg.norm(C):
            V = eigenspaces(C)[1][:, :n]
    large = np.abs(V) >= np.abs(V).max(axis=0) / 2  # not the largest: rounding may decide between equal entries
    signs = np.sign(np.take_along_axis(V, large.argmax(axis=0)[None], axis=0))
    return np.ascontiguousarray(V * signs)


def _last(C: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the n largest eigenvalues, ascending, and their eigenvectors.

    LAPACK finds a few of them faster than all, but where others are nearly equal it now and then fails or misses some.
    """
    d = len(C)
    try:
        values, V = eigh(C, subset_by_index=[d - n, d - 1])
    except np.linalg.LinAlgError:
        values = np.empty(0)
    if len(values) < n:
        values, V = (own[..., d - n :] for own in np.linalg.eigh(C))
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
        Descending; those that are equal are replaced by their mean.
    V : ndarray of float64, shape (d, d)
        Orthonormal columns, those of equal eigenvalues as the rule of this module says.
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
    """Return that orthonormal basis of a space which depends on nothing but the space.

    Parameters
    ----------
    U : ndarray of float64, shape (d, c)
        Orthonormal columns that span it.

    Returns
    -------
    ndarray of float64, shape (d, c)
        Orthonormal columns: each is what is left of the projection of a standard basis vector after the columns
        before it, the first one of which at least three tenths of the square of the largest are left.
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

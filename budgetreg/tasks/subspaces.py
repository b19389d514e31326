"""How good a subspace is: what its projection leaves of a second moment ``C = E x x'``, which is not centred.

A subspace of n dimensions is given by orthonormal columns V, shape (d, n), and its projection is ``Pi = V V'``. Its
loss is ``E|x - Pi x|^2 = tr C - tr V'CV``. The least loss is that of the leading eigenvectors of C.

Examples are seen in full here: evaluation is outside the budget. All products have shapes that the configuration
decides, never how replicas were batched, so that their last bits do not depend on that either.

References
----------
Gonen, Rosenbaum, Eldar and Shalev-Shwartz (2016), "Subspace learning with partial information", Section 2.
"""

import numpy as np

from budgetreg.data.values import row_blocks
from budgetreg.metering.table import Table


def second_moment(table: Table, index: np.ndarray) -> np.ndarray:
    """Return ``C``, the mean of ``x x'``.

    Parameters
    ----------
    table : Table
        The data.
    index : ndarray of int, shape (n,)
        Rows to average over.

    Returns
    -------
    ndarray of float64, shape (d, d)
        Exactly symmetric.
    """
    C = np.zeros((table.d, table.d))
    for rows in row_blocks(index, table.d):
        X = table.rows(rows)
        C += X.T @ X
    C /= index.size
    return (C + C.T) / 2


def losses(C: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return the loss ``tr C - tr V'CV`` of each subspace.

    Parameters
    ----------
    C : ndarray of float64, shape (d, d)
        Second moment of the held-out part.
    V : ndarray of float64, shape (G, d, n)
        Subspaces, orthonormal columns.

    Returns
    -------
    ndarray of float64, shape (G,)
        In squared units of the attributes.
    """
    return np.array([np.trace(C) - np.vdot(v, C @ v) for v in np.ascontiguousarray(V)])


def columns(C: np.ndarray, v: np.ndarray, best: np.ndarray) -> dict[str, float]:
    """Compare one subspace with the best one.

    Parameters
    ----------
    C : ndarray of float64, shape (d, d)
        Second moment: the law's own if it is known, else that of the test part.
    v : ndarray of float64, shape (d, n)
        The subspace, orthonormal columns.
    best : ndarray of float64, shape (d, n)
        ``leading(C, n)`` of `budgetreg.solvers.eigenspaces`.

    Returns
    -------
    dict
        ``excess_loss``, ``<Pi* - Pi, C>``, which rounding makes neither negative nor wrong in its leading digits
        where it is small; ``relative_error``, the loss divided by ``tr C``, that of the empty subspace;
        ``principal_angle``, the largest angle between the two subspaces, in degrees. Where the n-th and the
        (n+1)-th eigenvalue of C are equal there are several best subspaces, and the angle is to one of them.
    """
    overlap = best.T @ v
    outside = v - best @ overlap
    missed = best - v @ overlap.T
    eigenvalues = (best * (C @ best)).sum(axis=0)
    # Both terms are sums of non-negative numbers: no difference of two losses that are nearly equal.
    within = np.vdot(eigenvalues - eigenvalues[-1], np.square(missed).sum(axis=0))
    beyond = eigenvalues[-1] * np.square(outside).sum() - np.vdot(outside, C @ outside)
    sine, cosine = (np.linalg.svd(matrix, compute_uv=False) for matrix in (outside, overlap))
    total = np.trace(C)
    return {
        "excess_loss": max(0.0, float(within + beyond)),
        "relative_error": float((total - np.vdot(v, C @ v)) / total),
        "principal_angle": float(np.degrees(np.arctan2(sine[0], cosine[-1]))),
    }

"""Leading eigenvectors of a low-rank matrix plus a diagonal one, neither of which is ever formed: O(d q) numbers."""

import numpy as np

_STEPS = 5
"""Steps of subspace iteration; each one makes the error smaller by the spread of the diagonal over an eigenvalue."""


def leading_of_sum(W: np.ndarray, psi: np.ndarray, n: int) -> np.ndarray:
    """Return the leading eigenvectors of ``W W' + diag(psi)``, nearly.

    They lie in the span of W where psi is the same everywhere. Subspace iteration begins with these q columns, and is
    of ``W W' + diag(psi - min psi)``, whose eigenvectors are the same.

    Parameters
    ----------
    W : ndarray of float, shape (d, q)
        q at most d.
    psi : ndarray of float, shape (d,)
    n : int
        How many, at most q.

    Returns
    -------
    ndarray of float, shape (d, n)
        Orthonormal columns, that of the largest eigenvalue first.
    """
    uneven = (psi - psi.min())[:, None]
    V = np.linalg.qr(W)[0]
    for _ in range(_STEPS):
        V = np.linalg.qr(W @ (W.T @ V) + uneven * V)[0]
    _, turn = np.linalg.eigh(V.T @ (W @ (W.T @ V) + uneven * V))
    return np.asarray(V @ turn[:, : -n - 1 : -1])

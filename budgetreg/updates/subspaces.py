"""Subspaces that move: the columns of all replicas, and the weights of columns that explain what is seen."""

import numpy as np


class Subspaces:
    """F x G subspaces as columns, which an update keeps close to orthonormal.

    Parameters
    ----------
    V : ndarray of float, shape (F, G, d, n)
        Orthonormal columns to start from.
    """

    def __init__(self, V: np.ndarray) -> None:
        self._V = V

    def _rows(self) -> np.ndarray:
        """Return the rows of all V: a view, shape (F * G * d, n)."""
        return self._V.reshape(-1, self._V.shape[3])

    def subspace(self) -> np.ndarray:
        """Return orthonormal columns, shape (F, G, d, n)."""
        return np.linalg.qr(self._V)[0]


def weights(V_S: np.ndarray, x: np.ndarray, ridge: float) -> np.ndarray:
    """Minimise ``|V_S w - x_S|^2 + ridge |w|^2``.

    Parameters
    ----------
    V_S : ndarray of float, shape (..., r, n)
        Rows of the subspace.
    x : ndarray of float, shape (..., r, 1)
        Values seen.
    ridge : float
        Above 0: the rows of attributes that are always 0 become 0, too, and the others may be fewer than n.

    Returns
    -------
    ndarray of float, shape (..., n, 1)
    """
    V_T = V_S.swapaxes(-1, -2)
    return np.linalg.solve(V_T @ V_S + ridge * np.eye(V_S.shape[-1]), V_T @ x)

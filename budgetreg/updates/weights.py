"""Weights of a subspace's columns that explain an example of which some attributes are seen."""

import numpy as np


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

"""Euclidean projection onto the 2-ball, many vectors at once."""

import numpy as np


def project_l2(v: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """Project onto the 2-ball, ``v radius / max(|v|_2, radius)``.

    Parameters
    ----------
    v : ndarray of float, shape (..., d)
        Vectors along the last axis.
    radius : float or ndarray, broadcastable to shape (...)
        Radii, positive.

    Returns
    -------
    ndarray of float, shape (..., d)
        The nearest points of the balls.
    """
    norm = np.sqrt(np.vecdot(v, v))
    return v * (radius / np.maximum(norm, radius))[..., None]

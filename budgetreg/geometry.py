"""Euclidean projections onto balls, many vectors at once."""

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


def project_l1(v: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """Project onto the 1-ball by soft thresholding.

    Duchi, Shalev-Shwartz, Singer & Chandra 2008, *Efficient projections onto the l1-ball for learning in high
    dimensions*, Fig. 1, by sorting.

    Parameters
    ----------
    v : ndarray of float, shape (..., d)
        Vectors along the last axis.
    radius : float or ndarray, broadcastable to shape (...)
        Radii, positive.

    Returns
    -------
    ndarray of float, shape (..., d)
        The nearest points of the balls; vectors inside their ball are returned as they are.
    """
    magnitude = np.abs(v)
    excess = np.sort(magnitude, axis=-1)[..., ::-1].cumsum(axis=-1) - np.expand_dims(radius, -1)
    # excess / rank grows while the rank-th largest magnitude exceeds it: its maximum is the threshold.
    threshold = (excess / np.arange(1, v.shape[-1] + 1)).max(axis=-1, keepdims=True)
    return np.copysign(np.maximum(magnitude - np.maximum(threshold, 0), 0), v)

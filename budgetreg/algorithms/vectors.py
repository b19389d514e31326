"""Operations on dense regressors; no bit of a result depends on the number of replicas.

Products of matrices and `numpy.einsum` group the terms by the shapes of all arrays.
"""

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


def inner_products(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return ``<w, x>`` along the last axis; no bit depends on the lengths of the other axes.

    Products of matrices and `numpy.einsum` group the terms by the shapes of all arrays, so that a replica's numbers
    would depend on how many others there are.

    Parameters
    ----------
    w, x : ndarray of float, shapes (..., d)
        Vectors, broadcast against each other, such as regressors (F, G, d) and examples (F, 1, d).

    Returns
    -------
    ndarray of float, shape (...)
    """
    return np.asarray(np.vecdot(w, x))


def sum_in_order(terms: np.ndarray) -> np.ndarray:
    """Return the sum over the first axis in a fixed order, which `numpy.sum` does not promise."""
    total = terms[0].copy()
    for term in terms[1:]:
        total += term
    return np.asarray(total)

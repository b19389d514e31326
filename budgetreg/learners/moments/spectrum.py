"""Cleaning of a noisy second-moment matrix: its eigenvectors are kept, its eigenvalues are corrected.

Independent noise in the entries of a symmetric matrix spreads its eigenvalues. Among the estimates that keep the
eigenvectors, the one of least squared error subtracts from each eigenvalue twice the noise variance times the Hilbert
transform of the spectral density there.

References
----------
J. Bun, R. Allez, J.-P. Bouchaud, M. Potters. Rotational invariant estimator for general noisy matrices.
IEEE Transactions on Information Theory 62, 2016: additive Gaussian noise.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

_MIN_EIGENVALUE, _FLOOR_QUANTILE = 0.02, 0.3
"""Lower bound of the eigenvalues, for a matrix of mean diagonal 1; and the quantile of the spectrum up to which the
smallest eigenvalues may be raised, because the inverse of a single small one would amplify noise."""


@dataclass(frozen=True)
class Spectrum:
    """A symmetric matrix ``U diag(values) U'``.

    Attributes
    ----------
    U : ndarray of float, shape (p, p)
        Orthonormal columns.
    values : ndarray of float, shape (p,)
        Eigenvalues, ascending and above 0.
    """

    U: np.ndarray
    values: np.ndarray


def clean(G: np.ndarray, variance: float) -> Spectrum:
    """Return the estimated spectrum of a matrix from a noisy observation of it.

    Parameters
    ----------
    G : ndarray of float, shape (p, p)
        The noisy matrix: symmetric, with a mean diagonal of about 1.
    variance : float
        ``s^2``: p times the variance of the noise in an entry off the diagonal.
    """
    p = len(G)
    eigenvalues, U = np.linalg.eigh(G)
    s = np.sqrt(variance)
    gaps = eigenvalues[:, None] - eigenvalues
    kernel = gaps / (np.square(gaps) + max(variance / p, np.finfo(float).tiny))
    cleaned = isotonic_regression(eigenvalues - 2 * variance * kernel.mean(axis=1)).x
    floor = max(_MIN_EIGENVALUE, min(float(np.quantile(cleaned, _FLOOR_QUANTILE)), s / 4))
    return Spectrum(U, np.maximum(cleaned, floor))


def noise(G: np.ndarray, trained: np.ndarray, held: np.ndarray) -> float:
    """Return ``s^2`` of a noisy matrix, estimated from folds of its examples.

    Parameters
    ----------
    G : ndarray of float, shape (p, p)
        The matrix from all examples.
    trained, held : ndarray of float, shape (folds, p, p)
        The same matrix without each fold, and from each fold alone. Their noises are independent, so the mean of
        their products estimates the mean square without noise.
    """
    signal = max(0.0, float((trained * held).mean()))
    return max(0.0, float(np.square(G).mean()) - signal) * len(G)

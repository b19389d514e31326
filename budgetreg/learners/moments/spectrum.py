"""Second moments that noise has blurred, made those of a matrix that could have been: their spectrum is cleaned.

A symmetric matrix plus one of independent noise in its entries has eigenvalues that are spread by the noise. The
estimate that keeps the eigenvectors and loses least has, for the i-th of them, the eigenvalue less twice the noise's
variance times the Hilbert transform of the spectral density there.

References
----------
J. Bun, R. Allez, J.-P. Bouchaud, M. Potters. Rotational invariant estimator for general noisy matrices.
IEEE Transactions on Information Theory 62, 2016: additive Gaussian noise.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

_LEAST, _BOTTOM = 0.02, 0.3
"""Least eigenvalue, for a matrix of mean diagonal 1; and which quantile of the spectrum those at its bottom are raised
to at most: lone small eigenvalues would become amplifiers."""


@dataclass(frozen=True)
class Spectrum:
    """A symmetric matrix ``U diag(values) U'``.

    Attributes
    ----------
    U : ndarray of float, shape (p, p)
        Orthonormal columns.
    values : ndarray of float, shape (p,)
        Ascending; above 0.
    """

    U: np.ndarray
    values: np.ndarray


def clean(G: np.ndarray, variance: float) -> Spectrum:
    """Return the spectrum of the matrix that noise was added to, as far as it can be told.

    Parameters
    ----------
    G : ndarray of float, shape (p, p)
        Symmetric, of mean diagonal about 1.
    variance : float
        ``s^2``: p times the variance of the noise in an entry off the diagonal.
    """
    p = len(G)
    e, U = np.linalg.eigh(G)
    s = np.sqrt(variance)
    apart = e[:, None] - e
    kernel = apart / (np.square(apart) + max(variance / p, np.finfo(float).tiny))
    xi = isotonic_regression(e - 2 * variance * kernel.mean(axis=1)).x
    least = max(_LEAST, min(float(np.quantile(xi, _BOTTOM)), s / 4))
    return Spectrum(U, np.maximum(xi, least))


def noise(G: np.ndarray, trained: np.ndarray, held: np.ndarray) -> float:
    """Measure ``s^2`` of a matrix by folds of what it was made of.

    Parameters
    ----------
    G : ndarray of float, shape (p, p)
    trained, held : ndarray of float, shape (folds, p, p)
        The same matrix made without each fold, and of each fold alone, whose noise is independent: the mean of their
        products is that of the squares without noise.
    """
    signal = max(0.0, float((trained * held).mean()))
    return max(0.0, float(np.square(G).mean()) - signal) * len(G)

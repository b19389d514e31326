"""Candidate regressors from second moments that are cleaned of noise: ridge, at several strengths.

Given ``x = a + b u + e`` and the target ``t0 + u``, the second moment of x is ``P Q P' + R`` with ``P = [a b]``,
``Q = diag(1, E u^2)`` and R the second moment of e. The moment of x with the target is ``P r``, ``r = (t0, E u^2)``.
By Woodbury's identity the ridge regressor is

    w = H (I + Q P'H)^-1 r,    H = (R + ridge C^-2)^-1 P.

R is scaled by C and has a cleaned spectrum, whose eigenvectors serve all strengths of ridge. Cleaning keeps the
eigenvectors of a noisy second-moment matrix, and corrects its eigenvalues, which independent noise in the entries
spreads. Among the estimates that keep the eigenvectors, the one of least squared error subtracts from each eigenvalue
twice the noise variance times the Hilbert transform of the spectral density there.

References
----------
J. Bun, R. Allez, J.-P. Bouchaud, M. Potters. Rotational invariant estimator for general noisy matrices.
IEEE Transactions on Information Theory 62, 2016: additive Gaussian noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

_MIN_EIGENVALUE, _FLOOR_QUANTILE = 0.02, 0.3
"""Lower bound of the eigenvalues, for a matrix of mean diagonal 1; and the quantile of the spectrum up to which the
smallest eigenvalues may be raised, because the inverse of a single small one would amplify noise."""

RIDGES = tuple(10.0 ** (half / 2) for half in range(-5, 5))
"""Strengths of ridge."""

SPECTRA = 3
"""See `spectra`."""


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


def spectra(shrunk: np.ndarray, debiased: np.ndarray, noises: Sequence[float]) -> list[Spectrum]:
    """Return a flat spectrum, that of the shrunk matrix, and that of the debiased matrix.

    Parameters
    ----------
    shrunk, debiased : ndarray of float, shape (p, p)
        See `clean`.
    noises : sequence of float
        The noise of either, see `noise`.
    """
    small = clean(shrunk, noises[0])
    return [Spectrum(small.U, np.ones(len(small.values))), small, clean(debiased, noises[1])]


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


@dataclass(frozen=True)
class Target:
    """Moments of the target.

    Attributes
    ----------
    level : float
        Mean t0, counted from the prediction's origin; 0 with an intercept.
    variance : float
        ``E u^2``.
    """

    level: float
    variance: float

    @property
    def square(self) -> float:
        """Mean square of the target."""
        return self.level**2 + self.variance

    @property
    def moment(self) -> np.ndarray:
        """Q, the second moment of ``(1, u)``."""
        return np.diag([1.0, self.variance])

    @property
    def product(self) -> np.ndarray:
        """r, the mean of the target times ``(1, u)``."""
        return np.array([self.level, self.variance])


def regressors(spectra: Sequence[Spectrum], P: np.ndarray, target: Target) -> np.ndarray:
    """Return the ridge regressors of all spectra and strengths.

    Parameters
    ----------
    spectra : sequence of Spectrum
        Spectra of R in scaled coordinates.
    P : ndarray of float, shape (p, 2)
        ``[a b]`` in scaled coordinates, in which the regressors are, too.
    target : Target

    Returns
    -------
    ndarray of float, shape (len(spectra) * len(RIDGES), p)
    """
    regressors = []
    ridge = np.array(RIDGES)[:, None, None]
    for spectrum in spectra:
        Z = spectrum.U.T @ P
        H = Z / (spectrum.values[:, None] + ridge)
        t = np.linalg.solve(np.eye(2) + target.moment @ (Z.T @ H), target.product[:, None])
        regressors.append((H @ t)[..., 0] @ spectrum.U.T)
    return np.concatenate(regressors)

"""Candidate regressors from cleaned second moments: ridge, or the lasso, at several penalties.

Given ``x = a + b u + e`` and the target ``t0 + u``, the second moment of x is ``P Q P' + R`` with ``P = [a b]``,
``Q = diag(1, E u^2)`` and R the second moment of e. The moment of x with the target is ``P r``, ``r = (t0, E u^2)``.
By Woodbury's identity the ridge regressor is

    w = H (I + Q P'H)^-1 r,    H = (R + ridge C^-2)^-1 P.

R is scaled by C and has a cleaned spectrum, whose eigenvectors serve all strengths of ridge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from warnings import catch_warnings, simplefilter

import numpy as np

from budgetreg.learners.moments.spectrum import Spectrum

RIDGES = tuple(10.0 ** (half / 2) for half in range(-5, 5))
"""Strengths of ridge."""

PENALTIES = tuple(10.0 ** (-fifth / 5) for fifth in range(1, 13))
"""Penalties of the lasso, as fractions of the smallest penalty whose regressor is 0."""

_MAX_STEPS = 200
"""Steps of a lasso path, about as many as attributes that may enter."""


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


def ridge_regressors(spectra: Sequence[Spectrum], P: np.ndarray, target: Target) -> np.ndarray:
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


def lasso_regressors(spectra: Sequence[Spectrum], P: np.ndarray, target: Target) -> np.ndarray:
    """Minimise ``w'M w / 2 - w'r + penalty |w|_1``, w in units of the attributes' root mean squares.

    Parameters
    ----------
    spectra, P, target
        As for `ridge_regressors`; ``M = P Q P' + R``.

    Returns
    -------
    ndarray of float, shape (len(spectra) * len(PENALTIES), p)
    """
    from sklearn.exceptions import ConvergenceWarning  # imported here because scikit-learn loads slowly
    from sklearn.linear_model import lars_path_gram

    regressors = []
    for spectrum in spectra:
        M = P @ target.moment @ P.T + (spectrum.U * spectrum.values) @ spectrum.U.T
        units = np.sqrt(np.diag(M))
        rhs = P @ target.product / units
        largest = np.abs(rhs).max()
        if largest == 0:
            regressors.append(np.zeros((len(PENALTIES), len(units))))
            continue
        with catch_warnings():
            # A path that ends early keeps its last regressor for the smaller penalties; held-out folds judge it, too.
            simplefilter("ignore", ConvergenceWarning)
            alphas, _, path = lars_path_gram(
                rhs / largest,
                M / np.outer(units, units),
                n_samples=1,
                method="lasso",
                alpha_min=PENALTIES[-1],
                max_iter=_MAX_STEPS,
            )
        W = np.stack([np.interp(PENALTIES, alphas[::-1], weights[::-1]) for weights in path])
        regressors.append(W.T * largest / units)
    return np.concatenate(regressors)

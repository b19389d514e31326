"""Regressors of many spectra and ridges, or penalties of the L1 norm, from cleaned moments.

With ``x = a + b u + e``, the target being ``t0 + u``, second moments are ``P Q P' + R`` with ``P = [a b]`` and
``Q = diag(1, E u^2)``, R that of e; and those with the target ``P r``, ``r = (t0, E u^2)``. Hence by Woodbury

    w = H (I + Q P'H)^-1 r,    H = (R + ridge C^-2)^-1 P,

in which R, scaled by C, has its spectrum cleaned; eigenvectors serve all ridges.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from warnings import catch_warnings, simplefilter

import numpy as np

from budgetreg.learners.moments.spectrum import Spectrum

RIDGES = tuple(10.0 ** (half / 2) for half in range(-5, 5))

PENALTIES = tuple(10.0 ** (-fifth / 5) for fifth in range(1, 13))
"""Of the L1 norm: shares of the least at which nothing is left."""

_MOST_STEPS = 200
"""Of a path of penalties: about as many attributes come in at most."""


@dataclass(frozen=True)
class Target:
    """What is known of the target without attributes.

    Attributes
    ----------
    level : float
        Its mean, as seen from where predictions begin; 0 with an intercept.
    variance : float
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
    """Solve for all spectra and ridges.

    Parameters
    ----------
    spectra : sequence of Spectrum
        Of R in scaled coordinates.
    P : ndarray of float, shape (p, 2)
        Scaled, as are the regressors.
    target : Target

    Returns
    -------
    ndarray of float, shape (len(spectra) * len(RIDGES), p)
    """
    found = []
    penalty = np.array(RIDGES)[:, None, None]
    for spectrum in spectra:
        Z = spectrum.U.T @ P
        H = Z / (spectrum.values[:, None] + penalty)
        t = np.linalg.solve(np.eye(2) + target.moment @ (Z.T @ H), target.product[:, None])
        found.append((H @ t)[..., 0] @ spectrum.U.T)
    return np.concatenate(found)


def lasso_regressors(spectra: Sequence[Spectrum], P: np.ndarray, target: Target) -> np.ndarray:
    """Minimise ``w'M w / 2 - w'r`` plus penalties times the L1 norm, in units of the attributes' root mean squares.

    Parameters
    ----------
    spectra, P, target
        As for `ridge_regressors`; ``M = P Q P' + R``.

    Returns
    -------
    ndarray of float, shape (len(spectra) * len(PENALTIES), p)
    """
    from sklearn.exceptions import ConvergenceWarning  # both take a while to import
    from sklearn.linear_model import lars_path_gram

    found = []
    at = np.array(PENALTIES)
    for spectrum in spectra:
        M = P @ target.moment @ P.T + (spectrum.U * spectrum.values) @ spectrum.U.T
        units = np.sqrt(np.diag(M))
        rhs = P @ target.product / units
        most = np.abs(rhs).max()
        if most == 0:
            found.append(np.zeros((len(PENALTIES), len(units))))
            continue
        with catch_warnings():
            # Where the path ends early its last regressor stands for lesser penalties; held-out folds judge it, too.
            simplefilter("ignore", ConvergenceWarning)
            alphas, _, path = lars_path_gram(
                rhs / most,
                M / np.outer(units, units),
                n_samples=1,
                method="lasso",
                alpha_min=PENALTIES[-1],
                max_iter=_MOST_STEPS,
            )
        W = np.stack([np.interp(at, alphas[::-1], own[::-1]) for own in path])
        found.append(W.T * most / units)
    return np.concatenate(found)

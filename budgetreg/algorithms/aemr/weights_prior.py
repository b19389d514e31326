"""A prior of regression weights of which few may be large, and draws of weights under it.

Each weight is large with probability pi: ``w_i ~ N(0, t)`` if large, and ``N(0, s t)`` otherwise, with a fixed small s.
The root of t is half-Cauchy with scale ``sqrt(v / m)``, v the target's variance and m the number of large weights, so
that m weights may explain it all; and pi is uniform.
Dense regressors have pi near 1, sparse ones near 0.

References
----------
E. I. George, R. E. McCulloch. Variable selection via Gibbs sampling. JASA 88, 1993: the mixture.
E. Makalic, D. F. Schmidt. A simple sampler for the horseshoe estimator. IEEE Signal Processing Letters 23, 2016: the
half-Cauchy distribution as a mixture of inverse gamma distributions.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs
from scipy.special import expit

_SMALL = 0.01
"""Variance of the small weights, in that of the large ones."""

LEAST_NOISE = 0.02
"""Rate of the noise variance's prior ``InvGamma(1, rate)``, in variances of the target."""

_FEW, _MORE = 100, 8
"""Up to so many weights, so many times the sweeps: they cost little there, and the chain's noise is visible."""


class Equations(NamedTuple):
    """Normal equations of a regression with weighted examples.

    Attributes
    ----------
    Q : ndarray of float, shape (p, p)
        Sum of the attributes' products.
    r : ndarray of float, shape (p,)
        Sum of their products with the target.
    squares : float
        Sum of the target's squares.
    """

    Q: np.ndarray
    r: np.ndarray
    squares: float

    def residual(self, w: np.ndarray) -> float:
        """Return the sum of squares that the regressor w leaves, at least a tiny positive number."""
        return max(self.squares - 2 * float(self.r @ w) + float(w @ self.Q @ w), 1e-9)


class Draws(NamedTuple):
    """Means over draws of the weights.

    Attributes
    ----------
    mean : ndarray of float, shape (p,)
    residual : float
        Mean of `Equations.residual`.
    form : float
        Mean of the quadratic form.
    """

    mean: np.ndarray
    residual: float
    form: float


class WeightsPrior:
    """The state of the prior's own parameters in a Gibbs chain.

    Parameters
    ----------
    p : int
        Number of weights.
    variance : float
        Variance v of the target.
    """

    def __init__(self, p: int, variance: float) -> None:
        self._p, self._v = p, variance
        self._t, self._inverse_a = variance / p, p / variance
        self._large, self._pi = np.ones(p, dtype=bool), 0.5

    def draw(
        self,
        equations: Equations,
        rng: np.random.Generator,
        sweeps: tuple[int, int],
        *,
        form: np.ndarray,
        penalty: float,
    ) -> Draws:
        """Draw weights and the prior's parameters in turn.

        Parameters
        ----------
        equations : Equations
            The examples weighted by their precisions.
        rng : numpy.random.Generator
        sweeps : tuple of int
            Sweeps before those that are averaged, and those.
        form : ndarray of float, shape (p, p)
            A matrix A, of the quadratic form ``w'A w``.
        penalty : float
            The density is multiplied by ``exp(-penalty w'A w / 2)``.
        """
        before, kept = (count * (_MORE if self._p <= _FEW else 1) for count in sweeps)
        base = equations.Q + penalty * form
        mean, residual, size = np.zeros(self._p), 0.0, 0.0
        for sweep in range(before + kept):
            precision = base.copy()
            np.einsum("ii->i", precision)[:] += 1 / np.where(self._large, self._t, _SMALL * self._t)
            root = np.linalg.cholesky(precision)
            # LAPACK itself, which reads matrices by columns, hence the transpose: if systems are small, the checks of
            # SciPy's solve_triangular take longer than solving.
            half, _ = dtrtrs(root.T, equations.r, trans=1)
            both, _ = dtrtrs(root.T, np.stack([half, half + rng.standard_normal(self._p)], axis=1))
            centre, w = both.T
            self._draw_parameters(w, rng)
            if sweep >= before:
                mean += centre / kept
                residual += equations.residual(w) / kept
                size += float(w @ form @ w) / kept
        return Draws(mean, residual, size)

    def _draw_parameters(self, w: np.ndarray, rng: np.random.Generator) -> None:
        odds = np.log(self._pi / (1 - self._pi)) + np.log(_SMALL) / 2 + w**2 / (2 * self._t) * (1 / _SMALL - 1)
        self._large = rng.random(self._p) < expit(odds)
        large = int(self._large.sum())
        self._pi = min(max(rng.beta(1 + large, 1 + self._p - large), 1e-6), 1 - 1e-6)
        size = (np.square(w) / np.where(self._large, 1.0, _SMALL)).sum()
        self._t = (size / 2 + 1 / self._inverse_a) / rng.standard_gamma((self._p + 1) / 2)
        self._inverse_a = (max(1, large) / self._v + 1 / self._t) / rng.standard_gamma(1.0)

"""Draws of a regression's weights, of which few may be large.

Each weight is large with probability pi: ``w_i ~ N(0, t)`` if large, and ``N(0, s t)`` otherwise, with a fixed small s.
The root of t is half-Cauchy with scale ``sqrt(v / m)``, v the target's variance and m the number of large weights, so
that m weights may explain it all; and pi is uniform. Dense regressors have pi near 1, sparse ones near 0. s is 1 / p,
so that all small weights together count at most as much as a large one, or 1 / 100 if that is less.

Chains of several regressions of p weights each advance together, because NumPy's calls take longer than small systems
do. A chain's draws depend on no other.

References
----------
E. I. George, R. E. McCulloch. Variable selection via Gibbs sampling. JASA 88, 1993: the mixture.
E. Makalic, D. F. Schmidt. A simple sampler for the horseshoe estimator. IEEE Signal Processing Letters 23, 2016: the
half-Cauchy distribution as a mixture of inverse gamma distributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs
from scipy.special import expit, logit

_LEAST_SMALL = 100
"""1 / s is the number of weights, or this if that is more."""

_IN_TURN = 3
"""In one of so many sweeps, large weights are drawn in turn, which takes longer."""


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
    square : ndarray of float, shape (p,)
        Mean of the squares.
    parameters : float
        Effective number of weights: what a draw leaves in the mean more than their mean does, in variances.
    """

    mean: np.ndarray
    residual: float
    form: float
    square: np.ndarray
    parameters: float


class WeightsPrior:
    """The states of the prior's own parameters in the Gibbs chains of G regressions.

    Parameters
    ----------
    p : int
        Number of weights of each.
    variances : sequence of float
        Variance v of each target.
    large : bool
        Whether all weights are large at first, or none is.
    """

    def __init__(self, p: int, variances: Sequence[float], *, large: bool) -> None:
        G, at_first = len(variances), p if large else 1
        self._p, self._v, self._small = p, variances, 1 / max(p, _LEAST_SMALL)
        self._t = np.array(variances)[:, None] / at_first
        self._inverse_a = [at_first / v for v in variances]
        self._large, self._pi = np.full((G, p), large), np.full((G, 1), 0.5 if large else 1 / (p + 1))
        self._w = np.zeros((G, p))

    def draw(
        self,
        equations: Sequence[Equations],
        rngs: Sequence[np.random.Generator],
        sweeps: tuple[int, int],
        *,
        forms: Sequence[np.ndarray],
        penalties: Sequence[float],
    ) -> list[Draws]:
        """Draw weights and the prior's parameters in turn, and return the means of each regression.

        Parameters
        ----------
        equations : sequence of Equations
            The examples of each regression, weighted by their precisions.
        rngs : sequence of numpy.random.Generator
        sweeps : tuple of int
            Sweeps before those that are averaged, and those.
        forms : sequence of ndarray of float, shape (p, p)
            A matrix A, of the quadratic form ``w'A w``.
        penalties : sequence of float
            The density is multiplied by ``exp(-penalty w'A w / 2)``.
        """
        before, kept = sweeps
        bases = np.stack([of.Q + penalty * A for of, A, penalty in zip(equations, forms, penalties, strict=True)])
        r = np.stack([of.r for of in equations])
        mean, square = np.zeros_like(r), np.zeros_like(r)
        residuals, sizes = np.zeros(len(r)), np.zeros(len(r))
        both = np.empty((*r.shape[:1], 2, self._p))
        for sweep in range(before + kept):
            if sweep % _IN_TURN == 0:
                self._draw_in_turn(bases, r, rngs)
            else:
                self._draw_large(rngs)
            precisions = bases.copy()
            np.einsum("gii->gi", precisions)[:] += 1 / np.where(self._large, self._t, self._small * self._t)
            for root, right, right_and_half, rng in zip(np.linalg.cholesky(precisions), r, both, rngs, strict=True):
                # LAPACK itself, which reads matrices by columns, hence the transposes: if systems are small, the
                # checks of SciPy's solve_triangular take longer than solving.
                half, _ = dtrtrs(root.T, right, trans=1)
                right_and_half[:] = half
                right_and_half[1] += rng.standard_normal(self._p)
                right_and_half[:] = dtrtrs(root.T, right_and_half.T)[0].T
            self._w = both[:, 1].copy()
            self._draw_parameters(rngs)
            if sweep >= before:
                mean += both[:, 0] / kept
                square += np.square(self._w) / kept
                for g, (w, of, form) in enumerate(zip(self._w, equations, forms, strict=True)):
                    residuals[g] += of.residual(w) / kept
                    sizes[g] += float(w @ form @ w) / kept
        parameters = [
            max(0.0, x - of.residual(w)) for x, of, w in zip(residuals.tolist(), equations, mean, strict=True)
        ]
        return list(map(Draws, mean, residuals.tolist(), sizes.tolist(), square, parameters))

    def _draw_in_turn(self, bases: np.ndarray, r: np.ndarray, rngs: Sequence[np.random.Generator]) -> None:
        """Draw, for one weight after the other, whether it is large, whatever its value, and then the weight.

        The density is ``exp(r'w - w' base w / 2)`` times the prior. A weight that is small now can become large
        although no value of it is likely for both, which hardly happens in `_draw_large`.
        """
        p, a = self._p, np.einsum("gii->gi", bases)
        uniform, normal = map(np.stack, zip(*((rng.random(p), rng.standard_normal(p)) for rng in rngs), strict=True))
        # of a weight given the others, if small and if large
        small, large = (t / (1 + a * t) for t in (self._small * self._t, self._t))
        odds = logit(self._pi) - logit(uniform) + np.log(large / small * self._small) / 2
        gain, variances = (large - small) / 2, np.stack([small, large], axis=2)
        noise = normal[:, :, None] * np.sqrt(variances)
        # Lists, because single numbers of an array are slow to read.
        of_all = (of.tolist() for of in (self._w, a, odds, gain, variances, noise))
        for base, w, is_large, right, *single in zip(bases, self._w, self._large, r, *of_all, strict=True):
            left = right - base @ w
            for i, (old, a_i, odds_i, gain_i, variance, e) in enumerate(zip(*single, strict=True)):
                alone = left.item(i) + a_i * old
                now_large = odds_i + gain_i * alone**2 > 0
                w[i] = variance[now_large] * alone + e[now_large]
                left -= base[i] * (w.item(i) - old)
                is_large[i] = now_large

    def _draw_large(self, rngs: Sequence[np.random.Generator]) -> None:
        odds = logit(self._pi) + np.log(self._small) / 2 + self._w**2 / (2 * self._t) * (1 / self._small - 1)
        self._large = np.stack([rng.random(self._p) for rng in rngs]) < expit(odds)

    def _draw_parameters(self, rngs: Sequence[np.random.Generator]) -> None:
        sizes = (np.square(self._w) / np.where(self._large, 1.0, self._small)).sum(axis=1).tolist()
        for g, (large, size, rng) in enumerate(zip(self._large.sum(axis=1).tolist(), sizes, rngs, strict=True)):
            self._pi[g] = min(max(rng.beta(1 + large, 1 + self._p - large), 1e-6), 1 - 1e-6)
            t = (size / 2 + 1 / self._inverse_a[g]) / rng.standard_gamma((self._p + 1) / 2)
            self._inverse_a[g] = (max(1, large) / self._v[g] + 1 / t) / rng.standard_gamma(1.0)
            self._t[g] = t

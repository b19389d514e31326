"""The regressor of second moments: an average of candidates, weighted by their held-out risks.

`Pairs` adds up the products of pairs of attributes that were seen together, by folds. From them come candidates, ridge
regressors of moments that are cleaned of noise; `judge` estimates their risks on the folds without which they were
made, and `solve` averages them.

References
----------
J. Bun, R. Allez, J.-P. Bouchaud, M. Potters. Rotational invariant estimator for general noisy matrices.
IEEE Transactions on Information Theory 62, 2016: additive Gaussian noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import dawsn

from budgetreg.metering.table import WithIntercept
from budgetreg.revealed.collection import Block, labelled, rows_by_column
from budgetreg.revealed.columns import Rescaled, equal_values, variance


@dataclass(frozen=True)
class Solution:
    """The regressor of one stream, and the estimates that it is made from.

    Attributes
    ----------
    w : ndarray of float, shape (d,)
    label : LabelRegression
    candidates : ndarray of float, shape (SPECTRA * len(RIDGES), d)
        Ridge regressors of all spectra and strengths, each at its best scale.
    """

    w: np.ndarray
    label: LabelRegression
    candidates: np.ndarray


def solve(
    blocks: Sequence[Block],
    f: int,
    phases: Sequence[int],
    d: int,
    *,
    centred: bool,
    intercept: bool,
    zero_is_meaningful: bool = True,
    excess: float = 0.0,
    inflation: np.ndarray | float = 1.0,
) -> Solution:
    """Return the solution of one stream.

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed; the last value of each example is its target.
    f : int
        The stream.
    phases : sequence of int
        See `budgetreg.revealed.collection.Collected`.
    d : int
        Number of attributes.
    centred, intercept : bool
        Whether attributes are centred on their means, and whether the target is.
    zero_is_meaningful : bool
        See `budgetreg.revealed.columns.equal_values`.
    excess : float
    inflation : ndarray of float, shape (d,), or float
        See `budgetreg.revealed.columns.Rescaled`.
    """
    revealed = StreamValues(blocks, f, d, centred=centred, intercept=intercept, zero_is_meaningful=zero_is_meaningful)
    label = revealed.label(slice(None))
    predictive = label.inflated(inflation)
    count = SPECTRA * len(RIDGES)
    level = 0.0 if intercept else revealed.mean
    if not predictive.live.any() or revealed.variance == 0:
        w = label.constants.weights(level) if revealed.variance else np.zeros(d)
        return Solution(w, label, np.tile(w, (count, 1)))
    target = Target(label.constants.factor * level, revealed.variance)
    pairs = Pairs(blocks, f, phases, predictive, revealed.mean)

    def columns(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the live attributes' values at the mean target, and their slopes, in units of their scales."""
        means = np.zeros(len(pairs.live)) if centred else label.constants.factor * a[pairs.live]
        return np.stack([means, b[pairs.live]], axis=1) * pairs.scale[:, None]

    moments = _fold_moments(pairs)
    evidence = []
    for fold in range(FOLDS):  # candidates are made without the fold, and judged on it
        trained = revealed.label(revealed.fold != fold)
        W = regressors(moments.spectra_without(fold), columns(trained.a, trained.b), target)
        P = columns(*revealed.held_out(fold, trained))
        variance = ((W @ moments.held[fold]) * W).sum(axis=1) + np.square(W) @ (excess * pairs.diagonal)
        evidence.append(Evidence(W @ P[:, 0], W @ P[:, 1], variance))
    scores = judge(evidence, target)
    W = regressors(spectra(*moments.whole, moments.noises), columns(label.a, label.b), target)
    full = np.zeros((len(W), d))
    full[:, pairs.live] = W * (scores.scale[:, None] * pairs.scale)
    if label.constants.c.any():
        full += label.constants.weights(level - full @ label.a)
    return Solution(scores.weights() @ full, label, full)


def solve_streams(
    rescaled: Rescaled, phases: Sequence[int], d: int, *, zero_is_meaningful: bool, centred: bool, intercept: bool
) -> list[Solution]:
    """Return the solutions of all streams from their examples with a known target; parameters as for `solve`."""
    return [
        solve(
            *labelled(rescaled.blocks, f, phases, d),
            d,
            centred=centred,
            intercept=intercept,
            zero_is_meaningful=zero_is_meaningful,
            excess=excess,
            inflation=inflation,
        )
        for f, (excess, inflation) in enumerate(zip(rescaled.excess, rescaled.inflation, strict=True))
    ]


class _FoldMoments(NamedTuple):
    """Estimated second moments of n live attributes given the target: shrunk ones, and ones without that bias."""

    whole: tuple[np.ndarray, np.ndarray]
    """From all folds, (n, n) each."""
    shrunk: np.ndarray
    """Without each fold, shape (FOLDS, n, n)."""
    debiased: np.ndarray
    """The same without bias."""
    held: np.ndarray
    """From each fold alone, without bias, shape (FOLDS, n, n)."""
    noises: tuple[float, float]
    """Variances of the noise in `whole`."""

    def spectra_without(self, fold: int) -> list[Spectrum]:
        """Return the cleaned spectra of the moments without a fold, whose noise is larger."""
        noises = [s2 * FOLDS / (FOLDS - 1) for s2 in self.noises]
        return spectra(self.shrunk[fold], self.debiased[fold], noises)


def _fold_moments(pairs: Pairs) -> _FoldMoments:
    everything = pairs.sums.sum(axis=0), pairs.counts.sum(axis=0)
    whole = pairs.shrunk(*everything), pairs.debiased(*everything)
    shrunk, debiased = (
        np.stack([mean(*pairs.without(fold)) for fold in range(FOLDS)]) for mean in (pairs.shrunk, pairs.debiased)
    )
    held = np.stack([pairs.debiased(pairs.sums[fold], pairs.counts[fold]) for fold in range(FOLDS)])
    noises = noise(whole[0], shrunk, held * shrunk_share(pairs.expected)), noise(whole[1], debiased, held)
    return _FoldMoments(whole, shrunk, debiased, held, noises)


def with_intercepts(
    W: np.ndarray, solutions: Sequence[Solution], blocks: Sequence[Block], *, centred: bool, intercept: bool
) -> WithIntercept:
    """Return regressors (F, d, G) and intercepts that predict the mean target at the means."""
    b = np.zeros((len(W), W.shape[2]))
    if intercept:
        known = np.concatenate([block.attributes[:, :, -1] == W.shape[1] for block in blocks], axis=1).sum(axis=1)
        y = np.concatenate([block.values[:, :, -1] for block in blocks], axis=1)  # 0 for unknown targets
        b += (y.sum(axis=1) / np.maximum(known, 1))[:, None]
    if centred:
        b -= np.stack([solution.label.a @ w for solution, w in zip(solutions, W, strict=True)])
    return WithIntercept(W, b)


# Candidates: ridge, at several strengths, from second moments that are cleaned of noise.
#
# Given ``x = a + b u + e`` and the target ``t0 + u``, the second moment of x is ``P Q P' + R`` with ``P = [a b]``, ``Q
# = diag(1, E u^2)`` and R the second moment of e. The moment of x with the target is ``P r``, ``r = (t0, E u^2)``. By
# Woodbury's identity the ridge regressor is
#
#     w = H (I + Q P'H)^-1 r,    H = (R + ridge C^-2)^-1 P.
#
# R is scaled by C and has a cleaned spectrum, whose eigenvectors serve all strengths of ridge. Cleaning keeps the
# eigenvectors of a noisy second-moment matrix, and corrects its eigenvalues, which independent noise in the entries
# spreads. Among the estimates that keep the eigenvectors, the one of least squared error subtracts from each eigenvalue
# twice the noise variance times the Hilbert transform of the spectral density there.

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


# Held-out risks of candidate regressors, and the weights that average them.
#
# The moments of one fold determine the risk of a predictor ``f = w'x``: with ``x = a + b u + e``, ``E f = w'a``, ``E f
# u = w'b E u^2`` and ``Var f = (w'b)^2 E u^2 + w'R w``. Each is linear or quadratic in unbiased estimates. So
# candidates are judged for complete examples although held-out ones are incomplete.

_MAX_SCALE = 1.1
"""Upper bound of the factor that a candidate is multiplied by."""

_CAUTION, _TEMPERATURE = 1.0, 1.0
"""Standard errors that are added to a risk; and the width of the weights, in standard errors of the least risk."""


class Evidence(NamedTuple):
    """Statistics of one held-out fold, for each candidate made without it.

    Attributes
    ----------
    alpha, gamma : ndarray of float, shape (candidates,)
        ``w'a`` and ``w'b``.
    q : ndarray of float, shape (candidates,)
        ``w'R w``, R from the products of the fold.
    """

    alpha: np.ndarray
    gamma: np.ndarray
    q: np.ndarray


@dataclass(frozen=True)
class CandidateScores:
    """Risks of the candidates, less the risk of predicting 0, by all folds together.

    A candidate multiplied by s has the risk ``s^2 D - 2 s l``, with D and l from means over folds.

    Attributes
    ----------
    risk : ndarray of float, shape (candidates,)
        Risk at the best scale.
    without : ndarray of float, shape (folds, candidates)
        The same without each fold.
    scale : ndarray of float, shape (candidates,)
        The best scale.
    """

    risk: np.ndarray
    without: np.ndarray
    scale: np.ndarray

    def weights(self) -> np.ndarray:
        """Return the candidates' weights in the average: larger for smaller risks, about equal within chance.

        Returns
        -------
        ndarray of float, shape (candidates,)
            Weights that sum to 1.
        """
        error = standard_error(self.without)
        score = self.risk + _CAUTION * error
        best = score.argmin()
        excess = score - score[best]
        with np.errstate(over="ignore"):  # an infinite excess gives the weight 0
            weights = np.exp(-excess / max(_TEMPERATURE * error[best], np.finfo(float).tiny))
        return np.asarray(weights / weights.sum())


def judge(evidence: Sequence[Evidence], target: Target) -> CandidateScores:
    """Return the scores of all candidates, from the evidence of each fold."""
    alpha, gamma, q = map(np.stack, zip(*evidence, strict=True))
    folds = np.arange(len(evidence))

    def risk(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        level, slope, residual = alpha[rows].mean(axis=0), gamma[rows].mean(axis=0), q[rows].mean(axis=0)
        gain = target.level * level + target.variance * slope
        # Cauchy and Schwarz: (E f y)^2 is at most E f^2 E y^2.
        square = np.maximum(level**2 + target.variance * slope**2 + residual, gain**2 / target.square)
        scale = np.clip(gain / np.where(square > 0, square, 1.0), 0.0, _MAX_SCALE)
        return scale**2 * square - 2 * scale * gain, scale

    value, scale = risk(folds)
    return CandidateScores(value, np.stack([risk(folds[folds != f])[0] for f in folds]), scale)


def standard_error(without: np.ndarray) -> np.ndarray:
    """Return the jackknife standard error of a statistic from its values without each fold."""
    F = len(without)
    return np.asarray(np.sqrt((F - 1) / F * np.square(without - without.mean(axis=0)).sum(axis=0)))


# Pairs: products of attributes that were seen together, less what the target explains of them.
#
# The model of an attribute is ``x_i = a_i + b_i u + e_i`` with the prior ``b_i ~ N(0, t v_i)``, where u is the target
# less its mean and ``v_i`` the variance of e_i. The width t is estimated by the method of moments. Every example shows
# its target, so the part of a product ``x_i x_j`` that the target explains needs no pairs; only the products of e are
# estimated from pairs.
#
# Attributes are scaled by ``c_i = sqrt(n_i / v_i)``, n_i being the number of values. A pair is seen about in proportion
# to ``n_i n_j``, so all entries of the scaled mean products have about the same noise, and no rotation changes its
# distribution.
#
# An attribute that is always c, not 0, is an intercept where attributes are not centred, and has no penalty.

_PSEUDO = 10
"""Pseudo-values of the mean residual variance that are added to those of each attribute."""

_MIN_RESIDUAL = 1e-6
"""Lower bound of v, as a fraction of the attribute's variance."""

_MIN_WIDTH = 0.02
"""Lower bound of t, in units of one over the target's variance."""

FOLDS = 5
"""Folds of the examples; each is held out from the sums of the others."""


@dataclass(frozen=True)
class Constants:
    """Attributes that are an intercept: always c, with variances to expect although all values were equal.

    With weights that share a level in proportion to ``c^2 / variance``, a prediction ``level + w'x`` has the risk
    ``(m - level)^2 + level^2 / p`` and more that is independent of the level. Here m is the mean of ``y - w'x``, and p
    the sum of ``c^2 / variance``. The level ``m p / (1 + p)`` has the least risk, ``m^2 / (1 + p)``. So w is the
    solution without the constants, with all means divided by the root of ``1 + p``, and no penalty is on the level. How
    far other values would be from c is unknown, and taken to be c, so that the unit of c does not matter.

    Attributes
    ----------
    c : ndarray of float, shape (d,)
        Their values; 0 for all other attributes.
    variance : ndarray of float, shape (d,)
        Variances to expect, see `budgetreg.revealed.columns`; above 0.
    """

    c: np.ndarray
    variance: np.ndarray

    @property
    def factor(self) -> float:
        """What means are multiplied by: 1 without any such attribute, near 0 if one is certain to be constant."""
        return float(1 / np.sqrt(1 + self._precision))

    def weights(self, mean: np.ndarray | float) -> np.ndarray:
        """Return the weights (..., d) for the means (...) of what is left of the target."""
        return np.asarray(mean)[..., None] * (self.c / self.variance) / (1 + self._precision)

    @property
    def _precision(self) -> float:
        return float((np.square(self.c) / self.variance).sum())


@dataclass(frozen=True)
class LabelRegression:
    """Regression of the attributes of one stream on its target.

    Attributes
    ----------
    a, b : ndarray of float, shape (d,)
        Each attribute's value at the mean target, and its slope; 0 for attributes that are not live.
    v : ndarray of float, shape (d,)
        Residual variances, above 0; for attributes that are not live, by the pseudo-values.
    counts : ndarray of int, shape (d,)
        Number of values of each attribute.
    live : ndarray of bool, shape (d,)
        Attributes with at least two values that are not all equal, unless they are an intercept.
    constants : Constants
        Those that are an intercept.
    """

    a: np.ndarray
    b: np.ndarray
    v: np.ndarray
    counts: np.ndarray
    live: np.ndarray
    constants: Constants

    def inflated(self, by: np.ndarray | float) -> LabelRegression:
        """Return the regression with residual variances multiplied by factors (d,); not live where one is infinite."""
        finite = np.broadcast_to(np.isfinite(by), self.live.shape)
        return replace(self, v=self.v * np.where(finite, by, 1.0), live=self.live & finite)

    @property
    def deviations(self) -> np.ndarray:
        """Residual standard deviations (d,); those to expect of constants, and 0 for all else that is not live."""
        variance = np.where(self.constants.c != 0, self.constants.variance, 0.0)
        return np.asarray(np.sqrt(np.where(self.live, self.v, variance)))


def label_regression(
    attributes: np.ndarray, x: np.ndarray, u: np.ndarray, d: int, offsets: np.ndarray | None = None
) -> LabelRegression:
    """Regress attributes on the target, shrunk by a prior whose width is estimated.

    Parameters
    ----------
    attributes : ndarray of int, shape (N,)
        Attribute of each value; d for a missing value.
    x, u : ndarray of float, shape (N,)
        Values, and the centred targets of their examples.
    d : int
        Number of attributes.
    offsets : ndarray of bool, shape (d,), optional
        Attributes that are an intercept because they are constant; none by default.
    """

    def total(weights: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(attributes, weights, d + 1)[:d]

    counts = total()
    n = np.maximum(counts, 1)
    x_mean, u_mean = total(x) / n, total(u) / n
    dx, du = x - np.append(x_mean, 0.0)[attributes], u - np.append(u_mean, 0.0)[attributes]
    xx, xu, uu = total(dx * dx), total(dx * du), total(du * du)
    offset = np.zeros(d, dtype=bool) if offsets is None else offsets & (counts > 0)
    varying = (counts > 1) & (xx > 0) & ~offset
    c = np.where(offset, x_mean, 0.0)
    if not varying.any():
        constants = Constants(c, np.where(offset, variance(c, counts, 0.0), 1.0))
        return LabelRegression(np.zeros(d), np.zeros(d), np.ones(d), counts, varying, constants)

    def pooled(squares: np.ndarray) -> float:
        return float(squares[varying].sum() / (counts[varying] - 1).sum())

    def shrunk_variance(squares: np.ndarray) -> np.ndarray:
        return np.asarray((squares + _PSEUDO * pooled(squares)) / (counts + _PSEUDO))

    slope = xu / np.where(uu > 0, uu, 1.0)
    residual_squares = np.maximum(xx - slope * xu, 0.0)
    fitted = (counts > 2) & ~offset
    v = residual_squares[fitted] / (counts[fitted] - 2)
    # The square of a slope times uu has the mean (t uu + 1) v; summed over attributes this gives t.
    surplus, per_t = (slope * xu)[fitted].sum() - v.sum(), (uu[fitted] * v).sum()
    target_variance = uu[varying].sum() / counts[varying].sum()
    t = 0.0
    if target_variance > 0:
        t = max(_MIN_WIDTH / target_variance, surplus / per_t if per_t > 0 else 0.0)
    b = np.where(varying, slope * uu * t / (uu * t + 1), 0.0)
    v = np.maximum(shrunk_variance(np.maximum(xx - 2 * b * xu + b * b * uu, 0.0)), _MIN_RESIDUAL * shrunk_variance(xx))
    a = np.where(varying, x_mean - b * u_mean, 0.0)
    return LabelRegression(a, b, v, counts, varying, Constants(c, np.where(offset, variance(c, counts, 0.0), 1.0)))


class StreamValues:
    """The revealed values of one stream, with the targets and folds of their examples.

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed; the last value of each example is its target.
    f : int
        The stream.
    d : int
        Number of attributes.
    centred, intercept : bool
        Whether attributes are centred on their means, and whether the target is.
    zero_is_meaningful : bool
        See `budgetreg.revealed.columns.equal_values`.

    Attributes
    ----------
    attributes : ndarray of int, shape (N,)
        d for a missing value.
    x, u : ndarray of float, shape (N,)
        Values, and centred targets of their examples.
    fold : ndarray of int, shape (N,)
        Folds of their examples.
    mean, variance : float
        Mean and variance of the target. A constant target that is not centred has the variance to expect of it.
    offsets : ndarray of bool, shape (d,)
        Attributes that are an intercept.
    """

    def __init__(
        self, blocks: Sequence[Block], f: int, d: int, *, centred: bool, intercept: bool, zero_is_meaningful: bool
    ) -> None:
        y = np.concatenate([block.values[f, :, -1] for block in blocks])
        repeats = np.concatenate([np.full(block.values.shape[1], block.values.shape[2] - 1) for block in blocks])
        attributes = np.concatenate([block.attributes[f, :, :-1].reshape(-1) for block in blocks])
        self.d, self.attributes = d, np.minimum(attributes, d)
        self.x = np.concatenate([block.values[f, :, :-1].reshape(-1) for block in blocks])
        self.mean = float(y.mean())
        u = y - self.mean
        self.variance = float(np.square(u).mean())
        alone = [Block(*(part[f : f + 1] for part in block)) for block in blocks]
        offsets = equal_values(alone, d + 1, zero_is_meaningful=zero_is_meaningful).offsets[0]
        self.offsets = offsets[:d] & (not centred)
        if offsets[d]:
            u, self.variance = np.zeros(len(y)), 0.0 if intercept else float(variance(self.mean, len(y), 0.0))
        self.u, self.fold = np.repeat(u, repeats), np.repeat(np.arange(len(y)) % FOLDS, repeats)

    def label(self, among: np.ndarray | slice) -> LabelRegression:
        """Regress attributes on the target, using some of the values."""
        return label_regression(self.attributes[among], self.x[among], self.u[among], self.d, self.offsets)

    def held_out(self, fold: int, label: LabelRegression) -> tuple[np.ndarray, np.ndarray]:
        """Return unbiased a and b (d,) of one fold, with the other folds' regression as control variate."""
        d, part = self.d, self.fold == fold
        i, u = self.attributes[part], self.u[part]
        residual = self.x[part] - np.append(label.a, 0.0)[i] - np.append(label.b, 0.0)[i] * u
        n = np.maximum(np.bincount(i, minlength=d + 1)[:d], 1)
        level, slope = (np.bincount(i, terms, d + 1)[:d] / n for terms in (residual, residual * u))
        return label.a + level, label.b + slope / self.variance


class Pairs:
    """Sums over the examples that show both attributes of a pair, for the p live attributes of one stream.

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed; the last value of each example is its target.
    f : int
        The stream.
    phases : sequence of int
        Numbers of examples at which the draw probabilities changed; the last is the number of all examples.
    label : LabelRegression
        The stream's regression on the target.
    mean : float
        Mean target.

    Attributes
    ----------
    live : ndarray of int, shape (p,)
        Indices of the live attributes.
    scale : ndarray of float, shape (p,)
        ``c``, normalised so that the mean of ``c_i^2 v_i`` is 1.
    diagonal : ndarray of float, shape (p,)
        ``c_i^2 v_i``.
    sums, counts : ndarray of float, shape (folds, p, p)
        Sums of products of scaled residuals, and numbers of products; 0 on the diagonals.
    expected : ndarray of float, shape (p, p)
        Expected number of products of each pair, given the counts of attributes; 0 on the diagonal.
    """

    def __init__(
        self, blocks: Sequence[Block], f: int, phases: Sequence[int], label: LabelRegression, mean: float
    ) -> None:
        live = np.flatnonzero(label.live)
        d, p = len(label.live), len(live)
        position = np.full(d + 2, p)
        position[live] = np.arange(p)
        c = np.sqrt(label.counts[live] / label.v[live])
        c /= np.sqrt(np.mean(np.square(c) * label.v[live]))
        a, b, scale = (np.append(parameter, 0.0) for parameter in (label.a[live], label.b[live], c))
        sums, counts, expected = np.zeros((FOLDS, p, p)), np.zeros((FOLDS, p, p)), np.zeros((p, p))
        start = 0
        for block in blocks:
            attributes, values = position[block.attributes[f, :, :-1]], block.values[f, :, :-1]
            u = block.values[f, :, -1:] - mean
            T, n = attributes.shape
            e = (values - a[attributes] - b[attributes] * u) * scale[attributes]
            for fold in range(FOLDS):
                part = slice((fold - start) % FOLDS, T, FOLDS)
                seen, residuals = rows_by_column(attributes[part], e[part], p + 1)
                sums[fold] += (residuals.T @ residuals).toarray()[:p, :p]
                counts[fold] += (seen.T @ seen).toarray()[:p, :p]
            for begin, end in zip([0, *phases[:-1]], phases, strict=True):
                in_phase = attributes[max(begin - start, 0) : max(end - start, 0)]
                if in_phase.size:
                    times = np.bincount(in_phase.reshape(-1), minlength=p + 1)[:p]
                    expected += np.outer(times, times) * ((1 - 1 / n) / len(in_phase))
            start += T
        for matrix in (*sums, *counts, expected):
            np.fill_diagonal(matrix, 0.0)
        if expected.any():
            expected *= counts.sum() / expected.sum()
        self.live, self.scale, self.diagonal = live, c, np.square(c) * label.v[live]
        self.sums, self.counts, self.expected = sums, counts, expected

    def without(self, fold: int) -> tuple[np.ndarray, np.ndarray]:
        """Return sums and counts over all folds but one."""
        others = np.arange(FOLDS) != fold
        return self.sums[others].sum(axis=0), self.counts[others].sum(axis=0)

    def shrunk(self, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return mean products shrunk by half a pseudo-product per pair, which helps for rare pairs."""
        return self._with_diagonal(sums / (counts + 0.5))

    def debiased(self, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return mean products with one pseudo-product per pair, divided by their mean shrinkage."""
        total = self.counts.sum()
        share = counts.sum() / total if total else 0.0
        shrinkage = np.maximum(_debiased_share(self.expected * share), np.finfo(float).tiny)
        return self._with_diagonal(sums / (counts + 1) / shrinkage)

    def _with_diagonal(self, matrix: np.ndarray) -> np.ndarray:
        np.fill_diagonal(matrix, self.diagonal)
        return matrix


def shrunk_share(expected: np.ndarray) -> np.ndarray:
    """Return ``E N / (N + 1/2)`` for Poisson numbers N of these means; 1 on the diagonal."""
    root = np.sqrt(np.maximum(expected, np.finfo(float).tiny))
    share = 1 - dawsn(root) / root
    np.fill_diagonal(share, 1.0)
    return np.asarray(share)


def _debiased_share(expected: np.ndarray) -> np.ndarray:
    """Return ``E N / (N + 1)`` for Poisson numbers N of these means."""
    small = expected < 1e-4
    mean = np.where(small, 1.0, expected)
    return np.where(small, expected / 2, 1 + np.expm1(-mean) / mean)

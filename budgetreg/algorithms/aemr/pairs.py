"""Products of pairs of attributes that were seen together, less what the target explains of them.

The model of an attribute is ``x_i = a_i + b_i u + e_i`` with the prior ``b_i ~ N(0, t v_i)``, where u is the target
less its mean and ``v_i`` the variance of e_i. The width t is estimated by the method of moments. Every example shows
its target, so the part of a product ``x_i x_j`` that the target explains needs no pairs; only the products of e are
estimated from pairs.

Attributes are scaled by
``c_i = sqrt(n_i / v_i)``, n_i being the number of values. A pair is seen about in proportion to ``n_i n_j``, so all
entries of the scaled mean products have about the same noise, and no rotation changes its distribution.

An attribute that is always c, not 0, is an intercept where attributes are not centred, and has no penalty.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import dawsn

from budgetreg.revealed.collection import Block, rows_by_column
from budgetreg.revealed.equal_values import equal_values, variance

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
        Variances to expect, see `budgetreg.revealed.equal_values`; above 0.
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

    def inflated(self, by: np.ndarray | float) -> "LabelRegression":
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
    raw : bool
        See `budgetreg.revealed.equal_values.equal_values`.

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

    def __init__(self, blocks: Sequence[Block], f: int, d: int, *, centred: bool, intercept: bool, raw: bool) -> None:
        y = np.concatenate([block.values[f, :, -1] for block in blocks])
        repeats = np.concatenate([np.full(block.values.shape[1], block.values.shape[2] - 1) for block in blocks])
        attributes = np.concatenate([block.attributes[f, :, :-1].reshape(-1) for block in blocks])
        self.d, self.attributes = d, np.minimum(attributes, d)
        self.x = np.concatenate([block.values[f, :, :-1].reshape(-1) for block in blocks])
        self.mean = float(y.mean())
        u = y - self.mean
        self.variance = float(np.square(u).mean())
        alone = [Block(*(part[f : f + 1] for part in block)) for block in blocks]
        offsets = equal_values(alone, d + 1, raw=raw).offsets[0]
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

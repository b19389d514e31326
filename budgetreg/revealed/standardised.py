"""Revealed values in standardised columns, and regressors in the units of the data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from budgetreg.metering.table import JointMoments, sums
from budgetreg.revealed.collection import Block
from budgetreg.revealed.equal_values import equal_values, variance
from budgetreg.tasks import Outputs, WithIntercept

_MIN_VALUES = 2
"""Values that an attribute needs to be modelled."""

_PSEUDO = 3
"""Pseudo-values of the mean variance that are added to those of each attribute, because its values may be few."""

_NORMAL_KURTOSIS = 3
"""Kurtosis of the normal distribution, the lower bound of the estimates. The variance of n values has the standard
error of that of ``2 n / (kurtosis - 1)`` normal values."""


@dataclass(frozen=True)
class Moments:
    """Posterior means of the columns' moments, about the points that the columns are centred on.

    Attributes
    ----------
    first : ndarray of float, shape (F, c)
    second : ndarray of float, shape (F, c, c)
        Positive definite, also after the outer product of `first` is subtracted.
    """

    first: np.ndarray
    second: np.ndarray


class StandardisedEntries:
    """Revealed values in columns that are centred on their means and have a variance of about 1.

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed; the last value of each example is its target.
    d : int
        Number of attributes.
    centred, intercept : bool
        Whether regressors are for attributes that are centred, and for a target that is.
    raw : bool
        See `budgetreg.revealed.equal_values.equal_values`.
    excess : ndarray of float, shape (F,), or float
        See `budgetreg.revealed.units.Rescaled`.

    Attributes
    ----------
    blocks : list of Block
        The standardised values.
    live : ndarray of bool, shape (F, d + 1)
        Columns with enough values that are not all equal; and those not centred that are constant, but not 0.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        d: int,
        *,
        centred: bool,
        intercept: bool,
        raw: bool = True,
        excess: np.ndarray | float = 0.0,
    ) -> None:
        F = len(blocks[0].values)
        stream = np.arange(F)[:, None, None]

        def total(values: Iterable[np.ndarray]) -> np.ndarray:
            parts = [sums(block.attributes, x, d + 2)[:, :-1] for block, x in zip(blocks, values, strict=True)]
            return np.sum(parts, axis=0)

        def of_columns(statistic: np.ndarray) -> list[np.ndarray]:
            filled = np.append(statistic, np.ones((F, 1)), axis=1)  # missing values have one more column
            return [filled[stream, block.attributes] for block in blocks]

        counts = total(np.ones(block.values.shape) for block in blocks)
        n = np.maximum(counts, 1)
        self._counts, self._means = counts, total(block.values for block in blocks) / n
        differences = [block.values - means for block, means in zip(blocks, of_columns(self._means), strict=True)]
        variances = total(np.square(x) for x in differences) / n
        self._equal = equal_values(blocks, d + 1, raw=raw)
        offsets = self._equal.offsets & ~np.append(np.full(d, centred), intercept)
        self.live = (counts >= _MIN_VALUES) & (variances > 0) & ~offsets
        deviations = of_columns(np.sqrt(np.where(self.live, variances, 1.0)))
        kurtoses = total((x / deviation) ** 4 for x, deviation in zip(differences, deviations, strict=True)) / n
        weights = np.where(self.live[:, :d], counts[:, :d], 0)
        mean_variance, mean_kurtosis = (
            (weights * statistic[:, :d]).sum(axis=1, keepdims=True) / np.maximum(weights.sum(axis=1, keepdims=True), 1)
            for statistic in (variances, kurtoses)
        )
        variances[:, :d] = (counts * variances + _PSEUDO * mean_variance)[:, :d] / (counts[:, :d] + _PSEUDO)
        kurtosis = np.maximum(np.maximum(kurtoses[:, -1], mean_kurtosis[:, 0]), _NORMAL_KURTOSIS)
        self._effective_examples = counts[:, -1] * (_NORMAL_KURTOSIS - 1) / (kurtosis - 1)
        self._excess = np.broadcast_to(excess, F)
        self._mean_variance = mean_variance
        others = np.append(np.broadcast_to(mean_variance, (F, d)), np.zeros((F, 1)), axis=1)
        variances = np.where(offsets, variance(self._means, counts, others), variances)
        self.live = (self.live | offsets) & (variances > 0)
        self._units = np.sqrt(np.where(variances > 0, variances, 1.0))
        self.blocks = [
            Block(block.attributes, values / units)
            for block, values, units in zip(blocks, differences, of_columns(self._units), strict=True)
        ]

    def regressors(
        self, moments: Moments, *, centred: bool, intercept: bool, inflation: np.ndarray | float = 1.0
    ) -> Outputs:
        """Return the regressors of posterior moments, about the posterior means or, if not centred, about 0.

        With T examples, chance alone seems to explain 1/T of the target's variance; with heavy tails, T is replaced by
        the effective number of examples. And new values may be larger than those seen, see `budgetreg.revealed.tails`.
        Regressors are shrunk by the ratio of both to all that they seem to explain.

        Parameters
        ----------
        moments : Moments
        centred, intercept : bool
        inflation : ndarray of float, shape (F, d), or float
            Factors of the attributes' variances, see `budgetreg.revealed.units.Rescaled`. Attributes with an infinite
            one have the weight 0.

        Returns
        -------
        ndarray of float, shape (F, d, 1); or WithIntercept if attributes or target are centred
        """
        F, c = self.live.shape
        W, b = np.zeros((F, c - 1, 1)), np.zeros((F, 1))
        origin = self.origin(moments, centred=centred, intercept=intercept)
        inflation = np.broadcast_to(inflation, (F, c - 1))
        for f in range(F):
            first, live = moments.first[f], np.flatnonzero(self.live[f, :-1] & np.isfinite(inflation[f]))
            mean = first - origin[f]
            M = moments.second[f] - np.outer(first, first) + np.outer(mean, mean)
            if self.live[f, -1] and live.size:
                spread = np.diagonal(moments.second[f])[live] - np.square(first[live])
                M[live, live] += (inflation[f, live] - 1) * spread
                w = np.linalg.solve(M[np.ix_(live, live)], M[live, -1])
                explained = M[live, -1] @ w / M[-1, -1]
                new = self._excess[f] * (np.square(w) @ spread) / M[-1, -1]
                w *= explained / (explained + 1 / self._effective_examples[f] + new)
                W[f, live, 0] = w * self._units[f, -1] / self._units[f, live]
            point = self._means[f] + origin[f] * self._units[f]
            b[f] = point[-1] - point[:-1] @ W[f]
        return WithIntercept(W, b, partial(self.joint, moments)) if centred or intercept else W

    def joint(self, moments: Moments, f: int) -> JointMoments:
        """Return posterior mean and covariance of a stream's attributes and, last, its target.

        Columns that are not modelled are independent of all others. Their mean is that of the values seen, and an
        attribute has the variance to expect of it, see `budgetreg.revealed.equal_values.variance`.
        """
        first, units, live = moments.first[f], self._units[f], self.live[f]
        covariance = (moments.second[f] - np.outer(first, first)) * np.outer(units, units)
        others = self._mean_variance[f] if self._mean_variance[f] > 0 else 1.0
        expected = variance(self._means[f], self._counts[f], others)
        expected[-1] = 0.0
        covariance[np.diag_indices_from(covariance)] = np.where(live, np.diagonal(covariance), expected)
        return JointMoments(self._means[f] + first * units, covariance)

    def known(self, examples: int, *, centred: bool) -> np.ndarray:
        """Return the attributes (F, d) that need not be drawn again, see `EqualValues.known`."""
        return self._equal.known(examples, centred=centred)[:, :-1]

    def origin(self, moments: Moments, *, centred: bool, intercept: bool) -> np.ndarray:
        """Return the point (F, d + 1) through which predictions go.

        It is the posterior mean of a column that is centred, and else where its revealed value is 0.
        """
        is_centred = np.append(np.full(self.live.shape[1] - 1, centred), intercept)
        return np.where(is_centred, moments.first, -self._means / self._units)

    def in_columns(self, f: int, w: np.ndarray) -> np.ndarray:
        """Return the weights (d,) of a stream's revealed values as weights of its standardised columns."""
        return w * self._units[f, :-1] / self._units[f, -1]

    def spread(self, moments: Moments) -> np.ndarray:
        """Return the attributes' deviations (F, d) given the target; the unit if not live."""
        variance = np.einsum("fcc->fc", moments.second) - np.square(moments.first)
        shared = moments.second[:, :-1, -1] - moments.first[:, :-1] * moments.first[:, -1:]
        residual = variance[:, :-1] - np.square(shared) / np.where(variance[:, -1:] > 0, variance[:, -1:], 1.0)
        return np.where(self.live[:, :-1], np.sqrt(np.maximum(residual, 0)), 1.0) * self._units[:, :-1]

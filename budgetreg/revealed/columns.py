"""Revealed values in columns of about the same scale, and what the values seen of a column cannot show.

`Rescaled` divides attributes by the standard deviations of what a stream has revealed of them, and leaves out those
whose next value may have any size. `RunningScale` does so for learners that store no values. `StandardisedEntries`
centres and scales all columns for a factor model. It and `Rescaled` count with larger values to come where tails are
heavy (`tails.excess`), and with columns whose values were all equal so far (`equal_values`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from budgetreg.metering.table import JointMoments, Outputs, WithIntercept, sums
from budgetreg.revealed import tails
from budgetreg.revealed.collection import Block, dense_rows

_LEAST_SCALED = 3
"""Values of an attribute up to which the mean square of a new one, in units of their deviation, is infinite."""

_CONSTANT = 1e-12
"""Ratio of variance to mean square up to which an attribute is constant but for rounding."""

_NEGLIGIBLE, _AROUND_ZERO = 1e-9, 1e-5
"""Standard deviations, in units of the data or of the largest value in the table, below which an attribute may be what
rounding leaves: of any, and of one whose mean is less than half of it, or within 2.5 standard errors of 0. What
rounding leaves lies around 0; attributes in a small unit, such as mol/l, seldom do."""

_ALONE = 0.1
"""In the same units, the least distance of a single value from all others, if these are equal: the next may be as large
as values of other attributes."""


def negligible(spreads: np.ndarray, levels: np.ndarray, counts: np.ndarray | int) -> np.ndarray:
    """Return which attributes vary so little that their next value may be as large as those of others.

    In units of such an attribute that value would be huge. A factor does not matter to the values of one attribute
    alone, so the units of the data and the other attributes decide.

    Parameters
    ----------
    spreads, levels : ndarray of float, shape (..., d)
        Standard deviations, and absolute values of the means, in units of the data.
    counts : ndarray of float, shape (..., d), or int
        Numbers of values; few do not show whether they lie around 0.
    """
    largest = np.maximum(spreads, levels).max(axis=-1, keepdims=True)
    around_zero = levels < spreads * np.maximum(0.5, 2.5 / np.sqrt(np.maximum(counts, 1)))
    share = np.where(around_zero, _AROUND_ZERO, _NEGLIGIBLE)
    least = np.maximum(share * np.minimum(largest, 1.0), np.sqrt(_CONSTANT) * levels)
    return np.asarray(spreads < least)


def units(counts: np.ndarray | float, squares: np.ndarray, deviations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what attributes are divided by, and which of them vary.

    The unit of an attribute is its standard deviation; its absolute value if it is constant; 1 if it is 0. So a factor
    by which an attribute is multiplied changes no value in units.

    Parameters
    ----------
    counts : ndarray of float or float
        Numbers of values.
    squares, deviations : ndarray of float
        Sums of their squares, and of their squared deviations from their means.

    Returns
    -------
    units : ndarray of float
        All above 0.
    varies : ndarray of bool
    """
    varies = deviations > _CONSTANT * squares
    size = np.sqrt(squares / np.maximum(counts, 1))
    spread = np.sqrt(np.where(varies, deviations, 0.0) / np.maximum(counts - 1, 1))
    return np.where(varies, spread, np.where(size > 0, size, 1.0)), varies


def inflation(counts: np.ndarray) -> np.ndarray:
    """Return how much larger the square of a new value is because its unit is estimated.

    With n normal values and an unknown scale, the deviation of new values is s times a random factor. The mean square
    of this factor over its squared mean is about ``1 + 1 / (2 (n - 3))``. Its mean cancels where a regressor is solved
    for, because products with all other columns have it, too.

    Parameters
    ----------
    counts : ndarray of float
        Numbers of values.

    Returns
    -------
    ndarray of float
        Above 1; infinite for up to three values, whose factor has no finite mean square.
    """
    n = np.maximum(counts, _LEAST_SCALED + 1)
    return np.where(counts > _LEAST_SCALED, 1 + 0.5 / (n - 3), np.inf)


class Rescaled:
    """Revealed values in units of their attributes.

    The values that were seen of an attribute may not show how large others will be: see `negligible`,
    `tails.over_decades`, `tails.few_differ` and `tails.without_scale`. In units of their standard deviation, the next
    value could have any size, and so could a prediction. Such attributes are left out: their weight is 0, and their
    unit is so large that no value to come moves what is expected of others.

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed; the values of columns from d on stay as they are.
    d : int
        Number of attributes.
    scaled : bool
        If not, all values stay as they are.
    stored : tuple of ndarray of float, shape (F, d), optional
        What values of the data were multiplied by, and what was then subtracted; by default 1 and 0.

    Attributes
    ----------
    blocks : sequence of Block
        The values in these units.
    left_out : ndarray of bool, shape (F, d)
        Attributes that are left out.
    few : ndarray of bool, shape (F, d)
        Those that are left out only because too few values were seen, see `tails.without_scale`.
    inflation : ndarray of float, shape (F, d)
        See `inflation`; infinite for attributes that are left out, and in streams whose attributes seem to have no
        variance, see `tails.inverse_tail_index`; 1 for attributes that do not vary, and if values are not scaled.
    has_variance : ndarray of bool, shape (F,)
        Whether the attributes of a stream seem to have a variance even if `tails.inverse_tail_index` is a standard
        error too small.
    excess : ndarray of float, shape (F,)
        How much larger new values are, see `tails.excess`; 0 if values are not scaled, because the scale of such
        data is known beforehand and bounds them.
    """

    def __init__(
        self, blocks: Sequence[Block], d: int, scaled: bool, stored: tuple[np.ndarray, np.ndarray] | None = None
    ) -> None:
        F = len(blocks[0].values)
        self.blocks, self._units, self.excess, self.inflation = blocks, None, np.zeros(F), np.ones((F, d))
        self.left_out, self.few = np.zeros((2, F, d), dtype=bool)
        self.has_variance = np.ones(F, dtype=bool)
        if not scaled:
            return

        total = partial(_totals, blocks, d=d, columns=d)
        counts = total(np.ones(block.values.shape) for block in blocks)
        means = total(block.values for block in blocks) / np.maximum(counts, 1)
        squares = total(np.square(block.values) for block in blocks)
        of_blocks = zip(blocks, _of_columns(blocks, means, d=d, others=0.0), strict=True)
        deviations = total(np.square(block.values - m) for block, m in of_blocks)
        self._units, varies = units(counts, squares, deviations)
        scale, shift = stored or (np.ones((F, d)), np.zeros((F, d)))
        spreads, levels = np.sqrt(deviations / np.maximum(counts - 1, 1)) / scale, np.abs(means + shift) / scale
        largest = np.maximum(spreads, levels).max(axis=1, keepdims=True)
        # Two values may be near each other by chance, and a column of them has hardly any weight.
        small = varies & (counts > 2) & negligible(spreads, levels, counts)
        wild, heavy = np.zeros((F, d), dtype=bool), np.zeros((F, 1), dtype=bool)
        for f in range(F):
            attributes, values = _joined(blocks, f)
            inverse, error = tails.inverse_tail_index(_without(attributes, small[f], d), values, d)
            heavy[f], self.has_variance[f] = inverse > 1 / tails.LEAST_INDEX, inverse + error <= 1 / tails.LEAST_INDEX
            if not heavy[f]:
                by_attribute = enumerate(tails.by_attribute(attributes, values, d))
                columns = [(x + shift[f, i]) / scale[f, i] for i, x in by_attribute]
                least = _ALONE * min(1.0, float(largest[f, 0]))
                wild[f] = tails.over_decades(columns) | [tails.few_differ(x, least) for x in columns]
                self.few[f] = varies[f] & ~small[f] & ~wild[f] & tails.without_scale(columns)
        wild |= self.few
        self.left_out = small | wild
        self._units = np.where(small, largest * scale, np.where(wild, tails.LARGER * self._units, self._units))
        self.inflation = np.where(varies, np.where(self.left_out | heavy, np.inf, inflation(counts)), 1.0)
        divisors = _of_columns(blocks, self._units, d=d, others=1.0)
        self.blocks = [Block(block.attributes, block.values / by) for block, by in zip(blocks, divisors, strict=True)]
        for f in range(F):
            attributes, values = _joined(self.blocks, f)
            self.excess[f] = tails.excess(_without(attributes, self.left_out[f], d), values, d)

    def as_revealed(self, outputs: Outputs) -> Outputs:
        """Return regressors (F, d, G) of values in these units as regressors of the values that were revealed."""
        if self._units is None:
            return outputs
        if not isinstance(outputs, WithIntercept):
            if not self.left_out.any():
                return outputs / self._units[:, :, None]
            outputs = WithIntercept(outputs, np.zeros((len(outputs), outputs.shape[2])))
        moments, selection = (
            None if each is None else partial(self._moments_as_revealed, each)
            for each in (outputs.moments, outputs.selection)
        )
        W = outputs.regressors / self._units[:, :, None]
        return WithIntercept(W, outputs.intercept, moments, self.left_out, selection)

    def _moments_as_revealed(self, moments: Callable[[int], JointMoments], f: int) -> JointMoments:
        assert self._units is not None
        mean, covariance = moments(f)
        units = np.append(self._units[f], 1.0)
        return JointMoments(mean * units, covariance * np.outer(units, units))


_FAR, _SHARE = 3.5, 0.25
"""Standard deviations from the mean at which a single value may dominate a variance, and the least share that it then
has of the squared deviations. Fewer than one in a hundred attributes with normal values have such a value."""


class RunningScale:
    """Means and standard deviations of what F streams have seen of d attributes so far, in one pass.

    Parameters
    ----------
    known : ndarray of float, shape (F, N, d)
        Examples of each stream that were known before the pass.
    scaled : bool
        If not, all units are 1, and no attribute is left out.
    stored : tuple of ndarray of float, shape (F, d)
        See `Rescaled`.

    Attributes
    ----------
    means : ndarray of float, shape (F, d + 1)
        Column d collects the values that are missing.
    """

    def __init__(self, known: np.ndarray, scaled: bool, stored: tuple[np.ndarray, np.ndarray]) -> None:
        F, N, d = known.shape
        self._stream, self._scaled, self._stored = np.arange(F)[:, None], scaled, stored
        self.means, self._counts, self._deviations = np.zeros((3, F, d + 1))
        self._least, self._most = np.full((F, d + 1), np.inf), np.full((F, d + 1), -np.inf)
        for t in range(N):
            self.add(np.broadcast_to(np.arange(d), (F, d)), known[:, t])

    def add(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Add values of different attributes of an example of each stream, both of shape (F, n)."""
        seen = self._stream, attributes
        self._counts[seen] += 1
        moved = values - self.means[seen]
        self.means[seen] += moved / self._counts[seen]
        self._deviations[seen] += moved * (values - self.means[seen])
        self._least[seen] = np.minimum(self._least[seen], values)
        self._most[seen] = np.maximum(self._most[seen], values)

    def units(self) -> np.ndarray:
        """Return what attributes are divided by, (F, d), see the function `units`; no value exceeds ``sqrt(n)``."""
        counts, means, deviations = (part[:, :-1] for part in (self._counts, self.means, self._deviations))
        if not self._scaled:
            return np.ones_like(means)
        return units(counts, deviations + counts * np.square(means), deviations)[0]

    def weighted(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which attributes may have a weight, and which of the others are left out; both bool of shape (F, d).

        An attribute is left out if it is `negligible`, or if a single value dominates its variance: the next may be
        many times as large. If that holds for most attributes of a stream, the others have not shown such a value yet,
        and none has a weight; nor has one of which up to three values were seen, see `inflation`.
        """
        counts, means, deviations = (part[:, :-1] for part in (self._counts, self.means, self._deviations))
        shown, (scale, shift) = counts > _LEAST_SCALED, self._stored
        dof, farthest = np.maximum(counts - 1, 1), np.maximum(self._most - self.means, self.means - self._least)[:, :-1]
        varies = shown & (deviations > _CONSTANT * counts * np.square(means))
        alone = varies & (np.square(farthest) > deviations * np.maximum(_SHARE, _FAR**2 / dof))
        small = negligible(np.sqrt(deviations / dof) / scale, np.abs(means + shift) / scale, counts)
        left_out = self._scaled & (alone | varies & small)
        heavy = alone.mean(axis=1, keepdims=True) > 0.5
        return ~(left_out | self._scaled & (heavy | ~shown)), left_out


def _totals(blocks: Sequence[Block], values: Iterable[np.ndarray], *, d: int, columns: int) -> np.ndarray:
    """Return the sums of values (F, T, n) of each block by column, (F, columns): the d attributes first, the target."""
    parts = [sums(block.attributes, x, d + 2) for block, x in zip(blocks, values, strict=True)]
    return np.asarray(np.sum(parts, axis=0)[:, :columns])


def _of_columns(blocks: Sequence[Block], statistic: np.ndarray, *, d: int, others: float) -> list[np.ndarray]:
    """Return for each value the statistic of its column, given that of the first columns (F, c); `others` beyond."""
    F, c = statistic.shape
    filled, stream = np.append(statistic, np.full((F, d + 2 - c), others), axis=1), np.arange(F)[:, None, None]
    return [filled[stream, block.attributes] for block in blocks]


def _joined(blocks: Sequence[Block], f: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the attributes and the values of a stream, shape (N,)."""
    attributes, values = (
        np.concatenate([part[f].reshape(-1) for part in parts]) for parts in zip(*blocks, strict=True)
    )
    return attributes, values


def _without(attributes: np.ndarray, left_out: np.ndarray, d: int) -> np.ndarray:
    """Return attributes, d in place of those that are left out (d,)."""
    return np.where(np.append(left_out, [True, True])[np.minimum(attributes, d)], d, attributes)


# Equal values: the intercept of data without one, and columns not worth buying again. A column that is always c, not 0,
# is an intercept where attributes are not centred. If they are centred, it contains no information. Equal values may
# also be those of a column that rarely has another one: with a share p of other values, n values are all equal with the
# probability ``(1 - p)^n``.
#
# If half of such columns are constant, and in the others a share of the values, uniform on (0, 1), is at a distance of
# s, then a column that has shown c n times is one of the others with the probability ``1 / (n + 2)``, and the mean of
# its variance is about ``(s / (n + 2))^2``. Other values may be 0, or as far away as those of other columns: s^2 is
# taken to be ``c^2`` plus their mean variance.

_ENOUGH = 5
"""Equal values that a column needs to be modelled as an intercept. Half of the values differ with probability 1/32. If
other columns show that fewer values differ, as many are needed as show it with the same probability."""

_ENOUGH_TARGETS = 12
"""Equal targets that a constant target needs. It is unlikely, and 12 fair coins show the same side with probability
1/2048."""

_CERTAIN = 44
"""Equal values after which a column is not drawn again: if a tenth of its values differ, 44 equal ones in a row have
probability 1 %."""


@dataclass(frozen=True)
class EqualValues:
    """The columns of F streams whose values are all equal.

    Attributes
    ----------
    counts : ndarray of int, shape (F, columns)
        Number of values of a column whose values are all equal; 0 for any other column. The last one is the target.
    values : ndarray of float, shape (F, columns)
        The value; 0 for any other column.
    rare : ndarray of float, shape (F,)
        Share of values that differ from the commonest one, not 0, in columns where it has at least half of the values,
        but not all; 1/2 without such a column.
    """

    counts: np.ndarray
    values: np.ndarray
    rare: np.ndarray

    @property
    def offsets(self) -> np.ndarray:
        """Whether a column (F, columns) is an intercept for columns that are not centred."""
        needed = -_ENOUGH * np.log(2) / np.log1p(-self.rare)
        enough = np.repeat(np.ceil(needed - 1e-9)[:, None], self.counts.shape[1], axis=1)
        enough[:, -1] = _ENOUGH_TARGETS
        return (self.counts >= enough) & (self.values != 0)

    def known(self, examples: int, *, centred: bool) -> np.ndarray:
        """Return which columns (F, columns) have shown enough equal values, so that they need not be drawn again.

        That takes 44 of them, and the square root of the number of examples. By the second condition a column that
        rarely has another value is drawn again as examples grow, while the share of draws that it gets vanishes.

        Parameters
        ----------
        examples : int
            Number of examples so far.
        centred : bool
            Whether columns are centred. If not, a column that is always 0 is drawn again: it may be a rare one.
        """
        return (self.counts >= enough_equal(examples)) & ((self.values != 0) | centred)


def enough_equal(examples: int) -> float:
    """Return how many equal values show that a column of so many examples need not be drawn again."""
    return max(float(_CERTAIN), float(np.sqrt(examples)))


def equal_values(blocks: Sequence[Block], columns: int, *, zero_is_meaningful: bool) -> EqualValues:
    """Return which columns have shown equal values only.

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed.
    columns : int
        Number of columns, the last of which is the target.
    zero_is_meaningful : bool
        See `budgetreg.algorithms.learner.SideInformation`. If not, equal values of attributes do not count.
    """
    F = len(blocks[0].values)
    shape, stream = (F, columns + 1), np.arange(F)[:, None, None]  # one more column for missing values
    least, most, counts = np.full(shape, np.inf), np.full(shape, -np.inf), np.zeros(shape, dtype=np.int64)
    for block in blocks:
        cells = stream, block.attributes
        np.minimum.at(least, cells, block.values)
        np.maximum.at(most, cells, block.values)
        np.add.at(counts, cells, 1)
    equal = (least == most) & (zero_is_meaningful | (np.arange(columns + 1) == columns - 1))
    counts, values = np.where(equal, counts, 0)[:, :-1], np.where(equal, least, 0.0)[:, :-1]
    possible = (counts >= _ENOUGH) & (values != 0)
    rare = [_rare(blocks, f, columns - 1) if possible[f, :-1].any() else 0.5 for f in range(F)]
    return EqualValues(counts, values, np.array(rare))


def _rare(blocks: Sequence[Block], f: int, d: int) -> float:
    """Return the share of rare values of a stream, see `EqualValues`."""
    column, x = _joined(blocks, f)
    column, x = column[column < d], x[column < d]
    order = np.lexsort((x, column))
    column, x = column[order], x[order]
    n = np.bincount(column, minlength=d)
    # If a value has at least half of a column's values, it is the lower or the upper median.
    seen = np.flatnonzero(n)
    first = (np.cumsum(n) - n)[seen]
    most = np.zeros(d, dtype=np.int64)
    for middle in ((n[seen] - 1) // 2, n[seen] // 2):
        median = np.zeros(d)
        median[seen] = x[first + middle]
        same = np.where(median != 0, np.bincount(column, x == median[column], d), 0).astype(np.int64)
        most = np.maximum(most, same)
    mostly = (2 * most >= n) & (most > 1) & (most < n)
    return float((n - most)[mostly].sum() / n[mostly].sum()) if mostly.any() else 0.5


def variance(value: np.ndarray | float, count: np.ndarray | int, others: np.ndarray | float) -> np.ndarray:
    """Return the variance to expect of columns that have shown a value so often, and no other one.

    Parameters
    ----------
    value : ndarray of float or float
    count : ndarray of int or int
    others : ndarray of float or float
        Mean variance of other columns; 0 if nothing is known of it.
    """
    return np.asarray((np.square(value) + others) / np.square(np.asarray(count) + 2.0))


# Standardised columns, and regressors in the units of the data.

_MIN_VALUES = 2
"""Values that an attribute needs to be modelled."""

_PSEUDO = 3
"""The weight, in values, with which each variance is shrunk towards the mean variance, as an attribute may have few."""

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
    zero_is_meaningful : bool
        See `equal_values`.
    excess : ndarray of float, shape (F,), or float
        See `Rescaled`.

    Attributes
    ----------
    blocks : list of Block
        The standardised values.
    live : ndarray of bool, shape (F, d + 1)
        Columns with enough values that are not all equal; and those not centred that are constant, but not 0.
    tails : ndarray of float, shape (F,)
        How many examples show a variance as well as one of normal values does, by the larger of the target's kurtosis
        and the attributes' mean one; at least 1.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        d: int,
        *,
        centred: bool,
        intercept: bool,
        zero_is_meaningful: bool = True,
        excess: np.ndarray | float = 0.0,
    ) -> None:
        F = len(blocks[0].values)

        total = partial(_totals, blocks, d=d, columns=d + 1)
        of_columns = partial(_of_columns, blocks, d=d, others=1.0)
        counts = total(np.ones(block.values.shape) for block in blocks)
        n = np.maximum(counts, 1)
        self._counts, self._means = counts, total(block.values for block in blocks) / n
        differences = [block.values - means for block, means in zip(blocks, of_columns(self._means), strict=True)]
        variances = total(np.square(x) for x in differences) / n
        self._equal = equal_values(blocks, d + 1, zero_is_meaningful=zero_is_meaningful)
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
        self.tails = (kurtosis - 1) / (_NORMAL_KURTOSIS - 1)
        self._effective_examples = counts[:, -1] / self.tails
        self._excess = np.broadcast_to(excess, F)
        self._mean_variance = mean_variance
        others = np.append(np.broadcast_to(mean_variance, (F, d)), np.zeros((F, 1)), axis=1)
        variances = np.where(offsets, variance(self._means, counts, others), variances)
        # Equal values may differ from their mean by its rounding error, which is no variance.
        varies = variances > np.square(np.finfo(float).eps * counts * self._means)
        self.live = (self.live | offsets) & varies
        self._units = np.sqrt(np.where(varies, variances, 1.0))
        self.blocks = [
            Block(block.attributes, values / units)
            for block, values, units in zip(blocks, differences, of_columns(self._units), strict=True)
        ]

    def regressors(
        self, moments: Moments, *, centred: bool, intercept: bool, inflation: np.ndarray | float = 1.0
    ) -> WithIntercept:
        """Return the regressors of posterior moments, about the posterior means or, if not centred, about 0.

        With T examples, chance alone explains about 1/T of the target's variance; with heavy tails, T is replaced by
        the effective number of examples. New values may also be larger than those seen, see `tails.excess`. Regressors
        are shrunk by the ratio of both to all that they seem to explain.

        Parameters
        ----------
        moments : Moments
        centred, intercept : bool
        inflation : ndarray of float, shape (F, d), or float
            Factors of the attributes' variances, see `Rescaled`. Attributes with an infinite
            one have the weight 0.

        Returns
        -------
        WithIntercept
            Regressors (F, d, 1), with the intercept 0 if nothing is centred.
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
        return WithIntercept(W, b if centred or intercept else np.zeros_like(b), partial(self.joint, moments))

    @property
    def complete(self) -> np.ndarray:
        """Whether all examples of a stream (F,) show all live columns, at least one of which is an attribute."""
        examples = sum(block.values.shape[1] for block in self.blocks)
        return np.asarray(((self._counts == examples) | ~self.live).all(axis=1) & self.live[:, :-1].any(axis=1))

    def sample_moments(self, streams: np.ndarray) -> Moments:
        """Return the moments of streams of complete examples, and of as many more as columns, of independent values."""
        live, c = self.live[streams], self.live.shape[1]
        second, examples = np.zeros((len(streams), c, c)), 0
        for block in self.blocks:
            x = dense_rows(block.attributes[streams], block.values[streams], c) * live[:, None]
            second += x.swapaxes(1, 2) @ x
            examples += x.shape[1]
        variances = np.einsum("fcc->fc", second) / examples
        second /= examples + c
        # Equal values do not show the variance to expect, which is the unit.
        np.einsum("fcc->fc", second)[:] = np.where(live & (self._equal.counts[streams] > 0), 1.0, variances)
        return Moments(np.zeros((len(streams), c)), second)

    def joint(self, moments: Moments, f: int) -> JointMoments:
        """Return posterior mean and covariance of a stream's attributes and, last, its target.

        Columns that are not modelled are independent of all others. Their mean is that of the values seen, and an
        attribute has the variance to expect of it, see `variance`.
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

        It is the posterior mean of a column that is centred, and else where its revealed value is 0. Without an
        intercept, the regressor has to predict the mean target from the attributes' means. So where these are hardly
        farther from 0 than their errors, the point is moved towards them by the share of James and Stein (1961).
        """
        is_centred = np.append(np.full(self.live.shape[1] - 1, centred), intercept)
        point = np.where(is_centred, moments.first, -self._means / self._units)
        if intercept:
            return point
        varies = self.live & (self._equal.counts == 0) & ~is_centred
        varies[:, -1] = False
        means = np.where(varies, moments.first - point, 0.0)
        errors = np.where(varies, 1 / np.maximum(self._counts, 1), 0.0).sum(axis=1)
        share = np.minimum(1.0, errors / np.maximum(np.square(means).sum(axis=1), np.finfo(float).tiny))
        return point + share[:, None] * means

    def spread(self, moments: Moments) -> np.ndarray:
        """Return the attributes' deviations (F, d) given the target; the unit if not live."""
        variance = np.einsum("fcc->fc", moments.second) - np.square(moments.first)
        shared = moments.second[:, :-1, -1] - moments.first[:, :-1] * moments.first[:, -1:]
        residual = variance[:, :-1] - np.square(shared) / np.where(variance[:, -1:] > 0, variance[:, -1:], 1.0)
        return np.where(self.live[:, :-1], np.sqrt(np.maximum(residual, 0)), 1.0) * self._units[:, :-1]

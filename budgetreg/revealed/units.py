"""Units of attributes: the standard deviations of the values that a stream has revealed of them."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from budgetreg.metering.table import JointMoments, sums
from budgetreg.revealed.collection import Block
from budgetreg.revealed.tails import LARGER, by_attribute, excess, few_differ, infinite_variance, over_decades
from budgetreg.tasks import Outputs, WithIntercept

_LEAST = 3
"""Values of an attribute up to which the mean square of a new one, in units of their deviation, is infinite."""

_CONSTANT = 1e-12
"""Ratio of variance to mean square up to which an attribute is constant but for rounding."""

_NEGLIGIBLE, _AROUND_ZERO = 1e-9, 1e-5
"""Standard deviations, in units of the data or of the largest value in the table, below which an attribute may be what
rounding leaves: of any, and of one whose mean is less than half of it, or within two standard errors of 0. What
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
    around_zero = levels < spreads * np.maximum(0.5, 2 / np.sqrt(np.maximum(counts, 1)))
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
    n = np.maximum(counts, _LEAST + 1)
    return np.where(counts > _LEAST, 1 + 0.5 / (n - 3), np.inf)


class Rescaled:
    """Revealed values in units of their attributes.

    The values that were seen of an attribute may not show how large others will be: see `negligible` and
    `budgetreg.revealed.tails`. In units of their standard deviation, the next value could have any size,
    and so could a prediction. Such attributes are left out: their weight is 0, and their unit is so large that no value
    to come moves what is expected of others.

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
    inflation : ndarray of float, shape (F, d)
        See `inflation`; infinite for attributes that are left out, and in streams whose attributes seem to have no
        variance, see `infinite_variance`; 1 for attributes that do not vary, and if values are not scaled.
    excess : ndarray of float, shape (F,)
        How much larger new values are, see `budgetreg.revealed.tails`; 0 if values are not scaled, because the scale
        of such data is known beforehand and bounds them.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        d: int,
        scaled: bool,
        stored: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        F = len(blocks[0].values)
        self.blocks, self._units, self.excess, self.inflation = blocks, None, np.zeros(F), np.ones((F, d))
        self.left_out = np.zeros((F, d), dtype=bool)
        if not scaled:
            return
        stream = np.arange(F)[:, None, None]

        def total(values: Sequence[np.ndarray]) -> np.ndarray:
            parts = [sums(block.attributes, x, d + 2)[:, :d] for block, x in zip(blocks, values, strict=True)]
            return np.asarray(np.sum(parts, axis=0))

        def of_columns(statistic: np.ndarray, others: float) -> list[np.ndarray]:
            filled = np.append(statistic, np.full((len(statistic), 2), others), axis=1)  # targets, and missing values
            return [filled[stream, block.attributes] for block in blocks]

        counts = total([np.ones(block.values.shape) for block in blocks])
        means = total([block.values for block in blocks]) / np.maximum(counts, 1)
        squares = total([np.square(block.values) for block in blocks])
        deviations = total(
            [np.square(block.values - m) for block, m in zip(blocks, of_columns(means, 0.0), strict=True)]
        )
        self._units, varies = units(counts, squares, deviations)
        scale, shift = stored or (np.ones((F, d)), np.zeros((F, d)))
        spreads, levels = np.sqrt(deviations / np.maximum(counts - 1, 1)) / scale, np.abs(means + shift) / scale
        largest = np.maximum(spreads, levels).max(axis=1, keepdims=True)
        # Two values may be near each other by chance, and a column of them has hardly any weight.
        small, wild, heavy = (
            varies & (counts > 2) & negligible(spreads, levels, counts),
            np.zeros((F, d), dtype=bool),
            np.zeros((F, 1), bool),
        )
        for f in range(F):
            attributes, values = _joined(blocks, f)
            heavy[f] = infinite_variance(_without(attributes, small[f], d), values, d)
            if not heavy[f]:
                columns = [(x + shift[f, i]) / scale[f, i] for i, x in enumerate(by_attribute(attributes, values, d))]
                least = _ALONE * min(1.0, float(largest[f, 0]))
                wild[f] = over_decades(columns) | [few_differ(x, least) for x in columns]
        self.left_out = small | wild
        self._units = np.where(small, largest * scale, np.where(wild, LARGER * self._units, self._units))
        self.inflation = np.where(varies, np.where(self.left_out | heavy, np.inf, inflation(counts)), 1.0)
        divisors = of_columns(self._units, 1.0)
        self.blocks = [Block(block.attributes, block.values / by) for block, by in zip(blocks, divisors, strict=True)]
        for f in range(F):
            attributes, values = _joined(self.blocks, f)
            self.excess[f] = excess(_without(attributes, self.left_out[f], d), values, d)

    def as_revealed(self, outputs: Outputs) -> Outputs:
        """Return regressors (F, d, G) of values in these units as regressors of the values that were revealed."""
        if self._units is None:
            return outputs
        if not isinstance(outputs, WithIntercept):
            if not self.left_out.any():
                return outputs / self._units[:, :, None]
            outputs = WithIntercept(outputs, np.zeros((len(outputs), outputs.shape[2])))
        moments = None if outputs.moments is None else partial(self._moments_as_revealed, outputs.moments)
        return WithIntercept(outputs.regressors / self._units[:, :, None], outputs.intercept, moments, self.left_out)

    def _moments_as_revealed(self, moments: Callable[[int], JointMoments], f: int) -> JointMoments:
        assert self._units is not None
        mean, covariance = moments(f)
        units = np.append(self._units[f], 1.0)
        return JointMoments(mean * units, covariance * np.outer(units, units))


def _joined(blocks: Sequence[Block], f: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the attributes and the values of a stream, shape (N,)."""
    attributes, values = (
        np.concatenate([part[f].reshape(-1) for part in parts]) for parts in zip(*blocks, strict=True)
    )
    return attributes, values


def _without(attributes: np.ndarray, left_out: np.ndarray, d: int) -> np.ndarray:
    """Return attributes, d in place of those that are left out (d,)."""
    return np.where(np.append(left_out, [True, True])[np.minimum(attributes, d)], d, attributes)

"""Units of attributes: the standard deviations of the values that a stream has revealed of them."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from budgetreg.metering.centring import JointMoments, sums
from budgetreg.revealed.collection import Block
from budgetreg.revealed.tails import excess, infinite_variance
from budgetreg.tasks import Outputs, WithIntercept

_LEAST = 3
"""Values of an attribute up to which the mean square of a new one, in units of their deviation, is infinite."""

_CONSTANT = 1e-12
"""Ratio of variance to mean square up to which an attribute is constant but for rounding."""


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

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed; the values of columns from d on stay as they are.
    d : int
        Number of attributes.
    scaled : bool
        If not, all values stay as they are.

    Attributes
    ----------
    blocks : sequence of Block
        The values in these units.
    inflation : ndarray of float, shape (F, d)
        See `inflation`; infinite in streams whose attributes seem to have no variance, see `infinite_variance`; 1 for
        attributes that do not vary, and if values are not scaled.
    excess : ndarray of float, shape (F,)
        How much larger new values are, see `budgetreg.revealed.tails`; 0 if values are not scaled, because the scale
        of such data is known beforehand and bounds them.
    """

    def __init__(self, blocks: Sequence[Block], d: int, scaled: bool) -> None:
        F = len(blocks[0].values)
        self.blocks, self._units, self.excess, self.inflation = blocks, None, np.zeros(F), np.ones((F, d))
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
        means = of_columns(total([block.values for block in blocks]) / np.maximum(counts, 1), 0.0)
        squares = total([np.square(block.values) for block in blocks])
        deviations = total([np.square(block.values - m) for block, m in zip(blocks, means, strict=True)])
        self._units, varies = units(counts, squares, deviations)
        heavy = np.array([infinite_variance(*_joined(blocks, f), d) for f in range(F)])
        self.inflation = np.where(varies, np.where(heavy[:, None], np.inf, inflation(counts)), 1.0)
        divisors = of_columns(self._units, 1.0)
        self.blocks = [Block(block.attributes, block.values / by) for block, by in zip(blocks, divisors, strict=True)]
        self.excess = np.array([excess(*_joined(self.blocks, f), d) for f in range(F)])

    def as_revealed(self, outputs: Outputs) -> Outputs:
        """Return regressors (F, d, G) of values in these units as regressors of the values that were revealed."""
        if self._units is None:
            return outputs
        if not isinstance(outputs, WithIntercept):
            return outputs / self._units[:, :, None]
        moments = None if outputs.moments is None else partial(self._moments_as_revealed, outputs.moments)
        return WithIntercept(outputs.regressors / self._units[:, :, None], outputs.intercept, moments)

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

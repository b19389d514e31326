"""Columns whose revealed values are all equal: the intercept of data without one, and columns not worth buying again.

A column that is always c, not 0, is an intercept where attributes are not centred. If they are centred, it contains no
information. Equal values may also be those of a column that rarely has another one: with a share p of other values, n
values are all equal with the probability ``(1 - p)^n``.

If half of such columns are constant, and in the others a share of the values, uniform on (0, 1), is at a distance of
s, then a column that has shown c n times is one of the others with the probability ``1 / (n + 2)``, and the mean of its
variance is about ``(s / (n + 2))^2``. Other values may be 0, or as far away as those of other columns: s^2 is taken to
be ``c^2`` plus their mean variance.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.revealed.collection import Block

_ENOUGH = 5
"""Equal values that a column needs to be modelled as an intercept. Half of the values differ with probability 1/32. If
other columns show that fewer values differ, as many are needed as show it with the same probability."""

_ENOUGH_TARGETS = 12
"""Equal targets that a constant target needs. It is unlikely, and 12 fair coins show the same side with probability
1/2048."""

_CERTAIN = 44
"""Equal values after which a column is not drawn again: if a tenth of its values differ, the probability is 1 %."""


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
        return (self.counts >= max(_CERTAIN, np.sqrt(examples))) & ((self.values != 0) | centred)


def equal_values(blocks: Sequence[Block], columns: int, *, raw: bool) -> EqualValues:
    """Return which columns have shown equal values only.

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed.
    columns : int
        Number of columns, the last of which is the target.
    raw : bool
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
    equal = (least == most) & (raw | (np.arange(columns + 1) == columns - 1))
    counts, values = np.where(equal, counts, 0)[:, :-1], np.where(equal, least, 0.0)[:, :-1]
    possible = (counts >= _ENOUGH) & (values != 0)
    rare = [_rare(blocks, f, columns - 1) if possible[f, :-1].any() else 0.5 for f in range(F)]
    return EqualValues(counts, values, np.array(rare))


def _rare(blocks: Sequence[Block], f: int, d: int) -> float:
    """Return the share of rare values of a stream, see `EqualValues`."""
    column, x = (np.concatenate([part[f].reshape(-1) for part in parts]) for parts in zip(*blocks, strict=True))
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

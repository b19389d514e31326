"""Collection and storage of what is revealed, for learners that store what they see, with draws planned from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from budgetreg.common.streams import blocks, subset
from budgetreg.data.dataset import Groups
from budgetreg.revealed.designs import Draw, fixed_size, per_money, regression_weights, replaced, working_probabilities

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from budgetreg.metering.accessor import Accessor
    from budgetreg.metering.table import JointMoments

MIX = 0.1
"""Share of equal probabilities in the draws that are guided by a regression."""


class Block(NamedTuple):
    """Examples with equally many revealed values.

    Attributes
    ----------
    attributes : ndarray of int, shape (F, T, n)
        Column of each value: an attribute; d for the target, if any; the number of columns for a missing value.
    values : ndarray of float, shape (F, T, n)
        The values.
    """

    attributes: np.ndarray
    values: np.ndarray


class Entries:
    """Revealed values of F streams, in about ``F T (k + 1)`` numbers for T examples of each.

    Parameters
    ----------
    columns : int
        Number of attributes, plus 1 if targets are stored.

    Attributes
    ----------
    size : int
        Number of values of each stream.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.size = 0
        self._blocks: list[Block] = []

    def add(self, attributes: np.ndarray, values: np.ndarray, y: np.ndarray | None = None) -> None:
        """Add examples.

        Parameters
        ----------
        attributes : ndarray of int, shape (F, T, n)
            Distinct attributes of each example; `columns` for a missing value.
        values : ndarray of float, shape (F, T, n)
            Their values.
        y : ndarray of float, shape (F, T), optional
            Targets, which become one more column; NaN for an unknown one, which is a missing value.
        """
        if y is not None:
            unknown = np.isnan(y)
            target = np.where(unknown, self.columns, self.columns - 1)[:, :, None]
            y = np.where(unknown, 0.0, y)
            attributes, values = np.append(attributes, target, axis=2), np.append(values, y[:, :, None], axis=2)
        self.size += values.shape[1] * values.shape[2]
        self._blocks.append(Block(attributes, values))

    def blocks(self, streams: Sequence[int] | None = None) -> list[Block]:
        """Return all examples of some streams, or of all, in order; consecutive ones of equal size are in one block.

        Streams are distinct and ascending. The blocks of all streams are not copied.
        """
        alike = groupby(self._blocks, key=lambda block: block.values.shape[2])
        self._blocks = [
            Block(*(np.concatenate(arrays, axis=1) for arrays in zip(*blocks, strict=True))) for _, blocks in alike
        ]
        if streams is None or len(streams) == len(self._blocks[0].values):
            return list(self._blocks)
        return [Block(*(arrays[list(streams)] for arrays in block)) for block in self._blocks]


def pilot_entries(accessor: Accessor) -> tuple[Entries, int]:
    """Return entries with targets that hold the pilot, and the number of its rows."""
    entries, (X, y) = Entries(accessor.d + 1), accessor.pilot()
    if X.shape[1]:
        entries.add(np.broadcast_to(np.arange(accessor.d), X.shape), X, y)
    return entries, X.shape[1]


def rows_by_column(attributes: np.ndarray, values: np.ndarray, columns: int) -> tuple[csr_array, csr_array]:
    """Return which columns were seen, as ones, and their values as sparse matrices (T, columns)."""
    from scipy.sparse import csr_array  # imported here because SciPy loads slowly

    starts = np.arange(0, values.size + 1, values.shape[1])
    shape = len(values), columns
    seen, known = (
        csr_array((entries.reshape(-1), attributes.reshape(-1), starts), shape)
        for entries in (np.ones(values.shape), values)
    )
    return seen, known


def dense_rows(attributes: np.ndarray, values: np.ndarray, columns: int, missing: float = 0.0) -> np.ndarray:
    """Return values (..., n) of these attributes in rows (..., columns), and `missing` elsewhere."""
    rows = np.full((*values.shape[:-1], columns + 1), missing)  # one more column collects the missing values
    np.put_along_axis(rows, attributes, values, axis=-1)
    return rows[..., :columns]


def sum_by_columns(attributes: np.ndarray, matrices: np.ndarray, columns: int) -> np.ndarray:
    """Return the sum (columns, columns) of matrices (T, n, n), in rows and columns that examples show (T, n).

    The number of columns stands for a missing value.
    """
    cells = attributes[:, :, None] * (columns + 1) + attributes[:, None, :]
    total = np.bincount(cells.reshape(-1), matrices.reshape(-1), (columns + 1) ** 2)
    return total.reshape(columns + 1, columns + 1)[:columns, :columns]


class AttributeDraws:
    """Draws of k attributes per example, in blocks that do not depend on checkpoints.

    The draws are uniform subsets until `plan` changes them. Free attributes are not drawn: each example shows them too.

    Parameters
    ----------
    rng : numpy.random.Generator
        The stream's.
    d, k : int
        Number of attributes, and how many of them are drawn; all that have a price, if these are fewer.
    free : ndarray of bool, shape (d,), optional
        Which attributes cost nothing; none by default.
    groups : Groups, optional
        Attributes that are bought together: k groups are drawn in place of k attributes. By default each is alone.

    Attributes
    ----------
    priced : ndarray of int, shape (p,)
        Attributes with a price, from which k are drawn; of groups, their heads.
    members : ndarray of int, shape (m,)
        Attributes with a price, with all of each group.
    width : int
        Number of attributes that `take` returns for an example: those drawn, then the free ones.
    """

    def __init__(
        self, rng: np.random.Generator, d: int, k: int, free: np.ndarray | None = None, groups: Groups | None = None
    ) -> None:
        self._rng, self._groups = rng, groups or Groups(tuple(range(d)))
        self._others: np.random.Generator | None = None
        free = np.zeros(d, dtype=bool) if free is None else free
        self.members, self._free = np.flatnonzero(~free), np.flatnonzero(free)
        self.priced = self.members[self._groups.leads[self.members]]
        n = self.priced.size
        self._k = min(k, n)
        self._draw, self._p = (lambda rng: Draw(subset(rng, n, self._k))), np.full(n, 0.5)
        self._block = np.empty((0, self._k), dtype=np.int64)
        self._drawn_width = self._groups.width(self.priced, self._k)
        self.width = self._drawn_width + self._free.size

    def plan(
        self, weights: np.ndarray, mix: float, known: np.ndarray | None = None, prices: np.ndarray | None = None
    ) -> None:
        """Draw, from the next example on, with probabilities that are about proportional to weights.

        The weight of a group is the sum of those of its attributes, and it is known if all of them are. See
        `budgetreg.revealed.designs.fixed_size`.

        Parameters
        ----------
        weights : ndarray of float, shape (m,)
            Of the attributes with a price, at least 0.
        mix : float
            Share of equal probabilities.
        known : ndarray of bool, shape (m,), optional
            Which of them are not drawn, if k others are left; none by default.
        prices : ndarray of float, shape (d,), optional
            Prices by which weights are corrected, see `budgetreg.revealed.designs.per_money`.
        """
        unit = np.searchsorted(self.priced, self._groups.head_of[self.members])
        weights = np.bincount(unit, weights)
        known = None if known is None else np.bincount(unit, ~known) == 0
        if prices is not None:
            weights = per_money(weights, prices[self.priced])
        drawn = np.ones(len(weights), dtype=bool) if known is None or (~known).sum() < self._k else ~known
        self._p = np.zeros(len(weights))
        self._p[drawn] = working_probabilities(weights[drawn], self._k, mix)
        self._draw = fixed_size(self._p, self._k)
        self._block = self._block[:0]

    @property
    def draws_all(self) -> bool:
        """Whether each example shows all attributes."""
        return self._k == self.priced.size

    def take(self, examples: int, available: np.ndarray | None = None) -> np.ndarray:
        """Return the attributes (T, width) of the next examples; rows of groups are filled up with d.

        Parameters
        ----------
        examples : int
            Their number T.
        available : ndarray of bool, shape (T, d), optional
            Which values exist; all by default. Where the value of a drawn attribute is missing, another attribute is
            drawn instead, as long as there is one: see `budgetreg.revealed.designs.replaced`.
        """
        while len(self._block) < examples:
            self._block = np.append(self._block, self._draw(self._rng).attributes, axis=0)
        taken, self._block = self._block[:examples], self._block[examples:]
        if available is not None:
            if self._others is None:  # a generator of its own, so that missing values do not move later draws
                (self._others,) = self._rng.spawn(1)
            taken = replaced(taken, available[:, self.priced], self._p, self._others)
        attributes = self._groups.expanded(self.priced[taken], self._drawn_width)
        return np.hstack([attributes, np.broadcast_to(self._free, (examples, self._free.size))])


@dataclass(frozen=True)
class Collected:
    """Everything revealed up to a checkpoint, or up to a point at which draws may be planned.

    Attributes
    ----------
    examples : int
        Number of examples, without the pilot's; or an amount, see `budgetreg.revealed.purchases`.
    is_checkpoint : bool
        Whether the output is wanted.
    is_plan : bool
        Whether `plan` may be called.
    entries : Entries
        Everything revealed, the pilot first.
    phases : tuple of int
        Numbers of examples, with the pilot's, at which the draw probabilities changed; the last is that of all.
    draws : sequence of AttributeDraws
        One per stream.
    prices : ndarray of float, shape (d,), or None
        What attributes cost, for plans that depend on it.
    """

    examples: int
    is_checkpoint: bool
    is_plan: bool
    entries: Entries
    phases: tuple[int, ...]
    draws: Sequence[AttributeDraws]
    prices: np.ndarray | None = None

    plans_draws_alone: ClassVar[bool] = True
    """Whether plans are for draw probabilities alone, which need less accurate moments than outputs do."""

    @property
    def is_everything(self) -> bool:
        """Whether examples show all values that exist, so that there is nothing to plan."""
        return all(draws.draws_all for draws in self.draws)

    def plan(
        self,
        spread: np.ndarray,
        W: np.ndarray,
        known: np.ndarray,
        joint: Callable[[int], JointMoments] | None = None,
        parts: np.ndarray | None = None,
    ) -> None:
        """Change the draw probabilities, see `budgetreg.revealed.designs.regression_weights`.

        Parameters
        ----------
        spread : ndarray of float, shape (F, d)
            Residual standard deviations of the attributes.
        W : ndarray of float, shape (F, d)
            Regressors.
        known : ndarray of bool, shape (F, d)
            Attributes that are not drawn again, see `budgetreg.revealed.columns`.
        joint : callable, optional
            Returns the moments of a stream, by which learners that plan their purchases choose.
        parts : ndarray of float, shape (F, d), optional
        """
        spread = np.where(known, 0.0, spread)
        for f, draws in enumerate(self.draws):
            i = draws.members
            weights = regression_weights(spread[f, i], W[f, i], None if parts is None else parts[f, i])
            draws.plan(weights, MIX, known[f, i], self.prices)


def collect(
    accessor: Accessor,
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    k: int,
    prices: np.ndarray | None = None,
) -> Iterator[Collected]:
    """Draw k attributes of each example: uniform subsets at first, then by plans.

    The first plan is due after ``2 d / k`` examples, d being the attributes that are not free, and further plans
    whenever their number has doubled. Where all are drawn there is nothing to plan.

    Parameters
    ----------
    accessor : Accessor
        F streams of examples, and their pilots.
    checkpoints : sequence of int
        Increasing.
    rngs : sequence of numpy.random.Generator
        One per stream.
    k : int
        Attributes drawn for each example.
    prices : ndarray of float, shape (d,), optional
        What attributes cost, if plans are to depend on it.
    """
    d, last = accessor.d, checkpoints[-1]
    entries, pilot = pilot_entries(accessor)
    draws = [AttributeDraws(rng, d, k, accessor.free, accessor.groups) for rng in rngs]
    changes = [pilot] if pilot else []
    first = -(-2 * draws[0].priced.size // k)
    doublings = range(last.bit_length() if k < draws[0].priced.size else 0)
    plans = {first << times for times in doublings if first << times < last}
    for start, stop in blocks(0, last, {*checkpoints, *plans}):
        entries.add(*reveal(accessor, draws, start, stop, entries.columns), accessor.targets())
        if stop in checkpoints or stop in plans:
            yield Collected(stop, stop in checkpoints, stop in plans, entries, (*changes, pilot + stop), draws, prices)
        if stop in plans:
            changes.append(pilot + stop)


def reveal(
    accessor: Accessor, draws: Sequence[AttributeDraws], start: int, stop: int, missing: int
) -> tuple[np.ndarray, np.ndarray]:
    """Open a block of examples; return the attributes drawn, or `missing` for missing values, and the values."""
    accessor.open(start, stop)
    return revealed(accessor, drawn(accessor, draws, stop - start), missing)


def revealed(accessor: Accessor, attributes: np.ndarray, missing: int) -> tuple[np.ndarray, np.ndarray]:
    """Reveal attributes (F, T, n) of the current block; return them, `missing` for missing values, and the values.

    Groups have unequal sizes: rows of attributes are filled up with d, which is missing.
    """
    some = None if accessor.groups is None else attributes < accessor.d
    attributes = attributes if some is None else np.where(some, attributes, 0)
    values = accessor.reveal_block(attributes, some)
    there = some
    if not accessor.complete:
        available = accessor.available(attributes)
        there = available if some is None else available & some
    return attributes if there is None else np.where(there, attributes, missing), values


def drawn(accessor: Accessor, draws: Sequence[AttributeDraws], examples: int) -> np.ndarray:
    """Return the attributes (F, T, n) of the current block's T examples, preferring those that have a value."""
    if accessor.complete:
        return np.stack([stream.take(examples) for stream in draws])
    everything = np.broadcast_to(np.arange(accessor.d), (len(draws), examples, accessor.d))
    available = accessor.available(everything)
    return np.stack([stream.take(examples, there) for stream, there in zip(draws, available, strict=True)])


def collect_everything(accessor: Accessor, checkpoints: Sequence[int]) -> Iterator[Collected]:
    """Reveal all values that are present, and store examples with about equally many of them together.

    So memory and time are in proportion to the values that are present, not to the table.

    Parameters
    ----------
    accessor : Accessor
        F streams of examples, and their pilots.
    checkpoints : sequence of int
        Increasing.
    """
    by_width: dict[int, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
    for start, stop in blocks(0, checkpoints[-1], checkpoints):
        for part in _present(accessor, start, stop):
            by_width.setdefault(part[0].shape[2], []).append(part)
        if stop not in checkpoints:
            continue
        entries, pilot = pilot_entries(accessor)
        for width in sorted(by_width):
            for part in by_width[width]:
                entries.add(*part)
        yield Collected(stop, True, False, entries, (pilot, pilot + stop) if pilot else (stop,), [])


def _present(accessor: Accessor, start: int, stop: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield attributes, d + 1 for padding, with values and targets of examples whose rows are equally wide."""
    accessor.open(start, stop)
    d, shape = accessor.d, (accessor.n_streams, stop - start, accessor.d)
    there = accessor.available(np.broadcast_to(np.arange(d), shape))
    counts = there.sum(axis=2)
    attributes = np.argsort(~there, axis=2, kind="stable")[:, :, : max(1, counts.max())]
    present = np.take_along_axis(there, attributes, axis=2)
    values = accessor.reveal_block(attributes, None if present.all() else present)
    attributes = np.where(present, attributes, d + 1)
    # Each stream in the order of its numbers of values, so that all streams have rows of about the same width.
    order = np.argsort(counts, axis=1, kind="stable")
    stream = np.arange(len(order))[:, None]
    attributes, values, y = (array[stream, order] for array in (attributes, values, accessor.targets()))
    widest = np.maximum(counts[stream, order].max(axis=0), 1)
    widths = np.minimum(1 << np.ceil(np.log2(widest)).astype(int), d)
    for width in np.unique(widths):
        some = np.flatnonzero(widths == width)
        padding = ((0, 0), (0, 0), (0, max(0, width - attributes.shape[2])))
        yield (
            np.pad(attributes[:, some, :width], padding, constant_values=d + 1),
            np.pad(values[:, some, :width], padding),
            y[:, some],
        )

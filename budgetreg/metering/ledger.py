"""The bill: how many attributes each replica is charged for, in total and by attribute.

Counts by attribute are whole numbers, so that any price list gives the same cost whatever the order of the reveals and
whichever replicas run together. Revealed cells, pairs of an example and an attribute, are recorded beside it, as a cell
that was bought can be used again. A cell is written as one number, ``row * d + attribute``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from budgetreg.common.errors import BudgetExceeded
from budgetreg.data.dataset import row_blocks

DENSE = 1 << 28
"""Most cells of a table for which a set keeps one byte each; for a larger table it lists its cells, 8 bytes each."""
_PENDING = 1 << 20


class Book(Protocol):
    """Takes note of draws that meet a value, block by block: charges for them, or records which they are."""

    def open(self, start: int, rows: np.ndarray) -> None:
        """Begin the block whose first example has the number ``start``; its rows in the table have shape (F, T)."""

    def note_rows(self) -> None:
        """Note a full row of every example of the block, for all settings."""

    def note_block(self, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Note what all settings draw from each example of the block.

        Parameters
        ----------
        attributes : ndarray of int, shape (F, T, n)
        drawn : ndarray of bool, shape (F, T, n) or (F, T, 1), or None
            Which of them are drawn; None if all are.
        """

    def note_example(self, position: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Note what each replica draws from one example per stream.

        Parameters
        ----------
        position : ndarray of int, shape (F,)
            The example, as a position in the block.
        attributes : ndarray of int, shape (n, F, G)
        drawn : ndarray of bool, shape (n, F, G) or broadcast against it, or None
            Which of them are drawn; None if all are.
        """


class RevealCounts:
    """Counts how often each attribute is charged to each replica, from one checkpoint to the next: a `Book`.

    Parameters
    ----------
    n_streams, n_settings, d : int
        F, G and the number of attributes.
    checkpoints : sequence of int
        Numbers of examples, increasing.
    checkpoints_are_amounts : bool
        Whether the checkpoints are amounts, each of which is noted by `note` when it is spent.
    """

    def __init__(
        self, n_streams: int, n_settings: int, d: int, checkpoints: Sequence[int], checkpoints_are_amounts: bool
    ) -> None:
        self._ends, self._amounts = np.asarray(checkpoints, dtype=np.intp), checkpoints_are_amounts
        self._shape = (len(self._ends) + 1, n_streams, n_settings, d)
        self._shared = np.zeros((len(self._ends) + 1, n_streams, d), dtype=np.int64)
        # Needed only by learners whose settings draw for themselves.
        self._per_setting: np.ndarray | None = None

    def open(self, start: int, rows: np.ndarray) -> None:
        """Begin a block."""
        ends = self._ends[:0] if self._amounts else self._ends
        self._part = np.searchsorted(ends, start + np.arange(rows.shape[1]), "right")

    def note(self) -> None:
        """Count from here on for the next checkpoint."""
        self._part += 1

    def note_rows(self) -> None:
        """Count full rows."""
        np.add.at(self._shared, self._part, 1)

    def note_block(self, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Count what all settings draw."""
        streams = np.arange(len(attributes))[:, None, None]
        _count(self._shared, (self._part[:, None], streams, attributes), drawn)

    def note_example(self, position: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Count what each replica draws."""
        if self._per_setting is None:
            self._per_setting = np.zeros(self._shape, dtype=np.int32)
        _, F, G, _ = self._shape
        places = (self._part[position][:, None], np.arange(F)[:, None], np.arange(G), attributes)
        _count(self._per_setting, places, drawn)

    def until(self, checkpoint: float = np.inf) -> np.ndarray:
        """Return the counts up to a checkpoint, or of the whole pass, shape (F, G, d)."""
        parts = int(np.searchsorted(self._ends, checkpoint)) + 1
        _, F, G, d = self._shape
        total = np.broadcast_to(self._shared[:parts].sum(axis=0)[:, None], (F, G, d))
        if self._per_setting is None:
            return total
        return total + self._per_setting[:parts].sum(axis=0, dtype=np.int64)


def _count(counts: np.ndarray, places: tuple[np.ndarray, ...], drawn: np.ndarray | None) -> None:
    """Add 1 to the counts at places, arrays that are broadcast against each other, of draws that are drawn."""
    places = np.broadcast_arrays(*places)
    if drawn is not None:
        mask = np.broadcast_to(drawn, places[0].shape)
        places = tuple(place[mask] for place in places)
    np.add.at(counts, places, 1)


class Expenses:
    """Adds up what each replica pays for each example, in money: a `Book`.

    Parameters
    ----------
    n_streams, n_settings, n_examples : int
        F, G and the number of examples of a stream.
    prices : ndarray of float, shape (d,)
        Price of each attribute, at least 0.
    """

    def __init__(self, n_streams: int, n_settings: int, n_examples: int, prices: np.ndarray) -> None:
        self._prices, self._streams, self._start = prices, np.arange(n_streams), 0
        self._paid = np.zeros((n_streams, n_examples, n_settings))

    def open(self, start: int, rows: np.ndarray) -> None:
        """Begin a block."""
        self._start = start

    def note_rows(self) -> None:
        """Refuse full rows, all of which cost the same: their number is known beforehand."""
        raise NotImplementedError("full rows end at a number that is known beforehand")

    def note_block(self, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Add what all settings draw together."""
        costs = self._costs(attributes, drawn).sum(axis=2, keepdims=True)
        self._paid[:, self._start : self._start + costs.shape[1]] += costs

    def note_example(self, position: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Add what each replica draws."""
        self._paid[self._streams, self._start + position] += self._costs(attributes, drawn).sum(axis=0)

    def of_stream(self, stream: int) -> np.ndarray:
        """Return what a stream's replicas paid for each example, shape (n, G)."""
        return np.asarray(self._paid[stream])

    def _costs(self, attributes: np.ndarray, drawn: np.ndarray | None) -> np.ndarray:
        """Return the prices of draws, 0 for those that are not drawn."""
        costs = self._prices[attributes]
        return costs if drawn is None else np.where(drawn, costs, 0.0)


@dataclass(frozen=True)
class Bill:
    """The attributes that the replicas of a pass were charged for.

    Attributes
    ----------
    at : dict of int to ndarray of shape (F, G)
        Attributes charged up to each checkpoint (a number of examples).
    total : ndarray of shape (F, G)
        Attributes charged over the whole pass.
    most : ndarray of shape (F, G)
        The most attributes charged for any one example.
    reveals : RevealCounts or None
        How often each attribute was charged, if the bill is itemised.
    """

    at: dict[int, np.ndarray]
    total: np.ndarray
    most: np.ndarray
    reveals: RevealCounts | None = None


class Ledger:
    """Charges each replica for what it draws, and refuses an overspend: a `Book`.

    Parameters
    ----------
    n_streams, n_settings, d : int
        F, G and the number of attributes.
    budget : int or None
        Most attributes that a replica may be charged for one example; None for no limit.
    checkpoints : sequence of int
        Numbers of examples at which the bill is noted; others are noted by `note`.
    free : ndarray of bool, shape (d,), optional
        Attributes that are charged nothing; none by default.
    """

    def __init__(
        self,
        n_streams: int,
        n_settings: int,
        d: int,
        budget: int | None,
        checkpoints: Sequence[int],
        free: np.ndarray | None = None,
    ) -> None:
        self._priced = None if free is None or not free.any() else ~free
        self._d = d if self._priced is None else int(self._priced.sum())
        self._budget, self._checkpoints = budget, tuple(checkpoints)
        self._streams, self._start = np.arange(n_streams), 0
        self._spent = np.zeros((n_streams, 0, n_settings), dtype=np.int32)
        self._at: dict[int, np.ndarray] = {}
        self._total = np.zeros((n_streams, n_settings), dtype=np.int64)
        self._most = np.zeros((n_streams, n_settings), dtype=np.int64)

    def open(self, start: int, rows: np.ndarray) -> None:
        """Begin a block."""
        self._close()
        self._start = start
        self._spent = np.zeros((*rows.shape, self._spent.shape[2]), dtype=np.int32)

    def note_rows(self) -> None:
        """Charge all attributes with a price of every example of the block."""
        self.charge(slice(None), self._d)

    def note_block(self, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Charge all settings for what they draw together."""
        drawn = self._with_price(attributes, drawn)
        draws = attributes.shape[2] if drawn is None else np.broadcast_to(drawn, attributes.shape).sum(2, keepdims=True)
        self.charge(slice(None), draws)

    def note_example(self, position: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Charge each replica for what it draws."""
        drawn = self._with_price(attributes, drawn)
        draws = len(attributes) if drawn is None else np.broadcast_to(drawn, attributes.shape).sum(0)
        self.charge((self._streams, position), draws)

    def charge(self, examples: slice | tuple[np.ndarray, np.ndarray], draws: int | np.ndarray) -> None:
        """Charge for numbers of draws.

        Parameters
        ----------
        examples : slice or tuple of ndarrays
            Which examples of the block, as an index of an array (F, T, G).
        draws : int or ndarray of int
            Numbers of draws, broadcast against what the index selects.

        Raises
        ------
        BudgetExceeded
            If an example's budget would be exceeded; nothing is charged then.
        """
        charged = self._spent[examples] + draws
        if self._budget is not None and charged.size and charged.max() > self._budget:
            raise BudgetExceeded(f"an example would cost {charged.max()} attributes; the budget is {self._budget}")
        self._spent[examples] = charged

    def note(self, checkpoint: int) -> None:
        """Note, as a checkpoint, what has been charged so far, the current block included."""
        self._at[checkpoint] = self._total + self._spent.sum(axis=1, dtype=np.int64)

    def bill(self, reveals: RevealCounts | None = None) -> Bill:
        """Return what has been charged so far, with the counts by attribute; the block ends."""
        self._close()
        self._spent = self._spent[:, :0]
        return Bill(self._at, self._total, self._most, reveals)

    def _with_price(self, attributes: np.ndarray, drawn: np.ndarray | None) -> np.ndarray | None:
        """Return which draws are charged; None for all."""
        if self._priced is None:
            return drawn
        priced = self._priced[attributes]
        return priced if drawn is None else priced & drawn

    def _close(self) -> None:
        if not self._spent.size:
            return
        for checkpoint in self._checkpoints:
            if self._start < checkpoint <= self._start + self._spent.shape[1]:
                within = self._spent[:, : checkpoint - self._start].sum(axis=1, dtype=np.int64)
                self._at[checkpoint] = self._total + within
        self._total = self._total + self._spent.sum(axis=1, dtype=np.int64)
        self._most = np.maximum(self._most, self._spent.max(axis=1))


class Cells:
    """A set of cells of a table, and of rows that were revealed in full.

    Parameters
    ----------
    n, d : int
        Rows and attributes of the table.
    """

    def __init__(self, n: int, d: int) -> None:
        self.d, self.nowhere = d, n * d
        self._full = np.zeros(n, dtype=bool)
        self._marks = np.zeros(n * d + 1, dtype=bool) if n * d <= DENSE else None
        self._listed, self._pending = np.empty(0, dtype=np.int64), [np.empty(0, dtype=np.int64)]
        self._n_pending = 0

    def add(self, cells: np.ndarray) -> None:
        """Add cells, int64 of any shape; the number `nowhere` stands for no cell."""
        if self._marks is not None:
            self._marks[cells] = True
            return
        self._pending.append(cells.reshape(-1))
        self._n_pending += cells.size
        if self._n_pending > max(_PENDING, self._listed.size):
            self._list()

    def add_rows(self, rows: np.ndarray) -> None:
        """Add all cells of rows."""
        self._full[rows] = True

    def by_attribute(self, rows: np.ndarray) -> np.ndarray:
        """Return how many cells of some rows, each given once, are in the set, by attribute: shape (d,)."""
        partial = rows[~self._full[rows]]
        counts = np.full(self.d, rows.size - partial.size)
        if self._marks is None:
            self._list()
            row, attribute = np.divmod(self._listed, self.d)
            wanted = np.zeros(self._full.size + 1, dtype=bool)
            wanted[partial] = True
            return counts + np.bincount(attribute[wanted[row]], minlength=self.d)
        table = self._marks[:-1].reshape(-1, self.d)
        for block in row_blocks(partial, self.d):
            counts += np.count_nonzero(table[block], axis=0)
        return counts

    def holds(self, cells: np.ndarray) -> np.ndarray:
        """Return which of some cells, int64 of shape (n,), are in the set."""
        full: np.ndarray = self._full[cells // self.d]
        if self._marks is not None:
            return full | self._marks[cells]
        self._list()
        at = np.searchsorted(self._listed, cells)
        return full | (np.append(self._listed, -1)[at] == cells)

    def _list(self) -> None:
        self._listed = np.unique(np.concatenate([self._listed, *self._pending]))
        self._pending, self._n_pending = [], 0


class RevealLog:
    """Records the cells that an accessor reveals to a batch: a `budgetreg.metering.ledger.Book`.

    For the first streams, whatever any setting sees goes into one set. The last streams are kept separate, by setting,
    because one of their settings will be chosen. Draws that are charged but not looked up
    (`budgetreg.metering.accessor.Accessor.pay`) reveal no cell.

    Parameters
    ----------
    cells : Cells
        The set to which the cells of the first streams are added.
    offsets : ndarray of int, shape (F,)
        By stream, the row number in `cells` minus the row number in the accessor's table.
    n_separate : int
        How many of the streams, the last ones, are kept separate.
    """

    def __init__(self, cells: Cells, offsets: np.ndarray, n_separate: int) -> None:
        self._cells, self._offsets = cells, offsets
        self._n_merged = len(offsets) - n_separate
        self._stream = np.arange(len(offsets))
        # The number d, which is no attribute, marks what a replica does not draw.
        self._narrow = np.min_scalar_type(cells.d)
        self._rows: list[np.ndarray] = []
        self._shared: list[np.ndarray] = []
        self._per_setting: list[tuple[np.ndarray, np.ndarray]] = []
        self._pending: list[tuple[np.ndarray, np.ndarray]] = []

    def open(self, start: int, rows: np.ndarray) -> None:
        """Begin a block."""
        self._gather()
        self._block = rows + self._offsets[:, None]
        self._first = self._block * self._cells.d

    def note_rows(self) -> None:
        """Record all attributes of the block's examples."""
        self._cells.add_rows(self._block[: self._n_merged])
        self._rows.append(self._block[self._n_merged :])

    def note_block(self, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Record what all settings see."""
        cells, merged = self._first[:, :, None] + attributes, self._n_merged
        if drawn is not None:
            cells = np.where(drawn, cells, self._cells.nowhere)
        self._cells.add(cells[:merged])
        if merged < len(cells):
            self._shared.append(cells[merged:].reshape(len(cells) - merged, -1))

    def note_example(self, position: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Record what each setting sees for itself."""
        first, merged = self._first[self._stream, position], self._n_merged
        cells = first[:merged, None] + attributes[:, :merged]
        if drawn is not None:
            cells = np.where(drawn[:, :merged], cells, self._cells.nowhere)
        self._cells.add(cells)
        if merged < len(first):
            separate = attributes[:, merged:]
            if drawn is not None:
                separate = np.where(drawn[:, merged:], separate, self._cells.d)
            self._pending.append((first[merged:], separate.astype(self._narrow)))

    def seen(self, stream: int, setting: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what a setting saw on one of the streams that are kept separate.

        Parameters
        ----------
        stream : int
            Counted from the first of them.
        setting : int
            Among those that ran.

        Returns
        -------
        rows : ndarray of int64
            Rows that were seen in full, ascending.
        cells : ndarray of int64
            Single cells of other rows, ascending.
        """
        self._gather()
        rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(rows[stream] for rows in self._rows)]))
        seen = [cells[stream] for cells in self._shared]
        for first, attributes in self._per_setting:
            replica = attributes[:, stream, setting]
            drawn = replica < self._cells.d
            seen.append(first[drawn, stream] + replica[drawn])
        cells = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *seen]))
        cells = cells[np.diff(cells, prepend=-1) > 0]  # np.unique hashes, which is far slower than to sort
        return rows, cells[cells != self._cells.nowhere]

    def _gather(self) -> None:
        """Join the arrays of a block's examples: the overhead of thousands of small arrays exceeds what they hold."""
        if self._pending:
            first = [np.broadcast_to(row, (len(attributes), row.size)) for row, attributes in self._pending]
            attributes = np.concatenate([attributes for _, attributes in self._pending])
            self._per_setting.append((np.concatenate(first), attributes))
            self._pending = []

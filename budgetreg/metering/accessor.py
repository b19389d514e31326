"""The accessor, the only way to a value: it charges for every reveal and refuses an overspend.

A *stream* is one pass over a sequence of examples: a fold, or the final run. All settings of a grid run along each
stream on the same examples. A *replica* is one pair of a stream and a setting. Arrays are ordered (F streams, T
examples, G settings).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from budgetreg.common.errors import BudgetExceeded
from budgetreg.data.dataset import Groups, row_blocks, uncharged
from budgetreg.metering.ledger import Bill, Book, Ledger, RevealCounts
from budgetreg.metering.table import Origin, RunningMeans, Table, TargetMeans

_COMMON = 32
"""Least number of examples shared by the same streams that are returned together; fewer save nothing."""


class Accessor:
    """Reveals attribute values along F streams of examples to G settings each, and charges for them.

    Parameters
    ----------
    table : Table
        Where the values are. It is private: learners get values only through the methods below.
    orders : ndarray of int, shape (F, m)
        Row numbers of the examples of each stream, in the order in which they are presented.
    n_settings : int
        Number G of settings that run along each stream.
    budget : int or None
        Most attributes that a replica may be charged for one example. None counts without a limit, for learners whose
        budget holds on average.
    checkpoints : sequence of int
        Numbers of examples at which the bill is noted.
    opened : callable, optional
        Called with the number of examples opened so far at each new block, to show progress.
    lengths : ndarray of int, shape (F,), optional
        How many of the m examples each stream really has; all by default. After its end a stream is charged nothing and
        gets zeros. Streams of unequal lengths cannot reveal full rows.
    pilot : ndarray of int, shape (F, N), optional
        Rows that each stream bought in full before the pass, which is charged elsewhere. They are in all means.
    centre_attributes : bool
        Subtract the running means of what `reveal_block` and `rows` revealed to the stream in earlier blocks. What
        other methods reveal is not in the means: there each replica draws for itself, and would get means of its own,
        whereas all settings of a stream share theirs.
    centre_targets : bool
        Subtract the mean of the targets of the stream's earlier examples.
    itemised : bool
        Whether the bill counts how often each attribute was charged. Then each draw must be named, see `pay_for`.
    log : Book, optional
        Records which cells are revealed to whom.
    expenses : Book, optional
        Adds up what is charged in money.
    checkpoints_are_amounts : bool
        Whether checkpoints are amounts rather than numbers of examples; each is noted by `note` when it is spent.
    free : ndarray of bool, shape (d,), optional
        Attributes that cost nothing: revealing them is charged to no budget. None by default.
    groups : Groups, optional
        Attributes that are revealed together, by `reveal_block` alone, and charged as one. By default each is alone.

    Notes
    -----
    Examples are opened in blocks (`open`). Within a block, every reveal names its examples by position. A draw costs 1
    even when it repeats an attribute already drawn for that example.

    Drawing a missing value is free and returns 0; `available` shows which values are missing. Values may be missing
    completely at random. Then dividing a single value by `together` of its attribute with itself, and a product of two
    values of the same example by `together` of both, gives the means that complete data would have: whether a value is
    missing is decided once for an example, not once for each draw.
    """

    def __init__(
        self,
        table: Table,
        orders: np.ndarray,
        n_settings: int,
        budget: int | None,
        checkpoints: Sequence[int] = (),
        opened: Callable[[int], None] = lambda stop: None,
        *,
        lengths: np.ndarray | None = None,
        pilot: np.ndarray | None = None,
        centre_attributes: bool = False,
        centre_targets: bool = False,
        itemised: bool = False,
        log: Book | None = None,
        expenses: Book | None = None,
        checkpoints_are_amounts: bool = False,
        free: np.ndarray | None = None,
        groups: Groups | None = None,
    ) -> None:
        self._table = table
        self._orders = np.ascontiguousarray(orders, dtype=np.intp)
        self.n_streams, self.n_examples = self._orders.shape
        self._lengths = np.full(self.n_streams, self.n_examples) if lengths is None else lengths
        self._pilot = np.empty((self.n_streams, 0), dtype=np.intp) if pilot is None else pilot
        self.n_settings, self.d, self.free, self.groups = n_settings, table.d, free, groups
        self._opened = opened
        unbilled = uncharged(free, groups)
        amounts = checkpoints_are_amounts
        self._ledger = Ledger(self.n_streams, n_settings, self.d, budget, () if amounts else checkpoints, unbilled)
        self._counts = RevealCounts(self.n_streams, n_settings, self.d, checkpoints, amounts) if itemised else None
        # The ledger comes first: it refuses what the others must not record.
        self._bills: list[Book] = [book for book in (self._ledger, self._counts, expenses) if book]
        self._logs = [log] if log else []
        known = map(table.rows, self._pilot.T)
        self._means = RunningMeans(self.n_streams, self.d, known) if centre_attributes else None
        self._target_means = TargetMeans(np.asarray(table.y[self._pilot])) if centre_targets else None
        self._stop = 0

    @property
    def itemised(self) -> bool:
        """Whether each draw must be named: by `pay_for` instead of `pay`."""
        return self._counts is not None or not self.complete

    @property
    def complete(self) -> bool:
        """Whether no value is missing."""
        return self._table.available is None

    def available(self, attributes: np.ndarray) -> np.ndarray:
        """Return which attributes of the current block's examples have a value, at no cost.

        Parameters
        ----------
        attributes : ndarray of int, shape (F, T, n)

        Returns
        -------
        ndarray of bool, shape (F, T, n)
        """
        mask = self._table.available
        return np.ones(attributes.shape, dtype=bool) if mask is None else mask[self._rows[:, :, None], attributes]

    def together(self, streams: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the share of a stream's training examples in which attributes i and j have values, above 0.

        The three arrays of int are broadcast against each other. All shares are 1 if no value is missing.
        """
        shares = self._table.together
        if shares is None:
            return np.ones(np.broadcast_shapes(streams.shape, i.shape, j.shape))
        place = i * self.d + j
        if shares.ndim == 3:
            place = place + self._table.part(shares, self._orders[:, 0])[streams] * self.d**2
        return shares.take(np.broadcast_to(place, np.broadcast_shapes(streams.shape, place.shape)))

    def stored_units(self, streams: Sequence[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return what the values of the data are multiplied by, and what is then subtracted, of some streams (F, d)."""
        return self._table.units_of(self._orders[slice(None) if streams is None else list(streams), 0])

    def open(self, start: int, stop: int) -> None:
        """Make examples ``start <= t < stop`` (counted from 0 along each stream) the current block."""
        if start != self._stop or not start < stop <= self.n_examples:
            raise ValueError(f"examples {start} to {stop} do not follow {self._stop} of {self.n_examples}")
        self._stop = stop
        self._rows = np.ascontiguousarray(self._orders[:, start:stop])
        self._running = np.arange(start, stop) < self._lengths[:, None] if self._lengths.min() < stop else None
        self._stream = np.arange(self.n_streams)
        self._y = np.asarray(self._table.y[self._rows])
        for book in (*self._bills, *self._logs):
            book.open(start, self._rows)
        if self._means:
            self._means.open(start)
        if self._target_means:
            self._y = self._target_means.open(start, self._y)
        self._opened(stop)

    def pilot(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that were bought before the pass: X (F, N, d) and y (F, N), neither of them centred."""
        return self._table.rows(self._pilot), np.asarray(self._table.y[self._pilot])

    def targets(self) -> np.ndarray:
        """Return the targets of the current block, shape (F, T); they are free."""
        return self._y

    def origins(self, examples: int) -> list[Origin]:
        """Return the origin of each stream's regressors after a number of examples.

        An origin has the means by which the attributes of the last example are centred, and the mean of all targets.

        Parameters
        ----------
        examples : int
            A number of examples, counted from the beginning of the stream; the last one is in the current block.

        Returns
        -------
        list of F Origin
        """
        shifts = self._means.at(examples) if self._means else [None] * self.n_streams
        intercepts = self._target_means.at(examples) if self._target_means else [0.0] * self.n_streams
        return [Origin(shift, intercept) for shift, intercept in zip(shifts, intercepts, strict=True)]

    def reveal_block(self, attributes: np.ndarray, drawn: np.ndarray | None = None) -> np.ndarray:
        """Reveal the same attributes to all settings, for every example of the block.

        Parameters
        ----------
        attributes : ndarray of int, shape (F, T, n)
            Attributes drawn for each example.
        drawn : ndarray of bool, shape (F, T, n), optional
            Which of them are drawn; all by default. The others are free and come out as zeros.

        Returns
        -------
        ndarray of float, shape (F, T, n)

        Raises
        ------
        BudgetExceeded
            If an example's budget would be exceeded, or part of a group is drawn; nothing is revealed then.
        """
        return self._reveal(None, attributes, drawn)

    def reveal(self, position: np.ndarray, attributes: np.ndarray, paid: np.ndarray) -> np.ndarray:
        """Reveal to each replica its own attributes of one example per stream.

        Parameters
        ----------
        position : ndarray of int, shape (F,)
            The example, as a position in the current block.
        attributes : ndarray of int, shape (n, F, G)
            Attributes drawn by each replica.
        paid : ndarray of bool, shape (F, G)
            Replicas that draw; the others are charged nothing and get zeros.

        Returns
        -------
        ndarray of float, shape (n, F, G)

        Raises
        ------
        BudgetExceeded
            If an example's budget would be exceeded; nothing is revealed then.
        """
        return self._reveal(position, attributes, None if paid.all() else paid[None])

    def reveal_some(self, position: int, attributes: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        """Reveal to each replica as many attributes of one example as it has drawn itself.

        Parameters
        ----------
        position : int
            The example of every stream, as a position in the current block.
        attributes : ndarray of int, shape (F, G, n)
            Attributes, padded to equal numbers.
        drawn : ndarray of bool, shape (F, G, n)
            Which of them are drawn; the others are free and come out as zeros.

        Returns
        -------
        ndarray of float, shape (F, G, n)

        Raises
        ------
        BudgetExceeded
            If an example's budget would be exceeded; nothing is revealed then.
        """
        draws = np.full(self.n_streams, position), attributes.transpose(2, 0, 1), drawn.transpose(2, 0, 1)
        return np.ascontiguousarray(self._reveal(*draws).transpose(1, 2, 0))

    def pay(self, draws: np.ndarray) -> None:
        """Charge for draws whose values cannot change anything and are not looked up; `itemised` forbids it.

        Parameters
        ----------
        draws : ndarray of int, shape (F, T, G)
            Number of draws per example of the block and replica.

        Raises
        ------
        BudgetExceeded
            If an example's budget would be exceeded.
        """
        assert not self.itemised and not self.groups
        if self._running is not None:
            draws = np.where(self._running[:, :, None], draws, 0)
        self._ledger.charge(slice(None), draws)

    def pay_for(self, position: np.ndarray, attributes: np.ndarray, paid: np.ndarray) -> None:
        """Charge for named draws whose values cannot change anything and are not looked up.

        Parameters and exceptions are those of `reveal`.
        """
        self._charge(position, attributes, None if paid.all() else paid[None])

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Open a block and reveal it in full, d attributes for every example and replica.

        Parameters
        ----------
        start, stop : int
            Examples ``start <= t < stop`` of every stream, following the block before.

        Returns
        -------
        X : ndarray of float, shape (F, T, d)
        y : ndarray of float, shape (F, T)

        Raises
        ------
        BudgetExceeded
            If the budget is below d.
        """
        self._open_in_full(start, stop)
        X = self._table.rows(self._rows)
        if self._means:
            self._means.centre_rows(X)
        return X, self.targets()

    def distinct_rows(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Open a block and reveal it in full; rows that streams share are charged to each, but returned once.

        Streams that share rows must share their origin: an accessor that centres attributes does not offer this.

        Parameters
        ----------
        start, stop : int
            Examples ``start <= t < stop`` of every stream, following the block before.

        Yields
        ------
        streams : ndarray of int
            The streams that hold the examples; over all parts, each stream gets its block once.
        X : ndarray of float, shape (n, d)
        y : ndarray of float, shape (n,)

        Raises
        ------
        BudgetExceeded
            If the budget is below d.
        """
        assert self._means is None
        self._open_in_full(start, stop)
        rows, place = np.unique(self._rows, return_inverse=True)
        held = np.zeros((rows.size, self.n_streams), dtype=bool)
        held[place.reshape(self._rows.shape), self._stream[:, None]] = True
        holders, group, sizes = np.unique(held, axis=0, return_inverse=True, return_counts=True)
        group = group.reshape(-1)
        common = sizes[group] >= _COMMON
        parts = [(np.flatnonzero(holders[g]), rows[group == g]) for g in np.flatnonzero(sizes >= _COMMON)]
        parts += [(self._stream[f : f + 1], rows[held[:, f] & ~common]) for f in range(self.n_streams)]
        for streams, index in parts:
            for some in row_blocks(index, self.d):
                yield streams, self._table.rows(some), np.asarray(self._table.y[some])

    def note(self, checkpoint: int) -> None:
        """Note what has been charged by a checkpoint that is an amount; each in turn."""
        self._ledger.note(checkpoint)
        if self._counts:
            self._counts.note()

    def bill(self) -> Bill:
        """Return what has been charged so far."""
        return self._ledger.bill(self._counts)

    def _at(self, position: np.ndarray | None) -> tuple[Any, ...]:
        """Return an index of arrays (F, T): what it selects is broadcast against attributes.

        It selects one example per stream at a position (F,), against attributes (n, F, G); or if the position is None,
        the whole block, against attributes (F, T, n).
        """
        return (slice(None), slice(None), None) if position is None else (None, self._stream, position, None)

    def _reveal(self, position: np.ndarray | None, attributes: np.ndarray, drawn: np.ndarray | None) -> np.ndarray:
        """Charge for draws, record them and return their values, centred; 0 where no value is drawn."""
        drawn = self._charge(position, attributes, drawn)
        self._note(self._logs, position, attributes, drawn)
        values = self._entries(self._rows[self._at(position)], attributes, drawn)
        if self._means:
            if position is None:
                self._means.add(values, attributes, drawn)
            streams = self._stream[:, None, None] if position is None else self._stream[None, :, None]
            values = self._means.centred(values, streams, attributes)
        return values if drawn is None else np.where(drawn, values, 0.0)

    def _entries(self, rows: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None) -> np.ndarray:
        """Return single values, not centred; those that are not drawn may have any value."""
        if drawn is None or not self._table.on_demand:
            return self._table.entries(rows, attributes)
        rows, attributes, drawn = np.broadcast_arrays(rows, attributes, drawn)
        values = np.zeros(rows.shape)
        values[drawn] = self._table.entries(rows[drawn], attributes[drawn])
        return values

    def _charge(
        self, position: np.ndarray | None, attributes: np.ndarray, drawn: np.ndarray | None
    ) -> np.ndarray | None:
        """Charge for the draws that meet a value before the end of their stream; return which do, None for all."""
        if self.groups and (position is not None or not self.groups.are_whole(attributes, drawn)):
            raise BudgetExceeded("attributes of a group are bought together: part of a group cannot be revealed")
        if self._running is not None:
            running = self._running[self._at(position)]
            drawn = running if drawn is None else drawn & running
        if self._table.available is not None:
            there = self._table.available[self._rows[self._at(position)], attributes]
            drawn = there if drawn is None else drawn & there
        self._note(self._bills, position, attributes, drawn)
        return drawn

    def _note(
        self, books: Sequence[Book], position: np.ndarray | None, attributes: np.ndarray, drawn: np.ndarray | None
    ) -> None:
        for book in books:
            if position is None:
                book.note_block(attributes, drawn)
            else:
                book.note_example(position, attributes, drawn)

    def _open_in_full(self, start: int, stop: int) -> None:
        """Open a block and charge for its full rows."""
        self.open(start, stop)
        assert self._running is None and self.complete
        for book in (*self._bills, *self._logs):
            book.note_rows()

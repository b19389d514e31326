"""The only way to an attribute's value: the accessor counts every reveal and refuses an overspend.

Streams and settings: a *stream* is one pass over one sequence of examples (a fold, or the final run); all
settings of a grid run along each stream on the same examples.  A *replica* is one (stream, setting) pair.  Arrays
are ordered (F streams, T examples, G settings).
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from budgetreg.data.values import row_blocks
from budgetreg.errors import BudgetExceeded
from budgetreg.metering.cells import RevealLog
from budgetreg.metering.centring import Origin, RunningMeans, TargetMeans
from budgetreg.metering.ledger import Bill, Reveals
from budgetreg.metering.table import Table

_COMMON = 32
"""From this number on, examples with the same holders are handed out together; for fewer it saves nothing."""


class Accessor:
    """Reveals attribute values along F streams of examples to G settings each, and charges for them.

    Parameters
    ----------
    table : Table
        Where the values are.  Kept private: learners get them through the methods below alone.
    orders : ndarray of int, shape (F, m)
        Row numbers of the examples of each stream, in the order in which they are presented.
    n_settings : int
        Number G of settings that run along each stream.
    budget : int or None
        Most attributes a replica may be charged for one example; None counts without a limit, for learners whose
        budget holds on average.
    checkpoints : sequence of int
        Numbers of examples at which the bill is noted.
    opened : callable, optional
        Told the number of examples opened so far at each new block, to show progress.
    centred : bool
        Whether values are handed out minus the running means of what `reveal_block` and `rows` revealed to the stream
        in earlier blocks.  What `reveal` and `reveal_some` reveal is left out of the means: each replica draws for
        itself there, and would get a zero of its own, whereas the settings of a stream share what they are shown.
    intercept : bool
        Whether targets are handed out minus the mean of those of the stream's examples before.
    pilot : ndarray of int, shape (F, N), optional
        Rows that were bought in full for each stream before, which is charged elsewhere; they are in all means.
    lengths : ndarray of int, shape (F,), optional
        How many of the m examples each stream really has.  Beyond its end it is charged nothing and gets zeros; full
        rows are not for streams of unequal lengths.
    record : RevealLog, optional
        Told which cells are revealed to whom.
    itemised : bool
        Whether the bill tells how often each attribute was revealed; then each draw has to be named, see `pay_for`.

    Notes
    -----
    Examples are opened in blocks (`open`); within a block, every reveal names its examples by position.  A draw
    costs 1 even when it repeats an attribute already drawn for that example.

    A draw that meets a cell without a value is charged nothing and comes out as 0; `available` tells which do.  Where
    values are missing completely at random, a single value divided by `together` of its attribute with itself, and a
    product of two of the same example divided by that of the two, have the means that they would have if all values
    were there: whether a cell has one is drawn once for an example, not once for each draw.
    """

    def __init__(
        self,
        table: Table,
        orders: np.ndarray,
        n_settings: int,
        budget: int | None,
        checkpoints: Sequence[int] = (),
        opened: Callable[[int], None] = lambda stop: None,
        centred: bool = False,
        intercept: bool = False,
        pilot: np.ndarray | None = None,
        lengths: np.ndarray | None = None,
        record: RevealLog | None = None,
        itemised: bool = False,
    ) -> None:
        self._table = table
        self._orders = np.ascontiguousarray(orders, dtype=np.intp)
        self.n_streams, self.n_examples = self._orders.shape
        self._lengths = np.full(self.n_streams, self.n_examples) if lengths is None else lengths
        self.n_settings = n_settings
        self.d = table.d
        self.budget = budget
        self._checkpoints = tuple(checkpoints)
        self._opened = opened
        self._record = record
        self._pilot = np.empty((self.n_streams, 0), dtype=np.intp) if pilot is None else pilot
        self._means = self._target_means = None
        if centred:
            self._means = RunningMeans(self.n_streams, self.d)
            for f, row in np.ndindex(self._pilot.shape):
                self._means.begin(f, table.rows(self._pilot[f, row]))
        if intercept:
            self._target_means = TargetMeans(np.asarray(table.y[self._pilot]))
        self._start = self._stop = 0
        self._spent = np.zeros((self.n_streams, 0, n_settings), dtype=np.int32)
        self._total = np.zeros((self.n_streams, n_settings), dtype=np.int64)
        self._at: dict[int, np.ndarray] = {}
        self._most = np.zeros((self.n_streams, n_settings), dtype=np.int64)
        self._reveals = Reveals(self.n_streams, n_settings, self.d, self._checkpoints) if itemised else None

    @property
    def itemised(self) -> bool:
        """Whether each draw has to be named: `pay_for` in place of `pay`."""
        return self._reveals is not None or not self.complete

    @property
    def complete(self) -> bool:
        """Whether all cells have a value."""
        return self._table.available is None

    def available(self, attributes: np.ndarray) -> np.ndarray:
        """Return which attributes of the current block's examples have a value, which is free to ask.

        Parameters
        ----------
        attributes : ndarray of int, shape (F, T, n)

        Returns
        -------
        ndarray of bool, shape (F, T, n)
        """
        there = self._there(self._rows[:, :, None], attributes)
        return np.ones(attributes.shape, dtype=bool) if there is None else there

    def together(self, streams: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the share of a stream's training examples that have both attribute i and attribute j, all above 0.

        The three arrays of int are broadcast against each other; without missing values, all shares are 1.
        """
        shares = self._table.together
        if shares is None:
            return np.ones(np.broadcast_shapes(streams.shape, i.shape, j.shape))
        place = i * self.d + j
        if shares.ndim == 3:
            place = place + self._table.part(shares, self._orders[:, 0])[streams] * self.d**2
        return shares.take(np.broadcast_to(place, np.broadcast_shapes(streams.shape, place.shape)))

    def open(self, start: int, stop: int) -> None:
        """Make examples ``start <= t < stop`` (counted from 0 along each stream) the current block."""
        if start != self._stop or not start < stop <= self.n_examples:
            raise ValueError(f"examples {start} to {stop} do not follow {self._stop} of {self.n_examples}")
        self._close()
        self._start, self._stop = start, stop
        self._spent = np.zeros((self.n_streams, stop - start, self.n_settings), dtype=np.int32)
        self._rows = np.ascontiguousarray(self._orders[:, start:stop])
        self._stream = np.arange(self.n_streams)
        self._ended = self._lengths[:, None] <= np.arange(start, stop) if self._lengths.min() < stop else None
        self._y = np.asarray(self._table.y[self._rows])
        if self._record:
            self._record.open(self._rows)
        if self._reveals:
            self._reveals.open(start, stop)
        if self._means:
            self._means.open(start)
        if self._target_means:
            self._y = self._target_means.open(start, self._y)
        self._opened(stop)

    def pilot(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that were bought before: X (F, N, d) and y (F, N), neither of them centred."""
        return self._table.rows(self._pilot), np.asarray(self._table.y[self._pilot])

    def targets(self) -> np.ndarray:
        """Return the targets of the current block, shape (F, T); they are free."""
        return self._y

    def origins(self, examples: int) -> list[Origin]:
        """Return what regressors count from after so many examples, one for each stream.

        That is the means by which the attributes of the last one are centred, and the mean of all their targets.

        Parameters
        ----------
        examples : int
            A number of examples in the current block, counted from the beginning of the stream.

        Returns
        -------
        list of F Origin
        """
        shifts = self._means.at(examples) if self._means else [None] * self.n_streams
        intercepts = self._target_means.at(examples) if self._target_means else [0.0] * self.n_streams
        return [Origin(*own) for own in zip(shifts, intercepts, strict=True)]

    def reveal_block(self, attributes: np.ndarray, drawn: np.ndarray | None = None) -> np.ndarray:
        """Reveal the same attributes to all settings, for every example of the block.

        Parameters
        ----------
        attributes : ndarray of int, shape (F, T, n)
            Attributes drawn for each example.
        drawn : ndarray of bool, shape (F, T, n), optional
            Which of them are drawn, if not all; the others are charged nothing and come out as zeros.  Not for an
            accessor that centres.

        Returns
        -------
        ndarray of float, shape (F, T, n)

        Raises
        ------
        BudgetExceeded
            If an example's budget would be passed; nothing is revealed then.
        """
        assert drawn is None or self._means is None
        if self._ended is not None:
            drawn = np.broadcast_to(~self._ended[:, :, None], attributes.shape) & (True if drawn is None else drawn)
        there = self._there(self._rows[:, :, None], attributes)
        if there is not None:
            drawn = there if drawn is None else drawn & there
        draws = attributes.shape[-1] if drawn is None else np.count_nonzero(drawn, axis=2)[:, :, None]
        self._charge(slice(None), draws)
        if self._record:
            self._record.shown(attributes, drawn)
        if self._reveals:
            self._reveals.note_block(attributes, drawn)
        values = self._table.entries(self._rows[:, :, None], attributes)
        if self._means:
            # What lies beyond a stream's end gets into means that nothing is centred by any more.
            self._means.add(values if there is None else np.where(there, values, 0.0), attributes, there)
            values = self._means.centred(values, self._stream[:, None, None], attributes)
        return values if drawn is None else np.where(drawn, values, 0.0)

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
            If an example's budget would be passed; nothing is revealed then.
        """
        paid = self._pay_for(position, attributes, paid)  # from here on each draw's own, where values are missing
        if self._record:
            self._record.own(position, attributes, None if paid.all() else paid)
        values = self._table.entries(self._rows[self._stream, position][:, None], attributes)
        if self._means:
            values = self._means.centred(values, self._stream[:, None], attributes)
        return values if paid.all() else np.where(paid, values, 0.0)

    def reveal_some(self, position: int, attributes: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        """Reveal to each replica as many attributes of one example as it has drawn itself.

        Parameters
        ----------
        position : int
            The example of every stream, as a position in the current block.
        attributes : ndarray of int, shape (F, G, n)
            Attributes, padded to equal numbers.
        drawn : ndarray of bool, shape (F, G, n)
            Which of them are drawn; the others are charged nothing and come out as zeros.

        Returns
        -------
        ndarray of float, shape (F, G, n)

        Raises
        ------
        BudgetExceeded
            If an example's budget would be passed; nothing is revealed then.
        """
        if self._ended is not None:
            drawn = drawn & ~self._ended[:, position, None, None]
        there = self._there(self._rows[:, position, None, None], attributes)
        if there is not None:
            drawn = drawn & there
        positions = np.full(self.n_streams, position)
        self._charge((self._stream, positions), np.count_nonzero(drawn, axis=2))
        if self._record:
            self._record.own(positions, attributes.transpose(2, 0, 1), drawn.transpose(2, 0, 1))
        if self._reveals:
            self._reveals.note(positions, attributes, drawn)
        values = self._table.entries(self._rows[:, position, None, None], attributes)
        if self._means:
            values = self._means.centred(values, self._stream[:, None, None], attributes)
        return np.where(drawn, values, 0.0)

    def pay(self, draws: np.ndarray) -> None:
        """Charge for draws whose values cannot change anything and are not looked up; where nobody asks which they are.

        Parameters
        ----------
        draws : ndarray of int, shape (F, T, G)
            Number of draws per example of the block and replica.

        Raises
        ------
        BudgetExceeded
            If an example's budget would be passed.
        """
        assert not self.itemised
        self._charge(slice(None), draws if self._ended is None else np.where(self._ended[:, :, None], 0, draws))

    def pay_for(self, position: np.ndarray, attributes: np.ndarray, paid: np.ndarray) -> None:
        """Charge for draws whose values cannot change anything and are not looked up, and tell which they are.

        Parameters and exceptions are those of `reveal`.
        """
        self._pay_for(position, attributes, paid)

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
        self.open(start, stop)
        assert self._ended is None and self.complete
        self._charge(slice(None), self.d)
        if self._record:
            self._record.in_full()
        if self._reveals:
            self._reveals.note_rows()
        X = self._table.rows(self._rows)
        if self._means:
            self._means.centre_rows(X)
        return X, self.targets()

    def distinct_rows(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Open a block and reveal it in full; what several streams hold is handed out once, but charged to each.

        Streams that share examples share their zero: an accessor that centres each stream has no such rows.

        Parameters
        ----------
        start, stop : int
            Examples ``start <= t < stop`` of every stream, following the block before.

        Yields
        ------
        streams : ndarray of int
            The streams that hold the examples; with all parts together, each stream has had its block once.
        X : ndarray of float, shape (n, d)
        y : ndarray of float, shape (n,)

        Raises
        ------
        BudgetExceeded
            If the budget is below d.
        """
        assert self._means is None
        self.open(start, stop)
        assert self._ended is None and self.complete
        self._charge(slice(None), self.d)
        if self._record:
            self._record.in_full()
        if self._reveals:
            self._reveals.note_rows()
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

    def bill(self) -> Bill:
        """Return what has been charged so far."""
        self._close()
        self._spent = self._spent[:, :0]
        return Bill(self._at, self._total, self._most, self._reveals)

    def _pay_for(self, position: np.ndarray, attributes: np.ndarray, paid: np.ndarray) -> np.ndarray:
        """Charge for draws of one example per stream; return who of those that draw pays, (F, G) or (n, F, G)."""
        if self._ended is not None:
            paid = paid & ~self._ended[self._stream, position][:, None]
        n = len(attributes)
        there = self._there(self._rows[self._stream, position][:, None], attributes)
        if there is not None:
            own: np.ndarray = paid & there
            self._charge((self._stream, position), np.count_nonzero(own, axis=0))
            if self._reveals:
                self._reveals.note(position, attributes.transpose(1, 2, 0), own.transpose(1, 2, 0))
            return own
        self._charge((self._stream, position), n if paid.all() else n * paid)
        if self._reveals:
            drawn = np.broadcast_to(paid[:, :, None], (*paid.shape, n))
            self._reveals.note(position, attributes.transpose(1, 2, 0), drawn)
        return paid

    def _there(self, rows: np.ndarray, attributes: np.ndarray) -> np.ndarray | None:
        """Return which cells have a value; None if all have."""
        mask = self._table.available
        return None if mask is None else mask[rows, attributes]

    def _charge(self, examples: slice | tuple[np.ndarray, np.ndarray], draws: int | np.ndarray) -> None:
        charged = self._spent[examples] + draws
        if self.budget is not None and charged.size and charged.max() > self.budget:
            raise BudgetExceeded(f"an example would cost {charged.max()} attributes; the budget is {self.budget}")
        self._spent[examples] = charged

    def _close(self) -> None:
        if not self._spent.size:
            return
        for checkpoint in self._checkpoints:
            if self._start < checkpoint <= self._stop:
                within = self._spent[:, : checkpoint - self._start].sum(axis=1, dtype=np.int64)
                self._at[checkpoint] = self._total + within
        self._total = self._total + self._spent.sum(axis=1, dtype=np.int64)
        self._most = np.maximum(self._most, self._spent.max(axis=1))

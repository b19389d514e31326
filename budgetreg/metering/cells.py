"""The revealed cells, pairs of an example and an attribute: a cell that was bought can be used again.

A cell is written as one number, ``row * d + attribute``.
"""

import numpy as np

from budgetreg.data.dataset import row_blocks

DENSE = 1 << 28
"""Most cells of a table for which a set keeps one byte each; for a larger table it lists its cells, 8 bytes each."""
_PENDING = 1 << 20


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
        cells = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *seen]))
        return rows, cells[cells != self._cells.nowhere]

    def _gather(self) -> None:
        """Join the arrays of a block's examples: the overhead of thousands of small arrays exceeds what they hold."""
        if self._pending:
            first = [np.broadcast_to(row, (len(attributes), row.size)) for row, attributes in self._pending]
            attributes = np.concatenate([attributes for _, attributes in self._pending])
            self._per_setting.append((np.concatenate(first), attributes))
            self._pending = []

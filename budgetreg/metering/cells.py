"""Which cells, pairs of an example and an attribute, were revealed: what was bought once can be used again.

A cell is written as one number, ``row * d + attribute``.
"""

import numpy as np

from budgetreg.data.values import row_blocks

DENSE = 1 << 28
"""Up to so many cells each has a byte; of a larger table the cells of the set are listed, 8 bytes for each."""
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
        """Add cells, int64 of any shape; `nowhere` among them is none."""
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

    def count(self, rows: np.ndarray) -> int:
        """Return how many cells of some rows, each given once, are in the set."""
        partial = rows[~self._full[rows]]
        in_full = (rows.size - partial.size) * self.d
        if self._marks is None:
            self._list()
            first, end = np.searchsorted(self._listed, [partial * self.d, (partial + 1) * self.d])
            return in_full + int((end - first).sum())
        table = self._marks[:-1].reshape(-1, self.d)
        return in_full + sum(int(np.count_nonzero(table[some])) for some in row_blocks(partial, self.d))

    def by_attribute(self, rows: np.ndarray) -> np.ndarray:
        """Return of each attribute how many of its cells in some rows, each given once, are in the set, shape (d,)."""
        partial = rows[~self._full[rows]]
        counts = np.full(self.d, rows.size - partial.size)
        if self._marks is None:
            self._list()
            row, attribute = np.divmod(self._listed, self.d)
            asked = np.zeros(self._full.size + 1, dtype=bool)
            asked[partial] = True
            return counts + np.bincount(attribute[asked[row]], minlength=self.d)
        table = self._marks[:-1].reshape(-1, self.d)
        for some in row_blocks(partial, self.d):
            counts += np.count_nonzero(table[some], axis=0)
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
    """Takes down which cells an accessor reveals to the streams of a batch.

    Of the first streams all that any setting sees goes into one set. Those of the last ones, of whose settings one will
    be chosen, are kept apart. Draws that are charged and not looked up (`budgetreg.metering.accessor.Accessor.pay`) are
    of no known attribute, and of no cell.

    Parameters
    ----------
    cells : Cells
        To which is added what the first streams see.
    offsets : ndarray of int, shape (F,)
        What leads from a row of the accessor's table to that of `cells`, by stream.
    n_apart : int
        How many of the streams, the last ones, are kept apart.
    """

    def __init__(self, cells: Cells, offsets: np.ndarray, n_apart: int) -> None:
        self._cells, self._offsets = cells, offsets
        self._together = len(offsets) - n_apart
        self._stream = np.arange(len(offsets))
        # What no replica draws is marked by the first number that is no attribute.
        self._narrow = np.min_scalar_type(cells.d)
        self._rows: list[np.ndarray] = []
        self._shown: list[np.ndarray] = []
        self._own: list[tuple[np.ndarray, np.ndarray]] = []
        self._pending: list[tuple[np.ndarray, np.ndarray]] = []

    def open(self, rows: np.ndarray) -> None:
        """Begin a block of the table's rows (F, T)."""
        self._gather()
        self._block = rows + self._offsets[:, None]
        self._first = self._block * self._cells.d

    def in_full(self) -> None:
        """Take down all attributes of the block's examples."""
        together = self._together
        self._cells.add_rows(self._block[:together])
        self._rows.append(self._block[together:])

    def shown(self, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Take down attributes (F, T, n) that all settings see, those that are drawn; None: all."""
        cells = self._first[:, :, None] + attributes
        if drawn is not None:
            cells[~drawn] = self._cells.nowhere
        together = self._together
        self._cells.add(cells[:together])
        if together < len(cells):
            self._shown.append(cells[together:].reshape(len(cells) - together, -1))

    def own(self, position: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Take down attributes (n, F, G) of an example of each stream (F,) that each setting sees for itself."""
        first, together = self._first[self._stream, position], self._together
        cells = first[:together, None] + attributes[:, :together]
        if drawn is not None:
            cells = np.where(drawn[..., :together, :], cells, self._cells.nowhere)
        self._cells.add(cells)
        if together < len(first):
            apart = attributes[:, together:]
            if drawn is not None:
                apart = np.where(drawn[..., together:, :], apart, self._cells.d)
            self._pending.append((first[together:], apart.astype(self._narrow)))

    def seen(self, stream: int, setting: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what a setting saw on one of the streams that are kept apart.

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
            Single cells, ascending; of other rows, as a stream has each example once, and a block is one or the other.
        """
        self._gather()
        rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(rows[stream] for rows in self._rows)]))
        found = [cells[stream] for cells in self._shown]
        for first, attributes in self._own:
            own = attributes[:, stream, setting]
            drawn = own < self._cells.d
            found.append(first[drawn, stream] + own[drawn])
        cells = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *found]))
        return rows, cells[cells != self._cells.nowhere]

    def _gather(self) -> None:
        """Put the steps of a block into one array each: thousands of small ones would take more than they hold."""
        if self._pending:
            first = [np.broadcast_to(one, (len(own), one.size)) for one, own in self._pending]
            self._own.append((np.concatenate(first), np.concatenate([own for _, own in self._pending])))
            self._pending = []

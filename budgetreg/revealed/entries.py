"""Storage of revealed values, the only data that learners of this kind learn from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Block:
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
        self._pending: list[Block] = []
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
            Targets, which become one more column.
        """
        if y is not None:
            target = np.full((*y.shape, 1), self.columns - 1)
            attributes, values = np.append(attributes, target, axis=2), np.append(values, y[:, :, None], axis=2)
        self.size += values.shape[1] * values.shape[2]
        if self._pending and self._pending[-1].attributes.shape[2] != attributes.shape[2]:
            self._join()
        self._pending.append(Block(attributes, values))

    def blocks(self) -> list[Block]:
        """Return all examples in order, consecutive ones with equally many values in one block."""
        self._join()
        return self._blocks

    def _join(self) -> None:
        if self._blocks and self._pending and self._blocks[-1].values.shape[2] == self._pending[0].values.shape[2]:
            self._pending.insert(0, self._blocks.pop())
        if self._pending:
            attributes = np.concatenate([block.attributes for block in self._pending], axis=1)
            values = np.concatenate([block.values for block in self._pending], axis=1)
            self._blocks.append(Block(attributes, values))
        self._pending = []


def rows_by_column(attributes: np.ndarray, values: np.ndarray, columns: int) -> tuple["csr_array", "csr_array"]:
    """Return which columns were seen, as ones, and their values as sparse matrices (T, columns)."""
    from scipy.sparse import csr_array  # imported here because SciPy loads slowly

    starts = np.arange(0, values.size + 1, values.shape[1])
    shape = len(values), columns
    seen, known = (
        csr_array((entries.reshape(-1), attributes.reshape(-1), starts), shape)
        for entries in (np.ones(values.shape), values)
    )
    return seen, known

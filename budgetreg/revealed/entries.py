"""What was revealed of the examples of some streams, kept: nothing but this is ever learned from."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array


@dataclass(frozen=True)
class Block:
    """Examples of which equally many values were revealed.

    Attributes
    ----------
    attributes : ndarray of int, shape (F, T, n)
        Which, the target being attribute d where there is one; of a value that is missing, the number of columns.
    values : ndarray of float, shape (F, T, n)
    """

    attributes: np.ndarray
    values: np.ndarray


class Entries:
    """Revealed values of F streams, T examples of each so far, in memory of about ``F T (k + 1)`` numbers.

    Parameters
    ----------
    columns : int
        Attributes, and the target as one more where there is one.

    Attributes
    ----------
    size : int
        Values of each stream.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.size = 0
        self._waiting: list[Block] = []
        self._blocks: list[Block] = []

    def add(
        self, attributes: np.ndarray, values: np.ndarray, y: np.ndarray | None = None, there: np.ndarray | None = None
    ) -> None:
        """Take in examples.

        Parameters
        ----------
        attributes : ndarray of int, shape (F, T, n)
            Distinct ones of each example.
        values : ndarray of float, shape (F, T, n)
        y : ndarray of float, shape (F, T), optional
            Their targets, which are one more column.
        there : ndarray of bool, shape (F, T, n), optional
            Which of the values are not missing, if some are.
        """
        if there is not None:
            attributes = np.where(there, attributes, self.columns)
        if y is not None:
            target = np.full((*y.shape, 1), self.columns - 1)
            attributes, values = np.append(attributes, target, axis=2), np.append(values, y[:, :, None], axis=2)
        self.size += values.shape[1] * values.shape[2]
        if self._waiting and self._waiting[-1].attributes.shape[2] != attributes.shape[2]:
            self._join()
        self._waiting.append(Block(attributes, values))

    def blocks(self) -> list[Block]:
        """Return all examples, those with equally many values together as they came."""
        self._join()
        return self._blocks

    def _join(self) -> None:
        if self._blocks and self._waiting and self._blocks[-1].values.shape[2] == self._waiting[0].values.shape[2]:
            self._waiting.insert(0, self._blocks.pop())
        if self._waiting:
            attributes = np.concatenate([block.attributes for block in self._waiting], axis=1)
            values = np.concatenate([block.values for block in self._waiting], axis=1)
            self._blocks.append(Block(attributes, values))
        self._waiting = []


def rows_by_column(attributes: np.ndarray, values: np.ndarray, columns: int) -> tuple[csr_array, csr_array]:
    """Return which columns were seen (as ones) and their values, as sparse matrices (T, columns), from (T, n)."""
    starts = np.arange(0, values.size + 1, values.shape[1])
    shape = len(values), columns
    seen, known = (
        csr_array((entries.reshape(-1), attributes.reshape(-1), starts), shape)
        for entries in (np.ones(values.shape), values)
    )
    return seen, known

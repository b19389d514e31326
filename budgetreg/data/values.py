"""Stored attribute values: an array in memory or mapped, sparse rows, or values that are computed.

All layers above use the interface `Values`: single entries, and full rows of a few examples. No operation needs an
array of all n x d values, so that a data set may be larger than memory.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

BLOCK_ROWS = 4096
"""Largest number of rows in a block."""

BLOCK_ENTRIES = 1 << 23
"""Largest number of entries in a block of more than one row, 64 MiB of floats."""


class Values(Protocol):
    """A table of n x d stored values."""

    shape: tuple[int, int]
    """Rows and attributes, (n, d)."""

    def entries(self, rows: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        """Return single values; the two arrays of int are broadcast against each other."""

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Return full rows, shape ``index.shape + (d,)``."""


def as_values(X: np.ndarray | Values) -> Values:
    """Return `X` if it implements `Values`, else a `Dense` view of the array."""
    return Dense(X) if isinstance(X, np.ndarray) else X


def row_blocks(index: np.ndarray, d: int) -> Iterator[np.ndarray]:
    """Split row numbers into blocks whose full rows fit into memory.

    Parameters
    ----------
    index : ndarray of int, shape (n,)
        Row numbers.
    d : int
        Number of attributes. The sizes of blocks depend on n and d alone.

    Yields
    ------
    ndarray of int
        The next row numbers.
    """
    step = max(1, min(BLOCK_ROWS, BLOCK_ENTRIES // d))
    for start in range(0, index.size, step):
        yield index[start : start + step]


def means(values: Values, index: np.ndarray) -> np.ndarray:
    """Return the attributes' means over the rows in `index`, float64 of shape (d,), computed block by block."""
    total = np.zeros(values.shape[1])
    for rows in row_blocks(index, values.shape[1]):
        total += values.rows(rows).sum(axis=0, dtype=np.float64)
    return total / index.size


class Dense:
    """Values in an array.

    Parameters
    ----------
    array : ndarray of shape (n, d)
        Numbers of any type, possibly memory-mapped; C-contiguous, or it is copied.
    """

    def __init__(self, array: np.ndarray) -> None:
        self.shape = array.shape
        self._array = np.asarray(array)
        self._flat = self._array.reshape(-1)

    def entries(self, rows: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        """Return single values, see `Values`."""
        return self._flat.take(rows * self.shape[1] + attributes)

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Return full rows, see `Values`."""
        return self._array[index]


class Sparse:
    """Values in compressed sparse rows: only some entries are stored, the others are 0.

    Parameters
    ----------
    starts : ndarray of int, shape (n + 1,)
        Row i has the entries ``starts[i] <= p < starts[i + 1]``.
    columns : ndarray of int, shape (nnz,)
        Their attributes, strictly increasing within a row; possibly memory-mapped, as is `data`.
    data : ndarray of shape (nnz,)
        Their values; at least one.
    d : int
        Number of attributes.
    first : int
        Number of the first attribute in `columns`: LIBSVM files count from 1.
    """

    def __init__(self, starts: np.ndarray, columns: np.ndarray, data: np.ndarray, d: int, first: int = 0) -> None:
        self.shape = (len(starts) - 1, d)
        self._starts, self._first = np.asarray(starts), first
        self._columns, self._data = np.asarray(columns), np.asarray(data)
        longest = int(np.diff(self._starts).max())
        self._steps = [1 << bit for bit in reversed(range(longest.bit_length()))]

    def entries(self, rows: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        """Return single values, see `Values`; each is found by a binary search in its row."""
        rows, wanted = np.broadcast_arrays(rows, attributes + self._first)
        start, stop = self._starts.take(rows), self._starts.take(rows + 1)
        position = start - 1  # of the last entry known to be at or before the wanted attribute
        for step in self._steps:
            probe = position + step
            position += step * ((probe < stop) & (self._columns.take(probe, mode="clip") <= wanted))
        stored = (position >= start) & (self._columns.take(position, mode="clip") == wanted)
        return np.where(stored, self._data.take(position, mode="clip"), 0)

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Return full rows, see `Values`."""
        start = self._starts[index].reshape(-1)
        length = self._starts[index + 1].reshape(-1) - start
        row = np.repeat(np.arange(length.size), length)
        position = np.arange(row.size) + np.repeat(start - (np.cumsum(length) - length), length)
        dense = np.zeros((length.size, self.shape[1]), dtype=self._data.dtype)
        dense[row, self._columns[position] - self._first] = self._data[position]
        return dense.reshape(*index.shape, self.shape[1])


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB))
_ENTRIES_AT_ONCE = 1 << 15  # 256 KiB, which fit into the processor's cache


class Coins:
    """Independent 0/1 attributes that are computed on access and never stored.

    Attribute i of row r is 1 if number ``r d + i`` of the generator SplitMix64, started at `key`, is below the
    attribute's mean, as a fraction of 53 bits.

    Parameters
    ----------
    key : int
        Seed of the table, 64 bits.
    means : ndarray of shape (d,)
        Probability of a 1 for each attribute.
    numbers : ndarray of int, shape (n,)
        The numbers of these n rows in the endless table, each below 2^64 / d.

    References
    ----------
    Steele, Lea & Flood (2014), "Fast splittable pseudorandom number generators", Fig. 17.
    """

    def __init__(self, key: int, means: np.ndarray, numbers: np.ndarray) -> None:
        d = means.size
        self.shape = (numbers.size, d)
        self._row = np.uint64(key) + (numbers.astype(np.uint64) * np.uint64(d) + np.uint64(1)) * _GOLDEN
        self._attribute = np.arange(d, dtype=np.uint64) * _GOLDEN
        self._below = np.ceil(means * 2.0**53).astype(np.uint64)

    def entries(self, rows: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        """Return single values, see `Values`."""
        state = self._row.take(rows) + self._attribute.take(attributes)
        return (_mixed(state) < self._below.take(attributes)).view(np.uint8)

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Return full rows, see `Values`."""
        states = self._row[index].reshape(-1)
        coins = np.empty((states.size, self.shape[1]), dtype=bool)
        step = max(1, _ENTRIES_AT_ONCE // self.shape[1])
        for start in range(0, states.size, step):
            some = slice(start, start + step)
            np.less(_mixed(states[some, None] + self._attribute), self._below, out=coins[some])
        return coins.view(np.uint8).reshape(*index.shape, self.shape[1])


def _mixed(state: np.ndarray) -> np.ndarray:
    """Turn states of SplitMix64 into its numbers, in place, and return their upper 53 bits."""
    shifted = np.empty_like(state)
    for shift, factor in _FACTORS:
        state ^= np.right_shift(state, shift, out=shifted)
        state *= factor
    state ^= np.right_shift(state, np.uint64(31), out=shifted)
    state >>= np.uint64(11)
    return state

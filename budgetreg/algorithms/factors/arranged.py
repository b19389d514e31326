"""Revealed values arranged for the Gibbs chain of a factor model, and solvers of many small systems at once.

Streams are stacked. Sums over examples are taken within a stream, in an order that depends on no other stream. Small
systems lie along the last axis: NumPy then works on long vectors, and no system's result depends on the others.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from budgetreg.revealed.collection import Block

_CHUNK = 2**20
"""Numbers in an array of a part of the examples, which limits the memory needed."""

_SUMMED = 2**18
"""Products summed in float32 at a time, before the sums are added in float64."""


class ArrangedBlock(NamedTuple):
    """Cells of T examples with equally many values.

    Attributes
    ----------
    examples : ndarray of int, shape (T,)
        Numbers of the examples, among those of all streams.
    rows : ndarray of int, shape (T, n)
        Rows of the columns in arrays of all streams, see `ArrangedValues`.
    values : ndarray of float32, shape (T, n)
        The values; 0 in columns that are not modelled.
    """

    examples: np.ndarray
    rows: np.ndarray
    values: np.ndarray

    def of(self, streams: np.ndarray) -> "ArrangedBlock":
        """Return the cells of some streams, given as a mask (F,)."""
        if streams.all():
            return self
        return ArrangedBlock(*(x[np.repeat(streams, len(x) // len(streams))] for x in self))

    def parts(self, q: int) -> Iterator["ArrangedBlock"]:
        """Yield parts that are small enough for arrays of n or of q x q numbers per example."""
        step = max(1, _CHUNK // max(self.rows.shape[1], q * q))
        for begin in range(0, len(self.rows), step):
            yield ArrangedBlock(*(of[begin : begin + step] for of in self))


class ArrangedValues:
    """Revealed values of F streams by example and by column.

    The columns of each stream are followed by one more, c, for values that are missing or not in a live column. So
    column i of stream f has the row ``f (c + 1) + i`` in an array of all streams.

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed.
    live : ndarray of bool, shape (F, c)
        Columns to model.
    n_factors : int
        Factors q.

    Attributes
    ----------
    examples : int
        Examples of each stream.
    cells : list of ArrangedBlock
        By block, the streams one after the other.
    counts, squares : ndarray of float, shape (F, c)
        Number of the values of each column, and the sum of their squares.
    """

    def __init__(self, blocks: Sequence[Block], live: np.ndarray, n_factors: int) -> None:
        F, c = live.shape
        self.examples = sum(block.values.shape[1] for block in blocks)
        self.cells: list[ArrangedBlock] = []
        stream, start, size = np.arange(F)[:, None, None], 0, F * (c + 1)
        live = np.append(live, np.zeros((F, 1), dtype=bool), axis=1)  # missing values are not live either
        columns, values, counts, squares = [], [], np.zeros(size), np.zeros(size)
        for block in blocks:
            T, n = block.values.shape[1:]
            is_live = live[stream, block.attributes]
            columns.append(np.where(is_live, block.attributes, c).astype(np.int32))
            values.append(np.where(is_live, block.values, 0.0))
            rows = (stream * (c + 1) + columns[-1]).astype(np.int32).reshape(-1, n)
            examples = (stream[:, 0] * self.examples + np.arange(start, start + T)).reshape(-1)
            self.cells.append(ArrangedBlock(examples, rows, values[-1].astype(np.float32).reshape(-1, n)))
            counts += np.bincount(rows.reshape(-1), minlength=size)
            squares += np.bincount(rows.reshape(-1), np.square(values[-1]).reshape(-1), size)
            start += T
        self.counts, self.squares = counts.reshape(F, c + 1)[:, :c], squares.reshape(F, c + 1)[:, :c]
        step = max(1, _SUMMED // ((n_factors + 1) * (n_factors + 2) // 2))
        self._by_column = list(_by_column(columns, values, c, step))

    def sums(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sums over the examples that show a column.

        Parameters
        ----------
        z : ndarray of float32, shape (F, T, q)

        Returns
        -------
        products : ndarray of float, shape (F, c, q (q + 1) / 2)
            Sums of ``z z'``, packed as by `packed`.
        weighted : ndarray of float, shape (F, c, q)
            Sums of ``x z``.
        """
        (F, c), q = self.counts.shape, z.shape[2]
        products, weighted = np.zeros((F * c, q * (q + 1) // 2)), np.zeros((F * c, q))
        z = z.reshape(-1, q)
        for rows, chunk, seen, known in self._by_column:
            products[rows] += seen @ packed(z[chunk])
            weighted[rows] += known @ z[chunk].astype(float)
        return products.reshape(F, c, -1), weighted.reshape(F, c, q)


def _by_column(
    columns: list[np.ndarray], values: list[np.ndarray], c: int, step: int
) -> Iterator[tuple[slice, slice, csr_array, csr_array]]:
    """Yield the columns of some streams, and at most `step` of their examples, with matrices of ones and of values.

    Columns and examples are numbered across streams. Examples are those of a few whole streams, or some of one stream.
    """
    F, T = len(columns[0]), sum(of.shape[1] for of in columns)
    widths = np.concatenate([np.full(of.shape[1], of.shape[2]) for of in columns])
    numbered = [np.where(of < c, np.arange(F)[:, None, None] * c + of, F * c) for of in columns]
    cells = [np.concatenate([of[f].reshape(-1) for f in range(F) for of in parts]) for parts in (values, numbered)]
    by_example = csr_array((*cells, np.append(0, np.cumsum(np.tile(widths, F)))), (F * T, F * c + 1))
    together = max(1, step // T)
    for f in range(0, F, together):
        end = min(f + together, F)
        rows = slice(f * c, end * c)
        for start in range(f * T, end * T, step):
            chunk = slice(start, min(start + step, end * T))
            known = by_example[chunk].T.tocsr()[rows]
            ones = np.ones(known.nnz, np.float32)
            yield rows, chunk, csr_array((ones, known.indices, known.indptr), known.shape), known


def combined(rows: np.ndarray, weights: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return for each example the sum of rows of a table, with these weights (T, n)."""
    T, n = rows.shape
    ends = np.arange(0, rows.size + 1, n)
    return np.asarray(csr_array((weights.reshape(-1), rows.reshape(-1), ends), (T, len(table))) @ table)


def packed(z: np.ndarray) -> np.ndarray:
    """Return the products ``z_i z_j`` with i <= j of each row, in the order of `numpy.triu_indices`."""
    T, q = z.shape
    products, start = np.empty((T, q * (q + 1) // 2), z.dtype), 0
    for j in range(q):
        np.multiply(z[:, j:], z[:, j, None], out=products[:, start : start + q - j])
        start += q - j
    return products


@cache
def lower_triangle(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column numbers of a lower triangle (q, q), in the order of `packed`."""
    column, row = np.triu_indices(q)
    return row, column


def solve(A: np.ndarray, noise: np.ndarray | float) -> np.ndarray:
    """Return ``M^-1 b + L'^-1 noise``, (q, T), for T positive definite matrices ``M = L L'``.

    Parameters
    ----------
    A : ndarray of float, shape (q + 1, q, T)
        The lower triangles of M - I, followed by b as the last row. Overwritten.
    noise : ndarray of float, shape (q, T), or float
    """
    q, T = A.shape[1:]
    if T == 1:  # einsum would add in another order
        return solve(A.repeat(2, axis=2), noise)[:, :1]
    for j in range(q):
        A[j, j] += 1
        if j:
            A[j:, j] -= np.einsum("ikt,kt->it", A[j:, :j], A[j, :j])
        # M has no eigenvalue below 1, and so no pivot; rounding must not make one smaller
        A[j, j] = np.sqrt(np.maximum(A[j, j], 1))
        A[j + 1 :, j] /= A[j, j]
    x = A[q] + noise
    for j in reversed(range(q)):
        x[j] /= A[j, j]
        x[:j] -= A[j, :j] * x[j]
    return x


def inverse_of_lower(L: np.ndarray) -> np.ndarray:
    """Return the inverses of T lower triangular matrices (q, q, T)."""
    inverse = np.zeros_like(L)
    for j in range(len(L)):
        inverse[j, j] = 1.0
        inverse[j, : j + 1] /= L[j, j]
        inverse[j + 1 :, : j + 1] -= L[j + 1 :, j, None] * inverse[j, : j + 1]
    return inverse

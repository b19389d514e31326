"""The data set that all layers above work with."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from budgetreg.common.errors import ConfigError, quoted

LARGEST = 1e30
"""Largest absolute value of an attribute that is admitted; 1/LARGEST is the smallest, apart from 0.

Losses are squares of products of weights, attributes and targets, and spreads over repetitions square them again.
Doubles reach from 2.2e-308 to 1.8e308: the square of a product of two such values is 1e120 or 1e-120, and that squared
1e240 or 1e-240, which leaves a factor of 1e68 for sums over examples and attributes and for divisions by k/d.
"""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples with all their attributes, of which an accessor reveals some.

    The arrays are made read-only. A memory-mapped ``X`` loses the mapping when it is pickled: load the data set in the
    worker instead of sending it there.

    Parameters
    ----------
    name : str
        Name in the column ``dataset`` and in the keys of random streams.
    X : ndarray of shape (n, d), int8, uint8, float32 or float64; or Values
        Stored values, an array being C-contiguous and possibly memory-mapped. An attribute's value is
        ``X * scale - shift``. Not checked for finiteness here, because that would read a large mapped file in full.
    y : ndarray of shape (n,), float64
        Targets; all 0 if there are none, and NaN where one is not known yet.
    scale : float or ndarray of shape (d,)
        Value of one stored unit.
    n_train : int or None
        Official split: rows ``[0, n_train)`` train, the others test. None if there is no official split; n (no test
        rows) only where the second moment is known.
    two_valued : bool
        Whether every target is -1 or +1, so that an error rate makes sense.
    notes : tuple of str
        Remarks for the user.
    digest : str
        Digest of the content; optional for an array, whose digest is computed on demand.
    second_moment : ndarray of shape (d, d), float64, or None
        ``E x x'`` of the distribution of the examples, if it is known, in squared units of the attributes.
    unpredictable : str
        The reason why no regressor could predict the targets; empty if one could.
    names : tuple of str
        Names of the attributes; empty if they have none.
    target : str
        Name of the target in the file; empty if it has none.
    label_names : tuple of str
        The values of a two-valued target in the file, which are -1 and +1, in this order; empty if they are -1 and +1
        there, too.
    shift : ndarray of shape (d,), or None
        Centre of the attributes that is known without looking at them; None: 0.
    available : ndarray of bool, shape (n, d), or None
        Which cells have a value; the others are 0 in ``X``. None if all have one.
    dropped : tuple of (int, str)
        Columns of the file that are no attributes: positions, ascending, among all columns but the target, and names,
        empty if they have none.
    groups : Groups or None
        Attributes that are bought together; None if each is bought alone.
    ordered : bool
        Whether learners see the examples in the order of the rows, and not in a random one.
    first : int or None
        The index of the first column of a LIBSVM file, 0 or 1; None for other data, whose columns count from 1.

    Raises
    ------
    ValueError
        If the parts do not fit together.
    """

    name: str
    X: "np.ndarray | Values"
    y: np.ndarray
    scale: float | np.ndarray
    n_train: int | None
    two_valued: bool
    notes: tuple[str, ...] = ()
    digest: str = ""
    second_moment: np.ndarray | None = None
    unpredictable: str = ""
    names: tuple[str, ...] = ()
    target: str = ""
    label_names: tuple[str, ...] = ()
    shift: np.ndarray | None = None
    available: np.ndarray | None = None
    dropped: tuple[tuple[int, str], ...] = ()
    groups: "Groups | None" = None
    ordered: bool = False
    first: int | None = None

    def __post_init__(self) -> None:
        """Check shapes, types and targets, and make the arrays read-only."""
        if len(self.X.shape) != 2 or self.y.shape != self.X.shape[:1] or 0 in self.X.shape:
            raise ValueError(f"X has shape {self.X.shape} and y {self.y.shape}; (n, d) and (n,) are needed")
        if isinstance(self.X, np.ndarray):
            if self.X.dtype not in (np.int8, np.uint8, np.float32, np.float64) or not self.X.flags.c_contiguous:
                raise ValueError(f"X must be C-contiguous int8, uint8, float32 or float64, not {self.X.dtype}")
        elif not self.digest:
            raise ValueError("values that are no array need a digest")
        if self.y.dtype != np.float64 or np.isinf(self.y).any():
            raise ValueError("y must be float64 without infinities")
        if not (np.isfinite(self.scale) & (np.asarray(self.scale) > 0)).all():
            raise ValueError(f"scale must be positive, not {self.scale}")
        if np.shape(self.scale) not in ((), self.X.shape[1:]):
            raise ValueError(f"scale has shape {np.shape(self.scale)}; one number, or one for each attribute is needed")
        if self.shift is not None and (self.shift.shape != self.X.shape[1:] or not np.isfinite(self.shift).all()):
            raise ValueError(f"shift must be a finite number for each attribute, not {self.shift}")
        most = len(self.y) - (self.second_moment is None)
        if self.n_train is not None and not 0 < self.n_train <= most:
            raise ValueError(f"n_train must leave rows on both sides of {len(self.y)}, not {self.n_train}")
        if len(self.names) not in (0, self.X.shape[1]):
            raise ValueError(f"{len(self.names)} names for {self.X.shape[1]} attributes")
        mask, C = self.available, self.second_moment
        if mask is not None and (mask.dtype != bool or mask.shape != self.X.shape):
            raise ValueError(f"available has shape {mask.shape}; bool of shape {self.X.shape} is needed")
        if self.two_valued and not np.isin(self.y[~np.isnan(self.y)], (-1.0, 1.0)).all():
            raise ValueError("two_valued targets must be -1, +1 or unknown")
        if C is not None and C.shape != (self.X.shape[1],) * 2:
            raise ValueError(f"second_moment has shape {C.shape}; (d, d) is needed")
        for array in (self.X, self.y, mask, C):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    @property
    def n_purchases(self) -> int:
        """Number of purchases in a full row: attributes, or groups that are bought together."""
        return self.X.shape[1] if self.groups is None else int(self.groups.leads.sum())

    @property
    def labels(self) -> tuple[str, ...]:
        """The values of a two-valued target in the file, that of -1 and that of +1; empty for other targets."""
        return (self.label_names or ("-1", "1")) if self.two_valued else ()

    @cached_property
    def complete(self) -> np.ndarray:
        """The rows without missing values, bool of shape (n,)."""
        return np.ones(len(self.y), dtype=bool) if self.available is None else np.asarray(self.available.all(axis=1))

    def label(self, attribute: int) -> str:
        """Return how messages call an attribute: its name, or its number in the file."""
        return label(attribute, self.names, self.dropped, self.first)

    def fingerprint(self) -> str:
        """Return a short digest of the content, which detects a changed file."""
        if self.digest or not isinstance(self.X, np.ndarray):
            return self.digest
        content = hashlib.blake2b(digest_size=8)
        for array in (self.X, self.y, *([] if self.available is None else [self.available])):
            content.update(array.data)
        return content.hexdigest()


def label(attribute: int, names: Sequence[str], dropped: Sequence[tuple[int, str]], first: int | None = None) -> str:
    """Return how messages call an attribute; see `Dataset` for names, dropped columns and the first index."""
    if len(names):
        return quoted(str(names[attribute]))
    at = positions(attribute + 1, dropped)[attribute]
    return f"number {at + 1}" if first is None else f"index {at + first}"


def size_fault(largest: float) -> str:
    """Return why a column with this largest absolute value cannot be computed with; empty if it can, or all are 0."""
    if not largest or 1 / LARGEST <= largest <= LARGEST:
        return ""
    return (
        f"its largest absolute value is {largest:.3g}, and only {1 / LARGEST:g} to {LARGEST:g} can be computed with: "
        "write it in another unit (multiply it by a power of ten)"
    )


def positions(d: int, dropped: Sequence[tuple[int, str]]) -> list[int]:
    """Return the positions of d attributes among all columns but the target, given those that are no attributes.

    Examples
    --------
    >>> positions(3, [(0, "id"), (2, "date")])
    [1, 3, 4]
    """
    taken = [at for at, _ in dropped]
    return np.delete(np.arange(d + len(taken)), [at for at in taken if at < d + len(taken)]).tolist()[:d]


def short_digest(value: object) -> str:
    """Return a digest of 16 hexadecimal digits of a value, by its `repr`."""
    return hashlib.blake2b(repr(value).encode(), digest_size=8).hexdigest()


def required(options: Mapping[str, Any], key: str) -> Any:
    """Return ``options[key]``.

    Raises
    ------
    ConfigError
        If it is missing or null.
    """
    value = options.get(key)
    if value is None:
        raise ConfigError(f"dataset.{key} is not set")
    return value


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


@dataclass(frozen=True)
class Groups:
    """A partition of d attributes into groups, each of which is bought as a whole; most attributes may be alone.

    Attributes
    ----------
    heads : tuple of int
        The first attribute of each attribute's group: itself, if it is alone. A group is charged where its head is.
    """

    heads: tuple[int, ...]

    @cached_property
    def head_of(self) -> np.ndarray:
        """The heads as an array of int, shape (d,)."""
        return np.array(self.heads)

    @cached_property
    def leads(self) -> np.ndarray:
        """Attributes that are heads, bool of shape (d,)."""
        return self.head_of == np.arange(len(self.heads))

    @cached_property
    def members(self) -> np.ndarray:
        """The attributes of each head's group, ascending, shape (d, most); rows are filled up with d."""
        order = np.argsort(self.head_of, kind="stable")
        ordered = self.head_of[order]
        place = np.arange(order.size) - np.searchsorted(ordered, ordered)
        table = np.full((order.size, place.max() + 1), order.size)
        table[ordered, place] = order
        return table

    def width(self, heads: np.ndarray, k: int) -> int:
        """Return the most attributes that k of some groups have together."""
        sizes = np.bincount(self.head_of, minlength=len(self.heads))[heads]
        return int(np.sort(sizes)[len(sizes) - k :].sum())

    def expanded(self, heads: np.ndarray, width: int) -> np.ndarray:
        """Return the attributes (T, width) of some groups, given their heads (T, k); rows are filled up with d."""
        if self.members.shape[1] == 1:  # each is alone, and no row needs filling
            return heads
        attributes = self.members[heads].reshape(len(heads), -1)
        order = np.argsort(attributes == len(self.heads), axis=1, kind="stable")
        return np.take_along_axis(attributes, order, axis=1)[:, :width]

    def are_whole(self, attributes: np.ndarray, drawn: np.ndarray | None) -> bool:
        """Return whether examples (..., n) show each group as a whole or not at all."""
        flat = attributes.reshape(-1, attributes.shape[-1])
        shown = np.zeros((len(flat), len(self.heads)), dtype=bool)
        mask = np.broadcast_to(True if drawn is None else drawn, attributes.shape)
        row, column = np.nonzero(mask.reshape(flat.shape))
        shown[row, flat[row, column]] = True
        return bool((shown == shown[:, self.head_of]).all())


def numbered(names: Sequence[str]) -> Groups | None:
    """Return groups from the name of each attribute's group, empty if it is alone; None if each is alone."""
    first: dict[str, int] = {}
    heads = tuple(first.setdefault(name, at) if name else at for at, name in enumerate(names))
    return Groups(heads) if heads != tuple(range(len(heads))) else None


def uncharged(free: np.ndarray | None, groups: Groups | None) -> np.ndarray | None:
    """Return which attributes are charged nothing, bool of shape (d,), as they are free or follow the head of a group.

    None if all are charged.
    """
    if groups is None:
        return free
    return ~groups.leads if free is None else free | ~groups.leads

"""A table read piece by piece into memory, or into a folder of arrays that many workers map.

Either way no more than the result and one piece are in memory, and both ways give the same numbers.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from budgetreg.data.formats import Source, SparseRows
from budgetreg.data.formats.source import has_decimal_comma, is_number
from budgetreg.data.seals import is_intact, unsealed
from budgetreg.data.values import Sparse, Values
from budgetreg.errors import DataError

FACTS = "facts.json"
"""The file beside the arrays of a folder that says what they are."""

LARGEST = 1e30
"""Largest absolute value of a column that is admitted, and 1 / the smallest.

Losses are squares of products of weights, attributes and targets, and spreads over repetitions square them again.
Doubles reach from 2.2e-308 to 1.8e308: the square of a product of two such values is 1e120 or 1e-120, and that squared
1e240 or 1e-240, which leaves a factor of 1e68 for sums over examples and attributes and for what divides by k/d.
"""


@dataclass(frozen=True)
class Prepared:
    """A table, and what one pass over it tells.

    Attributes
    ----------
    X : ndarray of shape (n, d), or Values
        Attributes; finite.
    y : ndarray of shape (n,), float64
        Targets; two values of any kind are -1 and +1 in sorted order; zeros if there are none.
    largest : ndarray of shape (d,), float64
        Largest absolute value of each attribute.
    two_valued : bool
        Whether the targets are -1 and +1.
    notes : tuple of str
        How the file was read, and what was done to the targets.
    digest : str
        Digest of attributes and targets.
    names : tuple of str
        What the file calls the attributes; empty if it does not.
    target : str
        What the target is called.
    available : ndarray of bool, shape (n, d), or None
        Which cells are there, the others being 0 in X; None if all are.
    """

    X: np.ndarray | Values
    y: np.ndarray
    largest: np.ndarray
    two_valued: bool
    notes: tuple[str, ...]
    digest: str
    names: tuple[str, ...]
    target: str
    available: np.ndarray | None = None


def in_memory(source: Source, path: Path) -> Prepared:
    """Read a source into arrays.

    Parameters
    ----------
    source : Source
        What to read.
    path : Path
        The file, for messages.

    Raises
    ------
    DataError
        If the file is damaged, or is no table of finite numbers with one target.
    """
    pieces: dict[str, list[np.ndarray]] = {}
    facts = _Facts(source, path)
    for X, y in _readable(source, path):
        for name, array in facts.note(X, y).items():
            pieces.setdefault(name, []).append(array)
    return facts.prepared({name: np.concatenate(pieces.pop(name)) for name in list(pieces)})


def into_folder(source: Source, path: Path, folder: Path, record: Mapping[str, Any]) -> None:
    """Read a source into a folder that `from_folder` maps once it is sealed; what can be mapped already is not copied.

    Parameters
    ----------
    source : Source
        What to read.
    path : Path
        The file, for messages.
    folder : Path
        Is made.
    record : mapping
        What tells the source, written down beside the arrays.

    Raises
    ------
    DataError
        As `in_memory`.
    """
    folder.mkdir()
    facts = _Facts(source, path)
    with ExitStack() as stack:
        files: dict[str, _GrowingArray] = {}
        for X, y in _readable(source, path):
            arrays = facts.note(X, y)
            for name, array in arrays.items() if source.mapped is None else ():
                if name not in files:
                    files[name] = _GrowingArray(stack.enter_context((folder / f"{name}.npy").open("wb")), array)
                files[name].append(array)
        for file in files.values():
            file.finish()
    mapped = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in files}
    result = facts.prepared(mapped if source.mapped is None else {"X": source.mapped})
    for name, array in (("y", result.y), ("largest", result.largest), ("lengths", facts.row_lengths())):
        np.save(folder / f"{name}.npy", array)
    told = {
        "two_valued": result.two_valued,
        "notes": result.notes,
        "digest": result.digest,
        "names": result.names,
        "target": result.target,
        "first": facts.first,
        "copied": source.mapped is None,
        "missing": result.available is not None,
        "source": dict(record),
    }
    (folder / FACTS).write_text(json.dumps(told))


def from_folder(folder: Path, mapped: Path) -> Prepared | None:
    """Map what `into_folder` wrote; None if it is not there, not whole or damaged.

    Parameters
    ----------
    folder : Path
        Where it was written.
    mapped : Path
        Array of the attributes, if they were not copied.
    """
    if not is_intact(folder):
        return None
    try:
        told = json.loads(unsealed(folder / FACTS))
        y, largest, lengths = (np.load(folder / f"{name}.npy") for name in ("y", "largest", "lengths"))
        X: np.ndarray | Values
        if lengths.size:
            columns, data = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("columns", "data"))
            X = _sparse(lengths, columns, data, largest.size, told["first"])
        else:
            X = np.load(folder / "X.npy" if told["copied"] else mapped, mmap_mode="r")
        # A plain view of the mapping: looked up at every reveal, its own class would cost as much as that.
        available = np.asarray(np.load(folder / "available.npy", mmap_mode="r")) if told.get("missing") else None
        names, target = tuple(told["names"]), told["target"]
    except (OSError, ValueError, EOFError, KeyError):  # missing, cut short by a full disk, or of an earlier version
        return None
    notes = tuple(told["notes"])
    return Prepared(X, y, largest, told["two_valued"], notes, told["digest"], names, target, available)


def _readable(source: Source, path: Path) -> Iterator[tuple[np.ndarray | SparseRows, Any]]:
    """Tell errors of reading apart from those of writing."""
    try:
        yield from source.pieces
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


class _Facts:
    """What is learnt about a table from its pieces, as they pass."""

    def __init__(self, source: Source, path: Path) -> None:
        self._source, self._path = source, path
        self._content = hashlib.blake2b(digest_size=8)
        self._targets: list[Any] = []
        self._n = 0
        self._lengths: list[np.ndarray] = []
        self._largest = np.zeros(0)
        self._missing = 0
        self.first = 1

    def note(self, X: np.ndarray | SparseRows, y: Any) -> dict[str, np.ndarray]:
        """Take a piece into account, and return the arrays that it consists of."""
        if y is not None:
            self._targets.append(y)
        self._n += len(X if isinstance(X, np.ndarray) else X.lengths)
        if isinstance(X, np.ndarray):
            arrays = {"X": X}
            if self._source.missing:
                arrays = self._split(X)
                X = arrays["X"]
            self._raise_largest(np.maximum(X.max(axis=0).astype(float), -X.min(axis=0).astype(float)))
        else:
            arrays = {"columns": X.columns, "data": X.data}
            self._lengths.append(X.lengths)
            self._content.update(X.lengths.data)
            here = np.zeros(int(X.columns.max(initial=-1)) + 1)
            np.maximum.at(here, X.columns, np.abs(X.data))
            self._raise_largest(here)
            if X.columns.size and not X.columns.min():
                self.first = 0
        for name, array in arrays.items():
            if name != "available":
                self._content.update(array.data)
        return arrays

    def _split(self, X: np.ndarray) -> dict[str, np.ndarray]:
        """Return a piece with 0 for what is missing, and what is there; without a gap, the digest is as ever."""
        available = ~np.isnan(X)
        gaps = np.flatnonzero(~available)
        self._missing += gaps.size
        self._content.update((gaps + (self._n - len(X)) * X.shape[1]).data)
        return {"X": np.where(available, X, X.dtype.type(0)) if gaps.size else X, "available": available}

    def _raise_largest(self, here: np.ndarray) -> None:
        if here.size > self._largest.size:
            self._largest, here = here, self._largest
        self._largest[: here.size] = np.maximum(self._largest[: here.size], here)

    def row_lengths(self) -> np.ndarray:
        """Return the numbers of entries of sparse rows, shape (n,); none if they are dense."""
        return np.concatenate([np.empty(0, dtype=np.int64), *self._lengths])

    def prepared(self, arrays: dict[str, np.ndarray]) -> Prepared:
        """Put the whole together."""
        import pandas as pd  # here, because it is slow to import and other kinds of data do without

        source, path = self._source, self._path
        if not self._n:
            raise DataError(f"{path} has no rows of data")
        y, two_valued, notes = (
            as_target(pd.concat(self._targets, ignore_index=True), f"{path}: target {source.target!r}", source.place)
            if self._targets
            else (np.zeros(self._n), False, ())
        )
        self._content.update(y.data)
        X: np.ndarray | Values
        if "X" in arrays:
            X, largest = arrays["X"], self._largest
        else:
            largest = self._largest[self.first :]
            if largest.size < 2:
                raise DataError(f"{path}: two attributes are needed, and no index is above {self._largest.size - 1}")
            X = _sparse(self.row_lengths(), arrays["columns"], arrays["data"], largest.size, self.first)
        for column in np.flatnonzero(largest).tolist():
            name = repr(source.names[column]) if source.names else f"number {column + 1}"
            _check_size(float(largest[column]), f"{path}: attribute {name}")
        digest, names = self._content.hexdigest(), tuple(source.names)
        available = arrays["available"] if self._missing else None
        return Prepared(X, y, largest, two_valued, source.notes + notes, digest, names, source.target, available)


def _sparse(lengths: np.ndarray, columns: np.ndarray, data: np.ndarray, d: int, first: int) -> Sparse:
    return Sparse(np.concatenate([[0], np.cumsum(lengths)]), columns, data, d, first)


class _GrowingArray:
    """An NPY file whose number of rows is known at the end: its header leaves room for it."""

    def __init__(self, file: BinaryIO, like: np.ndarray) -> None:
        self._file, self._n = file, 0
        self._like = like[:0]
        self._write_header()

    def append(self, array: np.ndarray) -> None:
        self._file.write(array.data)
        self._n += len(array)

    def finish(self) -> None:
        self._file.seek(0)
        self._write_header()

    def _write_header(self) -> None:
        np.lib.format.write_array_header_1_0(
            self._file,
            {
                "descr": np.lib.format.dtype_to_descr(self._like.dtype),
                "fortran_order": False,
                "shape": (self._n, *self._like.shape[1:]),
            },
        )


def _check_size(largest: float, where: str) -> None:
    """Refuse a column whose largest absolute value, unless it is 0, is beyond what can be computed with."""
    if largest and not 1 / LARGEST <= largest <= LARGEST:
        raise DataError(
            f"{where}: its largest absolute value is {largest:.3g}, and only {1 / LARGEST:g} to {LARGEST:g} can be "
            "computed with: write it in another unit (multiply it by a power of ten)"
        )


def as_target(column: Any, where: str, place: Callable[[int], str]) -> tuple[np.ndarray, bool, tuple[str, ...]]:
    """Turn a column into targets: real numbers, or two values of any kind as -1 and +1 in sorted order.

    Parameters
    ----------
    column : pandas.Series of length n
        What was read.
    where : str
        Begins the messages.
    place : callable
        What a row, counted from 0, is called in them.

    Returns
    -------
    y : ndarray of shape (n,), float64
    two_valued : bool
        Whether they are -1 and +1.
    notes : tuple of str
        Which values became which.

    Raises
    ------
    DataError
        If a target is missing, infinite or of impossible size, or they are text of other than two values.
    """
    empty = np.flatnonzero(column.isna())
    if empty.size:
        raise DataError(f"{where}: {place(int(empty[0]))}: empty or NaN")
    numeric = column.dtype.kind in "biuf"
    values = column.to_numpy(dtype=np.float64) if numeric else column.astype(str).to_numpy(dtype=object)
    distinct = np.unique(values).tolist()
    if not numeric and len(distinct) != 2:
        row = next((row for row, value in enumerate(values) if not is_number(value)), 0)
        need = f"is not a number (text needs exactly two values, not {len(distinct)})"
        if has_decimal_comma(values[row]):
            need = "has a decimal comma: write numbers with a point"
        raise DataError(f"{where}: {place(row)}: {values[row]!r} {need}")
    if numeric and not np.isfinite(values).all():
        raise DataError(f"{where}: {place(int(np.flatnonzero(~np.isfinite(values))[0]))}: infinite")
    if len(distinct) != 2:
        _check_size(float(np.abs(values).max()), where)
        return np.ascontiguousarray(values), False, ()
    if distinct == [-1.0, 1.0]:
        return np.ascontiguousarray(values), True, ()
    low, high = (f"{value:g}" if numeric else repr(value) for value in distinct)
    return np.where(values == distinct[1], 1.0, -1.0), True, (f"target: {low} -> -1, {high} -> +1",)

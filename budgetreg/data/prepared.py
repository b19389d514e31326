"""A table read chunk by chunk into memory, or into a folder of arrays that many workers map.

Either way no more than the result and one chunk are in memory, and both ways give the same numbers. Targets become real
numbers, and two values of any kind -1 and +1.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from budgetreg.data.cache import is_intact, mapped, unsealed
from budgetreg.data.dataset import Dataset, label, size_fault
from budgetreg.data.formats.chunks import ChunkedTable, comma_fault, is_number, reading
from budgetreg.data.values import Sparse, Values
from budgetreg.errors import DataError, quoted

_LEAST_ROWS, _FILLED = 20, 2 / 3
_ID = re.compile(r"(?i:(^|[^a-z])(id|uuid|guid|key|idx|index)$)|[a-z]I[Dd]$|^Unnamed: \d+$")

FACTS = "facts.json"
"""Name of the file in a folder of arrays that describes them."""


class Prepared(NamedTuple):
    """A table that was read.

    Attributes
    ----------
    data : Dataset
        The table in its own units. It has no name and ``scale=1``; targets are zeros if there are none.
    largest : ndarray of shape (d,), float64
        The largest absolute value of each attribute.
    identifiers : tuple of int
        Attributes that look like identifiers, see `identifiers`.
    """

    data: Dataset
    largest: np.ndarray
    identifiers: tuple[int, ...]


def in_memory(table: ChunkedTable) -> Prepared:
    """Read a table into arrays.

    Raises
    ------
    DataError
        If the file is damaged, or has other values than finite numbers.
    """
    parts: dict[str, list[np.ndarray]] = {}
    summary = _Summary(table)
    for name, array in summary.arrays():
        parts.setdefault(name, []).append(array)
    arrays = {name: np.concatenate(parts.pop(name)) for name in list(parts)}
    totals, facts = summary.totals()
    return _prepared(arrays | totals, facts)


def into_folder(table: ChunkedTable, folder: Path, source: Mapping[str, Any]) -> None:
    """Read a table into a folder, which `from_folder` maps once it is sealed; arrays that can be mapped are not copied.

    Parameters
    ----------
    table : ChunkedTable
        The table.
    folder : Path
        The folder, which is created.
    source : mapping
        Identity of the file, with its absolute path, which is written into the folder too.

    Raises
    ------
    DataError
        If the file is damaged, or has other values than finite numbers.
    OSError
        If the folder cannot be written.
    """
    folder.mkdir()
    summary = _Summary(table)
    with ExitStack() as stack:
        files: dict[str, BinaryIO] = {}
        headers: dict[str, dict[str, Any]] = {}
        for name, array in summary.arrays():
            if table.mapped is None:
                if name not in files:
                    files[name] = stack.enter_context((folder / f"{name}.npy").open("wb"))
                    headers[name] = np.lib.format.header_data_from_array_1_0(array[:0])
                    np.lib.format.write_array_header_1_0(files[name], headers[name])
                files[name].write(array.data)
                n, *row = headers[name]["shape"]
                headers[name]["shape"] = (n + len(array), *row)
        for name, file in files.items():  # the number of rows is known now; a header has space for it
            file.seek(0)
            np.lib.format.write_array_header_1_0(file, headers[name])
    totals, facts = summary.totals()
    for name, array in totals.items():
        np.save(folder / f"{name}.npy", array)
    facts |= {"copied": table.mapped is None, "source": dict(source)}
    (folder / FACTS).write_text(json.dumps(facts))


def read_facts(folder: Path) -> dict[str, Any] | None:
    """Return the description of the arrays in a folder; None if it is missing or damaged."""
    return json.loads(unsealed(folder / FACTS)) if is_intact(folder / FACTS) else None


def from_folder(folder: Path) -> Prepared | None:
    """Map the arrays that `into_folder` wrote; return None if they are missing, incomplete or damaged."""
    facts = read_facts(folder) if is_intact(folder) else None
    if facts is None:
        return None
    try:
        arrays = {name: np.load(folder / f"{name}.npy") for name in ("y", "largest", "lengths")}
        for name in ("columns", "data") if arrays["lengths"].size else ("X",):
            arrays[name] = mapped((folder if facts["copied"] else Path(facts["source"]["path"])) / f"{name}.npy")
        if facts["missing"]:
            # A plain view of the mapping: element access through the memmap class would cost as much as a reveal.
            arrays["available"] = np.asarray(mapped(folder / "available.npy"))
        return _prepared(arrays, facts)
    except (OSError, ValueError, EOFError, KeyError):  # missing, or cut short by a full disk
        return None


def _prepared(arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> Prepared:
    """Return the table that arrays and the facts about them describe, see `_Summary`."""
    largest, lengths = arrays["largest"], arrays["lengths"]
    if lengths.size:
        starts = np.concatenate([[0], np.cumsum(lengths)])
        X: np.ndarray | Values = Sparse(starts, arrays["columns"], arrays["data"], largest.size, facts["first"])
    else:
        X = arrays["X"]
    data = Dataset(
        "",
        X,
        arrays["y"],
        1.0,
        None,
        facts["two_valued"],
        tuple(facts["notes"]),
        facts["digest"],
        names=tuple(facts["names"]),
        target=facts["target"],
        label_names=tuple(facts["labels"]),
        available=arrays["available"] if facts["missing"] else None,
        dropped=tuple((at, name) for at, name in facts["dropped"]),
        first=facts["lowest"],
    )
    return Prepared(data, largest, tuple(facts["identifiers"]))


class _Summary:
    """Sizes, types and digest of a table, collected chunk by chunk."""

    def __init__(self, table: ChunkedTable) -> None:
        self._table = table
        self._content = hashlib.blake2b(digest_size=8)
        self._targets: list[Any] = []
        self._lengths = [np.empty(0, dtype=np.int64)]
        self._largest = np.zeros(0)
        self._n, self._first, self._missing = 0, table.first, False
        self._identifiers: list[int] = []

    def arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        """Read the chunks; yield the arrays that each consists of, with their names."""
        # Errors of reading get a message here; those of writing, which happen outside of the generator, do not.
        with reading(self._table.path):
            for X, y in self._table.chunks:
                if y is not None:
                    self._targets.append(y)
                d = X.shape[1]
                if d > self._largest.size:
                    self._largest = np.pad(self._largest, (0, d - self._largest.size))
                if not self._n and isinstance(X, np.ndarray):
                    self._identifiers = identifiers(X, self._table.names)
                arrays = self._dense(X) if isinstance(X, np.ndarray) else self._sparse(X)
                self._n += X.shape[0]
                yield from arrays.items()

    def _dense(self, X: np.ndarray) -> dict[str, np.ndarray]:
        """Return a chunk with 0 for missing values, and which are available; gaps change the digest."""
        arrays = {"X": X}
        if self._table.missing:
            available = ~np.isnan(X)
            gaps = np.flatnonzero(~available)
            self._missing |= gaps.size > 0
            self._content.update((gaps + self._n * X.shape[1]).data)
            X = np.where(available, X, X.dtype.type(0)) if gaps.size else X
            arrays = {"X": X, "available": available}
        self._content.update(X.data)
        largest = np.maximum(X.max(axis=0).astype(float), -X.min(axis=0).astype(float))
        np.maximum(self._largest, largest, out=self._largest)
        return arrays

    def _sparse(self, X: Any) -> dict[str, np.ndarray]:
        """Return the entries of a chunk; their columns count from 0 if any is 0, and from 1 otherwise."""
        arrays = {"columns": X.indices.astype(np.int32), "data": X.data}
        self._lengths.append(np.diff(X.indptr))
        for array in (self._lengths[-1], *arrays.values()):
            self._content.update(array.data)
        np.maximum.at(self._largest, arrays["columns"], np.abs(X.data))
        if not arrays["columns"].all():
            self._first = 0
        return arrays

    def totals(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the other arrays of the table that was read, and what describes it, which JSON can express.

        The arrays are the targets ``y``, the largest absolute values of the attributes, ``largest``, and the numbers of
        entries of sparse rows, ``lengths``, of shape (0,) if rows are dense.
        """
        import pandas as pd  # here, because it is slow to import and other kinds of data do without

        table, largest, lengths = self._table, self._largest, np.concatenate(self._lengths)
        if not self._n:
            raise DataError(f"{table.path} has no rows of data")
        y, notes = np.zeros(self._n), table.notes
        labels: tuple[str, ...] = ()
        if self._targets:
            column = pd.concat(self._targets, ignore_index=True)
            y, labels, more = _as_target(column, table)
            notes += more
        self._content.update(y.data)
        if lengths.size:
            largest = largest[self._first :]
            if largest.size < 2:
                last = self._largest.size - 1
                raise DataError(f"{table.path}: two attributes are needed, and no index is above {last}")
        lowest = 0 if 0 in table.dropped else self._first  # the index of a sparse table's first column
        dropped = [(at - lowest if lengths.size else at, name) for at, name in table.dropped.items()]
        for column in np.flatnonzero(largest).tolist():
            where = f"{table.path}: attribute {label(column, table.names, dropped, lowest if lengths.size else None)}"
            _check_size(float(largest[column]), where)
        facts = {
            "two_valued": bool(labels),
            "labels": labels,
            "notes": notes,
            "digest": self._content.hexdigest(),
            "names": tuple(table.names),
            "target": table.target,
            "first": self._first,
            "lowest": lowest if lengths.size else None,
            "missing": self._missing,
            "dropped": dropped,
            "identifiers": self._identifiers,
        }
        return {"y": y, "largest": largest, "lengths": lengths}, facts


def identifiers(X: np.ndarray, names: Sequence[str]) -> list[int]:
    """Return the columns that look like identifiers of the rows, such as numbers of patients.

    Their values are distinct whole numbers, in at least 20 rows, that only rise or only fall, fill at least two thirds
    of the range from the least to the greatest, or are in a column with a name such as ``id``.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The first rows of a table: all of them, or some millions of values. NaN marks missing values, which identifiers
        do not have.
    names : sequence of str
        Names of the columns; empty if they have none.
    """
    if len(X) < _LEAST_ROWS:
        return []
    head = X[:_LEAST_ROWS]
    likely = np.flatnonzero(
        (head == np.floor(head)).all(axis=0) & (np.diff(np.sort(head, axis=0), axis=0) > 0).all(axis=0)
    )
    return [at for at in likely.tolist() if _identifies(X[:, at], names[at] if names else "")]


def _identifies(x: np.ndarray, name: str) -> bool:
    values = np.unique(x).astype(np.float64)
    if values.size < x.size or not (values == np.floor(values)).all():
        return False
    filled = values.size / (values[-1] - values[0] + 1)
    steps = np.diff(x.astype(np.float64))
    return bool(filled >= _FILLED or (steps > 0).all() or (steps < 0).all() or _ID.search(name))


def _check_size(largest: float, where: str) -> None:
    """Refuse a column whose largest absolute value, unless it is 0, is too large or too small to compute with."""
    if why := size_fault(largest):
        raise DataError(f"{where}: {why}")


def _as_target(column: Any, table: ChunkedTable) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Turn a column into targets: real numbers, or two values of any kind as -1 and +1 in sorted order.

    Parameters
    ----------
    column : pandas.Series of length n
        The column as it was read.
    table : ChunkedTable
        The table, for messages.

    Returns
    -------
    y : ndarray of shape (n,), float64
        The targets.
    labels : tuple of str
        The values that became -1 and +1; empty for other targets.
    notes : tuple of str
        Which values became -1 and +1.

    Raises
    ------
    DataError
        If a target is missing, infinite, too large or too small, or the column is text without exactly two values.
    """
    where, place = f"{table.path}: target {quoted(table.target)}", table.place
    empty = np.flatnonzero(column.isna())
    if empty.size:
        row = int(empty[0])
        word = table.written(row)
        fault = f"{quoted(word)} means a missing value (a label of two needs another word)" if word else "empty or NaN"
        raise DataError(f"{where}: {place(row)}: {fault}; every row needs a target")
    numeric = column.dtype.kind in "biuf"
    try:
        values = column.to_numpy(dtype=np.float64) if numeric else column.astype(str).to_numpy(dtype=object)
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: it holds bytes that are not UTF-8 text; numbers or text are needed") from error
    distinct = np.unique(values).tolist()
    if not numeric and len(distinct) != 2 and all(map(is_number, values)):
        values, numeric = values.astype(np.float64), True
        distinct = np.unique(values).tolist()
    if not numeric and len(distinct) != 2:
        row = next(row for row, value in enumerate(values) if not is_number(value))
        need = comma_fault(values[row]) or f"is not a number (text needs exactly two values, not {len(distinct)})"
        raise DataError(f"{where}: {place(row)}: {quoted(values[row])} {need}")
    if numeric and not np.isfinite(values).all():
        raise DataError(
            f"{where}: {place(int(np.flatnonzero(~np.isfinite(values))[0]))}: infinite; targets must be finite"
        )
    if len(distinct) != 2:
        _check_size(float(np.abs(values).max()), where)
        return np.ascontiguousarray(values), (), ()
    if distinct == [-1.0, 1.0]:
        return np.ascontiguousarray(values), ("-1", "1"), ()
    low, high = (f"{value:g}" if numeric else repr(value) for value in distinct)
    labels = tuple(f"{value:.15g}" if numeric else value for value in distinct)
    return np.where(values == distinct[1], 1.0, -1.0), labels, (f"target: {low} -> -1, {high} -> +1",)

"""A table read chunk by chunk into memory, or into a folder of arrays that many workers map.

Either way no more than the result and one chunk are in memory, and both ways give the same numbers.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from budgetreg.data.cache import mapped
from budgetreg.data.dataset import Dataset
from budgetreg.data.formats.chunks import ChunkedTable, SparseRows, reading
from budgetreg.data.seals import is_intact, unsealed
from budgetreg.data.targets import as_target, check_size
from budgetreg.data.values import Sparse, Values
from budgetreg.errors import DataError

FACTS = "facts.json"
"""Name of the file in a folder of arrays that describes them."""


@dataclass(frozen=True)
class Prepared:
    """A table in its own units, and the sizes of its attributes.

    Attributes
    ----------
    data : Dataset
        The table, without a name and with ``scale=1``; targets are zeros if there are none.
    largest : ndarray of shape (d,), float64
        Largest absolute value of each attribute.
    """

    data: Dataset
    largest: np.ndarray


def in_memory(table: ChunkedTable, path: Path) -> Prepared:
    """Read a table into arrays.

    Parameters
    ----------
    table : ChunkedTable
        The table.
    path : Path
        Its file, for messages.

    Raises
    ------
    DataError
        If the file is damaged, or has other values than finite numbers.
    """
    chunks: dict[str, list[np.ndarray]] = {}
    summary = _Summary(table, path)
    for X, y in _readable(table, path):
        for name, array in summary.add(X, y).items():
            chunks.setdefault(name, []).append(array)
    return summary.prepared({name: np.concatenate(chunks.pop(name)) for name in list(chunks)})


def into_folder(table: ChunkedTable, path: Path, folder: Path, source: Mapping[str, Any]) -> None:
    """Read a table into a folder, which `from_folder` maps once it is sealed; arrays that can be mapped are not copied.

    Parameters
    ----------
    table : ChunkedTable
        The table.
    path : Path
        Its file, for messages.
    folder : Path
        The folder, which is created.
    source : mapping
        Identity of the file, which is written into the folder too.

    Raises
    ------
    DataError
        If the file is damaged, or has other values than finite numbers.
    OSError
        If the folder cannot be written.
    """
    folder.mkdir()
    summary = _Summary(table, path)
    with ExitStack() as stack:
        files: dict[str, _GrowingArray] = {}
        for X, y in _readable(table, path):
            arrays = summary.add(X, y)
            for name, array in arrays.items() if table.mapped is None else ():
                if name not in files:
                    files[name] = _GrowingArray(stack.enter_context((folder / f"{name}.npy").open("wb")), array)
                files[name].append(array)
        for file in files.values():
            file.finish()
    written = {name: mapped(folder / f"{name}.npy") for name in files}
    prepared = summary.prepared(written if table.mapped is None else {"X": table.mapped})
    data = prepared.data
    for name, array in (("y", data.y), ("largest", prepared.largest), ("lengths", summary.row_lengths())):
        np.save(folder / f"{name}.npy", array)
    facts = {
        **{name: getattr(data, name) for name in ("two_valued", "notes", "digest", "names", "target")},
        "first": summary.first,
        "copied": table.mapped is None,
        "missing": data.available is not None,
        "source": dict(source),
    }
    (folder / FACTS).write_text(json.dumps(facts))


def read_facts(folder: Path) -> dict[str, Any] | None:
    """Return the description of the arrays in a folder; None if it is missing or damaged."""
    if not is_intact(folder / FACTS):
        return None
    facts: dict[str, Any] = json.loads(unsealed(folder / FACTS))
    return facts


def from_folder(folder: Path, uncopied: Path) -> Prepared | None:
    """Map the arrays that `into_folder` wrote; return None if they are missing, incomplete or damaged.

    Parameters
    ----------
    folder : Path
        The folder.
    uncopied : Path
        Array of the attributes, if they were not copied.
    """
    facts = read_facts(folder) if is_intact(folder) else None
    if facts is None:
        return None
    try:
        y, largest, lengths = (np.load(folder / f"{name}.npy") for name in ("y", "largest", "lengths"))
        X: np.ndarray | Values
        if lengths.size:
            columns, values = (mapped(folder / f"{name}.npy") for name in ("columns", "data"))
            X = _sparse(lengths, columns, values, largest.size, facts["first"])
        else:
            X = mapped(folder / "X.npy" if facts["copied"] else uncopied)
        # A plain view of the mapping: element access through the memmap class would cost as much as a reveal.
        available = np.asarray(mapped(folder / "available.npy")) if facts["missing"] else None
        data = Dataset(
            "", X, y, 1.0, None, facts["two_valued"], tuple(facts["notes"]), facts["digest"],
            names=tuple(facts["names"]), target=facts["target"], available=available,
        )  # fmt: skip
        return Prepared(data, largest)
    except (OSError, ValueError, EOFError, KeyError):  # missing, or cut short by a full disk
        return None


def _readable(table: ChunkedTable, path: Path) -> Iterator[tuple[np.ndarray | SparseRows, Any]]:
    """Yield the chunks, with a message for errors of reading them, but not for errors of writing."""
    with reading(path):
        yield from table.chunks


class _Summary:
    """Sizes, types and digest of a table, collected chunk by chunk."""

    def __init__(self, table: ChunkedTable, path: Path) -> None:
        self._table, self._path = table, path
        self._content = hashlib.blake2b(digest_size=8)
        self._targets: list[Any] = []
        self._n = 0
        self._lengths: list[np.ndarray] = []
        self._largest = np.zeros(0)
        self._missing = 0
        self.first = 1

    def add(self, X: np.ndarray | SparseRows, y: Any) -> dict[str, np.ndarray]:
        """Take a chunk into account, and return the arrays that it consists of."""
        if y is not None:
            self._targets.append(y)
        self._n += len(X if isinstance(X, np.ndarray) else X.lengths)
        if isinstance(X, np.ndarray):
            arrays = {"X": X}
            if self._table.missing:
                arrays = self._split(X)
                X = arrays["X"]
            self._raise_largest(np.maximum(X.max(axis=0).astype(float), -X.min(axis=0).astype(float)))
        else:
            arrays = {"columns": X.columns, "data": X.data}
            self._lengths.append(X.lengths)
            self._content.update(X.lengths.data)
            largest = np.zeros(int(X.columns.max(initial=-1)) + 1)
            np.maximum.at(largest, X.columns, np.abs(X.data))
            self._raise_largest(largest)
            if X.columns.size and not X.columns.min():
                self.first = 0
        for name, array in arrays.items():
            if name != "available":
                self._content.update(array.data)
        return arrays

    def _split(self, X: np.ndarray) -> dict[str, np.ndarray]:
        """Return a chunk with 0 for missing values, and which are available; gaps change the digest."""
        available = ~np.isnan(X)
        gaps = np.flatnonzero(~available)
        self._missing += gaps.size
        self._content.update((gaps + (self._n - len(X)) * X.shape[1]).data)
        return {"X": np.where(available, X, X.dtype.type(0)) if gaps.size else X, "available": available}

    def _raise_largest(self, largest: np.ndarray) -> None:
        if largest.size > self._largest.size:
            self._largest, largest = largest, self._largest
        self._largest[: largest.size] = np.maximum(self._largest[: largest.size], largest)

    def row_lengths(self) -> np.ndarray:
        """Return the numbers of entries of sparse rows, shape (n,); shape (0,) if rows are dense."""
        return np.concatenate([np.empty(0, dtype=np.int64), *self._lengths])

    def prepared(self, arrays: dict[str, np.ndarray]) -> Prepared:
        """Return the whole table, given its arrays."""
        import pandas as pd  # here, because it is slow to import and other kinds of data do without

        table, path = self._table, self._path
        if not self._n:
            raise DataError(f"{path} has no rows of data")
        y, two_valued, notes = (
            as_target(pd.concat(self._targets, ignore_index=True), f"{path}: target {table.target!r}", table.place)
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
            name = repr(table.names[column]) if table.names else f"number {column + 1}"
            check_size(float(largest[column]), f"{path}: attribute {name}")
        data = Dataset(
            "", X, y, 1.0, None, two_valued, table.notes + notes, self._content.hexdigest(), names=tuple(table.names),
            target=table.target, available=arrays["available"] if self._missing else None,
        )  # fmt: skip
        return Prepared(data, largest)


def _sparse(lengths: np.ndarray, columns: np.ndarray, data: np.ndarray, d: int, first: int) -> Sparse:
    return Sparse(np.concatenate([[0], np.cumsum(lengths)]), columns, data, d, first)


class _GrowingArray:
    """An NPY file whose number of rows is known at the end; its header has space for it."""

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
        header = {
            "descr": np.lib.format.dtype_to_descr(self._like.dtype),
            "fortran_order": False,
            "shape": (self._n, *self._like.shape[1:]),
        }
        np.lib.format.write_array_header_1_0(self._file, header)

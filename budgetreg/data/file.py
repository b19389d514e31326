"""A user's table, in one file or a folder of arrays: which format it has, and its rows in memory or in the cache.

Read at once or converted into the cache, a table has the same numbers. Either way no more than the result and one chunk
are in memory. Targets become real numbers, and two values of any kind -1 and +1.
"""

import hashlib
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from budgetreg.common.errors import ConfigError, DataError, quoted
from budgetreg.common.files import at_home, regular
from budgetreg.config.composition import pasted
from budgetreg.config.options import WORD, Option, frozen, one_of
from budgetreg.data import tables
from budgetreg.data.attributes import LEFT_OUT, MISSING_VALUES, SCALING, unit
from budgetreg.data.cache import cache_root, ensure, is_intact, mapped, unsealed
from budgetreg.data.dataset import Dataset, Sparse, Values, label, positions, required, size_fault
from budgetreg.data.formats import (
    COMPRESSIONS,
    csv_sheet,
    open_arrays,
    open_csv,
    open_libsvm,
    open_parquet,
    parquet_sheet,
)
from budgetreg.data.registry import RANDOM, DatasetKind, Source
from budgetreg.data.tables import NO_TARGET, ChunkedTable, Request, Sheet, comma_fault, is_number, reading, shown

Opener = Callable[[Request], ChunkedTable]

FORMATS: Mapping[str, Opener] = {
    ".csv": open_csv,
    ".tsv": open_csv,
    ".npz": open_arrays,
    ".parquet": open_parquet,
    ".libsvm": open_libsvm,
    ".svm": open_libsvm,
    ".svmlight": open_libsvm,
}
"""File formats, by the ending of a file's name."""

_SHEETS: Mapping[Opener, Callable[[Path], Sheet]] = {open_csv: csv_sheet, open_parquet: parquet_sheet}
"""The readers of cells, of formats that have names of columns."""

Prepared = tuple[Mapping[str, np.ndarray], Mapping[str, Any]]
"""A table that was read: its arrays by name, and what describes them, see `_Summary`."""

_TEXT = (open_csv, open_libsvm)  # may be compressed
_MARKS = (  # first bytes of a file, what they begin, and the ending of its name, if it can be read
    (rb"PAR1\x15", "a Parquet file", ".parquet"),
    (rb"PK\x03\x04", "an NPZ file", ".npz"),
    (rb"\x1f\x8b", "a file compressed with gzip", ".gz"),
    (rb"BZh[1-9]1AY&SY", "a file compressed with bzip2", ".bz2"),
    (rb"\xfd7zXZ\0", "a file compressed with xz", ".xz"),
    (rb"SQLite format 3\0", "an SQLite database", ""),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook", ""),
    (rb"\x93NUMPY", "a single array of NumPy, and X and y are needed", ""),
)
_LONGEST_MARK = 16
_LAYOUT_VERSION = 10  # of the cached arrays; part of their address
_TABLE = "table"  # the folder of the arrays in the folder of the cache
_HINT = "dataset.missing=unavailable allows such cells, which cannot be bought"
_NO_HOLES = "incomplete rows need a model that aemr or aeml learned with budgetreg fit, without predict_k"
_CONSTANT = "{}: {} {:g}: there is nothing to predict; dataset.target names another column"
CODING = "target: "
"""Begin of the note on the labels of a target with two values."""

_LEAST_ROWS, _FILLED = 20, 2 / 3
_ID = re.compile(r"(?i:(^|[^a-z])(id|uuid|guid|key|idx|index)$)|[a-z]I[Dd]$|^Unnamed: \d+$")

FACTS = "facts.json"
"""Name of the file in a folder of arrays that describes them."""


@dataclass(frozen=True)
class File:
    """A user's table.

    Parameters
    ----------
    request : Request
        The file, and what is asked of it.
    scale : {"max_abs", "none", "pilot", "revealed", "ranges"}
        Whether each attribute is divided by its largest absolute value.
    stamp : tuple of int
        Times of the last change and sizes, so that a changed file is a different one.
    choice : bool
        Whether the user can say how missing values are handled, for messages.
    """

    request: Request
    scale: str
    stamp: tuple[int, ...]
    choice: bool

    @property
    def name(self) -> str:
        """The file's name without the ending of its format; bytes of it that are no text are escaped."""
        path = self.request.path
        return path.name.removesuffix(_suffix(path)).encode(errors="backslashreplace").decode()

    def load(self) -> Dataset:
        """Read the file, or map what was prepared from it before; there is no official split.

        Large tables are converted once, into the cache: see `tables.IN_MEMORY` and `tables.TEXT_SHARE`. A target with
        exactly two values becomes -1 and +1 in their sorted order.

        Raises
        ------
        DataError
            If the file is missing, or has other values than finite numbers and one target.
        """
        folder = self.cache_folder() / _TABLE
        arrays, facts = from_folder(folder) or self._read(folder)
        largest, lengths, y = arrays["largest"], arrays["lengths"], arrays["y"]
        if lengths.size:
            starts = np.concatenate([[0], np.cumsum(lengths)])
            X: np.ndarray | Values = Sparse(starts, arrays["columns"], arrays["data"], largest.size, facts["first"])
        else:
            X = arrays["X"]
        scale, notes = unit(self.scale, largest)
        every = f"all {len(y)} targets are" if len(y) > 1 else "the only target is"
        stored = {name: frozen(value) for name, value in facts["dataset"].items()}
        data = Dataset(
            self.name,
            X,
            y,
            scale,
            n_train=None,
            unpredictable=_CONSTANT.format(self.request.path, every, y[0]) if (y == y[0]).all() else "",
            available=arrays["available"] if facts["missing"] else None,
            **{**stored, "notes": stored["notes"] + notes},
        )
        return _with_identifiers_noted(data, facts["identifiers"]) if self.choice else data

    def cache_folder(self) -> Path:
        """Return the folder of the cache for this file and what is asked of it."""
        identity = _LAYOUT_VERSION, replace(self.request, path=self.request.path.resolve()), self.stamp
        return cache_root() / f"file-{hashlib.sha256(repr(identity).encode()).hexdigest()[:16]}"

    def _read(self, folder: Path) -> Prepared:
        """Read the table, through a folder of the cache if it is large."""
        request = self.request
        open_table = opener(request.path)
        assert open_table is not None
        try:
            with reading(request.path):
                refuse_disguised(request.path)
                table = open_table(request)
                if request.words and open_table is not open_csv:
                    table = replace(table, chunks=_emptied(request, table), mapped=None)
                if table.size <= tables.IN_MEMORY // (tables.TEXT_SHARE if open_table in _TEXT else 1):
                    return in_memory(request, table)
                ensure(folder, lambda temporary: into_folder(request, table, temporary))
        except tables.EmptyCellError as error:
            raise DataError(f"{error} ({_HINT if self.choice else _NO_HOLES})") from error
        prepared = from_folder(folder)
        assert prepared is not None
        return prepared


def parse_file(options: Mapping[str, Any]) -> File:
    """Read ``dataset.path`` and the other keys of a file, and ``indices``, if they are known.

    Raises
    ------
    ConfigError
        If the path is not set, or the format is not supported.
    DataError
        If there is no such file.
    """
    path = at_home(str(required(options, "path")))
    scale = required(options, "scale")
    target = options.get("target")
    if os.path.isdir(path) and not (path / "X.npy").exists():
        raise DataError(f"{path} is a folder without X.npy: save the attributes there, or name a file (dataset.path)")
    if opener(path) is None:
        raise ConfigError(
            f"dataset.path must end in {', '.join(FORMATS)} (text also compressed: {', '.join(COMPRESSIONS)}), "
            f"or be a folder with X.npy and y.npy, not {path.name!r}"
        )
    missing = options.get("missing")
    request = Request(
        path,
        None if target is None else str(target),
        missing == "unavailable",
        tuple(map(str, options.get("drop", ()))),
        tuple(map(tables.text_of, options.get("missing_values", ()))),
        options.get("indices"),
        bool(options.get("partial")),
        tuple(options.get("labels", ())),
    )
    with reading(path, "dataset.path"):
        return File(request, scale, _stamp(path, request.target), missing is not None)


def read_sheet(path: Path, key: str = "") -> Sheet:
    """Return the cells of a CSV or Parquet file.

    Parameters
    ----------
    path : Path
        The file.
    key : str
        The key that names it, for messages.

    Raises
    ------
    ConfigError
        If the format is another one.
    DataError
        If the file is missing, or no table.
    """
    with reading(path, key):
        regular(path)
        read = _SHEETS.get(opener(path))  # type: ignore[arg-type]
        if read is None:
            endings = [ending for ending, format_ in FORMATS.items() if format_ in _SHEETS]
            raise ConfigError(
                f"{path}: columns have names in {', '.join(endings)} (text also compressed), and are needed here"
            )
        refuse_disguised(path)
        return read(path)


def opener(path: Path) -> Opener | None:
    """Return the function that opens a file, or a folder of arrays; None if its name has no known ending."""
    return open_arrays if os.path.isdir(path) else FORMATS.get(Path(_suffix(path).lower()).stem)


def _suffix(path: Path) -> str:
    """Return the ending of a file's name for its format, with that of a compression if the format is text."""
    inner = Path(path.stem).suffix
    if path.suffix.lower() in COMPRESSIONS and FORMATS.get(inner.lower()) in _TEXT:
        return inner + path.suffix
    return path.suffix


def refuse_disguised(path: Path) -> None:
    """Refuse a file whose first bytes are those of another format than its name says.

    Raises
    ------
    DataError
        With the name that it should have, or what to save it as.
    OSError
        If it cannot be read.
    """
    if path.is_dir():
        return
    ending = _suffix(path).lower()
    with path.open("rb") as file:
        beginning = file.read(_LONGEST_MARK)
    what, fitting = next(((what, fitting) for mark, what, fitting in _MARKS if re.match(mark, beginning)), ("", ending))
    if fitting == ".npz" != ending and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        if not any(name.endswith(".npy") for name in names):
            what, fitting = "an Excel workbook" if "xl/workbook.xml" in names else "a ZIP archive", ""
    if not fitting or not ending.endswith(fitting):
        packed = fitting in COMPRESSIONS
        base = path.name if packed and FORMATS.get(ending) in _TEXT else path.name.removesuffix(path.suffix)
        advice = f"name it {base}{fitting}" if fitting else "save the table as CSV"
        raise DataError(f"{path} looks like {what}: {'unpack it first' if packed and base != path.name else advice}")


def _stamp(path: Path, target: str | None) -> tuple[int, ...]:
    """Return the times of the last change and the sizes of a file, or of the arrays in a folder.

    In a folder, `NO_TARGET` stands for the default target too, which need not exist.
    """
    files = [path]
    if path.is_dir():
        files = [path / "X.npy", path / f"{target or 'y'}.npy"]
        if not target and not files[1].exists():
            files.pop()  # only regression learners need it
    return tuple(number for status in map(regular, files) for number in (status.st_ctime_ns, status.st_size))


def _unlabelled(source: Source) -> Source:
    """Return a file without a target, unless the user named one."""
    if not isinstance(source, File) or source.request.target is not None:
        return source
    return replace(source, request=replace(source.request, target=NO_TARGET))


def _emptied(request: Request, table: ChunkedTable) -> tables.Chunks:
    """Yield the chunks of a table of numbers, in which numbers that mean a missing value are NaN."""
    numbers = [float(word) for word in request.words if is_number(word)]
    with closing(table.chunks) as chunks:  # whose file an error would leave open
        for X, y in chunks:
            gaps = np.isin(X, numbers)
            known = None if y is None else y.mask(y.isin([*request.words, *numbers]))
            yield np.where(gaps, np.nan, X) if gaps.any() else X, known


def _with_identifiers_noted(data: Dataset, suspects: Sequence[int]) -> Dataset:
    """Return data with a note on the attributes that look like identifiers, if there are any."""
    if not suspects:
        return data
    names, numbers = [data.label(at) for at in suspects], positions(data.X.shape[1], data.dropped)
    words = [data.names[at] if data.names else str(numbers[at] + 1) for at in suspects]
    looks = "attribute {} looks like an identifier" if len(names) == 1 else "attributes {} look like identifiers"
    them = "it" if len(names) == 1 else "them"
    note = f"{looks.format(shown(names))} of the rows: {pasted('dataset.drop', words)} leaves {them} out"
    return replace(data, notes=(*data.notes, note))


def in_memory(request: Request, table: ChunkedTable) -> Prepared:
    """Read a table into arrays.

    Raises
    ------
    DataError
        If the file is damaged, or has other values than finite numbers.
    """
    parts: dict[str, list[np.ndarray]] = {}
    summary = _Summary(request, table)
    for name, array in summary.arrays():
        parts.setdefault(name, []).append(array)
    arrays = {name: np.concatenate(parts.pop(name)) for name in list(parts)}
    totals, facts = summary.totals()
    return arrays | totals, facts


def into_folder(request: Request, table: ChunkedTable, folder: Path) -> None:
    """Read a table into a new folder, which `from_folder` maps once it is sealed.

    Arrays that can be mapped are not copied.

    Raises
    ------
    DataError
        If the file is damaged, or has other values than finite numbers.
    OSError
        If the folder cannot be written.
    """
    folder.mkdir()
    summary = _Summary(request, table)
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
    facts["mapped"] = None if table.mapped is None else str(request.path.resolve())
    (folder / FACTS).write_text(json.dumps(facts))


def from_folder(folder: Path) -> Prepared | None:
    """Map the arrays that `into_folder` wrote; return None if they are missing, incomplete or damaged."""
    if not is_intact(folder):
        return None
    try:
        facts = json.loads(unsealed(folder / FACTS))
        arrays = {name: np.load(folder / f"{name}.npy") for name in ("y", "largest", "lengths")}
        for name in ("columns", "data") if arrays["lengths"].size else ("X",):
            arrays[name] = mapped(Path(facts["mapped"] or folder) / f"{name}.npy")
        if facts["missing"]:
            # A plain view of the mapping: element access through the memmap class would cost as much as a reveal.
            arrays["available"] = np.asarray(mapped(folder / "available.npy"))
        return arrays, facts
    except (OSError, ValueError):  # missing, or cut short by a full disk
        return None


class _Summary:
    """Sizes, types and digest of a table, collected chunk by chunk."""

    def __init__(self, request: Request, table: ChunkedTable) -> None:
        self._request, self._table = request, table
        self._content = hashlib.blake2b(digest_size=8)
        self._targets: list[Any] = []
        self._rows: list[np.ndarray] = []  # numbers of the rows with a target
        self._read = 0
        self._lengths = [np.empty(0, dtype=np.int64)]
        self._largest = np.zeros(0)
        self._n, self._first, self._missing = 0, table.first, False
        self._identifiers: list[int] = []

    def arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        """Read the chunks; yield the arrays that each consists of, with their names."""
        # Errors of reading get a message here; those of writing, which happen outside of the generator, do not.
        with reading(self._request.path):
            for X, y in self._table.chunks:
                if isinstance(X, np.ndarray):
                    self._check_finite(X)
                self._read += X.shape[0]
                if y is not None:
                    there = y.notna().to_numpy()
                    self._rows.append(self._read - len(y) + np.flatnonzero(there))
                    if not (there.all() or self._request.partial):
                        X, y = X[there], y[there]
                    if not X.shape[0]:
                        continue
                    self._targets.append(y)
                d = X.shape[1]
                if d > self._largest.size:
                    self._largest = np.pad(self._largest, (0, d - self._largest.size))
                if not self._n and isinstance(X, np.ndarray):
                    self._identifiers = identifiers(X, self._table.names)
                arrays = self._dense(X) if isinstance(X, np.ndarray) else self._sparse(X)
                self._n += X.shape[0]
                yield from arrays.items()

    def _check_finite(self, X: np.ndarray) -> None:
        """Refuse infinite attributes of the next rows, and missing ones unless they are allowed."""
        wrong = ~np.isfinite(X) if not self._request.missing else np.isinf(X)
        for row, column in np.argwhere(wrong)[:1]:
            names, d = self._table.names, X.shape[1]
            called = quoted(names[column]) if names else positions(d, [*self._table.dropped.items()])[column] + 1
            where = f"{self._request.path}: {self._table.place(self._read + row)}, column {called}"
            if np.isnan(X[row, column]):
                raise tables.EmptyCellError(f"{where}: empty or NaN")
            raise DataError(f"{where}: {X[row, column]} is not a finite number")

    def _dense(self, X: np.ndarray) -> dict[str, np.ndarray]:
        """Return a chunk with 0 for missing values, and which are available; gaps change the digest."""
        arrays = {"X": X}
        if self._request.missing:
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
        entries of sparse rows, ``lengths``, of shape (0,) if rows are dense. What describes the table has the fields of
        its `Dataset` under ``dataset``, and beside them whether values are missing, the number of the first column in
        ``columns``, and which attributes look like identifiers.
        """
        import pandas as pd  # here, because it is slow to import and other kinds of data do without

        table, path, largest, lengths = self._table, self._request.path, self._largest, np.concatenate(self._lengths)
        if not self._n:
            raise DataError(f"{path} has no rows of data{' with a target' if self._read else ''}")
        y, notes = np.zeros(self._n), table.notes
        labels: tuple[str, ...] = ()
        if self._targets:
            column, rows = pd.concat(self._targets, ignore_index=True), np.concatenate(self._rows)
            if self._n < self._read:
                first = table.place(int(np.setdiff1d(np.arange(self._read), rows)[0]))
                without = f"{self._read - self._n} of {self._read} rows have no target and are left out"
                notes += (f"{without}; the first is {first}",)
            elif len(rows) < self._n:  # as the request is partial
                y[:], column = np.nan, column[rows]
            if len(column):
                where = f"{path}: target {quoted(table.target)}"
                known = self._request.labels
                values, labels, more = _as_target(column, where, lambda row: table.place(int(rows[row])), known)
                y[rows if len(column) < self._n else slice(None)] = values
                notes += more
        self._content.update(y.data)
        if lengths.size:
            largest = largest[self._first :]
            if largest.size < 2:
                last = self._largest.size - 1
                raise DataError(f"{path}: two attributes are needed, and no index is above {last}")
        lowest = 0 if 0 in table.dropped else self._first  # the index of a sparse table's first column
        dropped = [(at - lowest if lengths.size else at, name) for at, name in table.dropped.items()]
        for at in np.flatnonzero(largest).tolist():
            if why := size_fault(float(largest[at])):
                called = label(at, table.names, dropped, lowest if lengths.size else None)
                raise DataError(f"{path}: attribute {called}: {why}")
        dataset = {
            "two_valued": bool(labels),
            "notes": notes,
            "digest": self._content.hexdigest(),
            "names": tuple(table.names),
            "target": table.target,
            "label_names": labels,
            "dropped": dropped,
            "first": lowest if lengths.size else None,
        }
        others = {"missing": self._missing, "first": self._first, "identifiers": self._identifiers}
        return {"y": y, "largest": largest, "lengths": lengths}, {"dataset": dataset, **others}


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
    likely = np.array([_ID.search(name) is not None for name in names or [""] * X.shape[1]])
    likely |= (X[1:] > X[:-1]).all(axis=0) | (X[1:] < X[:-1]).all(axis=0)
    likely |= len(X) >= _FILLED * (np.ptp(X.astype(np.float64), axis=0) + 1)
    columns = ((at, X[:, at]) for at in np.flatnonzero(likely).tolist())
    return [at for at, x in columns if (x == np.floor(x)).all() and np.unique(x).size == x.size]


def _as_target(
    column: Any, where: str, place: Callable[[int], str], known: tuple[str, ...] = ()
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Turn a column into targets: real numbers, or two values of any kind as -1 and +1 in sorted order.

    Parameters
    ----------
    column : pandas.Series of length n
        The column as it was read, without missing values.
    where : str
        File and target, for messages.
    place : callable
        Returns the place of a row in the file, for messages.
    known : tuple of str
        Labels that a single value may be one of, see `Request`.

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
        If a target is infinite, too large or too small, or the column is text without exactly two values.
    """
    column = column.infer_objects()  # booleans beside a hole were objects
    numeric = column.dtype.kind in "iuf" or (column.dtype.kind == "b" and column.nunique() < 2)
    values = column.to_numpy(dtype=np.float64) if numeric else column.astype(str).str.strip().to_numpy(dtype=object)
    distinct = np.unique(values).tolist()
    if len(distinct) == 1:
        label = f"{distinct[0]:.15g}" if column.dtype.kind in "iuf" else str(column.iloc[0]).strip()
        if label in known:
            return np.full(len(values), 2.0 * known.index(label) - 1), known, ()
    commas = not numeric and any(map(comma_fault, distinct)) and all(is_number(x) or comma_fault(x) for x in distinct)
    if not numeric and (len(distinct) != 2 or commas):
        row = next((row for row, value in enumerate(values) if not is_number(value)), None)
        if row is not None:
            need = comma_fault(values[row]) or f"is not a number (text needs exactly two values, not {len(distinct)})"
            raise DataError(f"{where}: {place(row)}: {quoted(values[row])} {need}")
        values, numeric = values.astype(np.float64), True
        distinct = np.unique(values).tolist()
    if numeric and not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"{where}: {place(row)}: infinite; targets must be finite")
    if len(distinct) != 2:
        if why := size_fault(float(np.abs(values).max())):
            raise DataError(f"{where}: {why}")
        return np.ascontiguousarray(values), (), ()
    if distinct == [-1.0, 1.0]:
        return np.ascontiguousarray(values), ("-1", "1"), ()
    low, high = (f"{value:g}" if numeric else repr(value) for value in distinct)
    labels = tuple(f"{value:.15g}" if numeric else value for value in distinct)
    return np.where(values == distinct[1], 1.0, -1.0), labels, (f"{CODING}{low} -> -1, {high} -> +1",)


KINDS = (
    DatasetKind(
        name="file",
        parse=parse_file,
        options={
            "path": Option("the path", WORD),
            "target": Option("the target", WORD),
            **SCALING,
            "missing": Option("the treatment of missing values", one_of("refuse", "unavailable"), default="refuse"),
            "missing_values": MISSING_VALUES,
            **LEFT_OUT,
        },
        splits=(RANDOM,),
        own_data=True,
        paths=("path", "ranges", "groups"),
        unlabelled=_unlabelled,
    ),
)

"""The formats of tables in files: CSV, LIBSVM, Parquet and arrays of NumPy.

CSV files have a header line; whether commas, semicolons or tabs separate the fields is detected. Messages count lines
as an editor does, and data rows from 1, without the header and blank lines.

LIBSVM (SVMlight) files have a line ``target index:value index:value ...`` for each example; other values are 0. The
table stays sparse. Indices begin at 1, or at 0 if any index is 0. How many columns such a file has is an accident of
its rows. A table for ``predict`` is therefore read with the indices of the one that was learned from.

Parquet files are read by pyarrow, which no other format needs. An index of pandas is no attribute there:
`pandas.read_parquet` gives it back as an index.

Arrays ``X`` and ``y`` are in one NPZ file, or in a folder as ``X.npy`` and ``y.npy``. ``X.npy`` in a folder is mapped
and never copied, unless values may be missing.
"""

import bz2
import csv
import gzip
import io
import lzma
import re
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from budgetreg.common.errors import DataError, nearest, quoted
from budgetreg.data import tables
from budgetreg.data.tables import ChunkedTable, Request, Sheet

COMPRESSIONS: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Functions that open compressed text, given its path, by the ending of the file's name."""

DAMAGE = (ValueError, EOFError, RuntimeError, tokenize.TokenError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
"""What reading a damaged array may raise, apart from the errors of a disk."""

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_ENCODING = "utf-8-sig"  # UTF-8, with or without the byte-order mark that spreadsheets write
_BLOCK = 1 << 24  # bytes of a LIBSVM file read at a time
_MOST = 10**8  # attributes of a LIBSVM file; each needs some numbers in memory
_INDEX = "__index_level_"  # how the name of a column begins that pandas wrote for an index without a name


@contextmanager
def unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a file of text; one with the ending of a compression is decompressed.

    Raises
    ------
    DataError
        If, while it is read, it turns out to be damaged.
    """
    damage = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
    with tables.damage_reported(path, *damage), COMPRESSIONS.get(path.suffix.lower(), open)(path, "rb") as file:
        yield file


def _size_of_text(path: Path) -> int:
    """Return the number of bytes of text in a file; more than `IN_MEMORY` if it is compressed and thus unknown."""
    return tables.IN_MEMORY + 1 if path.suffix.lower() in COMPRESSIONS else path.stat().st_size


def open_csv(request: Request) -> ChunkedTable:
    """Open a CSV file in UTF-8: read its header now and its rows on demand.

    Raises
    ------
    DataError
        If the file has no usable header, or columns cannot be left out.
    """
    path = request.path
    separator = _separator_of(path)
    names = _header_of(path, separator)
    target = tables.target_of(names, request, f", separated by {_SEPARATORS[separator]}")
    header = tables.renamed(names)
    others = [column for column in header if column != target]
    dropped = tables.dropped(request.drop, others, len(others), target, path, request.least)
    attributes = [column for at, column in enumerate(others) if at not in dropped]

    def place(row: int) -> str:
        line, _ = next(islice(_records(path, separator), row + 1, None))
        return f"line {line}, {tables.data_row(row)}"

    def chunks() -> tables.Chunks:
        tables.refuse_unnamed(path, names, others, attributes)
        frames = _csv_frames(path, separator, header, request.words)
        yield from _chunks_of(frames, request, attributes, target, place, tables.rows_per_chunk(len(header)))

    return ChunkedTable(
        target,
        _size_of_text(path),
        chunks(),
        names=attributes,
        place=place,
        notes=() if separator == "," else (f"{path.name}: fields are separated by {_SEPARATORS[separator]}",),
        d=len(others),
        dropped=dropped,
    )


def csv_sheet(path: Path) -> Sheet:
    """Return the cells of a CSV file as they were written.

    Raises
    ------
    DataError
        If the file has no usable header, or a row has another number of fields.
    """
    separator = _separator_of(path)
    header = _header_of(path, separator)
    tables.refuse_bad_names(header, f"{path}: line 1")
    lines, rows = [], []
    for line, record in islice(_records(path, separator), 1, None):
        if len(record) != len(header):
            raise DataError(f"{path}: line {line}: {len(record)} fields, but the header has {len(header)}")
        lines.append(line)
        rows.append(record)
    cells = list(zip(*rows, strict=True)) or [()] * len(header)
    columns = dict(zip(header, cells, strict=True))
    return Sheet(str(path), tuple(header), columns, lambda row: f"line {lines[row]}", ": line 1")


def _records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of the header and of each row, with the number of the line on which they begin."""
    lines: list[str] = []
    before = 0

    def read(text: Iterable[str]) -> Iterator[str]:
        for line in text:
            lines.append(line)
            yield line

    try:
        with unpacked(path) as file, io.TextIOWrapper(file, encoding=_ENCODING, newline="") as text:
            reader = csv.reader(read(text), delimiter=separator, skipinitialspace=True)
            for record in reader:
                if len(record) > 1 or lines[-1].strip(" \t\r\n"):  # pandas skips blank lines, but not ""
                    if any('"' in line for line in lines):
                        _check_quotes(lines, separator)
                    yield before + 1, record
                before = reader.line_num
                lines.clear()
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    except csv.Error as error:
        raise DataError(
            f"{path}: line {before + 1} cannot be read ({error}): close each quote that opens a field, and write one "
            "inside a field twice"
        ) from error


def _check_quotes(lines: Iterable[str], separator: str) -> None:
    """Refuse a row with a quote that is never closed, or closed by that of a later field: it would hold other rows."""
    # Blanks between a closing quote and the separator do no harm.
    rest = (re.sub(rf'" +(?=[{separator}\r\n]|$)', '"', line) for line in lines)
    for _ in csv.reader(rest, delimiter=separator, skipinitialspace=True, strict=True):
        pass


def _separator_of(path: Path) -> str:
    """Return the separator that gives header and first row as many fields, or else the header the most fields."""

    def fit(separator: str) -> tuple[bool, int, bool]:
        counts: list[int] = []
        with suppress(DataError):  # a wide row may become one endless field; `csv_sheet` reports other errors
            counts += (len(record) for _, record in islice(_records(path, separator), 2))
        fits = len(counts) == 2 and counts[0] == counts[1] > 1
        # Commas may also be decimal marks, or be within names.
        return fits, counts[0] if counts else 0, fits and separator != ","

    return max(_SEPARATORS, key=fit)  # the first one if none is better


def _header_of(path: Path, separator: str) -> list[str]:
    """Return the names of the columns."""
    records = (record for _, record in _records(path, separator))
    header = [field.strip() for field in next(records, [])]
    if not header:
        raise DataError(f"{path} is empty")
    if header[0] == "sep=":
        raise DataError(f"{path}: delete the first line, which tells Excel how fields are separated")
    tables.refuse_row_of_data(path, header, records)
    return header


def _csv_frames(path: Path, separator: str, header: list[str], words: Collection[str]) -> Iterator[Any]:
    """Yield the rows of a CSV file in frames."""
    import pandas as pd

    hint = " (if numbers have a decimal comma, write them with a point)" if separator == "," else ""
    try:
        with warnings.catch_warnings(), unpacked(path) as file:
            # By default a surplus field silently makes the first one an index; index_col=False warns instead.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            with pd.read_csv(
                file,
                sep=separator,
                names=header,
                header=0,
                index_col=False,
                skipinitialspace=True,
                na_values=list(words),
                low_memory=False,
                encoding=_ENCODING,
                chunksize=tables.rows_per_read(len(header)),
            ) as frames:
                checked = False
                for frame in filter(len, frames):
                    text = (column for _, column in frame.items() if column.dtype.kind not in "biuf")
                    if not checked and any(column.astype(str).str.contains("\n").any() for column in text):
                        _read_to_end(path, separator)
                        checked = True
                    yield frame
    except (pd.errors.ParserWarning, pd.errors.ParserError) as error:
        least = len(header)
        # pandas counts lines without the breaks in quoted fields; reading all also finds a quote that is not closed
        wide = [(line, fields) for line, fields in _records(path, separator) if len(fields) > least]
        if wide:
            line, fields = next((row for row in wide if any(row[1][least:])), wide[0])
            fault = f"line {line}: {len(fields)} fields, but the header has {least}{hint}"
            raise DataError(f"{path}: {fault}") from error
        raise DataError(f"{path} is not a CSV file: {tables.one_line(error)}") from error
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error


def _read_to_end(path: Path, separator: str) -> None:
    """Report the line on which a quote is not closed, if one is not: pandas takes the rows after it for its field."""
    for _ in _records(path, separator):
        pass


def _not_utf8(path: Path) -> DataError:
    """Return an error that names the first line that cannot be decoded."""
    with unpacked(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                place = f"line {number}, byte {error.start + 1} is 0x{line[error.start]:02x}"
                likely = "UTF-16" if min(line) < 9 else "WINDOWS-1252"
                return DataError(
                    f"{path} is not UTF-8: {place}: convert it first (if it is {likely}: iconv -f {likely} -t UTF-8)"
                )
    raise AssertionError("every line can be decoded")


def _chunks_of(
    frames: Iterable[Any],
    request: Request,
    attributes: list[str],
    target: str,
    place: Callable[[int], str],
    rows: int,
    dtype: np.dtype[Any] = tables.STORED[-1],
) -> tables.Chunks:
    """Yield the rows of frames in chunks of at most that many rows, their attributes as numbers.

    Raises
    ------
    DataError
        If an attribute is text.
    """
    import pandas as pd  # here, because it is slow to import and other kinds of data do without

    done = 0
    for frame in frames:
        cells = frame[attributes]
        numbers = cells.copy(deep=False)
        text = [column for column, kind in zip(cells, cells.dtypes, strict=True) if kind.kind not in "biuf"]
        if text:
            numbers[text] = cells[text].apply(pd.to_numeric, errors="coerce")
            words = (numbers[text].isna() & cells[text].notna()).to_numpy()
            for (row, at), cell in zip(np.argwhere(words), cells[text].to_numpy()[words], strict=True):
                if tables.is_empty(cell) or tables.text_of(cell) in request.words:
                    continue  # pandas wants words for a missing value without blanks after them
                where = f"{request.path}: {place(done + row)}, column {quoted(text[at])}"
                fault = tables.fault_of(cell)
                raise DataError(f"{where}: {fault}{tables.ONE_HOT if fault.endswith('is not a number') else ''}")
        X, y = np.ascontiguousarray(numbers.to_numpy(dtype=dtype)), frame.get(target)
        for start in range(0, len(X), rows):
            yield X[start : start + rows], None if y is None else y.iloc[start : start + rows]
        done += len(frame)


def open_parquet(request: Request) -> ChunkedTable:
    """Open a Parquet file, whose attributes are numbers or booleans: read its schema now and its rows on demand.

    Raises
    ------
    DataError
        If the file is no such table, columns cannot be left out, or pyarrow is not installed.
    """
    path = request.path
    file, index = _parquet(path)
    import pyarrow as pa

    names = file.schema_arrow.names
    index = [name for name in index if name != request.target]
    target = tables.target_of([name for name in names if name not in index], request)
    kinds = dict(zip(tables.renamed(names), file.schema_arrow.types, strict=True))
    target_kind = kinds.pop(target, None)
    if target_kind is not None and (pa.types.is_nested(target_kind) or pa.types.is_binary(target_kind)):
        raise DataError(f"{path}: target {quoted(target)} holds {target_kind}; numbers or text are needed")
    others = list(kinds)
    dropped = tables.dropped([*request.drop, *index], others, len(others), target, path, request.least)
    attributes = [name for at, name in enumerate(others) if at not in dropped]
    types = {_stored_as(kinds[name]) for name in attributes}
    admitted = {dtype for dtype in tables.STORED if dtype.kind == "f" or not request.missing}
    stored = types.pop() if len(types) == 1 and types <= admitted else np.dtype(np.float64)

    def chunks() -> tables.Chunks:
        tables.refuse_unnamed(path, names, others, attributes)
        for name in attributes:
            if _stored_as(kinds[name]).kind not in "buif" and not pa.types.is_decimal(kinds[name]):
                raise DataError(
                    f"{path}: column {quoted(name)} holds {kinds[name]}; numbers are needed{tables.ONE_HOT}"
                )
        columns, rows = [*attributes, *filter(None, [target])], tables.rows_per_read(len(attributes))
        with tables.damage_reported(path, pa.ArrowException):
            batches = file.iter_batches(rows, columns=columns, use_threads=False)
            # Without what pandas wrote beside the columns, which may be damaged and is not needed.
            frames = (batch.replace_schema_metadata().to_pandas() for batch in batches)
            rows = tables.rows_per_chunk(len(attributes))
            yield from _chunks_of(frames, request, attributes, target, tables.data_row, rows, stored)

    left_out = [name for name in index if name not in request.drop]
    note = f"{path.name}: {tables.shown(list(map(quoted, left_out)))}, an index of pandas, is no attribute"
    return ChunkedTable(
        target,
        file.metadata.num_rows * len(attributes) * stored.itemsize,
        chunks(),
        names=attributes,
        notes=(f"{note}; reset_index() before saving makes it one",) if left_out else (),
        d=len(others),
        dropped=dropped,
    )


def parquet_sheet(path: Path) -> Sheet:
    """Return the cells of a Parquet file; those of an index of pandas have to be asked for by its name.

    Raises
    ------
    DataError
        If the file is damaged, or names of columns are missing or repeated.
    """
    file, index = _parquet(path)
    import pyarrow as pa

    with tables.damage_reported(path, pa.ArrowException, ValueError):
        table = file.read()
    names = list(map(tables.text_of, table.column_names))
    tables.refuse_bad_names(names, str(path))
    columns = {name: column.to_pylist() for name, column in zip(names, table.columns, strict=True)}
    return Sheet(str(path), tuple(name for name in names if name not in index), columns, tables.data_row)


def _parquet(path: Path) -> tuple[Any, list[str]]:
    """Return a Parquet file, whose schema alone was read, and its columns that are an index of pandas.

    Raises
    ------
    DataError
        If it is no such file, or pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError(f"{path}: Parquet files need pyarrow: pip install '.[parquet]' in a clone") from error
    try:
        file = pq.ParquetFile(path)
        index = (file.schema_arrow.pandas_metadata or {}).get("index_columns", ())
    except (pa.ArrowException, ValueError) as error:
        raise DataError(f"{path} is not a Parquet file: {tables.one_line(error)}") from error
    return file, [name for name in file.schema_arrow.names if name in index or name.startswith(_INDEX)]


def _stored_as(kind: Any) -> np.dtype:
    """Return numpy's type for a type of a column; that of objects if numpy has none, as for categories of text."""
    try:
        return np.dtype(kind.to_pandas_dtype())
    except NotImplementedError:
        return np.dtype(object)


def open_arrays(request: Request) -> ChunkedTable:
    """Open a folder or an NPZ file with arrays ``X`` of shape (n, d) and ``y`` of shape (n,).

    Raises
    ------
    DataError
        If it has no such arrays, or columns, which have numbers from 1, cannot be left out.
    """
    path, target = request.path, "y" if request.target is None else request.target
    if not path.is_dir() and not zipfile.is_zipfile(path):
        raise DataError(f"{path} is {'empty' if path.stat().st_size == 0 else 'not an NPZ file of numpy.savez'}")
    names, arrays = _arrays_in(path, ("X", target))
    for wanted in filter(None, ("X", target)):
        if wanted not in arrays:
            raise DataError(f"{path}: no array {wanted!r}{nearest(wanted, names)}; arrays: {tables.shown(names)}")
    X = arrays["X"]
    y = arrays[target] if target else np.zeros(X.shape[:1])
    if not (
        (X.ndim == 2 and len(X) > 0 and X.shape[1] > 1 and y.shape == X.shape[:1])
        and (X.dtype.kind in "buif" and y.dtype.kind in "buifU")
    ):
        raise DataError(
            f"{path}: X has {X.dtype} of shape {X.shape} and {target or 'y'} {y.dtype} of shape {y.shape}; numbers of "
            "shape (n, d), with at least one row and two attributes, and numbers or text of shape (n,) are needed"
        )
    dropped = tables.dropped(request.drop, (), X.shape[1], target, path, request.least)
    kept = np.delete(np.arange(X.shape[1]), list(dropped))

    def chunks() -> tables.Chunks:
        import pandas as pd  # see `_chunks_of`

        targets, step = pd.Series(y if y.dtype.kind == "U" else _converted(y)), tables.rows_per_chunk(X.shape[1])
        for start in range(0, len(X), step):
            rows = _converted(X[start : start + step, kept])
            yield rows, targets[start : start + step] if target else None

    mapped = path.is_dir() and X.flags.c_contiguous and _stored(X.dtype) == X.dtype and not request.missing
    mapped &= not dropped and not (y.dtype.kind == "f" and np.isnan(y).any())  # rows without a target are left out
    return ChunkedTable(target, X.nbytes, chunks(), X if mapped else None, d=X.shape[1], dropped=dropped)


def _arrays_in(path: Path, wanted: Collection[str]) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of the arrays in a folder, which are mapped, or in an NPZ file, and the wanted ones."""
    with tables.damage_reported(path, *DAMAGE):
        try:
            if not path.is_dir():
                return read_npz(path, wanted)
            names = [file.stem for file in sorted(path.glob("*.npy"))]
            return names, {name: np.load(path / f"{name}.npy", mmap_mode="r") for name in names if name in wanted}
        except ValueError as error:
            if "bject" not in str(error):  # "Python objects in dtype" of mapped files, "Object arrays" of others
                raise
            raise DataError(
                f"{path}: {' or '.join(wanted)} holds Python objects: save it with .astype(float), or text with "
                ".astype(str)"
            ) from error


def read_npz(file: Path | IO[bytes], wanted: Collection[str] | None = None) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of the arrays in an NPZ file, and the wanted ones, by default all.

    Raises
    ------
    DAMAGE, OSError
        If the file is damaged, which its checksums show, or an array holds objects of Python.
    """
    with zipfile.ZipFile(file) as archive:
        if damaged := archive.testzip():
            raise ValueError(f"{damaged} has another checksum")
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        arrays = {}
        for name in names if wanted is None else filter(names.__contains__, wanted):
            with archive.open(f"{name}.npy") as content:
                arrays[name] = np.lib.format.read_array(content)
    return names, arrays


def _stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype in tables.STORED and dtype.isnative else np.dtype(np.float64)


def _converted(array: np.ndarray) -> np.ndarray:
    """Return numbers as they are stored; what is too large for that becomes infinite, and is reported as such."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=_stored(array.dtype))


def open_libsvm(request: Request) -> ChunkedTable:
    """Open a LIBSVM file; its lines are read on demand.

    Raises
    ------
    DataError
        If a target or a column is named, or values are said to be missing, which this format cannot express.
    """
    path, drop = request.path, request.drop
    if request.missing or request.words:
        option = "dataset.missing=unavailable" if request.missing else "dataset.missing_values"
        raise DataError(f"{path}: leave out {option}: values that a LIBSVM file leaves out are 0, never missing")
    if request.target:
        raise DataError(
            f"{path}: leave out dataset.target={request.target}: lines of a LIBSVM file begin with the target"
        )
    for word in drop:
        if not _is_index(word):
            raise DataError(f"{path}: dataset.drop: {quoted(word)} is not an index, by which LIBSVM files name columns")
    dropped = sorted(set(map(int, drop)))
    # An entry takes 12 bytes, and about half of that as text.
    size = 2 * _size_of_text(path)
    rows = _libsvm_chunks(request, np.array(dropped, dtype=np.int64))
    target = "target" if request.target is None else request.target
    first = 0 if request.indices and request.indices[0] == 0 and 0 not in dropped else 1
    return ChunkedTable(target, size, rows, dropped=dict.fromkeys(dropped, ""), first=first)


def first_index(path: Path) -> int:
    """Return 0 if a row of a LIBSVM file has the index 0, else 1.

    Raises
    ------
    DataError
        If the file is damaged.
    """
    rows = _libsvm_chunks(Request(path, tables.NO_TARGET), np.empty(0, dtype=np.int64))
    return min((int(X.indices.min(initial=1)) for X, _ in rows), default=1)


def _libsvm_chunks(request: Request, dropped: np.ndarray) -> tables.Chunks:
    import pandas as pd  # here, because these are slow to import and other kinds of data do without
    from sklearn.datasets import load_svmlight_file

    path, known = request.path, request.indices
    lines, lowest, width = 0, *((1, 0) if known is None else (known[0], known[1] + 1))
    with tables.damage_reported(path, UnicodeDecodeError), unpacked(path) as file:
        for block in _whole_lines(file):
            try:
                X, y = load_svmlight_file(io.BytesIO(block), n_features=width if known else None, zero_based=True)
            except (ValueError, OverflowError) as error:
                raise DataError(f"{path}: {_first_fault(block, lines, known) or error}") from error
            finite = np.isfinite(X.data).all() and np.isfinite(y).all()
            inside = X.shape[1] <= _MOST if known is None else X.indices.min(initial=lowest) >= lowest
            # The library reads numbers as Python does, which allows 1_0.
            fault = None if finite and inside and b"_" not in block else _first_fault(block, lines, known)
            if fault:
                raise DataError(f"{path}: {fault}")
            if dropped.size:
                lowest, width = min(lowest, X.indices.min(initial=1)), max(width, X.shape[1])
                X = _without(X, dropped)
            yield X, None if request.target == tables.NO_TARGET else pd.Series(y)
            lines += block.count(b"\n")
    unknown = dropped[(dropped < lowest) | (dropped >= width)]
    if unknown.size:
        last = max(width - 1, lowest)
        raise DataError(f"{path}: dataset.drop: no column has the index {unknown[0]}; there are {lowest} to {last}")
    if dropped.size:
        tables.check_enough(path, width - lowest, dropped.size)


def _without(X: Any, dropped: np.ndarray) -> Any:
    """Return sparse rows without some columns; others move to the left, but none to index 0."""
    from scipy.sparse import csr_matrix

    kept, moving = ~np.isin(X.indices, dropped), dropped[dropped > 0]
    indices = X.indices[kept]
    starts = np.concatenate([[0], np.cumsum(kept)])[X.indptr].astype(X.indptr.dtype)
    shape = X.shape[0], X.shape[1] - np.count_nonzero(moving < X.shape[1])
    rows = csr_matrix((X.data[kept], indices - np.searchsorted(moving, indices), starts), shape=shape)
    rows.indptr = starts  # the constructor may choose another type, on which the digest depends
    return rows


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    rest = b""
    while block := file.read(_BLOCK):
        whole, end, rest = (rest + block).rpartition(b"\n")
        if end:
            yield whole + end
    if rest:
        yield rest


def _first_fault(block: bytes, lines: int, known: tuple[int, int] | None) -> str | None:
    """Return what is wrong with the first bad line of a block, which begins after a number of lines."""
    for number, line in enumerate(block.split(b"\n"), start=lines + 1):
        fault = _line_fault([field.decode(errors="replace") for field in line.split(b"#")[0].split()], known)
        if fault is not None:
            return f"line {number}: {fault}"
    return None


def _line_fault(fields: list[str], known: tuple[int, int] | None) -> str | None:
    last = -1
    for position, field in enumerate(fields):
        index, colon, value = field.partition(":")
        if position == 0:
            index, value = "0", field
        elif index == "qid" and value.removeprefix("-").isdecimal():
            continue
        elif not colon or not (index.isascii() and index.isdigit()):
            return f"{quoted(field)} is not index:value"
        elif not _is_index(index):
            return f"index {quoted(index)} is too large: the largest possible is {_MOST}"
        elif int(index) <= last:
            return f"index {index} follows {last}: indices must increase"
        elif known is not None and not known[0] <= int(index) <= known[1]:
            why = ": write this file with indices from 1, too" if int(index) == 0 else ""
            return f"index {index} is not among {known[0]} to {known[1]}, the indices that were learned from{why}"
        else:
            last = int(index)
        if not tables.is_number(value) or not np.isfinite(float(value)):
            return f"{'target ' if position == 0 else ''}{quoted(value)} is not a finite number"
    return None


def _is_index(text: str) -> bool:
    """Return whether text is a whole number that an index may be."""
    return text.isascii() and text.isdigit() and len(text.lstrip("0")) <= len(str(_MOST)) and int(text) <= _MOST

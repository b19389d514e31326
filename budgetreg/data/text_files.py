"""Tables in files of text, which may be compressed: CSV and LIBSVM.

CSV files have a header line; whether commas, semicolons or tabs separate the fields is detected. Messages count data
rows from 1, without the header and blank lines. They count lines as an editor does.

LIBSVM (SVMlight) files have a line ``target index:value index:value ...`` for each example; other values are 0. The
table stays sparse. Indices begin at 1, or at 0 if any index is 0. How many columns such a file has is an accident of
its rows. A table for ``predict`` is therefore read with the indices of the one that was learned from.
"""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import math
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from budgetreg.common.errors import DataError, quoted
from budgetreg.data import tables

COMPRESSIONS: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Functions that open compressed text, given its file, by the ending of the file's name."""

_MOST_BLANK = 1_000_000  # lines in a row
_MOST_READ = 1 << 30  # bytes of text to read at once
_MOST_FIELD = 128  # of them for each field
_FEW, _ALIKE = 4, 0.25  # fewer numbers rise by accident; how much the growth of alike steps differs from the median
_LOOKED_AT = 100  # rows in which a word of the first row is looked for
_VALUE = re.compile(r"[+-]?\.?\d.*|[?.-]|#?n/?a|null|none", re.IGNORECASE)  # words that are no names
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_ENCODING = "utf-8-sig"  # UTF-8, with or without the byte-order mark that spreadsheets write
_BLOCK = 1 << 24  # bytes of a LIBSVM file read at a time
_MOST = 10**8  # attributes of a LIBSVM file; each needs some numbers in memory


def open_csv(
    path: Path, target: str | None, missing: bool = False, drop: Sequence[str] = (), words: Sequence[str] = ()
) -> tables.ChunkedTable:
    """Open a CSV file: read its header now and its rows on demand.

    Parameters
    ----------
    path : Path
        The file, in UTF-8, possibly compressed.
    target : str or None
        Column of the target; None: the last one with a name; `NO_TARGET`: none.
    missing : bool
        Whether attributes may be missing.
    drop : sequence of str
        Columns that are left out, see `tables.dropped`; they may hold anything.
    words : sequence of str
        What means a missing value, too.

    Raises
    ------
    DataError
        If the file has no usable header, or columns cannot be left out.
    """
    separator = separator_of(path)
    names = _header_of(path, separator)
    name = tables.target_of(names, target, path, f", separated by {_SEPARATORS[separator]}")
    header = tables.renamed(names)
    others = [column for column in header if column != name]
    dropped = tables.dropped(drop, others, len(others), name, path)
    attributes = [column for at, column in enumerate(others) if at not in dropped]
    column = header.index(name) if name else None
    notes = () if separator == "," else (f"{path.name}: fields are separated by {_SEPARATORS[separator]}",)
    return tables.ChunkedTable(
        path,
        name,
        size_of_text(path),
        _csv_chunks(path, separator, names, others, attributes, name, missing, words),
        names=attributes,
        place=partial(_csv_place, path, separator),
        written=partial(_field, path, separator, column),
        notes=notes,
        missing=missing,
        d=len(others),
        dropped=dropped,
    )


def csv_sheet(path: Path) -> tables.Sheet:
    """Return the cells of a CSV file as they were written.

    Raises
    ------
    DataError
        If the file has no usable header, or a row has another number of fields.
    """
    separator = separator_of(path)
    header = _header_of(path, separator)
    tables.refuse_bad_names(header, f"{path}: line 1")
    lines, rows = [], []
    for line, record in islice(records(path, separator), 1, None):
        if len(record) != len(header):
            raise DataError(f"{path}: line {line}: {len(record)} fields, but the header has {len(header)}")
        lines.append(line)
        rows.append(record)
    cells: Sequence[Sequence[str]] = list(zip(*rows, strict=True)) or [()] * len(header)
    columns = dict(zip(header, cells, strict=True))
    return tables.Sheet(str(path), tuple(header), columns, lambda row: f"line {lines[row]}")


def open_libsvm(
    path: Path,
    target: str | None,
    missing: bool = False,
    drop: Sequence[str] = (),
    indices: tuple[int, int] | None = None,
) -> tables.ChunkedTable:
    """Open a LIBSVM file; its lines are read on demand.

    Parameters
    ----------
    path : Path
        The file, possibly compressed.
    target : None or `NO_TARGET`
        None: the number at the beginning of a line.
    missing : bool
        Must be False, as this format cannot express missing values.
    drop : sequence of str
        Columns that are left out, by their indices in the file.
    indices : (int, int), optional
        The first and the last index of a column, if they are known; others are refused when rows are read.

    Raises
    ------
    DataError
        If a target or a column is named, or attributes may be missing.
    """
    if missing:
        raise DataError(
            f"{path}: leave out dataset.missing=unavailable: values that a LIBSVM file leaves out are 0, never missing"
        )
    if target:
        raise DataError(f"{path}: leave out dataset.target={target}: lines of a LIBSVM file begin with the target")
    for word in drop:
        if not _is_index(word):
            raise DataError(f"{path}: dataset.drop: {quoted(word)} is not an index, by which LIBSVM files name columns")
    dropped = sorted(set(map(int, drop)))
    # An entry takes 12 bytes, and about half of that as text.
    size = 2 * size_of_text(path)
    rows = _libsvm_chunks(path, target is None, np.array(dropped, dtype=np.int64), indices)
    name = "target" if target is None else target
    first = 0 if indices and indices[0] == 0 and 0 not in dropped else 1
    return tables.ChunkedTable(path, name, size, rows, dropped=dict.fromkeys(dropped, ""), first=first)


def first_index(path: Path) -> int:
    """Return 0 if a row of a LIBSVM file has the index 0, else 1.

    Raises
    ------
    DataError
        If the file is damaged.
    """
    rows = _libsvm_chunks(path, False, np.empty(0, dtype=np.int64), None)
    return min((int(X.indices.min(initial=1)) for X, _ in rows), default=1)


@contextmanager
def unpacked(path: Path) -> "Iterator[io.BufferedReader[Text]]":
    """Open a file of text; one with the ending of a compression is decompressed.

    Raises
    ------
    DataError
        If, while it is read, it turns out to be damaged or to have no end.
    """
    damage = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
    with (
        tables.damage_reported(path, *damage),
        path.open("rb") as packed,
        COMPRESSIONS.get(path.suffix.lower(), nullcontext)(packed) as file,
        io.BufferedReader(Text(path, file, packed), 1 << 18) as text,
    ):
        yield text


class Text(io.RawIOBase):
    """The bytes of a text, whose lines and size are bounded.

    Attributes
    ----------
    left : float
        The bytes that may still be read, for readers which hold them in memory.
    """

    left = math.inf

    def __init__(self, path: Path, file: BinaryIO, packed: BinaryIO) -> None:
        self._path, self._file, self._packed = path, file, packed
        self._size, self._line = 0, 0  # bytes of the text and of its last line so far

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer, and return their number.

        Raises
        ------
        DataError
            If they are too many.
        """
        piece = self._file.read(len(buffer))
        buffer[: len(piece)] = piece
        self._size += len(piece)
        self.left -= len(piece)
        if self.left < 0:
            raise DataError(f"{self._path}: a row does not end: is a quotation mark left open?")
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
        self._line = len(piece) - end if end else self._line + len(piece)
        if self._line > tables.MOST_BYTES:
            raise DataError(f"{self._path}: a line is longer than {tables.MOST_BYTES >> 20} MiB: this is not a table")
        if self._file is not self._packed:
            tables.check_expansion(self._path, self._packed.tell(), self._size)
        return len(piece)


def size_of_text(path: Path) -> int:
    """Return the number of bytes of text in a file; more than `IN_MEMORY` if it is compressed and thus unknown."""
    return tables.IN_MEMORY + 1 if path.suffix.lower() in COMPRESSIONS else path.stat().st_size


def records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of the header and of each row, with the number of the line on which they begin."""
    line = ""

    def lines() -> Iterator[str]:
        nonlocal line
        for line in text:  # noqa: UP028 - `yield from` would keep no line
            yield line

    try:
        with unpacked(path) as file, io.TextIOWrapper(file, encoding=_ENCODING, newline="") as text:
            reader = csv.reader(lines(), delimiter=separator, skipinitialspace=True)
            before = blank = 0
            for record in reader:
                if len(record) > 1 or line.strip(" \t\r\n"):  # pandas skips blank lines, but not ""
                    yield before + 1, record
                    blank = 0
                elif (blank := blank + 1) > _MOST_BLANK:
                    raise DataError(
                        f"{path}: line {before + 1} is the {blank:,}th blank line in a row: this is not a table"
                    )
                before = reader.line_num
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    except csv.Error as error:
        raise DataError(f"{path} is not a CSV file: {error}") from error


def separator_of(path: Path) -> str:
    """Return the separator that gives header and first row as many fields, or else the header the most fields."""

    def fit(separator: str) -> tuple[bool, int]:
        try:
            counts = [len(record) for _, record in islice(records(path, separator), 2)]
        except DataError:
            return False, 0  # a wide row may become one endless field; `_header_of` reports other errors
        return len(counts) == 2 and counts[0] == counts[1] > 1, counts[0] if counts else 0

    return max(_SEPARATORS, key=fit)  # the first one if none is better


def _header_of(path: Path, separator: str) -> list[str]:
    """Return the names of the columns."""
    header = [field.strip() for _, record in islice(records(path, separator), 1) for field in record]
    if not header:
        raise DataError(f"{path} is empty")
    _refuse_row_of_data(path, separator, header)
    return header


def _refuse_row_of_data(path: Path, separator: str, header: list[str]) -> None:
    """Refuse a header that is a row of data: the row would be lost.

    Names may be numbers, such as years, wavelengths or numbers of pixels. Those only rise, or only fall, and are whole
    or follow each other in steps that are alike.

    Raises
    ------
    DataError
    """
    numbers = [float(field) for field in header if tables.is_number(field)]
    if len(numbers) == len(header):
        raise DataError(f"{path} has no header: its first row has only numbers; write the names of the columns there")
    if 2 * len(numbers) <= len(header):
        return
    steps = np.diff(numbers)
    ordered = bool((steps > 0).all() or (steps < 0).all())
    if ordered and not all(number.is_integer() for number in numbers):
        growth = steps[1:] / steps[:-1]
        ordered = len(numbers) >= _FEW and bool(np.abs(growth / np.median(growth) - 1).max() < _ALIKE)
    words = {at: field for at, field in enumerate(header) if field and not tables.is_number(field)}
    rows = [row for _, row in islice(records(path, separator), 1, _LOOKED_AT)]
    known = any(row[at].strip() == word for row in rows for at, word in words.items() if at < len(row))
    if not ordered or known or any(_VALUE.fullmatch(word) for word in words.values()):
        raise DataError(
            f"{path}: its first row looks like data, as {len(numbers)} of {len(header)} fields are numbers: write the "
            "names of the columns above it; if these are the names, put a letter before the numbers"
        )


def _csv_chunks(
    path: Path,
    separator: str,
    names: list[str],
    others: list[str],
    attributes: list[str],
    name: str,
    missing: bool,
    words: Sequence[str],
) -> tables.Chunks:
    import pandas as pd  # here, because it is slow to import and other kinds of data do without

    tables.refuse_unnamed(path, names, others, attributes)
    header = tables.renamed(names)
    rows = tables.rows_per_read(len(header))
    most = min(_MOST_READ, _MOST_FIELD * rows * len(header))
    done = 0
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
                chunksize=rows,
            ) as frames:
                file.raw.left = most
                for frame in filter(len, frames):
                    X = _frame_numbers(path, separator, frame[attributes], done, missing)
                    yield from tables.divided(X, frame.get(name), tables.rows_per_chunk(len(header)))
                    done += len(frame)
                    file.raw.left = most
    except pd.errors.ParserWarning as warning:
        raise DataError(f"{path}: rows have more fields than the header{hint}") from warning
    except pd.errors.ParserError as error:
        reason = tables.one_line(error)
        raise DataError(f"{path} is not a CSV file: {reason}{hint if 'fields' in reason else ''}") from error
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error


def _frame_numbers(path: Path, separator: str, frame: Any, done: int, missing: bool) -> np.ndarray:
    import pandas as pd  # see `_csv_chunks`

    text = [column for column, dtype in zip(frame, frame.dtypes, strict=True) if dtype.kind not in "biuf"]
    numbers = frame.copy(deep=False)
    if text:
        numbers[text] = frame[text].apply(pd.to_numeric, errors="coerce")
    X = numbers.to_numpy(dtype=np.float64)
    place = tables.first_not_finite(X, frame.isna().to_numpy() if missing else None)
    if place is not None:
        row, column = place
        where = tables.cell(path, _csv_place(path, separator, done + row), frame.columns[column])
        value: Any = frame.iloc[row, column]
        if pd.isna(value):
            raise tables.EmptyCellError(f"{where}: empty or NaN")
        raise DataError(f"{where}: {_cell_fault(str(value))}")
    return np.ascontiguousarray(X)


def _cell_fault(text: str) -> str:
    """Return what is wrong with a cell that is not empty and not a finite number."""
    if tables.is_number(text):
        return f"{quoted(text)} is not a finite number"
    return f"{quoted(text)} {tables.comma_fault(text) or f'is not a number{tables.ONE_HOT}'}"


def _csv_place(path: Path, separator: str, row: int) -> str:
    """Return the line and the number of a data row, which is counted from 0."""
    line, _ = _record(path, separator, row)
    return f"line {line}, {tables.data_row(row)}"


def _field(path: Path, separator: str, column: int | None, row: int) -> str:
    """Return the text in a column of a data row, which is counted from 0; empty if there is no such column."""
    _, fields = _record(path, separator, row)
    return fields[column].strip() if column is not None and column < len(fields) else ""


def _record(path: Path, separator: str, row: int) -> tuple[int, list[str]]:
    """Return the line and the fields of a data row, which is counted from 0."""
    return next(islice(records(path, separator), row + 1, None))


def _not_utf8(path: Path) -> DataError:
    """Return an error that names the first line that cannot be decoded."""
    with unpacked(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                likely = "UTF-16" if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "WINDOWS-1252"
                return DataError(
                    f"{path} is not UTF-8: line {number}, byte {error.start + 1} is 0x{line[error.start]:02x}: "
                    f"convert it first (if it is {likely}: iconv -f {likely} -t UTF-8)"
                )
    raise AssertionError("every line can be decoded")


def _libsvm_chunks(path: Path, targets: bool, dropped: np.ndarray, known: tuple[int, int] | None) -> tables.Chunks:
    import pandas as pd  # here, because these are slow to import and other kinds of data do without
    from sklearn.datasets import load_svmlight_file

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
            yield X, pd.Series(y) if targets else None
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

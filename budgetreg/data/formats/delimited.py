"""CSV files with a header line; whether commas, semicolons or tabs separate the fields is detected.

Messages count data rows from 1, without the header and blank lines. They count lines as an editor does.
"""

import codecs
import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.data.formats import chunks
from budgetreg.errors import DataError, quoted

_MOST_BLANK = 1_000_000  # lines in a row
_MOST_READ = 1 << 30  # bytes of text to read at once
_MOST_FIELD = 128  # of them for each field
_FEW, _ALIKE = 4, 0.25  # fewer numbers rise by accident; how much the growth of alike steps differs from the median
_LOOKED_AT = 100  # rows in which a word of the first row is looked for
_VALUE = re.compile(r"[+-]?\.?\d.*|[?.-]|#?n/?a|null|none", re.IGNORECASE)  # words that are no names
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_ENCODING = "utf-8-sig"  # UTF-8, with or without the byte-order mark that spreadsheets write


def open_csv(path: Path, target: str | None, missing: bool = False, drop: Sequence[str] = ()) -> chunks.ChunkedTable:
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
        Columns that are left out, see `chunks.dropped`; they may hold anything.

    Raises
    ------
    DataError
        If the file has no usable header, or columns cannot be left out.
    """
    separator = separator_of(path)
    names = _header(path, separator)
    name = chunks.target_of(names, target, path, f", separated by {_SEPARATORS[separator]}")
    header = chunks.renamed(names)
    others = [column for column in header if column != name]
    dropped = chunks.dropped(drop, others, len(others), name, path)
    attributes = [column for at, column in enumerate(others) if at not in dropped]
    column = header.index(name) if name else None
    notes = () if separator == "," else (f"{path.name}: fields are separated by {_SEPARATORS[separator]}",)
    return chunks.ChunkedTable(
        path,
        name,
        chunks.size_of_text(path),
        _chunks(path, separator, names, others, attributes, name, missing),
        names=attributes,
        place=partial(_place, path, separator),
        written=partial(_field, path, separator, column),
        notes=notes,
        missing=missing,
        d=len(others),
        dropped=dropped,
    )


def _chunks(
    path: Path, separator: str, names: list[str], others: list[str], attributes: list[str], name: str, missing: bool
) -> chunks.Chunks:
    import pandas as pd  # here, because it is slow to import and other kinds of data do without

    chunks.refuse_unnamed(path, names, others, attributes)
    header = chunks.renamed(names)
    rows = chunks.rows_per_read(len(header))
    most = min(_MOST_READ, _MOST_FIELD * rows * len(header))
    done = 0
    hint = " (if numbers have a decimal comma, write them with a point)" if separator == "," else ""
    try:
        with warnings.catch_warnings(), chunks.unpacked(path) as file:
            # By default a surplus field silently makes the first one an index; index_col=False warns instead.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            with pd.read_csv(
                file,
                sep=separator,
                names=header,
                header=0,
                index_col=False,
                skipinitialspace=True,
                low_memory=False,
                encoding=_ENCODING,
                chunksize=rows,
            ) as frames:
                file.raw.left = most
                for frame in filter(len, frames):
                    X = _numbers(path, separator, frame[attributes], done, missing)
                    yield from chunks.divided(X, frame.get(name), chunks.rows_per_chunk(len(header)))
                    done += len(frame)
                    file.raw.left = most
    except pd.errors.ParserWarning as warning:
        raise DataError(f"{path}: rows have more fields than the header{hint}") from warning
    except pd.errors.ParserError as error:
        reason = chunks.one_line(error)
        raise DataError(f"{path} is not a CSV file: {reason}{hint if 'fields' in reason else ''}") from error
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error


def _numbers(path: Path, separator: str, frame: Any, done: int, missing: bool) -> np.ndarray:
    import pandas as pd  # see _chunks

    text = [column for column, dtype in zip(frame, frame.dtypes, strict=True) if dtype.kind not in "biuf"]
    numbers = frame.copy(deep=False)
    if text:
        numbers[text] = frame[text].apply(pd.to_numeric, errors="coerce")
    X = numbers.to_numpy(dtype=np.float64)
    place = chunks.first_not_finite(X, frame.isna().to_numpy() if missing else None)
    if place is not None:
        row, column = place
        where = chunks.cell(path, _place(path, separator, done + row), frame.columns[column])
        value: Any = frame.iloc[row, column]
        if pd.isna(value):
            raise chunks.EmptyCellError(f"{where}: empty or NaN")
        raise DataError(f"{where}: {_fault(str(value))}")
    return np.ascontiguousarray(X)


def _fault(text: str) -> str:
    """Return what is wrong with a cell that is not empty and not a finite number."""
    if chunks.is_number(text):
        return f"{quoted(text)} is not a finite number"
    return f"{quoted(text)} {chunks.comma_fault(text) or f'is not a number{chunks.ONE_HOT}'}"


def _place(path: Path, separator: str, row: int) -> str:
    """Return the line and the number of a data row, which is counted from 0."""
    line, _ = _record(path, separator, row)
    return f"line {line}, {chunks.data_row(row)}"


def _field(path: Path, separator: str, column: int | None, row: int) -> str:
    """Return the text in a column of a data row, which is counted from 0; empty if there is no such column."""
    _, fields = _record(path, separator, row)
    return fields[column].strip() if column is not None and column < len(fields) else ""


def _record(path: Path, separator: str, row: int) -> tuple[int, list[str]]:
    """Return the line and the fields of a data row, which is counted from 0."""
    return next(islice(records(path, separator), row + 1, None))


def records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of the header and of each row, with the number of the line on which they begin."""
    line = ""

    def lines() -> Iterator[str]:
        nonlocal line
        for line in text:  # noqa: UP028 - `yield from` would keep no line
            yield line

    try:
        with chunks.unpacked(path) as file, io.TextIOWrapper(file, encoding=_ENCODING, newline="") as text:
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
            return False, 0  # a wide row may become one endless field; `_header` reports other errors
        return len(counts) == 2 and counts[0] == counts[1] > 1, counts[0] if counts else 0

    return max(_SEPARATORS, key=fit)  # the first one if none is better


def _not_utf8(path: Path) -> DataError:
    """Return an error that names the first line that cannot be decoded."""
    with chunks.unpacked(path) as file:
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


def _header(path: Path, separator: str) -> list[str]:
    """Return the names of the columns."""
    header = [field.strip() for _, record in islice(records(path, separator), 1) for field in record]
    if not header:
        raise DataError(f"{path} is empty")
    refuse_row_of_data(path, separator, header)
    return header


def refuse_row_of_data(path: Path, separator: str, header: list[str]) -> None:
    """Refuse a header that is a row of data: the row would be lost.

    Names may be numbers, such as years, wavelengths or numbers of pixels. Those only rise, or only fall, and are whole
    or follow each other in steps that are alike.

    Raises
    ------
    DataError
    """
    numbers = [float(field) for field in header if chunks.is_number(field)]
    if len(numbers) == len(header):
        raise DataError(f"{path} has no header: its first row has only numbers; write the names of the columns there")
    if 2 * len(numbers) <= len(header):
        return
    steps = np.diff(numbers)
    ordered = bool((steps > 0).all() or (steps < 0).all())
    if ordered and not all(number.is_integer() for number in numbers):
        growth = steps[1:] / steps[:-1]
        ordered = len(numbers) >= _FEW and bool(np.abs(growth / np.median(growth) - 1).max() < _ALIKE)
    words = {at: field for at, field in enumerate(header) if field and not chunks.is_number(field)}
    rows = [row for _, row in islice(records(path, separator), 1, _LOOKED_AT)]
    known = any(row[at].strip() == word for row in rows for at, word in words.items() if at < len(row))
    if not ordered or known or any(_VALUE.fullmatch(word) for word in words.values()):
        raise DataError(
            f"{path}: its first row looks like data, as {len(numbers)} of {len(header)} fields are numbers: write the "
            "names of the columns above it; if these are the names, put a letter before the numbers"
        )

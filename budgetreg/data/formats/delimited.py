"""CSV files with a header line: fields separated by commas, semicolons or tabs, as the file itself tells.

Rows in messages are counted from 1; the header and blank lines do not count. Lines are those that an editor shows.
"""

import codecs
import csv
import io
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from budgetreg.data.formats.source import (
    NO_TARGET,
    ONE_HOT,
    EmptyCellError,
    Source,
    column_of,
    data_row,
    first_not_finite,
    has_decimal_comma,
    is_number,
    one_line,
    rows_per_piece,
    size_of_text,
    unpacked,
)
from budgetreg.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_ENCODING = "utf-8-sig"  # UTF-8, with or without the mark that spreadsheets put first


def open_csv(path: Path, target: str | None, missing: bool = False) -> Source:
    """Read the header of a CSV file, and its rows when they are asked for.

    Parameters
    ----------
    path : Path
        The file, in UTF-8; decompressed while it is read if need be.
    target : str or None
        Column of the target; None: the last one; `NO_TARGET`: none.
    missing : bool
        Whether attributes may be missing.

    Raises
    ------
    DataError
        If it is no such table.
    """
    separator = separator_of(path)
    header = _header(path, separator, 2 if target == NO_TARGET else 3)
    name = column_of(header, target, str(path))
    attributes = [column for column in header if column != name]
    place = partial(_place, path, separator)
    notes = () if separator == "," else (f"{path.name}: fields are separated by {_SEPARATORS[separator]}",)
    pieces = _pieces(path, separator, header, name, missing)
    return Source(name, size_of_text(path), pieces, names=attributes, place=place, notes=notes, missing=missing)


def _pieces(
    path: Path, separator: str, header: list[str], name: str, missing: bool
) -> Iterator[tuple[np.ndarray, "pd.Series[Any] | None"]]:
    import pandas as pd  # here, because it is slow to import and other kinds of data do without

    attributes = [column for column in header if column != name]
    done = 0
    hint = " (a decimal comma? write numbers with a point)" if separator == "," else ""
    try:
        with warnings.catch_warnings(), unpacked(path) as file:
            # By default a surplus field silently makes the first one an index; index_col=False warns instead.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            with pd.read_csv(
                file, sep=separator, names=header, header=0, index_col=False, skipinitialspace=True, low_memory=False,
                encoding=_ENCODING, chunksize=rows_per_piece(len(header)),
            ) as frames:  # fmt: skip
                for frame in filter(len, frames):
                    yield _numbers(path, separator, frame[attributes], done, missing), frame.get(name)
                    done += len(frame)
    except pd.errors.ParserWarning as warning:
        raise DataError(f"{path}: rows have more fields than the header{hint}") from warning
    except pd.errors.ParserError as error:
        told = one_line(error)
        raise DataError(f"{path} is not a CSV file: {told}{hint if 'fields' in told else ''}") from error
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error


def _numbers(path: Path, separator: str, frame: "pd.DataFrame", done: int, missing: bool) -> np.ndarray:
    import pandas as pd  # see _pieces

    X = frame.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    place = first_not_finite(X, frame.isna().to_numpy() if missing else None)
    if place is not None:
        row, column = place
        where = f"{path}: {_place(path, separator, done + row)}, column {frame.columns[column]!r}"
        cell: Any = frame.iloc[row, column]
        if pd.isna(cell):
            raise EmptyCellError(f"{where}: empty or NaN")
        raise DataError(f"{where}: {_fault(str(cell))}")
    return np.ascontiguousarray(X)


def _fault(cell: str) -> str:
    """Say what is wrong with a cell that is there and is no finite number."""
    if is_number(cell):
        return f"{cell!r} is not a finite number"
    if has_decimal_comma(cell):
        return f"{cell!r} has a decimal comma: write numbers with a point"
    return f"{cell!r} is not a number{ONE_HOT}"


def _place(path: Path, separator: str, row: int) -> str:
    """Return line and number of a row of data, counted from 0."""
    line, _ = next(islice(records(path, separator), row + 1, None))
    return f"line {line}, {data_row(row)}"


def records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Give the fields of the header and of each row, with the number of the line on which they begin."""
    line = ""

    def lines() -> Iterator[str]:
        nonlocal line
        for line in text:  # noqa: UP028 - `yield from` would keep no line
            yield line

    try:
        with unpacked(path) as file, io.TextIOWrapper(file, encoding=_ENCODING, newline="") as text:
            reader = csv.reader(lines(), delimiter=separator, skipinitialspace=True)
            before = 0
            for record in reader:
                if len(record) > 1 or line.strip(" \t\r\n"):  # what pandas skips is blank, and "" is not
                    yield before + 1, record
                before = reader.line_num
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    except csv.Error as error:
        raise DataError(f"{path} is not a CSV file: {error}") from error


def separator_of(path: Path) -> str:
    """Return what separates the fields: it makes as many in the header as in the first row, or most in the header."""

    def fit(separator: str) -> tuple[bool, int]:
        try:
            counts = [len(record) for _, record in islice(records(path, separator), 2)]
        except DataError:
            return False, 0  # a wide row may become one endless field; what is wrong in any case, `_header` tells
        return len(counts) == 2 and counts[0] == counts[1] > 1, counts[0] if counts else 0

    return max(_SEPARATORS, key=fit)  # the first one if none is better


def _not_utf8(path: Path) -> DataError:
    """Return the error that names the first line which cannot be decoded."""
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
    raise AssertionError("all of it can be decoded")


def _header(path: Path, separator: str, least: int) -> list[str]:
    """Return the names of the columns, having checked that they are names."""
    header = [field.strip() for _, record in islice(records(path, separator), 1) for field in record]
    if not header:
        raise DataError(f"{path} is empty")
    if all(is_number(field) for field in header):
        raise DataError(f"{path} has no header: its first row holds numbers only; the names of the columns go there")
    if len(header) < least:
        need = "two attributes and a target" if least > 2 else "two attributes"
        raise DataError(f"{path} has {len(header)} column(s), separated by {_SEPARATORS[separator]}; {need} are needed")
    for position, field in enumerate(header, start=1):
        if not field:
            raise DataError(f"{path}: column {position} has no name (an index that was written along? leave it out)")
        if header.index(field) != position - 1:
            raise DataError(f"{path}: two columns are named {field!r}")
    return header

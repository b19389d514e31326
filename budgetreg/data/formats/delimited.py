"""CSV files with a header line.

Rows in messages are counted from 1; the header and blank lines do not count.
"""

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from budgetreg.data.formats.source import (
    NO_TARGET,
    Source,
    column_of,
    first_not_finite,
    is_number,
    one_line,
    rows_per_piece,
)
from budgetreg.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def open_csv(path: Path, target: str | None) -> Source:
    """Read the header of a CSV file, and its rows when they are asked for.

    Parameters
    ----------
    path : Path
        The file; fields are separated by commas.
    target : str or None
        Column of the target; None: the last one; `NO_TARGET`: none.

    Raises
    ------
    DataError
        If it is no such table.
    """
    header = _header(path, 2 if target == NO_TARGET else 3)
    name = column_of(header, target, str(path))
    attributes = [column for column in header if column != name]
    return Source(name, path.stat().st_size, _pieces(path, header, name), names=attributes)


def _pieces(path: Path, header: list[str], name: str) -> Iterator[tuple[np.ndarray, "pd.Series[Any] | None"]]:
    import pandas as pd  # here, because it is slow to import and other kinds of data do without

    attributes = [column for column in header if column != name]
    done = 0
    try:
        with warnings.catch_warnings():
            # By default a surplus field silently makes the first one an index; index_col=False warns instead.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            with pd.read_csv(
                path, names=header, header=0, index_col=False, skipinitialspace=True, low_memory=False,
                encoding="utf-8-sig", chunksize=rows_per_piece(len(header)),
            ) as frames:  # fmt: skip
                for frame in filter(len, frames):
                    yield _numbers(frame[attributes], str(path), done), frame.get(name)
                    done += len(frame)
    except pd.errors.ParserWarning as warning:
        raise DataError(f"{path}: rows have more fields than the header") from warning
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a CSV file: {one_line(error)}") from error


def _numbers(frame: "pd.DataFrame", where: str, done: int) -> np.ndarray:
    import pandas as pd  # see _pieces

    X = frame.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    place = first_not_finite(X)
    if place is not None:
        row, column = place
        cell: Any = frame.iloc[row, column]
        problem = "empty or NaN" if pd.isna(cell) else f"{str(cell)!r} is not a finite number"
        raise DataError(f"{where}: data row {done + row + 1}, column {frame.columns[column]!r}: {problem}")
    return np.ascontiguousarray(X)


def _header(path: Path, least: int) -> list[str]:
    """Return the names of the columns, having checked that they are names."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header = [field.strip() for field in next(filter(None, csv.reader(file)), [])]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a CSV file: {error}") from error
    if not header:
        raise DataError(f"{path} is empty")
    if all(is_number(field) for field in header):
        raise DataError(f"{path} has no header: its first row holds numbers only; the names of the columns go there")
    if len(header) < least:
        need = "two attributes and a target" if least > 2 else "two attributes"
        raise DataError(f"{path} has {len(header)} column(s), separated by commas; {need} are needed")
    for position, field in enumerate(header, start=1):
        if not field:
            raise DataError(f"{path}: column {position} has no name (an index that was written along? leave it out)")
        if header.index(field) != position - 1:
            raise DataError(f"{path}: two columns are named {field!r}")
    return header

"""Tables of text, numbers and holes as users have them: CSV files, Parquet files and frames."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np

from budgetreg.data.dataset import LARGEST
from budgetreg.data.formats import chunks, delimited, parquet
from budgetreg.data.tabular import FORMATS, opener, refuse_disguised
from budgetreg.errors import ConfigError, DataError, nearest, quoted
from budgetreg.files import regular

if TYPE_CHECKING:
    import pandas as pd

_EMPTY = frozenset({"", "#n/a", "#na", "<na>", "n/a", "na", "null", "nan", "-nan", "none"})
"""Words that mean a missing value, in small letters."""


@dataclass(frozen=True)
class Sheet:
    """A table as it was written.

    Attributes
    ----------
    source : str
        What messages call it: its path, or what it is.
    names : tuple of str
        Its columns.
    columns : mapping of str to sequence
        Their cells, and those of an index of pandas, which has to be asked for by its name.
    place : callable
        Returns the place of a row, counted from 0, for messages.
    """

    source: str
    names: tuple[str, ...]
    columns: Mapping[str, Sequence[Any]]
    place: Callable[[int], str]

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def where(self, row: int, column: str) -> str:
        """Return the place of a cell in messages."""
        return f"{self.source}: {self.place(row)}, column {quoted(column)}"

    def name_at(self, row: int, column: str) -> str:
        """Return the name in a cell, such as that of an example.

        Raises
        ------
        DataError
            If it is empty.
        """
        cell = self.columns[column][row]
        if name := text_of(cell):
            return name
        hint = (
            " (a name such as NA, which pandas took for a missing value? read_csv(..., keep_default_na=False) does not)"
        )
        raise DataError(f"{self.where(row, column)}: there is no name{hint if isinstance(cell, float) else ''}")

    def column(self, name: str, need: str) -> Sequence[Any]:
        """Return the cells of a column.

        Raises
        ------
        DataError
            If there is no such column; the message ends in what it is needed for.
        """
        if name not in self.columns:
            raise DataError(
                f"{self.source}: line 1: there is no column {quoted(name)}{nearest(name, self.names)}; columns: "
                f"{chunks.shown(list(self.names))}; {need}"
            )
        return self.columns[name]


def read_sheet(path: Path, key: str = "") -> Sheet:
    """Read a CSV or Parquet file.

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
    readers = {delimited.open_csv: _read_text, parquet.open_parquet: _read_parquet}
    with chunks.reading(path, key):
        regular(path)
        read = readers.get(opener(path))  # type: ignore[arg-type]
        if read is None:
            endings = [ending for ending, format_ in FORMATS.items() if format_ in readers]
            raise ConfigError(
                f"{path}: a study reads {', '.join(endings)} (text also compressed), which have names of columns"
            )
        refuse_disguised(path)
        return read(path)


def sheet_of(frame: "pd.DataFrame", source: str) -> Sheet:
    """Return a frame as a table; its index is left out.

    Raises
    ------
    DataError
        If two columns have the same name.
    """
    names = list(map(text_of, frame.columns))
    _refuse_bad_names(names, source)
    columns = {name: frame.iloc[:, at].tolist() for at, name in enumerate(names)}
    return Sheet(source, tuple(names), columns, chunks.data_row)


def _read_text(path: Path) -> Sheet:
    lines, rows = [], []
    records = delimited.records(path, delimited.separator_of(path))
    header = [field.strip() for _, record in [next(records, (1, []))] for field in record]
    if not header:
        raise DataError(f"{path} is empty")
    _refuse_bad_names(header, f"{path}: line 1")
    delimited.refuse_row_of_data(path, delimited.separator_of(path), header)
    for line, record in records:
        if len(record) != len(header):
            raise DataError(f"{path}: line {line}: {len(record)} fields, but the header has {len(header)}")
        lines.append(line)
        rows.append(record)
    columns: dict[str, Sequence[Any]] = dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else {}
    return Sheet(str(path), tuple(header), columns or {name: () for name in header}, partial(_line, lines))


def _line(lines: Sequence[int], row: int) -> str:
    return f"line {lines[row]}"


def _read_parquet(path: Path) -> Sheet:
    file, index = parquet.opened(path)
    import pyarrow as pa

    with chunks.damage_reported(path, pa.ArrowException, ValueError):
        table = file.read()
    names = list(map(text_of, table.column_names))
    _refuse_bad_names(names, str(path))
    columns = {name: column.to_pylist() for name, column in zip(names, table.columns, strict=True)}
    return Sheet(str(path), tuple(name for name in names if name not in index), columns, chunks.data_row)


def _refuse_bad_names(names: Sequence[str], source: str) -> None:
    if "" in names:
        raise DataError(f"{source}: column {names.index('') + 1} has no name")
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"{source}: two columns are named {quoted(repeated)}: rename one")


def is_empty(cell: object) -> bool:
    """Return whether a cell has no value; some words stand for a missing value."""
    return text_of(cell).lower() in _EMPTY


def text_of(cell: object) -> str:
    """Return the text of a cell, such as a name; empty if it has none. Any word is a name: sodium is ``Na``.

    Examples
    --------
    >>> text_of(" p1 "), text_of("NA"), text_of(7), text_of(7.0), text_of(None)
    ('p1', 'NA', '7', '7', '')
    """
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):  # of pandas, which is slow to load
        return ""
    if isinstance(cell, float | np.floating) and math.isnan(cell):
        return ""
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        return str(int(cell))  # whole numbers beside a hole are floats in a frame
    return str(cell).strip()


def number_of(cell: object) -> float | None:
    """Return the number in a cell; None if there is none, be it empty or text."""
    if isinstance(cell, str):
        return float(cell) if chunks.is_number(cell) and not is_empty(cell) else None
    return None if is_empty(cell) or not isinstance(cell, SupportsFloat) else float(cell)


def fault_of(cell: object) -> str:
    """Return what is wrong with a cell that should hold a number of use; empty if nothing is."""
    number = number_of(cell)
    if number is None:
        text = text_of(cell)
        return f"{quoted(text)} {chunks.comma_fault(text) or 'is not a number'}"
    if not math.isfinite(number):
        return f"{number} is not a finite number"
    if number and not 1 / LARGEST <= abs(number) <= LARGEST:
        return f"{number:.3g} cannot be computed with: only 0 and {1 / LARGEST:g} to {LARGEST:g} can, of either sign"
    return ""

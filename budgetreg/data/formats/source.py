"""What every file format gives: a table in pieces, each small enough for memory."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from budgetreg.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

PIECE_ENTRIES = 1 << 22
"""About how many values are in a piece, 32 MiB of floats."""

IN_MEMORY = 1 << 28
"""Tables of more bytes are not held in memory but in the cache, from where they are mapped."""

NO_TARGET = ""
"""In place of a target's name: all columns are attributes."""

STORED = (np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64))
"""Types that are kept; all others become float64."""

ONE_HOT = (
    " (a column of categories? encode it one-hot first, as columns of 0 and 1, one for each category, such as "
    "pandas.get_dummies makes)"
)
"""What to do about text in place of numbers."""

COMPRESSIONS: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""What opens compressed text, by how a file's name ends."""


class EmptyCellError(DataError):
    """An attribute's value is missing where all have to be there."""


def data_row(row: int) -> str:
    """Return what a row, counted from 0, is called in messages."""
    return f"data row {row + 1}"


@dataclass(frozen=True)
class SparseRows:
    """Rows of which only some entries are given.

    Attributes
    ----------
    lengths : ndarray of int, shape (r,)
        Numbers of entries of each row.
    columns : ndarray of int32, shape (nnz,)
        Their attributes, as the file numbers them, strictly increasing within a row.
    data : ndarray of float64, shape (nnz,)
        Their values, finite.
    """

    lengths: np.ndarray
    columns: np.ndarray
    data: np.ndarray


@dataclass(frozen=True)
class Source:
    """A file that is known to hold a table, before its rows are read.

    Attributes
    ----------
    target : str
        What the target is called in messages; `NO_TARGET` if there is none.
    size : int
        About how many bytes the table takes in memory.
    pieces : iterator of (ndarray of shape (r, d) or SparseRows, pandas.Series of length r or None)
        Successive rows, attributes finite and of one of the types `STORED`, and their targets as they were read,
        if there are any.
        Raises DataError where the file turns out to be damaged.
    mapped : ndarray of shape (n, d), optional
        The attributes, if the file can be mapped as it is.
    names : sequence of str
        What the attributes are called in messages, if the file names them.
    place : callable
        What a row, counted from 0, is called in messages: where the user finds it.
    notes : tuple of str
        What the user should be told of how the file is read.
    missing : bool
        Whether attributes may be missing, which are NaN in the pieces.
    """

    target: str
    size: int
    pieces: Iterator[tuple["np.ndarray | SparseRows", "pd.Series[Any] | None"]]
    mapped: np.ndarray | None = None
    names: Sequence[str] = ()
    place: Callable[[int], str] = data_row
    notes: tuple[str, ...] = ()
    missing: bool = False


@contextmanager
def unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a file of text, which is decompressed if its name says that it is compressed.

    Raises
    ------
    DataError
        If it turns out, while it is read, that what was compressed is damaged.
    """
    try:
        with COMPRESSIONS.get(path.suffix.lower(), open)(path, "rb") as file:
            yield file
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise DataError(f"{path} cannot be read: {one_line(error)}") from error


def size_of_text(path: Path) -> int:
    """Return the bytes of text in a file, or more than `IN_MEMORY` if it is compressed, as nobody knows beforehand."""
    return IN_MEMORY + 1 if path.suffix.lower() in COMPRESSIONS else path.stat().st_size


def rows_per_piece(d: int) -> int:
    """Return how many rows of d values make a piece."""
    return max(1, PIECE_ENTRIES // d)


def first_not_finite(X: np.ndarray, missing: np.ndarray | None = None) -> tuple[int, int] | None:
    """Return row and column of the first entry, row by row, that is NaN or infinite, or None; but for missing ones."""
    finite = np.isfinite(X)
    if missing is not None:
        finite |= missing
    rows = np.flatnonzero(~finite.all(axis=1))
    return (int(rows[0]), int(np.flatnonzero(~finite[rows[0]])[0])) if rows.size else None


def not_finite(where: str, value: Any) -> DataError:
    """Return the error that tells of a value that is NaN or infinite."""
    return (EmptyCellError if np.isnan(value) else DataError)(f"{where}: {value} is not a finite number")


def is_number(field: str) -> bool:
    """Return whether text is a number, NaN and infinity included."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def has_decimal_comma(field: str) -> bool:
    """Return whether text is a number with a decimal comma, such as ``1,5`` or ``1.234,5``."""
    return field.count(",") == 1 and is_number(field.replace(".", "").replace(",", "."))


def one_line(error: Exception) -> str:
    """Return a library's message without line breaks and prefixes that tell a user nothing."""
    return " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")


def shown(names: list[str]) -> str:
    """Return the first names of a list."""
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def column_of(names: list[str], target: str | None, where: str) -> str:
    """Return the name of the target's column, by default the last, or `NO_TARGET` if that is asked for.

    Raises
    ------
    DataError
        If there is no such column, or fewer than two besides it.
    """
    from budgetreg.errors import nearest

    name = names[-1] if target is None else target
    if name not in (*names, NO_TARGET):
        raise DataError(f"{where}: no column {name!r}{nearest(name, names)}; columns: {shown(names)}")
    return name

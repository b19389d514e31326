"""Tables in files and frames: numbers that are read in chunks, for runs, or cells one by one, for studies.

Whatever the format, a table is a `ChunkedTable` or a `Sheet`, and messages about its columns, cells and damage have the
same words.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np

from budgetreg.common.errors import DataError, cut, nearest, quoted
from budgetreg.data.dataset import LARGEST

if TYPE_CHECKING:
    import pandas as pd

CHUNK_ENTRIES = 1 << 22
"""Approximate number of values in a chunk, 32 MiB of floats."""

IN_MEMORY = 1 << 28
"""Tables of more bytes are not held in memory but mapped from the cache."""

TEXT_SHARE = 8
"""Text is mapped from the cache from an eighth of that on, because each process would take as long to parse it."""

NO_TARGET = ""
"""Used instead of a target's name: all columns are attributes."""

STORED = (np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64))
"""Types that are kept; all others become float64."""

ONE_HOT = (
    " (name words for missing values in dataset.missing_values, encode categories one-hot, as columns of 0 and 1, or "
    "leave the column out with dataset.drop=[...])"
)
"""Hint for a column of text."""

_FEW, _ALIKE = 4, 0.25  # fewer numbers rise by accident; how much the growth of alike steps differs from the median
_LOOKED_AT = 100  # rows in which a word of the first row is looked for
_VALUE = re.compile(r"[+-]?\.?\d.*|[?.-]|#?n/?a|null|none", re.IGNORECASE)  # words that are no names
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)", re.ASCII | re.IGNORECASE)
_LIMIT = re.compile(r"([<>≤≥])=?(.+)")
_EMPTY = frozenset({"", "#n/a", "#na", "<na>", "n/a", "na", "null", "nan", "-nan", "none"})
"""Words that mean a missing value in a sheet, in small letters."""


class EmptyCellError(DataError):
    """The value of an attribute is missing although missing values are refused."""


def data_row(row: int) -> str:
    """Return the name of a row, counted from 0, in messages."""
    return f"data row {row + 1}"


Chunks = Generator[tuple[Any, Any], None, None]
"""Successive rows with their targets as they were read, a `pandas.Series`, or with None if there is no target.

Rows are an ndarray of shape (r, d) of one of the types `STORED`, where NaN means a missing value; or a
`scipy.sparse.csr_matrix` of finite floats, whose columns are as the file numbers them, ascending within a row.
"""


@dataclass(frozen=True)
class Request:
    """What is asked of a file.

    Attributes
    ----------
    path : Path
        The file, or the folder of arrays.
    target : str or None
        Column (CSV, Parquet; None: the last one with a name) or array (NPZ, folder; None: ``y``) to predict;
        `NO_TARGET`: none.
    missing : bool
        Whether attributes may be missing: empty cells, null or NaN.
    drop : tuple of str
        Columns that are no attributes and may hold anything, see `dropped`; in LIBSVM files, by index.
    words : tuple of str
        What means a missing value, too.
    indices : (int, int) or None
        The first and the last index of a LIBSVM file's columns, if they are known; others are refused.
    partial : bool
        Whether it is only predicted for: rows without a target are kept, with a target of NaN, and one attribute is
        enough.
    labels : tuple of str
        The two labels that a model has learned; targets may have one of them alone. Empty if there are none.
    """

    path: Path
    target: str | None
    missing: bool = False
    drop: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    indices: tuple[int, int] | None = None
    partial: bool = False
    labels: tuple[str, ...] = ()

    @property
    def least(self) -> int:
        """The smallest number of attributes that a table may have."""
        return 1 if self.partial else 2


@dataclass(frozen=True)
class ChunkedTable:
    """A file that is known to hold a table, before its rows are read.

    Attributes
    ----------
    target : str
        The target's name in messages; `NO_TARGET` if there is no target.
    size : int
        Approximate size of the table in memory, in bytes.
    chunks : Chunks
        The rows. Raises a DataError where the file turns out to be damaged.
    mapped : ndarray of shape (n, d), optional
        The attributes, if the file can be mapped as it is.
    names : sequence of str
        The attributes' names, if the file has them.
    place : callable
        Returns the place in the file of a row, counted from 0, for messages.
    notes : tuple of str
        Remarks for the user on how the file is read.
    d : int
        Number of columns but the target, with those that are left out; 0 if it is not known before rows are read.
    dropped : mapping of int to str
        The columns that are left out: names, empty if they have none, by position among all columns but the target,
        ascending; in LIBSVM files, by index.
    first : int
        In LIBSVM files, the index of the first attribute, which is 0 also if any row has that index.
    """

    target: str
    size: int
    chunks: Chunks
    mapped: np.ndarray | None = None
    names: Sequence[str] = ()
    place: Callable[[int], str] = data_row
    notes: tuple[str, ...] = ()
    d: int = 0
    dropped: Mapping[int, str] = field(default_factory=dict)
    first: int = 1


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
    head : str
        The same for the names: ``: line 1``, or nothing if it has no lines.
    """

    source: str
    names: tuple[str, ...]
    columns: Mapping[str, Sequence[Any]]
    place: Callable[[int], str]
    head: str = ""

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def emptied(self, words: Sequence[str], but: Collection[str]) -> "Sheet":
        """Return the table with None for words that mean a missing value, and equal numbers, but in some columns."""
        numbers = {float(word) for word in words if is_number(word)}

        def known(cell: Any) -> Any:
            return None if text_of(cell) in words or number_of(cell) in numbers else cell

        columns = {name: cells if name in but else list(map(known, cells)) for name, cells in self.columns.items()}
        return replace(self, columns=columns) if words else self

    def without(self, columns: Collection[str]) -> "Sheet":
        """Return the table without some columns, which it must have."""
        for name in columns:
            self.column(name, "drop names columns to leave out")
        kept = {name: cells for name, cells in self.columns.items() if name not in columns}
        return replace(self, names=tuple(filter(kept.__contains__, self.names)), columns=kept)

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
                f"{self.source}{self.head}: there is no column {quoted(name)}{nearest(name, self.names)}; columns: "
                f"{shown(list(self.names))}; {need}"
            )
        return self.columns[name]


def sheet_of(frame: "pd.DataFrame", source: str) -> Sheet:
    """Return a frame as a table; its index is left out.

    Raises
    ------
    DataError
        If two columns have the same name.
    """
    names = list(map(text_of, frame.columns))
    refuse_bad_names(names, source)
    columns = {name: frame.iloc[:, at].tolist() for at, name in enumerate(names)}
    return Sheet(source, tuple(names), columns, data_row)


@contextmanager
def reading(path: object, key: str = "") -> Iterator[None]:
    """Turn errors of the disk and a lack of memory into a DataError with a path and the key that it is from."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot read {error.filename or path}: {error.strerror or error}{f' ({key})' if key else ''}"
        ) from error
    except MemoryError as error:
        raise DataError(f"there is not enough memory to read {path}") from error


@contextmanager
def damage_reported(path: Path, *errors: type[Exception]) -> Iterator[None]:
    """Turn errors that mean a damaged file into a DataError."""
    try:
        yield
    except errors as error:
        raise DataError(f"{path} cannot be read, and may be damaged: {one_line(error)}") from error


def one_line(error: Exception) -> str:
    """Return a library's message, cut if it is long, without line breaks and without a prefix that explains nothing."""
    return cut(" ".join(str(error).split()).removeprefix("Error tokenizing data. C error: "), longest=200)


def rows_per_chunk(d: int) -> int:
    """Return the number of rows of d values in a chunk."""
    return max(1, CHUNK_ENTRIES // d)


def rows_per_read(d: int) -> int:
    """Return the number of rows to read at once: more than a chunk if they are wide, as reads take time per column."""
    rows = rows_per_chunk(d)
    return rows * max(1, min(4, 512 // rows))


def is_number(field: str) -> bool:
    """Return whether text is a number of ASCII digits and without underscores; NaN and infinity are numbers too."""
    return _NUMBER.fullmatch(field.strip(string.whitespace)) is not None


def comma_fault(field: str) -> str:
    """Return what is wrong with a number that has commas, and what to write; empty if that is not its fault.

    Examples
    --------
    >>> comma_fault("5,400.0")
    'has commas between thousands: write 5400.0'
    >>> comma_fault("1,234")
    'has a comma: if it separates thousands, write 1234; if decimals, write 1.234'
    >>> comma_fault("1.234,5")
    'has a decimal comma: write numbers with a point, such as 1234.5'
    """
    text = field.strip()
    whole, decimal = text.replace(",", ""), text.replace(".", "").replace(",", ".")
    if _THOUSANDS.fullmatch(text):
        if text.count(",") > 1 or "." in text:
            return f"has commas between thousands: write {whole}"
        return f"has a comma: if it separates thousands, write {whole}; if decimals, write {decimal}"
    if "," in text and is_number(decimal):
        return f"has a decimal comma: write numbers with a point, such as {decimal}"
    return ""


def is_empty(cell: object) -> bool:
    """Return whether a cell has no value; some words stand for a missing value."""
    return text_of(cell).lower() in _EMPTY


def text_of(cell: object) -> str:
    """Return the text of a cell, such as a name; empty if it has none. Any word is a name: sodium is ``Na``.

    Examples
    --------
    >>> text_of(" p1 "), text_of("NA"), text_of(7), text_of(7.0), text_of(None)
    ('p1', 'NA', '7', '7', '')

    Raises
    ------
    DataError
        If it is no text that a file can hold.
    """
    # Of numpy's masked arrays; of pandas, which is slow to load.
    if cell is None or type(cell).__name__ in ("MaskedConstant", "NAType", "NaTType"):
        return ""
    if isinstance(cell, float | np.floating) and math.isnan(cell):
        return ""
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        return str(int(cell))  # whole numbers beside a hole are floats in a frame
    text = str(cell).strip()
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{text!a}: holds half of a character, as bytes of another encoding do") from error
    return text


def number_of(cell: object) -> float | None:
    """Return the number in a cell; None if there is none, be it empty or text."""
    if isinstance(cell, str):
        return float(cell) if is_number(cell) and not is_empty(cell) else None
    if is_empty(cell) or not isinstance(cell, SupportsFloat):
        return None
    try:
        return float(cell)
    except OverflowError:  # a whole number with hundreds of digits
        return -math.inf if isinstance(cell, int) and cell < 0 else math.inf
    except TypeError:  # such as a date of numpy
        return None


def fault_of(cell: object) -> str:
    """Return what is wrong with a cell that should hold a number of use; empty if nothing is."""
    number = number_of(cell)
    if number is None:
        text = text_of(cell)
        if (limit := _LIMIT.fullmatch(text)) and is_number(limit[2]):
            stand_in = float(limit[2]) / (2 if limit[1] in "<≤" else 1)
            return f"{quoted(text)} is a limit: write a number in its place, the same for all, such as {stand_in:g}"
        return f"{quoted(text)} {comma_fault(text) or 'is not a number'}"
    if not math.isfinite(number):
        return f"{number} is not a finite number"
    if number and not 1 / LARGEST <= abs(number) <= LARGEST:
        return f"{number:.3g} cannot be computed with: only 0 and {1 / LARGEST:g} to {LARGEST:g} can, of either sign"
    return ""


def shown(names: Sequence[str]) -> str:
    """Return the first names of a list."""
    return ", ".join(map(cut, names[:8])) + (", ..." if len(names) > 8 else "") if names else "none"


def target_of(names: Sequence[str], request: Request, note: str = "") -> str:
    """Return the name of the target's column.

    Parameters
    ----------
    names : sequence of str
        The columns.
    request : Request
        The file, and the target that is asked for.
    note : str
        Remark on the number of columns, for messages.

    Raises
    ------
    DataError
        If there are too few attributes, no column with a name, two of one name, or no such column; or if the
        default is asked for but another column is named null, as ``dataset.target=null`` may mean it.
    """
    path, target = request.path, request.target
    need = "two attributes" if target == NO_TARGET else "two attributes and a target"
    if len(names) < request.least + (target != NO_TARGET):
        raise DataError(f"{path} has {len(names)} column(s){note}; {need} are needed")
    _refuse_repeated(renamed(names), str(path))
    names = list(filter(None, names))
    if not names:
        raise DataError(f"{path}: no column has a name")
    *others, last = names
    if target is None and "null" in others:
        raise DataError(
            f"{path}: dataset.target=null means the last column, {quoted(last)}, but a column is named 'null': write "
            f"dataset.target={last} or \"dataset.target='null'\""
        )
    name = last if target is None else target
    if name not in (*names, NO_TARGET):
        raise DataError(f"{path}: no column {quoted(name)}{nearest(name, names)}; columns: {shown(names)}")
    return name


def renamed(names: Sequence[str]) -> list[str]:
    """Return names of columns, those without a name being called as pandas calls them: ``Unnamed: 0``."""
    return [name or f"Unnamed: {at}" for at, name in enumerate(names)]


def refuse_unnamed(path: Path, names: Sequence[str], others: Sequence[str], kept: Sequence[str]) -> None:
    """Refuse columns without a name that are not left out.

    It is called only when rows are read: a table that is opened for the names of its columns may have such columns.

    Parameters
    ----------
    path : Path
        The file, for messages.
    names : sequence of str
        All columns.
    others : sequence of str
        All but the target, as `renamed` calls them.
    kept : sequence of str
        Those that are not left out.

    Raises
    ------
    DataError
        If there is such a column.
    """
    for at, (name, called) in enumerate(zip(names, renamed(names), strict=True)):
        if not name and called in kept:
            raise DataError(
                f"{path}: column {at + 1} has no name; name it, or leave it out, if it is an index that was saved too: "
                f"dataset.drop=[{others.index(called) + 1}]"
            )


def dropped(
    drop: Sequence[str], names: Sequence[str], d: int, target: str, path: Path | str, least: int = 2
) -> dict[int, str]:
    """Return the columns to leave out: names, empty if they have none, by ascending position.

    Parameters
    ----------
    drop : sequence of str
        Columns by name, or by number from 1.
    names : sequence of str
        All columns but the target; empty if they have no names.
    d : int
        Number of these columns.
    target : str
        The target.
    path : Path or str
        The file, or the name of the table, for messages.
    least : int
        How many others must remain.

    Raises
    ------
    DataError
        If there is no such column, it is the target, or too few others remain.
    """
    if not drop:
        return {}
    known = {str(at + 1): at for at in range(d)} | {name: at for at, name in enumerate(names)}
    for word in drop:
        if word == target != NO_TARGET and word not in known:
            raise DataError(
                f"{path}: dataset.drop: {quoted(word)} is the target and cannot be left out; dataset.target names "
                "another"
            )
        if word not in known:
            columns = shown(list(names)) if names else f"numbers 1 to {d}"
            raise DataError(f"{path}: dataset.drop: no column {quoted(word)}{nearest(word, names)}; columns: {columns}")
    positions = sorted({known[word] for word in drop})
    check_enough(path, d, len(positions), least)
    return {at: names[at] if names else "" for at in positions}


def check_enough(path: Path | str, d: int, n_dropped: int, least: int = 2) -> None:
    """Refuse to leave out attributes if too few of d remain."""
    if d - n_dropped < least:
        raise DataError(f"{path}: dataset.drop leaves {d - n_dropped} of {d} attributes; two are needed")


def refuse_row_of_data(path: Path, header: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    """Refuse a header that is a row of data, as the rows below it show: it would be lost.

    Names may be numbers, such as years, wavelengths or numbers of pixels. Those only rise, or only fall, and are whole
    or follow each other in steps that are alike.

    Raises
    ------
    DataError
    """
    numbers = [float(field) for field in header if is_number(field)]
    if len(numbers) == len(header):
        raise DataError(f"{path} has no header: its first row has only numbers; write the names of the columns there")
    if 2 * len(numbers) <= len(header):
        return
    steps = np.diff(numbers)
    ordered = bool((steps > 0).all() or (steps < 0).all())
    if ordered and not all(number.is_integer() for number in numbers):
        growth = steps[1:] / steps[:-1]
        ordered = len(numbers) >= _FEW and bool(np.abs(growth / np.median(growth) - 1).max() < _ALIKE)
    words = {at: field for at, field in enumerate(header) if field and not is_number(field)}
    below = [row for row in islice(rows, _LOOKED_AT) if len(row) == len(header)]
    known = any(row[at].strip() == word for row in below for at, word in words.items())
    if not ordered or known or any(_VALUE.fullmatch(word) for word in words.values()):
        raise DataError(
            f"{path}: its first row looks like data, as {len(numbers)} of {len(header)} fields are numbers: write the "
            "names of the columns above it; if these are the names, put a letter before the numbers"
        )


def refuse_bad_names(names: Sequence[str], source: str) -> None:
    """Refuse columns without a name, or of the same name."""
    if "" in names:
        raise DataError(f"{source}: column {names.index('') + 1} has no name")
    _refuse_repeated(names, source)


def _refuse_repeated(names: Sequence[str], source: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"{source}: two columns are named {quoted(name)}: rename one")

"""Data sets that are one table: a user's CSV or NPZ file, and the bundled 8x8 digits.

Rows in messages are counted from 1; a CSV file's header and its blank lines do not count.
"""

import csv
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from budgetreg.data.dataset import Dataset, required
from budgetreg.errors import ConfigError, DataError, nearest

if TYPE_CHECKING:
    import pandas as pd

_BUNDLED = Path(__file__).with_name("digits_3v5.csv")
_SCALES = ("max_abs", "none")
_MAX_ABS_NOTE = (
    "each attribute was divided by its largest absolute value over the whole file, which is outside the "
    "attribute budget (dataset.scale=none leaves the values as they are)"
)


@dataclass(frozen=True)
class Digits:
    """The threes (-1) and fives (+1) of the UCI digits: 64 pixels 0..16, scale 1/16, no official split."""

    name = "digits_3v5"

    def load(self) -> Dataset:
        """Read the bundled table."""
        table = np.loadtxt(_BUNDLED, delimiter=",", skiprows=1, dtype=np.uint8)
        y = np.where(table[:, -1] == 3, -1.0, 1.0)
        return Dataset(self.name, np.ascontiguousarray(table[:, :-1]), y, 1 / 16, None, True)


@dataclass(frozen=True)
class File:
    """A user's table.

    Parameters
    ----------
    path : str
        CSV with a header, or NPZ with arrays ``X`` of shape (n, d) and ``y`` of shape (n,).
    target : str or None
        Column (CSV; None: the last) or array (NPZ; None: ``y``) to predict.
    scale : {"max_abs", "none"}
        Whether each attribute is divided by its largest absolute value.
    stamp : tuple of int
        Time of the last change and size, so that a changed file counts as another one.
    """

    path: str
    target: str | None
    scale: str
    stamp: tuple[int, ...]

    def load(self) -> Dataset:
        """Read the file; there is no official split.

        A target with exactly two values becomes -1 and +1 in their sorted order.

        Raises
        ------
        DataError
            If the file is missing, or does not hold finite numbers and one target.
        """
        path = Path(self.path)
        try:
            X, column, name = (_read_npz if path.suffix.lower() == ".npz" else _read_csv)(path, self.target)
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from error
        y, two_valued, notes = _as_target(column, f"{path}: target {name!r}")
        if self.scale == "max_abs":
            largest = np.abs(X).max(axis=0)
            X = X / np.where(largest == 0, 1.0, largest)
            notes += (_MAX_ABS_NOTE,)
        return Dataset(path.stem, np.ascontiguousarray(X), y, 1.0, None, two_valued, notes)


def parse_digits(options: Mapping[str, Any]) -> Digits:
    """Return the bundled digits, which have no options."""
    return Digits()


def parse_file(options: Mapping[str, Any]) -> File:
    """Read ``dataset.path``, ``target`` and ``scale``.

    Raises
    ------
    ConfigError
        If the path is not set, the format is not supported or the scale is unknown.
    DataError
        If there is no such file.
    """
    path = Path(str(required(options, "path"))).expanduser()
    if path.suffix.lower() not in (".csv", ".npz"):
        raise ConfigError(f"dataset.path must end in .csv or .npz, not {path.name!r}")
    scale = required(options, "scale")
    if scale not in _SCALES:
        raise ConfigError(f"dataset.scale must be one of {', '.join(_SCALES)}, not {scale!r}")
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file (dataset.path)")
    try:
        status = path.stat()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror} (dataset.path)") from error
    target = options.get("target")
    return File(str(path), None if target is None else str(target), scale, (status.st_mtime_ns, status.st_size))


_Read = tuple[np.ndarray, "pd.Series[Any]", str]  # attributes (n, d), target (n,), its name


def _read_csv(path: Path, target: str | None) -> _Read:
    import pandas as pd  # here, because it is slow to import and other kinds of data do without

    header = _header(path)
    name = header[-1] if target is None else target
    if name not in header:
        raise DataError(f"{path}: no column {name!r}{nearest(name, header)}; columns: {_shown(header)}")
    try:
        with warnings.catch_warnings():
            # By default a surplus field silently makes the first one an index; index_col=False warns instead.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path, names=header, header=0, index_col=False, skipinitialspace=True, low_memory=False,
                encoding="utf-8-sig",
            )  # fmt: skip
    except pd.errors.ParserWarning as warning:
        raise DataError(f"{path}: rows have more fields than the header") from warning
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a CSV file: {_one_line(error)}") from error
    if frame.empty:
        raise DataError(f"{path} has a header but no rows")
    attributes = [column for column in header if column != name]
    X = frame[attributes].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    where = _first_not_finite(X)
    if where is not None:
        row, column = where
        cell = frame[attributes[column]].iloc[row]
        problem = "empty or NaN" if pd.isna(cell) else f"{str(cell)!r} is not a finite number"
        raise DataError(f"{path}: data row {row + 1}, column {attributes[column]!r}: {problem}")
    return X, frame[name], name


def _header(path: Path) -> list[str]:
    """Return the names of the columns, having checked that they are names."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header = [field.strip() for field in next(filter(None, csv.reader(file)), [])]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a CSV file: {error}") from error
    if not header:
        raise DataError(f"{path} is empty")
    if all(_is_number(field) for field in header):
        raise DataError(f"{path} has no header: its first row holds numbers only; the names of the columns go there")
    if len(header) < 3:
        raise DataError(
            f"{path} has {len(header)} column(s), separated by commas; two attributes and a target are needed"
        )
    for position, field in enumerate(header, start=1):
        if not field:
            raise DataError(f"{path}: column {position} has no name (an index that was written along? leave it out)")
        if header.index(field) != position - 1:
            raise DataError(f"{path}: two columns are named {field!r}")
    return header


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_npz(path: Path, target: str | None) -> _Read:
    import pandas as pd  # see _read_csv

    if not zipfile.is_zipfile(path):
        raise DataError(f"{path} is {'empty' if path.stat().st_size == 0 else 'not an NPZ file'}")
    name = "y" if target is None else target
    arrays = {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            for wanted in ("X", name):
                if wanted not in archive.files:
                    hint = nearest(wanted, archive.files)
                    raise DataError(f"{path}: no array {wanted!r}{hint}; arrays: {_shown(archive.files)}")
                arrays[wanted] = archive[wanted]
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {_one_line(error)}") from error
    X, y = arrays["X"], arrays[name]
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise DataError(f"{path}: X has shape {X.shape} and {name} {y.shape}; (n, d) and (n,) are needed")
    if len(X) == 0 or X.shape[1] < 2:
        raise DataError(f"{path}: X has shape {X.shape}; at least one row and two attributes are needed")
    if X.dtype.kind not in "buif" or y.dtype.kind not in "buifSU":
        raise DataError(f"{path}: X holds {X.dtype} and {name} {y.dtype}; numbers (or text in {name}) are needed")
    X = X.astype(np.float64)
    where = _first_not_finite(X)
    if where is not None:
        row, column = where
        raise DataError(f"{path}: row {row + 1}, column {column + 1} of X: {X[where]} is not a finite number")
    return X, pd.Series(y.astype(str) if y.dtype.kind == "S" else y), name


def _first_not_finite(X: np.ndarray) -> tuple[int, int] | None:
    rows = np.flatnonzero(~np.isfinite(X).all(axis=1))
    return (int(rows[0]), int(np.flatnonzero(~np.isfinite(X[rows[0]]))[0])) if rows.size else None


def _as_target(column: "pd.Series[Any]", where: str) -> tuple[np.ndarray, bool, tuple[str, ...]]:
    """Turn a column into targets: real numbers, or two values of any kind as -1 and +1 in sorted order."""
    empty = np.flatnonzero(column.isna())
    if empty.size:
        raise DataError(f"{where}: data row {empty[0] + 1}: empty or NaN")
    numeric = column.dtype.kind in "biuf"
    values = column.to_numpy(dtype=np.float64) if numeric else column.astype(str).to_numpy(dtype=object)
    distinct = np.unique(values).tolist()
    if not numeric and len(distinct) != 2:
        row = next((row for row, value in enumerate(values) if not _is_number(value)), 0)
        need = f"text needs exactly two values, not {len(distinct)}"
        raise DataError(f"{where}: data row {row + 1}: {values[row]!r} is not a number ({need})")
    if numeric and not np.isfinite(values).all():
        raise DataError(f"{where}: data row {np.flatnonzero(~np.isfinite(values))[0] + 1}: infinite")
    if len(distinct) != 2:
        return values, False, ()
    if distinct == [-1.0, 1.0]:
        return values, True, ()
    low, high = (f"{value:g}" if numeric else repr(value) for value in distinct)
    return np.where(values == distinct[1], 1.0, -1.0), True, (f"target: {low} -> -1, {high} -> +1",)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")


def _shown(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")

"""Targets of a table: real numbers, or two values of any kind as -1 and +1."""

from collections.abc import Callable
from typing import Any

import numpy as np

from budgetreg.data.dataset import LARGEST
from budgetreg.data.formats.chunks import has_decimal_comma, is_number
from budgetreg.errors import DataError


def check_size(largest: float, where: str) -> None:
    """Refuse a column whose largest absolute value, unless it is 0, is too large or too small to compute with."""
    if largest and not 1 / LARGEST <= largest <= LARGEST:
        raise DataError(
            f"{where}: its largest absolute value is {largest:.3g}, and only {1 / LARGEST:g} to {LARGEST:g} can be "
            "computed with: write it in another unit (multiply it by a power of ten)"
        )


def as_target(column: Any, where: str, place: Callable[[int], str]) -> tuple[np.ndarray, bool, tuple[str, ...]]:
    """Turn a column into targets: real numbers, or two values of any kind as -1 and +1 in sorted order.

    Parameters
    ----------
    column : pandas.Series of length n
        The column as it was read.
    where : str
        Beginning of the messages.
    place : callable
        Returns the place of a row, counted from 0, for messages.

    Returns
    -------
    y : ndarray of shape (n,), float64
        The targets.
    two_valued : bool
        Whether they are -1 and +1.
    notes : tuple of str
        Which values became -1 and +1.

    Raises
    ------
    DataError
        If a target is missing, infinite, too large or too small, or the column is text without exactly two values.
    """
    empty = np.flatnonzero(column.isna())
    if empty.size:
        raise DataError(f"{where}: {place(int(empty[0]))}: empty or NaN; every row needs a target")
    numeric = column.dtype.kind in "biuf"
    values = column.to_numpy(dtype=np.float64) if numeric else column.astype(str).to_numpy(dtype=object)
    distinct = np.unique(values).tolist()
    if not numeric and len(distinct) != 2:
        row = next((row for row, value in enumerate(values) if not is_number(value)), 0)
        need = f"is not a number (text needs exactly two values, not {len(distinct)})"
        if has_decimal_comma(values[row]):
            need = "has a decimal comma: write numbers with a point"
        raise DataError(f"{where}: {place(row)}: {values[row]!r} {need}")
    if numeric and not np.isfinite(values).all():
        raise DataError(
            f"{where}: {place(int(np.flatnonzero(~np.isfinite(values))[0]))}: infinite; targets must be finite"
        )
    if len(distinct) != 2:
        check_size(float(np.abs(values).max()), where)
        return np.ascontiguousarray(values), False, ()
    if distinct == [-1.0, 1.0]:
        return np.ascontiguousarray(values), True, ()
    low, high = (f"{value:g}" if numeric else repr(value) for value in distinct)
    return np.where(values == distinct[1], 1.0, -1.0), True, (f"target: {low} -> -1, {high} -> +1",)

"""Price lists: what each attribute costs, from a CSV file with the columns ``attribute`` and ``cost``.

An attribute is named as the data name it, or by its number, from 1. What is free has no place in a list: draws that
heed prices would go to it alone.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path

import numpy as np

from budgetreg.data.formats.delimited import records, separator_of
from budgetreg.data.formats.source import shown
from budgetreg.errors import DataError, nearest

BUNDLED, EQUAL = "bundled", "equal"
"""In place of a file: the list that comes with the data; a price of 1 for each attribute."""

UNIT = "cost units"
"""What prices are in where nobody says it."""

LEAST, MOST = 1e-30, 1e30
"""Prices of which bills can be added up and square roots taken without a thought."""

_COLUMNS = ("attribute", "cost")


@dataclass(frozen=True)
class Prices:
    """What each attribute costs.

    Attributes
    ----------
    names : tuple of str
        The d attributes, as the data name them, or their numbers from 1.
    costs : tuple of float
        Their prices, above 0.
    unit : str
        What these are in.
    """

    names: tuple[str, ...]
    costs: tuple[float, ...]
    unit: str = UNIT

    @property
    def row(self) -> float:
        """What a full row costs."""
        return fsum(self.costs)

    def of(self, reveals: np.ndarray) -> float:
        """Return what reveals cost, their numbers given by attribute, shape (d,); no order of adding up changes it."""
        return fsum(number * cost for number, cost in zip(reveals.tolist(), self.costs, strict=True))

    def digest(self) -> str:
        """Return a short digest of the prices, by which a changed list is recognised; the unit is but a word."""
        told = repr((self.names, self.costs))
        return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()


def equal_prices(names: Sequence[str], d: int, unit: str = UNIT) -> Prices:
    """Return a price of 1 for each of d attributes; the parameters are those of `read_prices`."""
    return Prices(_known(names, d), (1.0,) * d, unit)


def read_prices(path: Path, names: Sequence[str], d: int, unit: str = UNIT) -> Prices:
    """Read a price list.

    Parameters
    ----------
    path : Path
        The file: fields separated by commas, semicolons or tabs; other columns than ours are left alone.
    names : sequence of str
        What the attributes are called; none if they have but numbers.
    d : int
        How many there are.
    unit : str
        What prices are in.

    Raises
    ------
    DataError
        If the file cannot be read, lacks a column or an attribute, or has one that is not there, has one twice, or
        with a price that is none.
    """
    known = _known(names, d)
    try:
        rows = list(records(path, separator_of(path)))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error} (dataset.costs)") from error
    header = rows[0][1] if rows else []
    for column in _COLUMNS:
        if header.count(column) != 1:
            raise DataError(f"{path}: one column {column!r} is needed: a price list begins with {','.join(_COLUMNS)}")
    places = {name: at for at, name in enumerate(known)}
    costs: dict[int, float] = {}
    lines: dict[int, int] = {}
    for line, fields in rows[1:]:
        if len(fields) != len(header):
            raise DataError(f"{path}: line {line}: {len(fields)} fields where the header has {len(header)}")
        name, cost = (fields[header.index(column)].strip() for column in _COLUMNS)
        at = places.get(name, _number_of(name, d))
        if at is None:
            raise DataError(
                f"{path}: line {line}: the data have no attribute {name!r}{nearest(name, known)}; attributes: "
                f"{shown(list(known))}"
            )
        if at in costs:
            raise DataError(f"{path}: line {line}: attribute {name!r} has a price already, on line {lines[at]}")
        costs[at], lines[at] = _price(cost, f"{path}: line {line}: the cost of {name!r}"), line
    missing = [name for at, name in enumerate(known) if at not in costs]
    if missing:
        raise DataError(f"{path}: no cost of {shown(missing)}: each of the {d} attributes needs one")
    return Prices(known, tuple(costs[at] for at in range(d)), unit)


def _known(names: Sequence[str], d: int) -> tuple[str, ...]:
    return tuple(names) or tuple(str(number) for number in range(1, d + 1))


def _number_of(name: str, d: int) -> int | None:
    """Return which attribute a number means, from 0; None if it is none of theirs."""
    return int(name) - 1 if name.isascii() and name.isdigit() and 1 <= int(name) <= d else None


def _price(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise DataError(f"{what} is no number: {text!r}") from None
    if not LEAST <= value <= MOST:
        raise DataError(f"{what} must be above 0 (from {LEAST:g} to {MOST:g}), not {text}")
    return value

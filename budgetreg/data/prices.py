"""Price lists: what each attribute costs, from a CSV file with the columns ``attribute`` and ``cost``.

What is free has no place in a list: draws that heed prices would go to it alone.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path

import numpy as np

from budgetreg.data.attribute_lists import Form, entries, known_names, number
from budgetreg.errors import DataError

BUNDLED, EQUAL = "bundled", "equal"
"""In place of a file: the list that comes with the data; a price of 1 for each attribute."""

UNIT = "cost units"
"""What prices are in where nobody says it."""

LEAST, MOST = 1e-30, 1e30
"""Prices of which bills can be added up and square roots taken without a thought."""

_LIST = Form("dataset.costs", "a price list", "price", ("cost",))


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
    return Prices(known_names(names, d), (1.0,) * d, unit)


def read_prices(path: Path, names: Sequence[str], d: int, unit: str = UNIT) -> Prices:
    """Read a price list.

    Parameters
    ----------
    path : Path
        The file, see `budgetreg.data.attribute_lists.entries`.
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
    known = known_names(names, d)
    costs = {
        one.at: _price(one.texts[0], f"{one.place}: the cost of {one.name!r}") for one in entries(_LIST, path, known)
    }
    return Prices(known, tuple(costs[at] for at in range(d)), unit)


def _price(text: str, what: str) -> float:
    value = number(text, what)
    if not LEAST <= value <= MOST:
        raise DataError(f"{what} must be above 0 (from {LEAST:g} to {MOST:g}), not {text}")
    return value

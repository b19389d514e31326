"""Ranges of attributes, as a user simply knows them: a CSV file with the columns ``attribute``, ``low`` and ``high``.

They are the free alternative to a pilot: scale and zero of the attributes without a look at any of them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from budgetreg.data.attribute_lists import Entry, Form, entries, known_names, number
from budgetreg.data.dataset import Dataset
from budgetreg.data.prepared import LARGEST
from budgetreg.errors import DataError

_LIST = Form("dataset.ranges", "a list of ranges", "range", ("low", "high"))


@dataclass(frozen=True)
class Ranges:
    """Where the values of d attributes are said to lie; those beyond are values like any other.

    Attributes
    ----------
    low, high : tuple of float
        In units of the attributes as they are stored, ``low < high``.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def digest(self) -> str:
        """Return a short digest, by which a changed list is recognised."""
        return hashlib.blake2b(repr((self.low, self.high)).encode(), digest_size=8).hexdigest()


def read_ranges(path: Path, names: Sequence[str], d: int) -> Ranges:
    """Read a list of ranges.

    Parameters
    ----------
    path : Path
        The file, see `budgetreg.data.attribute_lists.entries`.
    names : sequence of str
        What the attributes are called; none if they have but numbers.
    d : int
        How many there are.

    Raises
    ------
    DataError
        If the file cannot be read, lacks a column or an attribute, or has one that is not there, has one twice, or
        with a range that is none.
    """
    found = {one.at: _range(one) for one in entries(_LIST, path, known_names(names, d))}
    low, high = zip(*(found[at] for at in range(d)), strict=True)
    return Ranges(low, high)


@lru_cache(maxsize=4)
def in_ranges(data: Dataset, ranges: Ranges) -> Dataset:
    """Return data, as they are stored in units of their own, counted from the middles of ranges in halves of them.

    A value v becomes ``(v - middle) / (half of the range)``, which is between -1 and 1 within the range. The ranges are
    part of what identifies the data; equal arguments give the same object, whose arrays repetitions share.
    """
    low, high = np.array(ranges.low), np.array(ranges.high)
    scale = 2 / (high - low)
    digest = f"{data.fingerprint()}-{ranges.digest()}"
    return replace(data, scale=scale, shift=(low / 2 + high / 2) * scale, digest=digest)


def _range(entry: Entry) -> tuple[float, float]:
    ends = []
    for text, column in zip(entry.texts, _LIST.columns, strict=True):
        what = f"{entry.place}: {column} of {entry.name!r}"
        ends.append(number(text, what))
        if not -LARGEST <= ends[-1] <= LARGEST:
            raise DataError(f"{what} must be from {-LARGEST:g} to {LARGEST:g}, not {text}")
    low, high = ends
    if not high - low >= 1 / LARGEST:
        raise DataError(f"{entry.place}: the range of {entry.name!r}: low must be below high, not {low:g} and {high:g}")
    return low, high

"""What a user knows of attributes: their prices (``dataset.costs``), ranges and scale (``dataset.ranges``, ``.scale``).

Prices and ranges are in CSV files. A line names its attribute as the data name it, or by its number from 1; in LIBSVM
files by its index. Prices are in the columns ``attribute`` and ``cost``, ranges in ``attribute``, ``low`` and
``high``. Columns that are left out count in the numbers, and their lines, if any, are ignored. Ranges give scale and
zero of the attributes without a pilot. They apply to any table that was loaded. The scale of a pilot, or of all that
was revealed, is known during a run only: such attributes stay as they are here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from math import fsum, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from budgetreg.common.errors import ConfigError, DataError, nearest, quoted
from budgetreg.common.files import at_home, regular
from budgetreg.config.options import NAME, NOTHING, Option, Options, Requirement, one_of
from budgetreg.data.dataset import LARGEST, Dataset, Groups, numbered, positions, short_digest
from budgetreg.data.tables import comma_fault, is_number, places_of, reading, shown
from budgetreg.data.text_files import records, separator_of

BUNDLED, EQUAL = "bundled", "equal"
"""Used instead of a file of prices: the list that comes with the data; a price of 1 for each attribute."""

UNIT = "cost units"
"""The default unit of prices."""

Dropped = Sequence[tuple[int, str]]
"""Columns of a table that are no attributes, see `Dataset`."""

PILOT, REVEALED, RANGES = "pilot", "revealed", "ranges"
_SCALES = ("max_abs", "none", PILOT, REVEALED, RANGES)
SCALING: Options = {
    "scale": Option(
        "the scale of the attributes", one_of(*_SCALES) | NOTHING, default="max_abs", null_for_own_data=REVEALED
    ),
    "ranges": Option("the list of ranges", NAME | NOTHING, default=None),
    "groups": Option("the list of groups", NAME | NOTHING, default=None),
}
"""A scale of null means that of the ranges if there are any; else the standard deviations of what was revealed for
learners of regressors, and the largest absolute values for others."""
MISSING_VALUES = Option(
    "the words that mean a missing value",
    Requirement(
        "a list of words, such as ['?','.','-999']",
        lambda value: isinstance(value, list) and all(type(word) in (str, int, float) for word in value),
        text=True,
    ),
    default=[],
)
LEFT_OUT: Options = {
    "drop": Option(
        "the columns to leave out",
        Requirement(
            "a list of names, or of numbers from 1, such as [id,date]",
            lambda value: isinstance(value, list) and all(type(word) in (str, int) for word in value),
            text=True,
        ),
        default=[],
    )
}
_MAX_ABS_NOTE = (
    "each attribute was divided by its largest absolute value over the whole table, which is outside the "
    "attribute budget (dataset.scale=none leaves the values as they are)"
)


class _Form(NamedTuple):
    """The required form of a list."""

    key: str
    """The key that names the file in a configuration."""
    title: str
    """What the list is called in messages; a study has no configuration."""
    entry: str
    """The name of an entry in messages."""
    columns: tuple[str, ...]
    """The columns besides ``attribute``; their values must increase from left to right."""
    least: float = 0.0
    """The smallest value beside 0; the largest is `LARGEST`."""
    optional: tuple[str, ...] = ()
    """A column that may be there, too."""


_PRICES = _Form("dataset.costs", "a price list", "price", ("cost",), 1 / LARGEST, optional=("group",))
_RANGES = _Form("dataset.ranges", "a list of ranges", "range", ("low", "high"), -LARGEST)
_GROUPS = _Form("dataset.groups", "a list of groups", "group", ("group",), optional=("cost",))
_LOOKED_AT = 10_000  # rows in which categories are looked for


@dataclass(frozen=True)
class Prices:
    """The price of each attribute.

    Attributes
    ----------
    names : tuple of str
        The d attributes, as the data name them, or their numbers from 1.
    costs : tuple of float
        Their prices, at least 0, and not all 0. Attributes of price 0 are seen for every example.
    unit : str
        The unit of the prices.
    """

    names: tuple[str, ...]
    costs: tuple[float, ...]
    unit: str = UNIT

    @property
    def row(self) -> float:
        """The price of a full row."""
        return fsum(self.costs)

    def of(self, reveals: np.ndarray) -> float:
        """Return the price of reveals, given their number for each attribute, shape (d,); exactly rounded."""
        return fsum(number * cost for number, cost in zip(reveals.tolist(), self.costs, strict=True))

    def digest(self) -> str:
        """Return a short digest of names and prices, which detects a changed list."""
        return short_digest((self.names, self.costs))


Ranges = tuple[tuple[float, ...], tuple[float, ...]]
"""The usual ranges of d attributes, from low to high, in units of the attributes as they are stored.

Values outside are allowed.
"""


def read_prices(
    path: Path | str,
    names: Sequence[str],
    d: int,
    unit: str = UNIT,
    dropped: Dropped = (),
    groups: Groups | None = None,
    first: int = 1,
) -> Prices:
    """Read a price list.

    Parameters
    ----------
    path : Path or str
        The file; `EQUAL` for a price of 1 for each attribute, or group.
    names : sequence of str
        The names of the attributes; empty if they have only numbers.
    d : int
        Number of attributes.
    unit : str
        The unit of the prices.
    dropped : sequence of (int, str)
        Columns of the data that are no attributes, see `Dataset`.
    groups : Groups, optional
        Attributes that are bought together, at one price, which any of their lines may state; the others may be empty.
    first : int
        The number of the first column, from which columns without names count.

    Raises
    ------
    DataError
        If the file cannot be read, lacks a column or an attribute, has an unknown or repeated attribute, two prices of
        a group, other groups, or a price that is not a number of at least 0; or if all prices are 0.
    """
    columns = _Columns.of(names, d, dropped, first)
    known = tuple(columns.names[at] for at in columns.attributes)
    heads = groups.heads if groups else tuple(range(d))
    if path == EQUAL:
        return Prices(known, tuple(float(head == at) for at, head in enumerate(heads)), unit)
    path = at_home(path)
    entries = _read(_PRICES, path, columns)
    listed = _listed(entries, columns)
    if listed and listed != groups:
        raise DataError(f"{path}: its groups are not those of the data; leave out the column group")
    several = {head for at, head in enumerate(heads) if head != at}
    stated: dict[int, tuple[float, int]] = {}  # prices and lines by head
    for head, name, entry in zip(heads, known, map(entries.get, columns.attributes), strict=True):
        if entry is None or (head in several and not entry.texts["cost"]):
            continue
        where = f"{path}: line {entry.line}: attribute {quoted(name)}"
        (cost,) = _values(_PRICES, [entry.texts["cost"]], where)
        other, line = stated.setdefault(head, (cost, entry.line))
        if other != cost:
            raise DataError(
                f"{where}: its group has the price {other:g} already, on line {line}: a group has one price"
            )
    missing = [name for head, name in zip(heads, known, strict=True) if head not in stated]
    if missing:
        raise _missing(_PRICES, path, missing, d)
    if not any(cost for cost, _ in stated.values()):
        raise DataError(f"{path}: every price is 0, so there is nothing to buy; give one price above 0")
    return Prices(known, tuple(stated[head][0] if head == at else 0.0 for at, head in enumerate(heads)), unit)


def priced(names: Sequence[str], costs: Sequence[float | None], groups: Groups | None) -> Prices:
    """Return the prices of attributes, given by value.

    Parameters
    ----------
    names : sequence of str
        The d attributes, for messages.
    costs : sequence of float or None
        What each costs; None where another attribute of its group states the price.
    groups : Groups or None
        As for `read_prices`.

    Raises
    ------
    ConfigError
        If a price is missing or impossible, a group has two prices, or all prices are 0.
    """
    heads = groups.heads if groups else tuple(range(len(names)))
    stated: dict[int, float] = {}
    for head, name, given in zip(heads, names, costs, strict=True):
        if given is None:
            continue
        cost = float(given)
        if not (1 / LARGEST <= cost <= LARGEST or cost == 0):
            raise ConfigError(
                f"costs: the price of attribute {quoted(name)} is {cost:g}: it must be 0, or from {1 / LARGEST:g} to "
                f"{LARGEST:g}"
            )
        if stated.setdefault(head, cost) != cost:
            raise ConfigError(f"costs: the group of {quoted(name)} has the price {stated[head]:g} already")
    missing = [quoted(name) for head, name in zip(heads, names, strict=True) if head not in stated]
    if missing:
        raise ConfigError(f"costs: no price for {shown(missing)}: each of the {len(names)} attributes needs one")
    if not any(stated.values()):
        raise ConfigError("costs: every price is 0, so there is nothing to buy; give one price above 0")
    return Prices(tuple(names), tuple(stated[head] if head == at else 0.0 for at, head in enumerate(heads)))


def read_groups(path: Path, names: Sequence[str], d: int, dropped: Dropped = (), first: int = 1) -> Groups | None:
    """Read a list of groups; attributes that are not in it are alone.

    Parameters
    ----------
    path, names, d, dropped, first
        As for `read_prices`.

    Returns
    -------
    Groups or None
        None if all attributes are alone.

    Raises
    ------
    DataError
        If the file cannot be read, lacks a column, has an unknown or repeated attribute, or an empty group.
    """
    columns = _Columns.of(names, d, dropped, first)
    entries = _read(_GROUPS, path, columns)
    for at, entry in entries.items():
        if not (entry.texts["group"] or "cost" in entry.texts):
            raise DataError(
                f"{path}: line {entry.line}: attribute {quoted(columns.names[at])}: the group has no name; leave out "
                "the line of an attribute that is alone"
            )
    return _listed(entries, columns)


def groups_of_prices(path: Path, names: Sequence[str], d: int, dropped: Dropped = (), first: int = 1) -> Groups | None:
    """Return the groups in a price list; None if it has none. Parameters and exceptions as for `read_groups`."""
    columns = _Columns.of(names, d, dropped, first)
    return _listed(_read(_PRICES, path, columns), columns)


def read_ranges(
    path: Path, names: Sequence[str], d: int, dropped: Dropped = (), first: int = 1, *, partial: bool = False
) -> Ranges:
    """Read a list of ranges.

    Parameters
    ----------
    path, names, d, dropped, first
        As for `read_prices`.
    partial : bool
        Whether attributes may have no range, which is NaN then.

    Raises
    ------
    DataError
        As `read_prices`, or if ``low`` is not below ``high``.
    """
    columns = _Columns.of(names, d, dropped, first)
    entries = _read(_RANGES, path, columns)
    ranges = {
        at: _values(
            _RANGES, [*entry.texts.values()], f"{path}: line {entry.line}: attribute {quoted(columns.names[at])}"
        )
        for at, entry in entries.items()
    }
    missing = [columns.names[at] for at in columns.attributes if at not in ranges]
    if missing and not partial:
        raise _missing(_RANGES, path, missing, d)
    low, high = zip(*(ranges.get(at, (nan, nan)) for at in columns.attributes), strict=True)
    return low, high


@dataclass(frozen=True)
class _Columns:
    """The columns of a table but the target: names, or numbers; which are attributes; positions by what a list says."""

    names: tuple[str, ...]
    attributes: tuple[int, ...]
    places: Mapping[str, int] = field(compare=False)

    @classmethod
    def of(cls, names: Sequence[str], d: int, dropped: Dropped, first: int) -> "_Columns":
        every = list(names) or list(map(str, range(first, first + d + len(dropped))))
        for at, name in dropped if names else ():
            every.insert(at, name)
        places = places_of(every, len(every)) if names else {number: at for at, number in enumerate(every)}
        return cls(tuple(every), tuple(positions(d, dropped)), places)


class _Entry(NamedTuple):
    """A line of a list: its number, and its texts by column; empty where it has no such optional column."""

    line: int
    texts: Mapping[str, str]


def _read(form: _Form, path: Path, known: _Columns) -> Mapping[int, _Entry]:
    """Return the lines of a list, by position of the column that they name."""
    with reading(path, form.key):
        status = regular(path)
        return _entries(form, path, (status.st_ctime_ns, status.st_size, status.st_ino), known)


@lru_cache(maxsize=4)
def _entries(form: _Form, path: Path, stamp: tuple[int, int, int], known: _Columns) -> Mapping[int, _Entry]:
    """Return the lines of a list, read once as long as its time of change, size and inode stay the same."""
    lines = records(path, separator_of(path))
    header = [field.strip() for field in next(lines, (1, []))[1]]
    columns = ("attribute", *form.columns)
    for column in (*columns, *form.optional):
        if header.count(column) != 1 and (column in columns or column in header):
            raise DataError(
                f"{path}: line 1 must name the column {column!r} once; {form.title} needs the columns "
                f"{','.join(columns)}"
            )
    unknown = [column for column in header if column not in (*columns, *form.optional)]
    if unknown:
        others = f"no others but {','.join(form.optional)}" if form.optional else "no others"
        raise DataError(
            f"{path}: line 1: no column {shown(list(map(quoted, unknown)))} is known; {form.title} has the columns "
            f"{','.join(columns)}, and {others}"
        )
    places = {column: header.index(column) for column in (*form.columns, *form.optional) if column in header}
    first = header.index("attribute")
    entries: dict[int, _Entry] = {}
    for line, fields in lines:
        where = f"{path}: line {line}"
        if len(fields) != len(header):
            raise DataError(f"{where}: {len(fields)} fields, but the header has {len(header)}")
        name = fields[first].strip()
        if name not in known.places:
            raise DataError(
                f"{where}: the data have no attribute {quoted(name)}{nearest(name, known.names)}; attributes: "
                f"{shown([known.names[at] for at in known.attributes])}"
            )
        at = known.places[name]
        if at in entries:
            raise DataError(f"{where}: attribute {quoted(name)} has a {form.entry} already, on line {entries[at].line}")
        entries[at] = _Entry(line, {column: fields[place].strip() for column, place in places.items()})
    return entries


def _listed(entries: Mapping[int, _Entry], columns: _Columns) -> Groups | None:
    """Return the groups that the lines of a list name."""
    texts = [entries[at].texts.get("group", "") if at in entries else "" for at in columns.attributes]
    return numbered(texts)


def _missing(form: _Form, path: Path, missing: list[str], d: int) -> DataError:
    return DataError(f"{path}: no {form.entry} for {shown(missing)}: each of the {d} attributes needs one")


def _values(form: _Form, texts: Sequence[str], where: str) -> tuple[float, ...]:
    """Return the numbers of a line."""
    for text, column in zip(texts, form.columns, strict=True):
        if not is_number(text):
            raise DataError(f"{where}: {column}: {quoted(text)} {comma_fault(text) or 'is not a number'}")
        if not form.least <= float(text) <= LARGEST and float(text) != 0:
            zero = "0 or " if form.least > 0 else ""
            raise DataError(f"{where}: {column} must be {zero}from {form.least:g} to {LARGEST:g}, not {float(text):g}")
    values = tuple(map(float, texts))
    for (low, below), (high, above) in pairwise(zip(form.columns, values, strict=True)):
        if not above - below >= 1 / LARGEST:
            raise DataError(f"{where}: {low} must be below {high}, not {below:g} and {above:g}")
    return values


def with_ranges(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section ``dataset`` whose scale is that of its ranges, if it has any.

    Raises
    ------
    ConfigError
        If there are ranges and another scale, or the scale of ranges without ranges.
    """
    ranges, scale = section.get("ranges"), section.get("scale")
    if ranges is None and scale == RANGES:
        raise ConfigError(f"dataset.scale={RANGES}: dataset.ranges=FILE is needed, with columns attribute,low,high")
    if ranges is None:
        return dict(section)
    if scale not in (None, RANGES):
        raise ConfigError(f"dataset.ranges sets the scale too: leave out dataset.scale={scale} or dataset.ranges")
    return {**section, "scale": RANGES}


def unit(scale: str, largest: np.ndarray) -> tuple[float | np.ndarray, tuple[str, ...]]:
    """Return the value of one stored unit of each attribute, and notes for the user.

    Parameters
    ----------
    scale : {"max_abs", "none", "pilot", "revealed", "ranges"}
        Whether each attribute is divided by its largest absolute value.
    largest : ndarray of shape (d,)
        These values; an attribute of zeros stays as it is.
    """
    if scale != "max_abs":
        return 1.0, ()
    return 1 / np.where(largest == 0, 1.0, np.maximum(largest, np.finfo(float).tiny)), (_MAX_ABS_NOTE,)


@lru_cache(maxsize=4)
def in_ranges(data: Dataset, ranges: Ranges) -> Dataset:
    """Return data with attributes centred on the middles of ranges, in units of half a range.

    A stored value v becomes ``(v - middle) / (half of the range)``, which is between -1 and 1 within the range. The
    fingerprint of the data includes the ranges. Equal arguments give the same object, whose arrays repetitions share.
    """
    low, high = np.array(ranges)
    scale = 2 / (high - low)
    digest = f"{data.fingerprint()}-{short_digest(ranges)}"
    return replace(data, scale=scale, shift=(low / 2 + high / 2) * scale, digest=digest)


@lru_cache(maxsize=4)
def with_proposed_groups(data: Dataset) -> Dataset:
    """Return data with a note on columns that look like the categories of one column: 0 or 1, and at most one 1."""
    stems: dict[str, list[int]] = {}
    for at, name in enumerate(data.names):
        stems.setdefault(name.rpartition("_")[0], []).append(at)
    X = data.X[:_LOOKED_AT] if isinstance(data.X, np.ndarray) else np.empty((0, 0))
    several = [stem for stem, columns in stems.items() if stem and columns[1:] and _exclude_each_other(X[:, columns])]
    if not several:
        return data
    them = shown([f"{stem}_*" for stem in several])
    note = (
        f"columns {them} look like the categories of one column, which are measured together: dataset.groups=FILE, a "
        "list with the columns attribute,group, buys them as one attribute"
    )
    return replace(data, notes=(*data.notes, note))


def _exclude_each_other(X: np.ndarray) -> bool:
    return bool(np.isin(X, (0, 1)).all() and (X.sum(axis=1) <= 1).all() and X.any(axis=0).all())


def in_groups(data: Dataset, groups: Groups) -> Dataset:
    """Return data whose attributes are bought in groups; a group of which a value is missing is missing as a whole.

    The fingerprint of the data includes the groups.
    """
    available = data.available
    if available is not None:
        available = available.copy()
        for members in groups.together():
            available[:, members] = available[:, members].all(axis=1, keepdims=True)
    digest = f"{data.fingerprint()}-{short_digest(groups.heads)}"
    return replace(data, groups=groups, available=available, digest=digest)

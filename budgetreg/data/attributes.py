"""What a user knows of attributes: their prices (``dataset.costs``), ranges and scale (``dataset.ranges``, ``.scale``).

Prices and ranges are in CSV files. A line names its attribute as the data name it, or by its number from 1; in LIBSVM
files by its index. Prices are in the columns ``attribute`` and ``cost``, ranges in ``attribute``, ``low`` and
``high``. Columns that are left out count in the numbers, and their lines, if any, are ignored. Ranges give scale and
zero of the attributes without a pilot. They apply to any table that was loaded. The scale of a pilot, or of all that
was revealed, is known during a run only: such attributes stay as they are here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import fsum, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.common.errors import ConfigError, DataError, nearest, quoted
from budgetreg.common.files import at_home, regular
from budgetreg.config.options import NAME, NOTHING, Option, Options, Requirement, one_of
from budgetreg.data.dataset import LARGEST, Dataset, Groups, numbered, positions, short_digest
from budgetreg.data.formats import csv_sheet
from budgetreg.data.tables import Sheet, fault_of, is_empty, number_of, reading, shown, text_of

BUNDLED, EQUAL = "bundled", "equal"
"""Used instead of a file of prices: the list that comes with the data; a price of 1 for each attribute."""

UNIT = "cost units"
"""The default unit of prices."""

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


def _words(examples: str, *kinds: type) -> Requirement:
    """Return the requirement of a list whose entries have one of some types."""

    def accepts(value: object) -> bool:
        return isinstance(value, list) and all(type(word) in kinds for word in value)

    return Requirement(f"a list of {examples}", accepts, text=True)


MISSING_VALUES = Option(
    "the words that mean a missing value", _words("words, such as ['?','.','-999']", str, int, float), default=[]
)
LEFT_OUT: Options = {
    "drop": Option(
        "the columns to leave out", _words("names, or of numbers from 1, such as [id,date]", str, int), default=[]
    )
}
_MAX_ABS_NOTE = (
    "each attribute was divided by its largest absolute value over the whole table, which is outside the "
    "attribute budget (dataset.scale=none leaves the values as they are)"
)
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


@dataclass(frozen=True)
class Columns:
    """The columns of a table but the target, as lists name them.

    Attributes
    ----------
    names : tuple of str
        Their names, or their numbers if they have none.
    attributes : tuple of int
        Positions of those that are attributes, ascending.
    places : mapping of str to int
        Positions by what a list may say: a name, or a number.
    """

    names: tuple[str, ...]
    attributes: tuple[int, ...]
    places: Mapping[str, int]

    @classmethod
    def of(cls, names: Sequence[str], d: int, dropped: Sequence[tuple[int, str]] = (), first: int = 1) -> "Columns":
        """Return the columns of a table with d attributes.

        Parameters
        ----------
        names : sequence of str
            The names of the attributes; empty if they have only numbers.
        d : int
            Number of attributes.
        dropped : sequence of (int, str)
            Columns that are no attributes, see `Dataset`.
        first : int
            The number of the first column.
        """
        numbers = list(map(str, range(first, first + d + len(dropped))))
        every = list(names) or numbers
        for at, name in dropped if names else ():
            every.insert(at, name)
        places = {word: at for words in (numbers, every) for at, word in enumerate(words)}
        return cls(tuple(every), tuple(positions(d, dropped)), places)

    @property
    def known(self) -> tuple[str, ...]:
        """The names of the attributes, or their numbers."""
        return tuple(self.names[at] for at in self.attributes)


def read_list(path: Path | str, key: str) -> Sheet:
    """Return a list of attributes in a CSV file, which is read again only if the file changes.

    Raises
    ------
    DataError
        If the file cannot be read, or is no table; the message names the key that the file is from.
    """
    path = at_home(path)
    with reading(path, key):
        status = regular(path)
        return _sheet(path, (status.st_ctime_ns, status.st_size, status.st_ino))


Kind = tuple[str, tuple[str, ...], tuple[str, ...]]
"""What a list is called, which columns it has, and which it may have."""

PRICE_LIST: Kind = "a price list", ("cost",), ("group",)
GROUP_LIST: Kind = "a list of groups", ("group",), ("cost",)
_sheet = lru_cache(maxsize=4)(lambda path, stamp: csv_sheet(path))


def _rows_of(
    sheet: Sheet, columns: Columns, title: str, needed: Sequence[str], optional: Sequence[str] = ()
) -> list[int | None]:
    """Return the row of a list that names each attribute, or None; the list must have the columns that are needed.

    Raises
    ------
    DataError
        If the list lacks a column, has an unknown one, or an unknown or repeated attribute.
    """
    needed = ("attribute", *needed)
    for column in needed:
        if column not in sheet.names:
            raise DataError(
                f"{sheet.source}{sheet.head} must name the column {column!r} once; {title} needs the columns "
                f"{','.join(needed)}"
            )
    unknown = [column for column in sheet.names if column not in (*needed, *optional)]
    if unknown:
        others = f"no others but {','.join(optional)}" if optional else "no others"
        raise DataError(
            f"{sheet.source}{sheet.head}: no column {shown(list(map(quoted, unknown)))} is known; {title} has the "
            f"columns {','.join(needed)}, and {others}"
        )
    rows: dict[int, int] = {}
    for row, cell in enumerate(sheet.columns["attribute"]):
        where, name = f"{sheet.source}: {sheet.place(row)}", text_of(cell)
        if name not in columns.places:
            raise DataError(
                f"{where}: the data have no attribute {quoted(name)}{nearest(name, columns.names)}; attributes: "
                f"{shown(columns.known)}"
            )
        at = columns.places[name]
        if at in rows:
            raise DataError(f"{where}: attribute {quoted(name)} is there already: {sheet.place(rows[at])}")
        rows[at] = row
    return [rows.get(at) for at in columns.attributes]


def _numbers(sheet: Sheet, column: str, rows: Sequence[int | None]) -> list[float]:
    """Return the numbers in a column, NaN where there is no row."""
    cells = sheet.columns[column]
    for row in rows:
        if row is not None and (fault := fault_of(cells[row])):
            raise DataError(f"{sheet.where(row, column)}: {fault}")
    return [nan if row is None else number_of(cells[row]) or 0.0 for row in rows]


def groups_in(sheet: Sheet, columns: Columns, kind: Kind = GROUP_LIST) -> Groups | None:
    """Return the groups in a list of groups or of prices; attributes without a group are alone; None if all are.

    Raises
    ------
    DataError
        If the list lacks a column, has an unknown one, or an unknown or repeated attribute.
    """
    rows, cells = _rows_of(sheet, columns, *kind), sheet.columns.get("group", ())
    return numbered(["" if row is None or not cells else text_of(cells[row]) for row in rows])


def prices_in(sheet: Sheet, columns: Columns, groups: Groups | None, unit: str = UNIT) -> Prices:
    """Return the prices in a list.

    Parameters
    ----------
    sheet : Sheet
        The list.
    columns : Columns
        The columns of the data.
    groups : Groups or None
        Attributes that are bought together, at one price, which any of their lines may state; the others may be empty.
    unit : str
        The unit of the prices.

    Raises
    ------
    DataError
        If the list lacks a column or an attribute, has an unknown or repeated attribute, two prices of a group, other
        groups, or a price that is not a number of at least 0; or if all prices are 0.
    """
    rows = _rows_of(sheet, columns, *PRICE_LIST)
    if groups_in(sheet, columns, PRICE_LIST) not in (None, groups):
        raise DataError(f"{sheet.source}: its groups are not those of the data; leave out the column group")
    stated = [None if row is None or is_empty(sheet.columns["cost"][row]) else row for row in rows]
    costs = [None if isnan(cost) else cost for cost in _numbers(sheet, "cost", stated)]
    try:
        return priced(columns.known, costs, groups, unit)
    except ConfigError as error:
        raise DataError(f"{sheet.source}: {str(error).removeprefix('costs: ')}") from error


def priced(
    names: Sequence[str], costs: Sequence[float | None], groups: Groups | None = None, unit: str = UNIT
) -> Prices:
    """Return the prices of attributes, given by value.

    Parameters
    ----------
    names : sequence of str
        The d attributes, for messages.
    costs : sequence of float or None
        What each costs; None where another attribute of its group states the price.
    groups : Groups or None
        Attributes that are bought together, at one price.
    unit : str
        The unit of the prices.

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
            raise ConfigError(
                f"costs: the group of {quoted(name)} has the price {stated[head]:g} already, and {cost:g} here: a "
                "group has one price, and the cells of its other attributes may be empty"
            )
    missing = [quoted(name) for head, name in zip(heads, names, strict=True) if head not in stated]
    if missing:
        raise ConfigError(f"costs: no price for {shown(missing)}: each of the {len(names)} attributes needs one")
    if not any(stated.values()):
        raise ConfigError("costs: every price is 0, so there is nothing to buy; give one price above 0")
    return Prices(tuple(names), tuple(stated[head] if head == at else 0.0 for at, head in enumerate(heads)), unit)


def ranges_in(sheet: Sheet, columns: Columns, *, partial: bool = False) -> Ranges:
    """Return the ranges in a list; if it may be partial, attributes without a range have NaN.

    Raises
    ------
    DataError
        If the list lacks a column, has an unknown one, an unknown or repeated attribute or no number, or ``low`` is
        not below ``high``.
    """
    rows = _rows_of(sheet, columns, "a list of ranges", ("low", "high"))
    missing = [name for name, row in zip(columns.known, rows, strict=True) if row is None]
    if missing and not partial:
        raise DataError(f"{sheet.source}: no range for {shown(missing)}: each of the {len(rows)} attributes needs one")
    low, high = _numbers(sheet, "low", rows), _numbers(sheet, "high", rows)
    for row, below, above in zip(rows, low, high, strict=True):
        if row is not None and not above - below >= 1 / LARGEST:
            raise DataError(f"{sheet.source}: {sheet.place(row)}: low must be below high, not {below:g} and {above:g}")
    return tuple(low), tuple(high)


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
        for head in np.flatnonzero(np.bincount(groups.head_of) > 1):
            members = groups.head_of == head
            available[:, members] = available[:, members].all(axis=1, keepdims=True)
    digest = f"{data.fingerprint()}-{short_digest(groups.heads)}"
    return replace(data, groups=groups, available=available, digest=digest)


_grouped = lru_cache(maxsize=4)(in_groups)
"""Equal arguments give the same object, whose arrays repetitions share."""


def with_lists(data: Dataset, options: Mapping[str, Any], costs: str | Prices | None, *, propose: bool) -> Dataset:
    """Return data with the groups and the ranges that lists of the user state.

    Parameters
    ----------
    data : Dataset
        What was read.
    options : mapping of str to Any
        Options of the kind of data; ``groups``, ``ranges`` and ``scale`` count.
    costs : str or Prices or None
        The price list, which may have groups, too.
    propose : bool
        Whether a note proposes groups where there are none.

    Raises
    ------
    ConfigError
        If both the list of groups and the price list have groups, and they differ.
    DataError
        If a list cannot be used.
    """
    groups = _listed_groups(data, options.get("groups"), costs)
    if groups is not None:
        data = _grouped(data, groups)
    elif propose:
        data = with_proposed_groups(data)
    if options.get("scale") != RANGES:
        return data
    return in_ranges(data, ranges_in(read_list(options["ranges"], "dataset.ranges"), _columns(data)))


def _listed_groups(data: Dataset, own: str | None, costs: str | Prices | None) -> Groups | None:
    """Return the groups in a list of groups or in the price list; None if there are none."""
    columns = _columns(data)
    groups = groups_in(read_list(own, "dataset.groups"), columns) if own else None
    if not isinstance(costs, str) or costs in (BUNDLED, EQUAL) or (own and groups is None):
        return groups
    listed = groups_in(read_list(costs, "dataset.costs"), columns, PRICE_LIST)
    if listed and groups and listed != groups:
        raise ConfigError(
            f"dataset.groups={own}: {costs} has groups already, in its column group; leave out one of them"
        )
    return listed or groups


def listed_prices(data: Dataset, costs: Path | str, unit: str) -> Prices:
    """Return the prices in a list, or prices of 1 if it is `EQUAL`. Exceptions as for `prices_in`."""
    columns = _columns(data)
    if costs == EQUAL:
        return priced(columns.known, [1.0] * len(columns.known), data.groups, unit)
    return prices_in(read_list(costs, "dataset.costs"), columns, data.groups, unit)


def _columns(data: Dataset) -> Columns:
    """Return the columns of a data set, as lists name them."""
    return Columns.of(data.names, data.X.shape[1], data.dropped, 1 if data.first is None else data.first)

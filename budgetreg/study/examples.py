"""What callers hand to a study: tables of examples, targets, and what can be bought; checked cell by cell."""

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from budgetreg.common.errors import ConfigError, DataError, nearest, quoted
from budgetreg.common.files import at_home
from budgetreg.common.notices import Notice, plural
from budgetreg.data.attributes import UNIT, Columns, ranges_in
from budgetreg.data.file import read_sheet
from budgetreg.data.tables import Sheet, comma_fault, fault_of, is_empty, number_of, sheet_of, shown, text_of

if TYPE_CHECKING:
    import pandas as pd

ID, TARGET = "example", "target"
"""The columns of names and of targets, unless others are named. Files of orders always have the names in `ID`."""

_FAR = 1.0
"""Widths of an attribute's range by which a value may lie outside of it."""

Target = float | str
"""A number, or one of two labels."""


@dataclass(frozen=True)
class Examples:
    """Rows of a table of examples.

    Attributes
    ----------
    sheet : Sheet
        The table, for messages.
    id, target : str
        Columns of the names and of the targets, which need not be there.
    names : list of str
        Distinct names.
    targets : list of float, str or None
        A number or a label each; None where it is not known yet.
    values : dict of str to list
        By attribute, a number for each row; None where it is not known.
    """

    sheet: Sheet
    id: str
    target: str
    names: list[str]
    targets: list[Target | None]
    values: dict[str, list[float | None]]


def examples_of(
    sheet: Sheet,
    target: str,
    id: str = "",
    attributes: Collection[str] | None = None,
    *,
    droppable: bool = True,
) -> Examples:
    """Return the examples in a table, with all cells checked.

    Parameters
    ----------
    sheet : Sheet
        The table.
    target : str
        Column of the targets, which need not be there.
    id : str
        Column of the names; if it is empty and there is no column `ID`, rows are numbered from 1.
    attributes : collection of str, optional
        The attributes that there may be; by default, all other columns are attributes.
    droppable : bool
        Whether the user can leave out columns, for messages.

    Raises
    ------
    DataError
        If a column is missing or unknown, attributes are not numbers, or names are missing or repeated.
    """
    if id:
        sheet.column(id, "id names the column of the examples' names")
    names = list(_rows(sheet, id or ID)) if id or ID in sheet.columns else [str(row + 1) for row in range(sheet.n)]
    targets: list[Target | None] = [None] * sheet.n
    if target in sheet.columns:
        targets = [_target(cell) for cell in sheet.columns[target]]
    columns = [name for name in sheet.names if name not in {id or ID, target}]
    unknown = [name for name in columns if attributes is not None and name not in attributes]
    refuse_unknown(sheet, unknown, attributes or ())
    values = {name: list(map(number_of, sheet.columns[name])) for name in columns}
    _refuse_text(sheet, values, droppable, may_name=droppable and not id and attributes is None)
    for name, numbers in values.items():
        for row, number in enumerate(numbers):
            if number is not None and (fault := fault_of(number)):
                raise DataError(f"{sheet.where(row, name)}: {fault}")
    return Examples(sheet, id or ID, target, names, targets, values)


def _without(columns: Sequence[str]) -> str:
    """Return what to type in a shell to leave out columns; names with commas are in quotes."""
    words = [f'"{name}"' if "," in name else name for name in columns]
    key = f"drop=[{','.join(words)}]"
    return f"'{key}'" if " " in key or '"' in key else key


def refuse_unknown(sheet: Sheet, columns: Sequence[str], attributes: Collection[str]) -> None:
    """Refuse columns that are no attributes of a study, if there are any."""
    if columns:
        raise DataError(
            f"{sheet.source}: line 1: the study has no attribute {shown(list(map(quoted, columns)))}"
            f"{nearest(columns[0], attributes)}: leave it out with {_without(columns)}"
        )


def refuse_far(where: str, value: float, low: float | None, high: float | None) -> None:
    """Refuse a value that is far outside the range of its attribute; None or NaN if that is not known."""
    if low is None or high is None:
        return
    margin = _FAR * (high - low)
    if value < low - margin or value > high + margin:
        raise DataError(
            f"{where}: {value:g} is far outside the range of the attribute, {low:g} to {high:g}: is the unit right?"
        )


def by_number(names: Iterable[str]) -> dict[str, str]:
    """Return names that are whole numbers, by these numbers without leading zeros."""
    return {name.lstrip("0"): name for name in names if name.isdecimal()}


def lost_zeros(name: str, numbers: Mapping[str, str]) -> str:
    """Return why a name is unknown if it lacks leading zeros of one in `by_number`, or has more; else nothing."""
    if not name.isdecimal() or name.lstrip("0") not in numbers:
        return ""
    return (
        f", but {quoted(numbers[name.lstrip('0')])}: spreadsheets, and pandas without dtype=str, read such names as "
        "numbers, and drop leading zeros: write the names as the study has them"
    )


def attributes_of(
    examples: Examples,
    attributes: Sequence[str],
    costs: Mapping[str, float] | str | Path | None,
    groups: Mapping[str, str] | None,
    ranges: str | Path | None,
    unit: str | None,
    drop: Sequence[str],
) -> tuple[list[tuple[Any, ...]], str]:
    """Return what can be bought: the columns of the examples, `attributes`, and what else the price list names.

    Parameters
    ----------
    examples : Examples
        The examples with which a study begins.
    attributes, costs, groups, ranges, unit, drop
        As for `budgetreg.Study.create`.

    Returns
    -------
    attributes : list of tuple
        Number, name, cost, head, and the ends of the usual range, of each.
    unit : str
        The unit of the prices.

    Raises
    ------
    ConfigError
        If there are fewer than two attributes, one is named like a column of names or targets, or groups are in two
        places.
    DataError
        If a list cannot be used.
    """
    names = _names_of("attributes", attributes)
    known = dict.fromkeys([*examples.values, *names])
    others = list(dict.fromkeys([examples.id, examples.target, *drop]))
    sheet = price_list(dict.fromkeys(known, 1.0) if costs is None else costs, groups, known)
    # A price list may have lines for other columns of the table, as it is written once for all of them.
    _refuse_other_roles(examples, names if isinstance(costs, str | Path) else [*names, *sheet.columns["attribute"]])
    heads, prices = priced(sheet, others, new=known)
    d = len(heads)
    if d < 2:
        raise ConfigError(
            f"{examples.sheet.source} has {d} attribute(s), but two are needed: list attributes without known values "
            "in costs=FILE"
        )
    low: Sequence[float | None] = [None] * d
    high = low
    if ranges is not None:
        columns = Columns.of([*heads], d, [(d + at, name) for at, name in enumerate(others)])
        low, high = ranges_in(read_sheet(at_home(ranges), "ranges"), columns, partial=True)
    rows = zip(rows_of(heads, prices), low, high, strict=True)
    return [(*row, *usual) for row, *usual in rows], text_of(unit) or ("attributes" if costs is None else UNIT)


def rows_of(heads: Mapping[str, int], prices: Mapping[int, float]) -> list[tuple[int, str, float, int]]:
    """Return number, name, cost and head of attributes; a group costs its price at its head."""
    return [(at, name, prices.get(at, 0.0), head) for at, (name, head) in enumerate(heads.items())]


def sheet_from(table: "pd.DataFrame | str | Path", what: str, key: str = "") -> Sheet:
    """Return a table, or the one in a file that a key names.

    Raises
    ------
    ConfigError
        If it is neither.
    DataError
        If the file cannot be read.
    """
    if isinstance(table, str | Path):
        return read_sheet(at_home(table), key)
    if not hasattr(table, "columns"):
        raise ConfigError(f"{what}: must be a path or a pandas.DataFrame; got a {type(table).__name__}")
    return sheet_of(table, what)


def price_list(
    costs: Mapping[str, float] | str | Path, groups: Mapping[str, str] | None = None, known: Collection[str] = ()
) -> Sheet:
    """Return a price list, or prices and groups by name, as a table.

    Raises
    ------
    ConfigError
        If names are empty or repeated, a group is of an attribute that has no price and is not `known`, or groups are
        in two places.
    DataError
        If the file cannot be read.
    """
    if isinstance(costs, str | Path):
        if groups:
            raise ConfigError("groups: the price list is a file: write the groups into its column group")
        return read_sheet(at_home(costs), "costs")
    prices, together = _by_name("costs", costs), _by_name("groups", groups or {})
    for name in together:
        if name not in prices and name not in known:
            raise ConfigError(f"groups: there is no attribute {quoted(name)}{nearest(name, [*prices, *known])}")
    names = list(dict.fromkeys([*prices, *together]))
    columns: dict[str, list[Any]] = {
        "attribute": names,
        "cost": list(map(prices.get, names)),
        "group": list(map(together.get, names)),
    }
    return Sheet("costs", tuple(columns), columns, lambda row: f"entry {row + 1}")


def priced(
    sheet: Sheet,
    others: Collection[str],
    heads: Mapping[str, int] | None = None,
    old: Mapping[int, float] | None = None,
    new: Collection[str] = (),
) -> tuple[dict[str, int], dict[int, float]]:
    """Return the heads of all attributes by name, and the prices in a price list by head.

    Parameters
    ----------
    sheet : Sheet
        The price list, with the columns attribute, cost and perhaps group.
    others : collection of str
        Columns of tables that are no attributes; their lines are not read.
    heads : mapping of str to int, optional
        The attributes of a study by name, in their order: the first one of those that are bought together, which stay
        as they are. What else the list names is a new attribute.
    old : mapping of int to float, optional
        The prices of these attributes by number.
    new : collection of str, optional
        Further attributes that need a price.

    Raises
    ------
    DataError
        If the list cannot be used, or a group would change.
    """
    known, old, need = heads or {}, old or {}, "a price list has the columns attribute,cost"
    sheet.column("attribute", need)
    costs, names = sheet.column("cost", need), dict.fromkeys([*known, *new])
    if unknown := [quoted(name) for name in sheet.names if name not in ("attribute", "cost", "group")]:
        raise DataError(f"{sheet.source}: line 1: no column {shown(unknown)} is known; {need}, and no others but group")
    rows = {name: row for name, row in _rows(sheet, "attribute").items() if name not in others}
    unlisted = [name for name in names if name not in rows]
    for name, row in rows.items():
        if near := name not in names and nearest(name, unlisted):
            raise DataError(
                f"{_entry(sheet, row)} is no attribute of the study{near}; if it is new, list the price of the other, "
                "too"
            )
    every = dict(known)
    groups: dict[str, int] = {}
    prices: dict[int, float] = {}
    for at, name in enumerate(dict.fromkeys([*names, *rows])):
        head = every.setdefault(name, at)
        if name not in rows:
            continue
        row = rows[name]
        group = text_of(sheet.columns["group"][row]) if "group" in sheet.names else ""
        if group and groups.setdefault(group, head) != head:
            head = groups[group]
            if name in known or head in old:
                raise DataError(
                    f"{_entry(sheet, row)}: its group {quoted(group)} would change, but groups of a study stay as they "
                    "are"
                )
        every[name] = head
        if is_empty(costs[row]):
            continue
        cost = number_of(costs[row]) or 0.0
        if (fault := fault_of(costs[row])) or cost < 0:
            raise DataError(f"{sheet.where(row, 'cost')}: {fault or f'{cost:g} is below 0'}")
        if prices.setdefault(head, cost) != cost:
            raise DataError(
                f"{_entry(sheet, row)} is in a group with the price {prices[head]:g}: a group has one price"
            )
    for name, head in every.items():
        if name not in known and head not in prices:
            raise DataError(f"{sheet.source}: no price for {quoted(name)}: each new attribute needs one")
    several = Counter(every.values())
    alone = [quoted(list(every)[head]) for head in groups.values() if known and several[head] == 1]
    if alone:
        warnings.warn(
            f"{sheet.source}: no other attribute of the group is in the list, and groups of a study stay as they are: "
            f"bought alone: {shown(alone)}",
            Notice,
            stacklevel=4,
        )
    if every and not any({**old, **prices}.values()):
        raise DataError(f"{sheet.source}: every price would be 0, so there would be nothing to buy")
    return every, prices


def _entry(sheet: Sheet, row: int) -> str:
    """Return how messages name a line of a price list."""
    return f"{sheet.where(row, 'attribute')}: {quoted(sheet.name_at(row, 'attribute'))}"


def examples_sheet(examples: "pd.DataFrame | Sequence[object] | str | Path", id: str, drop: Collection[str]) -> Sheet:
    """Return a table of examples without some columns; the index of a frame has their names, unless a column has."""
    import pandas as pd  # here, as it is slow to load

    column = id or ID
    if not isinstance(examples, str | Path | pd.DataFrame):
        return Sheet("the examples", (column,), {column: list(examples)}, lambda row: f"entry {row + 1}").without(drop)
    sheet = sheet_from(examples, "the examples", "table").without(drop)
    if column in sheet.columns or not isinstance(examples, pd.DataFrame):
        return sheet
    return Sheet(sheet.source, (column, *sheet.names), {column: list(examples.index), **sheet.columns}, sheet.place)


def with_targets(
    sheet: Sheet, targets: "Mapping[object, object] | Sequence[object] | str | None", id: str
) -> tuple[Sheet, str]:
    """Return a table with a column of targets, if there are any yet, and its name."""
    if targets is not None and not isinstance(targets, str):
        return with_column(sheet, TARGET, targets, id), TARGET
    targets = text_of(targets)
    if targets and nearest(targets, sheet.names) and targets not in sheet.columns:
        sheet.column(targets, "target names the column to predict")  # a mistyped one would be an attribute
    return sheet, targets or TARGET


def with_column(sheet: Sheet, column: str, targets: "Mapping[object, object] | Sequence[object]", id: str) -> Sheet:
    """Return a table with one more column: of targets by name, or in the order of the examples."""
    if column in sheet.columns:
        raise ConfigError(f"targets: the table has a column {column!r} already; name it instead: targets={column!r}")
    import pandas as pd  # here, as it is slow to load

    if isinstance(targets, Mapping | pd.Series):
        by_name = {text_of(name): target for name, target in targets.items()}
        names = dict.fromkeys(map(text_of, sheet.columns[id]))
        unknown = [name for name in by_name if name not in names]
        # The index of a series that merely counts its rows names nothing.
        index: Any = getattr(targets, "index", None)
        if unknown and not (index is not None and index.equals(pd.RangeIndex(sheet.n))):
            raise ConfigError(f"targets: there is no example {quoted(unknown[0])}{nearest(unknown[0], names)}")
        in_order = [name for name in names if name in by_name] == list(by_name)
        if not (unknown or in_order) and isinstance(index, pd.RangeIndex):
            raise ConfigError(
                "targets: the index of the series counts its rows, and the names of the examples are the same numbers "
                "in another order: give a list in the order of the examples, or a mapping of their names to targets"
            )
        if not unknown:
            targets = [by_name.get(text_of(name)) for name in sheet.columns[id]]
    cells = list(targets)
    if len(cells) != sheet.n:
        raise ConfigError(f"targets: {len(cells)} for {plural(sheet.n, 'example')}")
    return Sheet(sheet.source, (*sheet.names, column), {**sheet.columns, column: cells}, sheet.place)


def new_examples(
    examples: "pd.DataFrame | np.ndarray | str | Path", attributes: Sequence[str], id: str, words: Sequence[str]
) -> tuple[list[str], np.ndarray]:
    """Return the names of other examples, and their values, shape (n, d), NaN where nothing is known.

    Parameters
    ----------
    examples : DataFrame, ndarray, str or Path
        A table, or the path of one, with some of the attributes and perhaps names; other columns may hold anything. Or
        an array (n, d). Without a column of names, the index of a frame has them, unless it merely counts the rows;
        then names are 1, 2, and so on.
    attributes : sequence of str
        The attributes of the study.
    id : str
        Its column of names.
    words : sequence of str
        What means a missing value.

    Raises
    ------
    DataError
        If the table cannot be read, has none of the attributes, or holds something other than numbers.
    """
    import pandas as pd  # here, as it is slow to load

    d = len(attributes)
    if isinstance(examples, np.ndarray):
        if examples.ndim != 2 or examples.shape[1] != d:
            raise DataError(f"the examples have shape {examples.shape}, and {d} columns are needed, for the attributes")
        examples = pd.DataFrame(examples, columns=list(attributes))
    sheet = sheet_from(examples, "the examples")
    known = [name for name in attributes if name in sheet.columns]
    if not known:
        raise DataError(
            f"{sheet.source}: line 1: it has none of the attributes {shown(list(attributes))}; columns: "
            f"{shown(list(sheet.names))}"
        )
    column = next((name for name in (id, ID) if name in sheet.columns and name not in known), "")
    lacking = [name for name in attributes if name not in known]
    for name in sheet.names:
        if name not in (column, *known) and (near := nearest(name, lacking)):
            warnings.warn(f"{sheet.source}: its column {quoted(name)} is not used{near}", Notice, stacklevel=3)
    if column:
        id, names = column, sheet.columns[column]
    elif isinstance(examples, pd.DataFrame) and not examples.index.equals(pd.RangeIndex(sheet.n)):
        names = list(examples.index)
    else:
        names = range(1, sheet.n + 1)
    columns = {id: names, **{name: sheet.columns[name] for name in known}}
    known_sheet = Sheet(sheet.source, tuple(columns), columns, sheet.place).emptied(words, {id})
    rows = examples_of(known_sheet, "", id, droppable=False)
    unknown = [None] * sheet.n
    values = [rows.values.get(name, unknown) for name in attributes]
    return rows.names, np.array(values, dtype=float).T.copy()  # where None becomes NaN


def check_targets(examples: Examples, known: Collection[Target] = ()) -> None:
    """Refuse targets that are neither all numbers nor all of two labels, with those that stay known.

    Raises
    ------
    DataError
    """
    labels = {target for target in known if isinstance(target, str)}
    numeric = any(not isinstance(target, str) for target in known)
    for row, target in enumerate(examples.targets):
        if target is None:
            continue
        if isinstance(target, str):
            labels.add(target)
            shown_, others, fault = quoted(target), "numbers", fault_of(target) if comma_fault(target) else ""
        else:
            numeric, shown_, others, fault = True, f"{target:g}", "labels", fault_of(target)
        where, rule = examples.sheet.where(row, examples.target), "targets are all numbers, or text with two labels"
        if numeric and labels:
            raise DataError(f"{where}: target {shown_}: the others are {others}; {rule}")
        if len(labels) > 2:
            raise DataError(f"{where}: target {shown_}: there would be {len(labels)} labels; {rule}")
        if fault:
            raise DataError(f"{where}: {fault}")
    if len(labels) == 1 and examples.target in examples.sheet.columns:
        _refuse_missing_label(examples, *labels)


def _by_name(key: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping or a series with the names of its attributes as files have them.

    Raises
    ------
    ConfigError
        If it is neither, or as `_names_of` does.
    """
    if not hasattr(given, "items"):
        kind = type(given).__name__
        raise ConfigError(f"{key}: a mapping of attributes is needed, such as {{'age': ...}}, not a {kind}")
    return dict(zip(_names_of(key, given.keys()), (value for _, value in given.items()), strict=True))


def texts_of(given: object) -> list[str]:
    """Return several names, or a single one, as files have them."""
    return list(map(text_of, given if isinstance(given, Iterable) and not isinstance(given, str) else [given]))


def _names_of(key: str, given: Iterable[object]) -> list[str]:
    """Return names as files have them, without blanks around them.

    Raises
    ------
    ConfigError
        If one is empty, or there twice.
    """
    names = list(map(text_of, given))
    for name, times in Counter(names).items():
        if not name:
            raise ConfigError(f"{key}: entry {names.index('') + 1} has no name")
        if times > 1:
            raise ConfigError(f"{key}: {quoted(name)} is there twice: leave out one")
    return names


def _refuse_other_roles(examples: Examples, attributes: Collection[str]) -> None:
    """Refuse a column that is to be two of names, targets and attributes."""
    if examples.id == examples.target:
        raise ConfigError(
            f"{quoted(examples.id)} is the column of the examples' names, and of the targets: name another"
        )
    for column, what in ((examples.id, "names"), (examples.target, "targets")):
        if column in attributes:
            raise ConfigError(
                f"{quoted(column)} is the column of the examples' {what}: give the attribute another name, or leave it "
                "out"
            )


def _rows(sheet: Sheet, column: str) -> dict[str, int]:
    """Return the rows by the names in a column, which are all different."""
    rows: dict[str, int] = {}
    for row in range(sheet.n):
        name = sheet.name_at(row, column)
        if name in rows:
            raise DataError(f"{sheet.where(row, column)}: {quoted(name)} is there already: {sheet.place(rows[name])}")
        rows[name] = row
    return rows


def _target(cell: object) -> Target | None:
    if is_empty(cell):
        return None
    number = None if isinstance(cell, bool | np.bool_) else number_of(cell)
    return text_of(cell) if number is None else number


def _refuse_text(sheet: Sheet, values: Mapping[str, Sequence[float | None]], droppable: bool, may_name: bool) -> None:
    """Refuse columns that hold text, all by name; the first may name the examples, if all its cells differ."""
    faults: dict[str, int] = {}
    for name, numbers in values.items():
        for row, number in enumerate(numbers):
            if number is None and not is_empty(sheet.columns[name][row]):
                faults.setdefault(name, row)
    if not faults:
        return
    text = list(faults)
    row = faults[text[0]]
    what = f"column {quoted(text[0])} is" if len(text) == 1 else f"columns {shown(list(map(quoted, text)))} are"
    cell, them = fault_of(sheet.columns[text[0]][row]), "it" if len(text) == 1 else "them"
    way = "write numbers, and leave cells empty that are not known"
    if droppable:
        way = (
            "write categories as columns of 0 and 1, such as pandas.get_dummies makes, or leave "
            f"{them} out with {_without(text)}"
        )
        if any(number is not None for number in values[text[0]]):
            word = text_of(sheet.columns[text[0]][row])
            way = f"if {quoted(word)} means that there is no value: missing_values=[{word}]; else {way}"
    if may_name and len(set(map(text_of, sheet.columns[text[0]]))) == sheet.n:
        way += f"; if it has the examples' names: id={text[0]}"
    raise DataError(f"{sheet.source}: {what} not numbers ({sheet.place(row)}: {cell}): {way}")


def _refuse_missing_label(examples: Examples, label: str) -> None:
    """Refuse a word for a missing target if there is only one label: it may be the other one."""
    for row, target in enumerate(examples.targets):
        word = text_of(examples.sheet.columns[examples.target][row]) if target is None else ""
        if word:
            raise DataError(
                f"{examples.sheet.where(row, examples.target)}: {quoted(word)} stands for a missing target, and "
                f"{quoted(label)} is the only label: leave the cell empty, or write another word if it is a label"
            )

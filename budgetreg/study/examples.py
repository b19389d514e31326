"""What callers hand to a study: tables of examples, targets, and what can be bought; checked cell by cell."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from budgetreg.common.errors import ConfigError, DataError, nearest, quoted
from budgetreg.common.files import at_home
from budgetreg.common.notices import plural
from budgetreg.data.attributes import UNIT, Columns, Ranges, groups_of_prices, priced, prices_in, ranges_in
from budgetreg.data.dataset import Groups, numbered
from budgetreg.data.file import read_sheet
from budgetreg.data.tables import Sheet, fault_of, is_empty, number_of, sheet_of, shown, text_of

if TYPE_CHECKING:
    import pandas as pd

ID, TARGET = "example", "target"
"""The columns of names and of targets, unless others are named; that of names has this name in order files always."""

NO_PRICES = "attributes"
"""The unit of a bill without prices."""

_MOST_LABELS = 2

_Value = TypeVar("_Value")

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
    drop: Collection[str] = (),
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
    drop : collection of str
        Columns to leave out, which may hold anything.
    attributes : collection of str, optional
        The attributes that there may be; by default, all other columns are attributes.
    droppable : bool
        Whether the user can leave out columns, for messages.

    Raises
    ------
    DataError
        If a column is missing or unknown, attributes are not numbers, or names are missing or repeated.
    """
    for column in drop:
        sheet.column(column, "drop names columns to leave out")
    if id:
        sheet.column(id, "id names the column of the examples' names")
    names = _names(sheet, id or ID) if id or ID in sheet.columns else [str(row + 1) for row in range(sheet.n)]
    targets: list[Target | None] = [None] * sheet.n
    if target in sheet.columns:
        targets = [_target(cell) for cell in sheet.columns[target]]
    columns = [name for name in sheet.names if name not in {id or ID, target, *drop}]
    unknown = [name for name in columns if attributes is not None and name not in attributes]
    refuse_unknown(sheet, unknown, attributes or ())
    _refuse_text(sheet, columns, droppable, may_name=droppable and not id and attributes is None)
    values = {name: [_number(sheet, row, name) for row in range(sheet.n)] for name in columns}
    return Examples(sheet, id or ID, target, names, targets, values)


def refuse_unknown(sheet: Sheet, columns: Sequence[str], attributes: Collection[str]) -> None:
    """Refuse columns that are no attributes of a study, if there are any."""
    if columns:
        raise DataError(
            f"{sheet.source}: line 1: the study has no attribute {shown(list(map(quoted, columns)))}"
            f"{nearest(columns[0], attributes)}: leave it out with drop=[{','.join(columns)}]"
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


@dataclass(frozen=True)
class Attributes:
    """The attributes that can be bought.

    Attributes
    ----------
    names : tuple of str
        The d attributes.
    costs : tuple of float
        Their prices; of a group, that of its head, and 0 of the others.
    groups : Groups or None
        Attributes that are bought together.
    ranges : tuple of (float, float), or None
        The usual range of each attribute, or NaN.
    unit : str
        The unit of the prices.
    """

    names: tuple[str, ...]
    costs: tuple[float, ...]
    groups: Groups | None
    ranges: Ranges | None
    unit: str


def attributes_of(
    examples: Examples,
    attributes: Sequence[str],
    costs: Mapping[str, float] | str | Path | None,
    groups: Mapping[str, str],
    ranges: str | Path | None,
    unit: str | None,
    drop: Sequence[str],
) -> Attributes:
    """Return what can be bought: the columns of the examples, `attributes`, and what else the price list names.

    Parameters
    ----------
    examples : Examples
        The examples with which a study begins.
    attributes, costs, groups, ranges, unit, drop
        As for `budgetreg.Study.create`.

    Raises
    ------
    ConfigError
        If there are fewer than two attributes, one is named like a column of names or targets, prices are impossible,
        or groups are in two places.
    DataError
        If a list cannot be used.
    """
    names = _names_of("attributes", attributes)
    groups = {name: text_of(group) for name, group in _by_name("groups", groups).items()}
    others = list(dict.fromkeys([examples.id, examples.target, *drop]))
    prices: Mapping[str, float] = {}
    listed: Iterable[str] = ()
    sheet: Sheet | None = None
    if isinstance(costs, str | Path):
        sheet = read_sheet(at_home(costs), "costs")
        column = map(text_of, sheet.column("attribute", "a price list has the columns attribute,cost"))
        listed = (name for name in column if name and name not in others)
    elif costs is not None:
        listed = prices = _by_name("costs", costs)
    _refuse_other_roles(examples, {"attributes": names, "costs": prices})
    known = list(dict.fromkeys([*examples.values, *names, *listed]))
    d = len(known)
    if d < 2:
        raise ConfigError(
            f"{examples.sheet.source} has {d} attribute(s), but two are needed: list attributes without known values "
            "in costs=FILE"
        )
    columns = Columns.of(known, d, [(d + at, name) for at, name in enumerate(others)])
    if sheet is not None:
        if groups:
            raise ConfigError("groups: the price list is a file: write the groups into its column group")
        together = groups_of_prices(sheet, columns)
        amounts = prices_in(sheet, columns, together).costs
    else:
        unknown = next((name for name in groups if name not in known), None)
        if unknown is not None:
            raise ConfigError(f"groups: there is no attribute {quoted(unknown)}{nearest(unknown, known)}")
        together = numbered([groups.get(name, "") for name in known])
        if costs is None:
            unit, prices = unit or NO_PRICES, dict.fromkeys(known, 1.0)
        amounts = priced(known, [prices.get(name) for name in known], together).costs
    usual = None if ranges is None else ranges_in(read_sheet(at_home(ranges), "ranges"), columns, partial=True)
    return Attributes(tuple(known), amounts, together, usual, unit or UNIT)


def price_list(costs: Mapping[str, float] | str | Path) -> Sheet:
    """Return a price list, or prices by name, as a table."""
    if isinstance(costs, str | Path):
        return read_sheet(at_home(costs), "costs")
    prices = _by_name("costs", costs)
    columns: dict[str, list[object]] = {"attribute": list(prices), "cost": list(prices.values())}
    return Sheet("costs", tuple(columns), columns, lambda row: f"entry {row + 1}")


def examples_sheet(examples: "pd.DataFrame | Sequence[object] | str | Path", id: str) -> Sheet:
    """Return a table of examples; the index of a frame has their names, unless a column has."""
    if isinstance(examples, str | Path):
        return read_sheet(at_home(examples), "table")
    import pandas as pd  # here, as it is slow to load

    column = id or ID
    if not isinstance(examples, pd.DataFrame):
        return Sheet("the examples", (column,), {column: list(examples)}, lambda row: f"entry {row + 1}")
    sheet = sheet_of(examples, "the examples")
    if column in sheet.columns:
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
        cells = [by_name.get(text_of(name)) for name in sheet.columns[id]]
    else:
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
    d = len(attributes)
    if isinstance(examples, np.ndarray):
        if examples.ndim != 2 or examples.shape[1] != d:
            raise DataError(f"the examples have shape {examples.shape}, and {d} columns are needed, for the attributes")
        return [str(row + 1) for row in range(len(examples))], _numbers(examples)
    sheet = read_sheet(at_home(examples)) if isinstance(examples, str | Path) else sheet_of(examples, "the examples")
    known = [name for name in attributes if name in sheet.columns]
    if not known:
        raise DataError(
            f"{sheet.source}: line 1: it has none of the attributes {shown(list(attributes))}; columns: "
            f"{shown(list(sheet.names))}"
        )
    column = next((name for name in (id, ID) if name in sheet.columns and name not in known), "")
    if column:
        id, names = column, sheet.columns[column]
    else:
        names = range(1, sheet.n + 1) if isinstance(examples, str | Path) else _index(examples)
    columns = {id: names, **{name: sheet.columns[name] for name in known}}
    known_sheet = Sheet(sheet.source, tuple(columns), columns, sheet.place).emptied(words)
    rows = examples_of(known_sheet, "", id, droppable=False)
    X = np.full((sheet.n, d), np.nan)
    for at, name in enumerate(attributes):
        if name in rows.values:
            X[:, at] = [np.nan if value is None else value for value in rows.values[name]]
    return rows.names, X


def check_targets(examples: Examples, known: Collection[Target] = ()) -> None:
    """Refuse targets that are neither all numbers nor all of two labels, with those that are known already.

    Raises
    ------
    DataError
    """
    labels = {target for target in known if isinstance(target, str)}
    numeric = any(not isinstance(target, str) for target in known)
    for row, target in enumerate(examples.targets):
        if target is None:
            continue
        where = examples.sheet.where(row, examples.target)
        if isinstance(target, str):
            labels.add(target)
            if numeric or len(labels) > _MOST_LABELS:
                why = "the others are numbers" if numeric else f"there would be {len(labels)} labels"
                raise DataError(
                    f"{where}: target {quoted(target)}: {why}; targets are all numbers, or text with two labels"
                )
        else:
            numeric = True
            if labels:
                raise DataError(
                    f"{where}: target {target:g}: the others are labels; targets are all numbers, or text with two "
                    "labels"
                )
            if fault := fault_of(target):
                raise DataError(f"{where}: {fault}")
    if len(labels) == 1 and examples.target in examples.sheet.columns:
        _refuse_missing_label(examples, *labels)


def _by_name(key: str, given: Mapping[str, _Value]) -> dict[str, _Value]:
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


def _names_of(key: str, given: Iterable[object]) -> list[str]:
    """Return names as files have them, without blanks around them.

    Raises
    ------
    ConfigError
        If one is empty, or there twice.
    """
    names = list(map(text_of, given))
    if "" in names:
        raise ConfigError(f"{key}: entry {names.index('') + 1} has no name")
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise ConfigError(f"{key}: {quoted(repeated)} is there twice: leave out one")
    return names


def _refuse_other_roles(examples: Examples, attributes: Mapping[str, Collection[str]]) -> None:
    """Refuse a column that is to be two of names, targets and attributes; these are listed by argument."""
    if examples.id == examples.target:
        raise ConfigError(
            f"{quoted(examples.id)} is the column of the examples' names, and of the targets: name another"
        )
    for key, names in attributes.items():
        for column, what in ((examples.id, "names"), (examples.target, "targets")):
            if column in names:
                raise ConfigError(
                    f"{key}: {quoted(column)} is the column of the examples' {what}: give the attribute another name, "
                    "or leave it out"
                )


def _names(sheet: Sheet, column: str) -> list[str]:
    rows: dict[str, int] = {}
    for row in range(sheet.n):
        name = sheet.name_at(row, column)
        if name in rows:
            raise DataError(
                f"{sheet.where(row, column)}: example {quoted(name)} is there already: {sheet.place(rows[name])}"
            )
        rows[name] = row
    return list(rows)


def _target(cell: object) -> Target | None:
    if is_empty(cell):
        return None
    number = number_of(cell)
    return text_of(cell) if number is None else number


def _refuse_text(sheet: Sheet, columns: Sequence[str], droppable: bool, may_name: bool) -> None:
    """Refuse columns that hold text, all by name; the first may name the examples, if all its cells differ."""
    faults: Mapping[str, int | None] = {
        name: next(
            (row for row, cell in enumerate(sheet.columns[name]) if not is_empty(cell) and number_of(cell) is None),
            None,
        )
        for name in columns
    }
    text = [name for name, row in faults.items() if row is not None]
    if not text:
        return
    row = faults[text[0]]
    assert row is not None
    what = f"column {quoted(text[0])} is" if len(text) == 1 else f"columns {shown(list(map(quoted, text)))} are"
    cell, them = fault_of(sheet.columns[text[0]][row]), "it" if len(text) == 1 else "them"
    way = "write numbers, and leave cells empty that are not known"
    if droppable:
        way = (
            "write categories as columns of 0 and 1, such as pandas.get_dummies makes, or leave "
            f"{them} out with drop=[{','.join(text)}]"
        )
    if may_name and len(set(map(text_of, sheet.columns[text[0]]))) == sheet.n:
        way += f"; if it has the examples' names: id={text[0]}"
    raise DataError(f"{sheet.source}: {what} not numbers ({sheet.place(row)}: {cell}): {way}")


def _number(sheet: Sheet, row: int, column: str) -> float | None:
    cell = sheet.columns[column][row]
    if is_empty(cell):
        return None
    if fault := fault_of(cell):
        raise DataError(f"{sheet.where(row, column)}: {fault}")
    return number_of(cell)


def _refuse_missing_label(examples: Examples, label: str) -> None:
    """Refuse a word for a missing target if there is only one label: it may be the other one."""
    for row, target in enumerate(examples.targets):
        word = text_of(examples.sheet.columns[examples.target][row]) if target is None else ""
        if word:
            raise DataError(
                f"{examples.sheet.where(row, examples.target)}: {quoted(word)} stands for a missing target, and "
                f"{quoted(label)} is the only label: leave the cell empty, or write another word if it is a label"
            )


def _numbers(examples: np.ndarray) -> np.ndarray:
    """Return an array as estimators take it: NaN for what is masked, and no dates, text or values too large."""
    from budgetreg.estimators.containers import plain, refuse_sizes  # here, as scikit-learn is slow to load

    try:
        X = np.asarray(plain(examples, "the array of examples"), dtype=np.float64)
        refuse_sizes(X, "the array of examples", small=False)
    except (TypeError, ValueError) as error:
        raise DataError(str(error)) from error
    return X


def _index(frame: "pd.DataFrame") -> Sequence[object]:
    """Return the index of a frame, or the numbers of the rows if it was given none."""
    import pandas as pd  # here, as it is slow to load

    none = isinstance(frame.index, pd.RangeIndex) and frame.index.equals(pd.RangeIndex(len(frame)))
    return range(1, len(frame) + 1) if none else list(frame.index)

"""Examples of a study: names, targets, and values that are known beforehand."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from budgetreg.data.formats.chunks import shown
from budgetreg.errors import ConfigError, DataError, nearest, quoted
from budgetreg.study.sheets import Sheet, fault_of, is_empty, number_of, text_of
from budgetreg.study.store import StudyFile

ID = "example"
"""The column of names in order files, and in tables unless another one is named."""

_MOST_LABELS = 2
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
    if unknown:
        raise DataError(
            f"{sheet.source}: line 1: the study has no attribute {shown(list(map(quoted, unknown)))}"
            f"{nearest(unknown[0], attributes or ())}: leave it out with drop=[{','.join(unknown)}]"
        )
    _refuse_text(sheet, columns, droppable, may_name=droppable and not id and attributes is None)
    values = {name: [_number(sheet, row, name) for row in range(sheet.n)] for name in columns}
    return Examples(sheet, id or ID, target, names, targets, values)


def refuse_other_roles(examples: Examples, attributes: Mapping[str, Collection[str]]) -> None:
    """Refuse a column that is to be two of names, targets and attributes.

    Parameters
    ----------
    examples : Examples
        The table.
    attributes : mapping of str to collection of str
        By argument, attributes that are given apart from the table.

    Raises
    ------
    ConfigError
    """
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


def _refuse_missing_label(examples: Examples, label: str) -> None:
    """Refuse a word for a missing target if there is only one label: it may be the other one."""
    for row, target in enumerate(examples.targets):
        word = text_of(examples.sheet.columns[examples.target][row]) if target is None else ""
        if word:
            raise DataError(
                f"{examples.sheet.where(row, examples.target)}: {quoted(word)} stands for a missing target, and "
                f"{quoted(label)} is the only label: leave the cell empty, or write another word if it is a label"
            )


def add(store: StudyFile, examples: Examples, replace: bool = False) -> dict[str, int]:
    """Add examples, targets and values that are known beforehand, which are free; what is there already stays.

    Parameters
    ----------
    store : StudyFile
        In a block `StudyFile.writing`.
    examples : Examples
        What to add.
    replace : bool
        Whether a different target or value may take the place of a known one; the log keeps both.

    Returns
    -------
    dict of str to int
        How many `examples`, `targets` and `values` are new, and how many are `replaced`.

    Raises
    ------
    DataError
        If something differs from what is known, or a value is on order.
    """
    added = dict.fromkeys(("examples", "targets", "values", "replaced"), 0)
    rows = store.rows("SELECT number, name, target FROM examples")
    numbers, targets = {name: number for number, name, _ in rows}, {number: target for number, _, target in rows}
    check_targets(examples, {target for target in targets.values() if target is not None})
    attributes: dict[str, int] = dict(store.rows("SELECT name, number FROM attributes"))
    cells = {
        (example, attribute): rest
        for example, attribute, *rest in store.rows("SELECT example, attribute, state, value FROM cells")
    }
    log: list[Sequence[object]] = []
    for row, (name, target) in enumerate(zip(examples.names, examples.targets, strict=True)):
        example = numbers.get(name)
        if example is None:
            example = len(numbers)
            numbers[name] = example
            store.change("INSERT INTO examples VALUES (?, ?, NULL)", [(example, name)])
            log.append(("example", example, None, None, None))
            added["examples"] += 1
        old = targets.get(example)
        if target is not None and target != old:
            if old is not None:
                _refuse_change(examples.sheet.where(row, examples.target), name, examples.target, old, replace)
            store.change("UPDATE examples SET target = ? WHERE number = ?", [(target, example)])
            log.append(("target", example, None, old, target))
            added["targets" if old is None else "replaced"] += 1
        for attribute, values in examples.values.items():
            value, at = values[row], attributes[attribute]
            state, known = cells.get((example, at), (None, None))
            if value is None or (state == "known" and known == value):
                continue
            where = examples.sheet.where(row, attribute)
            if state == "on order":
                raise DataError(
                    f"{where}: this value of example {quoted(name)} is on order: budgetreg study tell "
                    "records what was bought"
                )
            if state is not None:
                _refuse_change(where, name, attribute, "unavailable" if known is None else known, replace)
            store.change(
                "INSERT INTO cells VALUES (?, ?, 'known', ?, NULL, 0) ON CONFLICT DO UPDATE SET state = 'known', "
                "value = excluded.value",
                [(example, at, value)],
            )
            log.append(("beforehand", example, at, state if known is None else known, value))
            added["values" if state is None else "replaced"] += 1
    store.change(
        "INSERT INTO log (event, example, attribute, order_number, old, new) VALUES (?, ?, ?, NULL, ?, ?)", log
    )
    return added


def _refuse_change(where: str, name: str, column: str, old: object, replace: bool) -> None:
    if not replace:
        shown_ = f"{old:.15g}" if isinstance(old, float) else old
        raise DataError(
            f"{where}: {quoted(column)} of example {quoted(name)} is {shown_} already: replace=true replaces it"
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

"""Results: what was measured, what never will be, and what is charged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum, isclose

from budgetreg.data.tables import Sheet, fault_of, is_empty, number_of, text_of
from budgetreg.errors import DataError, nearest, quoted
from budgetreg.study.file import StudyFile

NEEDED = ("example", "attribute", "value")
"""Columns without which a file of results cannot be read."""

UNAVAILABLE = "unavailable"
"""The word for a value that will never be measured."""

_FAR = 1.0
"""Widths of an attribute's range by which a value may lie outside of it."""

_RECORD = """INSERT INTO cells VALUES (?, ?, ?, ?, NULL, ?) ON CONFLICT DO UPDATE
SET state = excluded.state, value = excluded.value, paid = excluded.paid"""


@dataclass(frozen=True)
class Recorded:
    """Numbers of values that a file of results has changed.

    Attributes
    ----------
    values, unavailable : int
        Recorded as values, and as never to be measured.
    replaced : int
        Those of them that took the place of a different result.
    repeated : int
        Known already, and equal.
    pending : int
        Still empty.
    unordered : int
        Values that were not known before, and that no order was waiting for.
    cost : float
        What was charged for these values.
    spent : float
        What was charged in all.
    """

    values: int
    unavailable: int
    replaced: int
    repeated: int
    pending: int
    unordered: int
    cost: float
    spent: float


@dataclass(frozen=True)
class Result:
    """A line of a file of results.

    Attributes
    ----------
    row : int
        The row, counted from 0.
    example, attribute : int
        Numbers of the cell in the study.
    value : float, str or None
        The value; `UNAVAILABLE`; None if it is still pending.
    order : int or None
        The number of its order, which the study has; None if the line names none.
    cost : float or None
        What it says that the value costs, if it does.
    """

    row: int
    example: int
    attribute: int
    value: float | str | None
    order: int | None
    cost: float | None


@dataclass(frozen=True)
class _Cell:
    """A cell: its value, `UNAVAILABLE` or None; its order; whether it is charged."""

    result: float | str | None = None
    order: int | None = None
    paid: bool = False
    free: bool = False
    """Whether a value is known and nothing was charged for it."""


def record(store: StudyFile, sheet: Sheet, replace: bool = False, free: bool = False) -> Recorded:
    """Record all results of a table, or none of them.

    Parameters
    ----------
    store : StudyFile
        In a block `StudyFile.writing`, which takes everything back if this raises.
    sheet : Sheet
        The table, see `budgetreg.study.results`.
    replace : bool
        Whether a result may take the place of a different one; the log keeps both.
    free : bool
        Whether values that nobody ordered are not charged.

    Raises
    ------
    DataError
        If a line cannot be used, or differs from what is known.
    """
    examples = {name: number for number, name in store.rows("SELECT number, name FROM examples")}
    listed = store.rows("SELECT number, name, low, high FROM attributes")
    attributes = {name: number for number, name, *_ in listed}
    ranges = {number: (low, high) for number, _, low, high in listed if low is not None}
    cells, before = _cells(store), _spent(store)
    counts = dict.fromkeys(("values", "unavailable", "replaced", "repeated", "pending", "unordered"), 0)
    changes: list[tuple[Result, _Cell]] = []
    rows: dict[tuple[int, int], int] = {}
    costs = _Costs(store)
    for result in _results_of(sheet, examples, attributes, store.one("SELECT COUNT(*) FROM orders")):
        key = result.example, result.attribute
        cell = cells.get(key, _Cell())
        costs.check(sheet, result, cell.order, unpaid=free or cell.free)
        if result.value is None:
            counts["pending"] += cell.result is None
            continue
        _refuse_far(sheet, result, ranges)
        if result.value == cell.result:
            counts["repeated"] += 1
            rows.setdefault(key, result.row)
            continue
        if cell.result is not None:
            if key in rows or not replace:
                raise _differs(sheet, result, cell, rows.get(key))
            counts["replaced"] += 1
        rows[key] = result.row
        measured = result.value != UNAVAILABLE
        counts["values" if measured else "unavailable"] += 1
        counts["unordered"] += measured and cell.order is None and cell.result is None
        paid = measured and not cell.free and (cell.order is not None or cell.paid or not free)
        changes.append((result, cell))
        cells[key] = _Cell(result.value, cell.order, paid, measured and not paid)
    _write(store, changes, cells)
    spent = _spent(store)
    return Recorded(**counts, cost=spent - before, spent=spent)


def _write(store: StudyFile, changes: Sequence[tuple[Result, _Cell]], cells: dict[tuple[int, int], _Cell]) -> None:
    """Write the new results, and an event each."""

    def line(result: Result) -> Sequence[object]:
        measured = result.value != UNAVAILABLE
        state, value = ("known", result.value) if measured else ("unavailable", None)
        return result.example, result.attribute, state, value, cells[result.example, result.attribute].paid

    store.change(_RECORD, (line(result) for result, _ in changes))
    store.change(
        "INSERT INTO log (event, example, attribute, order_number, old, new) VALUES ('tell', ?, ?, ?, ?, ?)",
        ((result.example, result.attribute, cell.order, cell.result, result.value) for result, cell in changes),
    )


def _spent(store: StudyFile) -> float:
    """Return the charges: the price of each attribute (group) of an example with a charged value, once."""
    rows = store.rows(
        "SELECT heads.cost FROM (SELECT DISTINCT example, head FROM cells JOIN attributes ON number = attribute "
        "WHERE paid) AS units JOIN attributes AS heads ON heads.number = units.head"
    )
    return fsum(cost for (cost,) in rows)


def _cells(store: StudyFile) -> dict[tuple[int, int], _Cell]:
    rows = store.rows("SELECT example, attribute, state, value, order_number, paid FROM cells")
    return {
        (example, attribute): _Cell(
            UNAVAILABLE if state == "unavailable" else value, order, bool(paid), state == "known" and not paid
        )
        for example, attribute, state, value, order, paid in rows
    }


def _results_of(sheet: Sheet, examples: dict[str, int], attributes: dict[str, int], orders: int) -> Iterator[Result]:
    """Yield the results in a table, each checked.

    Parameters
    ----------
    sheet : Sheet
        The table; it may have more columns, and its lines may be in any order.
    examples, attributes : dict of str to int
        Numbers by name.
    orders : int
        The number of the study's orders.

    Raises
    ------
    DataError
        If a column is missing, or a line names no example, attribute or order of the study, or has no number.
    """
    need = f"results need the columns {','.join(NEEDED)}"
    *_, values = (sheet.column(name, need) for name in NEEDED)
    for row, cell in enumerate(values):
        order = _order(sheet, row, orders)
        example = _number(sheet, row, "example", examples)
        attribute = _number(sheet, row, "attribute", attributes)
        yield Result(row, example, attribute, _value(sheet, row, cell), order, _cost(sheet, row))


def _number(sheet: Sheet, row: int, column: str, known: dict[str, int]) -> int:
    name = sheet.name_at(row, column)
    if name not in known:
        raise DataError(f"{sheet.where(row, column)}: the study has no {column} {quoted(name)}{nearest(name, known)}")
    return known[name]


def _order(sheet: Sheet, row: int, orders: int) -> int | None:
    """Return the order that a line names; the column need not be there."""
    cell = sheet.columns["order"][row] if "order" in sheet.columns else None
    if is_empty(cell):
        return None
    number = number_of(cell)
    if number is None or number not in range(1, orders + 1):
        has = f"its last one is {orders}" if orders else "none was asked for"
        raise DataError(
            f"{sheet.where(row, 'order')}: the study has no order {text_of(cell)}, {has}: is this the file of another "
            "study? If nobody ordered the value, leave its order empty"
        )
    return int(number)


def _cost(sheet: Sheet, row: int) -> float | None:
    """Return the cost in a line; the column need not be there."""
    cell = sheet.columns["cost"][row] if "cost" in sheet.columns else None
    if is_empty(cell):
        return None
    if fault := fault_of(cell):
        raise DataError(f"{sheet.where(row, 'cost')}: {fault}")
    return number_of(cell)


def _value(sheet: Sheet, row: int, cell: object) -> float | str | None:
    if is_empty(cell):
        return None
    if text_of(cell).lower() == UNAVAILABLE:
        return UNAVAILABLE
    if fault := fault_of(cell):
        raise DataError(
            f"{sheet.where(row, 'value')}: {fault} (leave a pending value empty; {UNAVAILABLE} means that it will "
            "never be measured)"
        )
    return number_of(cell)


class _Costs:
    """What values cost: as they were ordered, or by the price list if nobody ordered them."""

    def __init__(self, store: StudyFile) -> None:
        lines = store.rows("SELECT order_number, example, attribute, cost FROM lines")
        self._ordered: dict[tuple[int | None, int, int], float] = {tuple(cell): cost for *cell, cost in lines}
        # The price of a group stands at its first attribute, but the value of another one may come alone.
        prices = store.rows(
            "SELECT each.number, each.cost, heads.cost FROM attributes AS each "
            "JOIN attributes AS heads ON heads.number = each.head"
        )
        self._prices: dict[int, tuple[float, float]] = {number: (own, group) for number, own, group in prices}

    def check(self, sheet: Sheet, result: Result, order: int | None, *, unpaid: bool) -> None:
        """Refuse a line whose order does not contain its value, or whose cost is another one.

        Parameters
        ----------
        sheet : Sheet
            The table, for messages.
        result : Result
            The line.
        order : int or None
            The order that waits for the value, or has brought it.
        unpaid : bool
            Whether nothing is charged for the value if nobody ordered it.

        Raises
        ------
        DataError
        """
        cell = result.example, result.attribute
        if result.order is not None and (result.order, *cell) not in self._ordered:
            raise DataError(
                f"{sheet.where(result.row, 'order')}: order {result.order} does not contain "
                f"{_named(sheet, result)}: correct its number, or leave it empty if nobody ordered the value"
            )
        if result.cost is None:
            return
        ordered = self._ordered.get((result.order or order, *cell))
        costs = (*self._prices[result.attribute], *([0.0] if unpaid else [])) if ordered is None else (ordered,)
        if not any(isclose(result.cost, cost) for cost in costs):
            setter = "price list" if ordered is None else "order"
            raise DataError(
                f"{sheet.where(result.row, 'cost')}: {_named(sheet, result)} costs {costs[0]:.15g}, not "
                f"{result.cost:.15g}: the {setter} sets what is charged: write that, or leave the cost empty"
            )


def _refuse_far(sheet: Sheet, result: Result, ranges: dict[int, tuple[float, float]]) -> None:
    if result.value == UNAVAILABLE or result.attribute not in ranges:
        return
    low, high = ranges[result.attribute]
    margin = _FAR * (high - low)
    assert isinstance(result.value, float)
    if not low - margin <= result.value <= high + margin:
        raise DataError(
            f"{sheet.where(result.row, 'value')}: {result.value:g} is far outside the range of the attribute, "
            f"{low:g} to {high:g}: is the unit right?"
        )


def _differs(sheet: Sheet, result: Result, cell: _Cell, row: int | None) -> DataError:
    """Return the error of a result that differs from what is known, or from an earlier row of the same table."""
    new, old = (f"{value:.15g}" if isinstance(value, float) else value for value in (result.value, cell.result))
    way = "replace=true replaces it" if row is None else f"the same table has that value: {sheet.place(row)}"
    return DataError(
        f"{sheet.where(result.row, 'value')}: {_named(sheet, result)} is {old} already, and this is {new}: {way}"
    )


def _named(sheet: Sheet, result: Result) -> str:
    """Return how messages name the value of a line."""
    example, attribute = (quoted(sheet.name_at(result.row, name)) for name in ("example", "attribute"))
    return f"{attribute} of example {example}"

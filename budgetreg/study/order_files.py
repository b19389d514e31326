"""Order files: what to buy, a line for each value, into whose last column the results are written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from budgetreg.errors import DataError, nearest, quoted
from budgetreg.runs.tables import as_csv
from budgetreg.study.sheets import Sheet, fault_of, is_empty, number_of, text_of

COLUMNS = ("order", "example", "attribute", "cost", "value")
NEEDED = ("example", "attribute", "value")
"""Columns without which a file of results cannot be read."""

UNAVAILABLE = "unavailable"
"""The word for a value that will never be measured."""


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


def number_as_text(number: float) -> str:
    """Return the shortest text of a number, without a fraction if it has none.

    Examples
    --------
    >>> number_as_text(12.0), number_as_text(0.1)
    ('12', '0.1')
    """
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(float(number))


def order_csv(lines: Sequence[tuple[int, str, str, float]]) -> bytes:
    """Return an order file: order, example, attribute and cost of each value, which are still empty."""
    return as_csv(COLUMNS, (dict(zip(COLUMNS, (*line, number_as_text(cost)), strict=False)) for *line, cost in lines))


def results_of(sheet: Sheet, examples: dict[str, int], attributes: dict[str, int], orders: int) -> Iterator[Result]:
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

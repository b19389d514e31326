"""Order files: what to buy, a line for each value, into whose last column the results are written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from budgetreg.buying.sheets import Sheet, fault_of, is_empty, number_of, text_of
from budgetreg.errors import DataError, nearest, quoted
from budgetreg.results.tables import as_csv

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
    """

    row: int
    example: int
    attribute: int
    value: float | str | None


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
    columns: list[Sequence[Any]] = [sheet.column(name, need) for name in NEEDED]
    _refuse_other_orders(sheet, orders)
    for row, (example, attribute, cell) in enumerate(zip(*columns, strict=True)):
        cell_of = (
            _number(sheet, row, "example", text_of(example), examples),
            _number(sheet, row, "attribute", text_of(attribute), attributes),
        )
        yield Result(row, *cell_of, _value(sheet, row, cell))


def _number(sheet: Sheet, row: int, column: str, name: str, known: dict[str, int]) -> int:
    if name not in known:
        raise DataError(f"{sheet.where(row, column)}: the study has no {column} {quoted(name)}{nearest(name, known)}")
    return known[name]


def _refuse_other_orders(sheet: Sheet, orders: int) -> None:
    """Refuse a table that names an order which the study does not have; the column need not be there."""
    for row, cell in enumerate(sheet.columns.get("order", ())):
        number = number_of(cell)
        if number is not None and number > orders:
            has = f"its last one is {orders}" if orders else "none was asked for"
            raise DataError(
                f"{sheet.where(row, 'order')}: the study has no order {number:g}, {has}: is this the file of another "
                "study? If nobody ordered the value, leave its order empty"
            )


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

"""Results: what was measured, what never will be, and what is charged.

A purchase is an attribute, or a group of attributes, of an example. It is charged once, when its first value is
recorded: at the price on the invoice, or of its order, or of the price list if nobody ordered it. From then on only
another invoice or a refund changes the charge. The log has all charges, and the bill is their sum.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any, NamedTuple

from budgetreg.common.errors import ConfigError, DataError, cut, nearest, quoted
from budgetreg.data.tables import Sheet, fault_of, is_empty, number_of, text_of
from budgetreg.study.examples import ID, by_number, lost_zeros, refuse_far, refuse_unknown
from budgetreg.study.file import StudyFile, exact
from budgetreg.study.state import excluded_of, number_as_text, ordered_prices, sums, words_of

_CHARGED = ("order", "cost")
"""Columns of a file of results that decide what is charged, which it need not have."""

UNAVAILABLE = "unavailable"
"""The word for a value that will never be measured."""

_RECORD = """INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
SET state = excluded.state, value = excluded.value, order_number = excluded.order_number, paid = excluded.paid"""

_POINTS = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+(?:,\d*)?", re.ASCII)
"""Numbers whose points may stand between thousands."""

_Pair = tuple[int, int]
"""The numbers of an example and of an attribute, or of an example and of the first attribute of a group."""


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
        On order, and still empty.
    unordered : int
        Values that were not known before, and that no order was waiting for.
    invoiced : int
        Purchases that were charged at the price on the invoice, which differs from that of the order.
    cost : float
        What was charged for these values; below 0 if more was refunded.
    spent : float
        What was charged in all.
    """

    values: int
    unavailable: int
    replaced: int
    repeated: int
    pending: int
    unordered: int
    invoiced: int
    cost: float
    spent: float


class _Cell(NamedTuple):
    """A cell: its value, `UNAVAILABLE` or None; its order; whether it is charged."""

    result: float | str | None = None
    order: int | None = None
    paid: bool = False

    @property
    def free(self) -> bool:
        """Whether a value is known and nothing was charged for it."""
        return self.result not in (None, UNAVAILABLE) and not self.paid


class _Line(NamedTuple):
    """A value in a table of results: its place there, how messages name it, its cell, and what its line says."""

    row: int
    column: str
    named: str
    cell: _Pair
    value: float | str | None
    order: int | None
    cost: float | None
    before: _Cell
    """The cell as it was."""
    price: float
    """What the purchase costs by order or price list."""
    invoiced: bool
    """Whether the line says something else."""

    def stated(self, replace: bool, charged: bool) -> float | None:
        """Return the price of the whole purchase, if its line states one.

        A cost that equals the expected price states nothing new of a value that is charged, unless it is to replace the
        charge. The cost 0, which an order lists for the rest of a group, states nothing if the group is charged.
        """
        if self.cost is not None and isclose(self.cost, self.price):
            new = replace or not self.before.paid
            return self.price if self.invoiced or (new and (self.cost or not charged)) else None
        return self.cost if self.invoiced else None


def record(
    store: StudyFile, sheet: Sheet, *, replace: bool, free: bool, invoiced: bool, refund: bool, decimal: str
) -> Recorded:
    """Record all results of a table, or none of them.

    Parameters
    ----------
    store : StudyFile
        In a block `StudyFile.writing`, which takes everything back if this raises.
    sheet : Sheet
        The table.
    replace, free, invoiced, refund, decimal
        As for `budgetreg.Study.tell`.

    Raises
    ------
    DataError
        If a line cannot be used, or differs from what is known.
    """
    cells, before, prices = _cells(store), store.spent(), _Prices(store)
    counts = dict.fromkeys(("values", "unavailable", "replaced", "repeated", "pending", "unordered"), 0)
    events: dict[_Pair, list[Any]] = {}
    rows: dict[_Pair, int] = {}
    purchases: dict[_Pair, dict[_Pair, _Line]] = {}
    for line in _lines_of(store, sheet, decimal, prices, cells, free):
        key, cell = line.cell, line.before
        if line.value is None:
            if line.invoiced:
                if cell.result is None:
                    why = "it has no value yet: leave the cost as it was until the result is there"
                else:
                    why = "its value is empty here: repeat the value beside the cost"
                raise _wrong_cost(sheet, line, why)
            counts["pending"] += cell.result is None and cell.order is not None
            continue
        # A cancelled order may still deliver; what is charged stays with its order.
        order = cell.order if cell.paid else line.order or cell.order
        measured, changed = line.value != UNAVAILABLE, line.value != cell.result
        if changed and cell.result is not None:
            if key in rows or not replace:
                raise _differs(sheet, line, rows.get(key))
            counts["replaced"] += 1
        if measured:
            paid = cell.paid or (not cell.free and (order is not None or not free))
            if line.invoiced and not paid:
                raise _wrong_cost(sheet, line, "it is free: leave the cost empty")
        else:  # a failed test is not charged, unless it is on the invoice
            stated = line.invoiced and line.cost != 0
            charged = invoiced and (order is not None or not free)
            paid = cell.paid or charged or (stated and changed and not refund)
            if stated and not paid and not refund:
                why = "it was not charged: invoiced=true charges it, else leave the cost empty"
                raise _wrong_cost(sheet, line, why)
        if not changed:
            counts["repeated"] += 1
            rows.setdefault(key, line.row)
        else:
            rows[key] = line.row
            counts["values" if measured else "unavailable"] += 1
            counts["unordered"] += measured and cell.order is None and cell.result is None
            events[key] = ["tell", *key, order, cell.result, line.value, None]
        cells[key] = _Cell(line.value, order if changed else cell.order, paid)
        if paid:
            purchase = purchases.setdefault(prices.purchase(key), {})
            first = purchase.setdefault(key, line)
            if first.cost is None:
                purchase[key] = line._replace(before=first.before)
            elif line.cost not in (None, first.cost):
                why = f"it has another cost in the same table: {sheet.place(first.row)}"
                raise _wrong_cost(sheet, line, why)
    by_invoice = _charge(sheet, purchases, prices, events, replace)
    recorded = []
    for key in events:
        value, order, paid = cells[key]
        state, value = (UNAVAILABLE, None) if value == UNAVAILABLE else ("known", value)
        recorded.append((*key, state, value, order, paid))
    store.change(_RECORD, recorded)
    store.note(*events.values())
    if refund:
        give_back(store, [key for key in rows if cells[key].paid and cells[key].result == UNAVAILABLE])
    spent = store.spent()
    return Recorded(**counts, invoiced=by_invoice, cost=float(exact(spent) - exact(before)), spent=spent)


def give_back(store: StudyFile, cells: Collection[_Pair]) -> None:
    """Refund charged cells; the charge of a group stays while another value of it is charged."""
    store.change("UPDATE cells SET paid = 0 WHERE example = ? AND attribute = ?", cells)
    prices = _Prices(store)
    purchases = set(map(prices.purchase, cells)) - prices.charged.keys()
    amounts = sums((tuple(cell), cost) for *cell, cost in prices.charges if prices.purchase(cell[:2]) in purchases)
    store.note(*(("refund", *cell, None, None, -cost) for cell, cost in amounts.items() if cost))


def exclude(store: StudyFile, column: str, names: Sequence[str], refund: bool, undo: bool) -> int:
    """Stop ordering values of examples or attributes, see `Study.exclude`; return how many were pending."""
    known: dict[str, int] = dict(store.rows(f"SELECT name, number FROM {column}s"))
    for name in names:
        if name not in known:
            raise ConfigError(f"{column}={name}: the study has no {_unknown(column, name, known)}")
    at, numbers = ("example", "attribute").index(column), {known[name] for name in names}
    changed = [number for number in sorted(numbers) if (number in {row[at] for row in excluded_of(store)}) == undo]
    event = "include" if undo else "exclude"
    store.note(*((event, *((None, number) if at else (number, None)), *[None] * 4) for number in changed))
    rows = store.rows("SELECT example, attribute, state, paid FROM cells")
    cells = [row for row in rows if row[at] in numbers and not undo]
    pending = [cell for *cell, state, _ in cells if state == "on order"]
    store.change("DELETE FROM cells WHERE example = ? AND attribute = ?", pending)
    if refund:
        give_back(store, [(example, attribute) for example, attribute, _, paid in cells if paid])
    return len(pending)


def _charge(
    sheet: Sheet,
    purchases: Mapping[_Pair, Mapping[_Pair, _Line]],
    prices: "_Prices",
    events: dict[_Pair, list[Any]],
    replace: bool,
) -> int:
    """Write what purchases cost into the events of their values; return how many invoices set another cost."""
    invoiced = 0
    for purchase, lines in purchases.items():
        for cell, line in lines.items():
            if not line.before.paid:
                events.setdefault(cell, ["invoice", *cell, line.before.order, None, None, None])[-1] = 0.0
        before = prices.charged.get(purchase)
        stated = {
            cell: cost for cell, line in lines.items() if (cost := line.stated(replace, before is not None)) is not None
        }
        cell = next((cell for cell, cost in stated.items() if cost), next(iter(stated or lines)))
        line, total = lines[cell], stated.get(cell, lines[cell].price if before is None else before)
        for other, cost in stated.items():
            if cost and not isclose(cost, total):
                why = (
                    f"{line.named} costs {total:.15g}, and a group has one price: write it into one line, and "
                    "leave the cost of the others empty"
                )
                raise _wrong_cost(sheet, lines[other], why)
        if before is not None and isclose(total, before):
            continue
        if before is not None and not replace:
            raise DataError(
                f"{sheet.where(line.row, 'cost')}: {before:.15g} was charged for {line.named} already, "
                f"and this is {total:.15g}: replace=true charges that in its place, and an empty cost keeps the charge"
            )
        at, order = prices.places.get(purchase, (cell, line.before.order))
        events.setdefault(at, ["invoice", *at, order, None, None, None])[-1] = float(
            exact(total) - exact(before or 0.0)
        )
        invoiced += before is not None or not isclose(total, line.price)
    return invoiced


def _cells(store: StudyFile) -> dict[_Pair, _Cell]:
    rows = store.rows("SELECT example, attribute, state, value, order_number, paid FROM cells")
    return {
        (example, attribute): _Cell(UNAVAILABLE if state == UNAVAILABLE else value, order, bool(paid))
        for example, attribute, state, value, order, paid in rows
    }


def _lines_of(
    store: StudyFile, sheet: Sheet, decimal: str, prices: "_Prices", cells: Mapping[_Pair, _Cell], free: bool
) -> Iterator[_Line]:
    """Yield the results in a table, each checked, beside its cell as it is then.

    A table has a row for each value, and may have more columns; or a row for each example, and a column for each
    attribute. Rows may be in any order.
    """
    examples: dict[str, int] = dict(store.rows("SELECT name, number FROM examples"))
    listed = store.rows("SELECT name, number, low, high FROM attributes")
    attributes = {name: (number, low, high) for name, number, low, high in listed}
    orders, facts = store.one("SELECT COUNT(*) FROM orders"), store.facts()
    id = facts["id"]
    wide = [name for name in sheet.names if name in attributes and name != id]
    need = f"results need the columns example,attribute,value, or {id} and a column for each attribute"
    if {"attribute", "value"} <= set(sheet.names) or not wide:
        names = ID if ID in sheet.names or id not in sheet.names else id
        for column in (names, "attribute", "value"):
            sheet.column(column, need)
        wide, charged = [], set(_CHARGED).intersection(sheet.names)
        for name in sheet.names:
            if name not in _CHARGED and name.lower() in _CHARGED:
                raise DataError(
                    f"{sheet.source}: column {quoted(name)} is not read: name it {name.lower()}, or drop it"
                )
    else:
        names = ID if ID in sheet.names and ID not in wide and id not in sheet.names else id
        sheet.column(names, need)
        charged = {"order"}.intersection(sheet.names) - {names, *wide}
        refuse_unknown(sheet, [name for name in sheet.names if name not in {names, *wide, *charged}], attributes)
    sheet = sheet.emptied(words_of(facts), set(sheet.columns).difference(wide or ["value"]))
    for row in range(sheet.n):
        order = _order(sheet, row, orders) if "order" in charged else None
        name = sheet.name_at(row, names)
        if name not in examples:
            raise DataError(f"{sheet.where(row, names)}: the study has no {_unknown('example', name, examples)}")
        for column in wide or ["value"]:
            attribute = column if wide else sheet.name_at(row, "attribute")
            if attribute not in attributes:
                where = sheet.where(row, "attribute")
                raise DataError(f"{where}: the study has no {_unknown('attribute', attribute, attributes)}")
            number, low, high = attributes[attribute]
            value = _value(sheet, row, column, decimal)
            named, cell = f"{quoted(attribute)} of example {quoted(name)}", (examples[name], number)
            cost = _cost(sheet, row, decimal, prices.ordered.get((order, *cell))) if "cost" in charged else None
            if order is not None and (order, *cell) not in prices.ordered:
                raise DataError(
                    f"{sheet.where(row, 'order')}: order {order} does not contain {named}: correct its number, or "
                    "leave it empty if nobody ordered the value"
                )
            before = cells.get(cell, _Cell())
            if isinstance(value, float) and value != before.result:
                refuse_far(sheet.where(row, column), value, low, high)
            price, expected = prices.of(order or before.order, cell, unpaid=free or before.free)
            invoiced = cost is not None and not any(isclose(cost, each) for each in expected)
            yield _Line(row, column, named, cell, value, order, cost, before, price, invoiced)


def _unknown(column: str, name: str, known: Collection[str]) -> str:
    """Return what a study does not have, and what the user may have meant."""
    lost = lost_zeros(name, by_number(known)) if column == "example" else ""
    return f"{column} {quoted(name)}{lost or nearest(name, known)}"


def _order(sheet: Sheet, row: int, orders: int) -> int | None:
    """Return the order that a line names."""
    cell = sheet.columns["order"][row]
    if is_empty(cell):
        return None
    number = number_of(cell)
    if number is None or number not in range(1, orders + 1):
        has = f"its last one is {orders}" if orders else "none was asked for"
        raise DataError(
            f"{sheet.where(row, 'order')}: the study has no order {cut(text_of(cell))}, {has}: is this the file of "
            "another study? If nobody ordered the value, leave its order empty"
        )
    return int(number)


def _number(sheet: Sheet, row: int, column: str, decimal: str, hint: str = "") -> float:
    """Return the number in a cell that is not empty, which may have a decimal comma."""
    cell = sheet.columns[column][row]
    if decimal == "," and isinstance(cell, str):
        if _POINTS.fullmatch(cell.strip()):
            whole = cell.strip().replace(".", "")
            way = f"has points between thousands: write {whole}"
            if cell.count(".") == 1 and "," not in cell:
                decimals = cell.strip().replace(".", ",")
                way = f"has a point: if it separates thousands, write {whole}; if decimals, write {decimals}"
            raise DataError(f"{sheet.where(row, column)}: {quoted(cell)} {way}")
        cell = cell.replace(",", ".")
    if fault := fault_of(cell):
        raise DataError(f"{sheet.where(row, column)}: {fault}{hint}")
    return number_of(cell) or 0.0


def _cost(sheet: Sheet, row: int, decimal: str, ordered: float | None) -> float | None:
    """Return the cost in a line; that of its order may stand there as the order has it, with a point."""
    cell = sheet.columns["cost"][row]
    if is_empty(cell):
        return None
    if ordered is not None and text_of(cell) == number_as_text(ordered):
        return ordered
    cost = _number(sheet, row, "cost", decimal)
    if cost < 0:
        raise DataError(f"{sheet.where(row, 'cost')}: {cost:g} is below 0: refund=true gives back what was charged")
    return cost


def _value(sheet: Sheet, row: int, column: str, decimal: str) -> float | str | None:
    cell = sheet.columns[column][row]
    if is_empty(cell):
        return None
    if text_of(cell).lower() == UNAVAILABLE:
        return UNAVAILABLE
    hint = f" (leave a pending value empty; {UNAVAILABLE} means that it will never be measured)"
    if decimal == "." and "," in text_of(cell):
        hint = " (decimal=, reads decimal commas)"
    return _number(sheet, row, column, decimal, hint)


class _Prices:
    """What values cost: as they were ordered, or by the price list if nobody ordered them; and what was charged."""

    def __init__(self, store: StudyFile) -> None:
        # The price of a group stands at its first attribute, but the value of another one may come alone.
        listed = store.rows("SELECT number, head, cost FROM attributes")
        self._heads: dict[int, int] = {number: head for number, head, _ in listed}
        self._list: dict[int, float] = {number: cost for number, _, cost in listed}
        lines = store.rows("SELECT order_number, example, attribute, cost FROM lines")
        self.ordered: dict[tuple[int | None, int, int], float] = {tuple(cell): cost for *cell, cost in lines}
        """What each value costs by its line of an order."""
        self._together = ordered_prices(store)
        paid = store.rows("SELECT example, attribute FROM cells WHERE paid")
        self.charges = store.rows("SELECT example, attribute, order_number, cost FROM log WHERE cost IS NOT NULL")
        costs = sums((self.purchase(cell), cost) for *cell, _, cost in self.charges)
        placed = sums(((*cell, order), cost) for *cell, order, cost in self.charges)
        self.places: dict[_Pair, tuple[_Pair, int | None]] = {
            self.purchase(cell): (tuple(cell), order) for (*cell, order), cost in placed.items() if cost
        }
        """The cell and the order on which the charge of each purchase stands."""
        self.charged: dict[_Pair, float] = {unit: costs.get(unit, 0.0) for unit in map(self.purchase, paid)}
        """What was charged for each purchase with a charged value."""

    def purchase(self, cell: Sequence[int]) -> _Pair:
        """Return the purchase of a cell, an example and the first attribute of a group."""
        example, attribute = cell
        return example, self._heads[attribute]

    def of(self, order: int | None, cell: _Pair, *, unpaid: bool) -> tuple[float, set[float]]:
        """Return what a purchase costs, and what a line may say of it; `unpaid`: it is free if nobody ordered it."""
        example, head = self.purchase(cell)
        if (order, *cell) in self.ordered:
            return self._together[order, example, head], {self.ordered[order, *cell]}
        price = self._list[head]
        return price, {self._list[cell[1]], price, 0.0 if unpaid else price}


def _wrong_cost(sheet: Sheet, line: _Line, why: str) -> DataError:
    where = sheet.where(line.row, "cost")
    return DataError(f"{where}: {line.named} costs {line.cost:.15g} by this line, but {why}")


def _differs(sheet: Sheet, line: _Line, row: int | None) -> DataError:
    """Return the error of a result that differs from what is known, or from an earlier row of the same table."""
    new, old = (f"{value:.15g}" if isinstance(value, float) else value for value in (line.value, line.before.result))
    way = "replace=true replaces it"
    if row is not None:
        way = f"the same table has that value: {sheet.place(row)}: leave out one of the two, or write their mean"
    return DataError(f"{sheet.where(line.row, line.column)}: {line.named} is {old} already, and this is {new}: {way}")

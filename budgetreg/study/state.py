"""What a study holds: written into its file, read as arrays, and its bill."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from budgetreg.common.errors import DataError, nearest, quoted
from budgetreg.common.files import digest
from budgetreg.data.tables import Sheet
from budgetreg.runs.tables import as_csv
from budgetreg.study.examples import Examples, Target, by_number, check_targets, lost_zeros, priced, refuse_far, rows_of
from budgetreg.study.file import Row, StudyFile, create_file

if TYPE_CHECKING:
    import pandas as pd

MISSING = "missing_values"
"""The fact that holds the words for a missing value; there only if there are any."""

UNORDERED = 0
"""In place of an order's number: values that nobody ordered."""


@dataclass(frozen=True)
class State:
    """A study of n examples and d attributes.

    Attributes
    ----------
    facts : mapping of str to str
        `algo`, `id`, `seed`, `target` and `unit`.
    examples, attributes : tuple of str
        Their names.
    y : ndarray of float, shape (n,)
        Targets, -1 and +1 for two-valued ones; NaN where they are not known.
    labels : tuple of str
        What -1 and +1 stand for; empty for other targets.
    costs : ndarray of float, shape (d,)
        Prices; of a group, that of its head, and 0 of the others.
    heads : ndarray of int, shape (d,)
        The first attribute of each attribute's group: itself, if it is alone.
    values : ndarray of float, shape (n, d)
        NaN where nothing is known.
    on_order, unavailable, paid : ndarray of bool, shape (n, d)
        Cells whose values are pending, will never be measured, and are charged.
    withdrawn, discontinued : ndarray of bool, shape (n,) and (d,)
        Examples and attributes of which nothing is ordered any more.
    orders : ndarray of int, shape (n, d)
        The order of each cell, from 1; 0 if there is none.
    owed : ndarray of float, shape (n, d)
        What each purchase on order will cost, unless it is charged already; 0 for all others.
    spent : float
        The sum of all charges so far.
    version : int
        The number of events so far that changed what is known, what it costs, or what can be ordered.
    """

    facts: Mapping[str, str]
    examples: tuple[str, ...]
    attributes: tuple[str, ...]
    y: np.ndarray
    labels: tuple[str, ...]
    costs: np.ndarray
    heads: np.ndarray
    values: np.ndarray
    on_order: np.ndarray
    unavailable: np.ndarray
    paid: np.ndarray
    withdrawn: np.ndarray
    discontinued: np.ndarray
    orders: np.ndarray
    owed: np.ndarray
    spent: float
    version: int

    @property
    def unit(self) -> str:
        """The unit of the prices."""
        return self.facts["unit"]

    @property
    def known(self) -> np.ndarray:
        """Cells with a value, bool of shape (n, d)."""
        return ~np.isnan(self.values)

    @property
    def known_targets(self) -> np.ndarray:
        """Known targets, bool of shape (n,)."""
        return ~np.isnan(self.y)

    @property
    def excluded(self) -> np.ndarray:
        """Cells of withdrawn examples or discontinued attributes, bool of shape (n, d)."""
        return self.withdrawn[:, None] | self.discontinued

    @property
    def open(self) -> np.ndarray:
        """Cells that can be ordered, bool of shape (n, d)."""
        return ~(self.known | self.on_order | self.unavailable | self.excluded)

    def by_unit(self, cells: np.ndarray) -> np.ndarray:
        """Return which purchases have one of some cells, bool (n, d): those of groups are where their heads are."""
        result = np.zeros_like(cells)
        example, attribute = np.nonzero(cells)
        result[example, self.heads[attribute]] = True
        return result

    @cached_property
    def charged(self) -> np.ndarray:
        """Charged purchases, bool of shape (n, d), each once."""
        return self.by_unit(self.paid)

    @property
    def taken(self) -> np.ndarray:
        """Purchases that count for the limit of an example: ordered, or charged without an order; bool (n, d)."""
        return self.by_unit((self.orders > 0) | self.paid)

    @property
    def prices(self) -> np.ndarray:
        """What another order pays for each purchase, shape (n, d): nothing if it is charged, or on order, already."""
        return np.where(self.charged | self.by_unit(self.on_order), 0.0, self.costs)

    @property
    def unpaid(self) -> np.ndarray:
        """What each purchase still costs, shape (n, d), whether it is on order or not."""
        return self.prices + self.owed


def state_of(store: StudyFile) -> State:
    """Return what a study knows; in a block of `StudyFile.reading` or `StudyFile.writing`."""
    names, costs, heads = zip(*store.rows("SELECT name, cost, head FROM attributes ORDER BY number"), strict=True)
    examples = tuple(name for (name,) in store.rows("SELECT name FROM examples ORDER BY number"))
    y, labels = _targets(targets_of(store))
    shape = len(examples), len(names)
    values, orders = np.full(shape, np.nan), np.zeros(shape, dtype=int)
    on_order, unavailable, paid = (np.zeros(shape, dtype=bool) for _ in range(3))
    cells = store.rows("SELECT example, attribute, state, value, order_number, paid FROM cells")
    for example, attribute, state, value, order, charged in cells:
        at = example, attribute
        values[at], orders[at], paid[at] = value, order or 0, charged
        on_order[at], unavailable[at] = state == "on order", state == "unavailable"
    owed, ordered = np.zeros(shape), ordered_prices(store)
    pending = store.rows(
        "SELECT MIN(CASE state WHEN 'on order' THEN order_number END) AS first, example, head "
        "FROM cells JOIN attributes ON number = attribute GROUP BY example, head HAVING NOT MAX(paid) AND first"
    )
    for order, *purchase in pending:
        owed[tuple(purchase)] = ordered[order, *purchase]
    withdrawn, discontinued = (np.zeros(size, dtype=bool) for size in shape)
    for each, one in excluded_of(store):
        (withdrawn if one is None else discontinued)[each if one is None else one] = True
    return State(
        store.facts(),
        examples,
        names,
        y,
        labels,
        np.array(costs, dtype=float),
        np.array(heads),
        values,
        on_order,
        unavailable,
        paid,
        withdrawn,
        discontinued,
        orders,
        owed,
        store.spent(),
        store.one("SELECT COUNT(*) FROM log WHERE event NOT IN ('ask', 'cancel')"),
    )


def excluded_of(store: StudyFile) -> list[tuple[int | None, int | None]]:
    """Return the withdrawn examples and the discontinued attributes, each beside None."""
    rows = store.rows(
        "SELECT example, attribute, event, MAX(number) FROM log WHERE event IN ('exclude', 'include') "
        "GROUP BY example, attribute"
    )
    return [(example, attribute) for example, attribute, event, _ in rows if event == "exclude"]


def targets_of(store: StudyFile) -> list[Target | None]:
    """Return the targets as they were recorded; None where they are not known."""
    return [target for (target,) in store.rows("SELECT target FROM examples ORDER BY number")]


def words_of(facts: Mapping[str, str]) -> list[str]:
    """Return the words that mean a missing value in tables of a study."""
    words: list[str] = json.loads(facts.get(MISSING, "[]"))
    return words


def create(
    path: Path,
    examples: Examples,
    attributes: Sequence[Row],
    unit: str,
    seed: int,
    algo: str,
    missing_values: Sequence[str],
) -> None:
    """Write a new study, unless it is there already as this call would write it.

    Raises
    ------
    ConfigError
        If there is another file.
    DataError
        If the targets cannot be used.
    UserError
        If the file cannot be written.
    """
    check_targets(examples)
    number = {name: at for at, name, *_ in attributes}
    for _, name, _, _, low, high in attributes:
        for row, value in enumerate(examples.values.get(name, ())):
            if value is not None:
                refuse_far(examples.sheet.where(row, name), value, low, high)
    cells: list[Row] = sorted(
        (example, number[name], "known", value, None, 0)
        for name, values in examples.values.items()
        for example, value in enumerate(values)
        if value is not None
    )
    tables: list[tuple[str, list[Row]]] = [
        ("attributes", list(attributes)),
        ("examples", [(at, *row) for at, row in enumerate(zip(examples.names, examples.targets, strict=True))]),
        ("cells", cells),
    ]
    facts = {"algo": algo, "id": examples.id, "seed": str(seed), "target": examples.target, "unit": unit}
    if missing_values:
        facts[MISSING] = json.dumps(missing_values)
    facts["origin"] = digest(repr((tables, facts)).encode())
    with suppress(DataError):  # the command that makes a study can be repeated
        there = StudyFile(path)
        with there.reading():
            if there.facts()["origin"] == facts["origin"]:
                return
    create_file(path, [*tables, ("facts", list(facts.items()))])


def add(store: StudyFile, examples: Examples, replace: bool = False, grow: bool = True) -> dict[str, int]:
    """Add examples, targets and values that are known beforehand, which are free; what is there already stays.

    Parameters
    ----------
    store : StudyFile
        In a block `StudyFile.writing`.
    examples : Examples
        What to add.
    replace : bool
        Whether a different target or value may take the place of a known one; the log keeps both.
    grow : bool
        Whether examples may be new.

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
    rows = store.rows("SELECT name, number, target FROM examples")
    known: dict[str, tuple[int, Target | None]] = {name: (number, target) for name, number, target in rows}
    given = {name for name, target in zip(examples.names, examples.targets, strict=True) if target is not None}
    stay = {target for name, (_, target) in known.items() if target is not None and not (replace and name in given)}
    check_targets(examples, stay)
    attributes = {name: of for name, *of in store.rows("SELECT name, number, low, high FROM attributes")}
    cells = {
        (example, attribute): state if value is None else value
        for example, attribute, state, value in store.rows("SELECT example, attribute, state, value FROM cells")
    }
    log: list[Row] = []
    written = by_number(known)
    for row, (name, target) in enumerate(zip(examples.names, examples.targets, strict=True)):
        if name not in known:
            lost = lost_zeros(name, written)
            if lost or not grow:
                where = examples.sheet.where(row, examples.id)
                raise DataError(f"{where}: the study has no example {quoted(name)}{lost or nearest(name, known)}")
            known[name] = len(known), None
            store.change("INSERT INTO examples VALUES (?, ?, NULL)", [(known[name][0], name)])
            log.append(("example", known[name][0], *[None] * 5))
            added["examples"] += 1
        example, old_target = known[name]
        facts: list[Row] = [("target", "targets", examples.target, None, old_target, target)]
        for column, values in examples.values.items():
            number, low, high = attributes[column]
            value, old = values[row], cells.get((example, number))
            if value is not None and value != old:
                refuse_far(examples.sheet.where(row, column), value, low, high)
            facts.append(("beforehand", "values", column, number, old, value))
        for event, what, column, at, old, new in facts:
            if new is None or new == old:
                continue
            where = f"{examples.sheet.where(row, column)}: "
            if event == "beforehand" and old == "on order":
                raise DataError(
                    f"{where}this value of example {quoted(name)} is on order: budgetreg study tell records what was "
                    "bought"
                )
            if old is not None and not replace:
                old = f"{old:.15g}" if isinstance(old, float) else old
                raise DataError(
                    f"{where}{quoted(column)} of example {quoted(name)} is {old} already: replace=true replaces it"
                )
            log.append((event, example, at, None, old, new, None))
            added[what if old is None else "replaced"] += 1
    store.change(
        "UPDATE examples SET target = ? WHERE number = ?",
        [(new, example) for event, example, *_, new, _ in log if event == "target"],
    )
    store.change(
        "INSERT INTO cells VALUES (?, ?, 'known', ?, NULL, 0) ON CONFLICT DO UPDATE SET state = 'known', "
        "value = excluded.value",
        [(example, at, new) for event, example, at, *_, new, _ in log if event == "beforehand"],
    )
    store.note(*log)
    return added


def reprice(store: StudyFile, sheet: Sheet) -> dict[str, int]:
    """Change prices from now on, and add attributes; orders and charges stay as they are.

    Attributes that the study does not have are new. See `Study.add`; a price of a group counts once.

    Raises
    ------
    DataError
        If the list cannot be used, or a group would change.
    """
    facts, known = store.facts(), store.rows("SELECT name, head, number, cost FROM attributes ORDER BY number")
    old = {number: cost for *_, number, cost in known}
    heads, prices = priced(sheet, (facts["id"], facts["target"]), {name: head for name, head, *_ in known}, old)
    changed = [(cost, head) for head, cost in prices.items() if old.get(head, cost) != cost]
    added = rows_of(heads, prices)[len(old) :]
    store.change("INSERT INTO attributes VALUES (?, ?, ?, ?, NULL, NULL)", added)
    store.change("UPDATE attributes SET cost = ? WHERE number = ?", changed)
    store.note(*(("price", None, head, None, old[head], cost, None) for cost, head in changed))
    store.note(*(("attribute", None, number, None, None, cost, None) for number, _, cost, _ in added))
    return {"prices": len(changed), "attributes": len(added)}


@dataclass(frozen=True)
class StudyBill:
    """The bill of a study.

    Attributes
    ----------
    unit : str
        The unit of all costs.
    total : float
        What was charged so far.
    on_order : float
        What pending values will cost.
    by_attribute : DataFrame
        The columns `attribute`, `price`, `beforehand` (free values), `paid`, `on_order` and `unavailable` (numbers of
        values), `cost`, and `excluded`. Of attributes that are bought together, the first has the price and the cost.
    by_order : DataFrame
        The columns `order`, `asked` (its cost as it was asked for), `paid`, `on_order` and `unavailable` (numbers of
        values), `cost` and `cancelled`. `UNORDERED` stands for values that nobody ordered.
    """

    unit: str
    total: float
    on_order: float
    by_attribute: "pd.DataFrame"
    by_order: "pd.DataFrame"


def bill_of(store: StudyFile, state: State) -> StudyBill:
    """Return the bill of a study; in the block in which its state was read."""
    import pandas as pd  # here, as commands that show no bill need none

    charges = store.rows(
        "SELECT head, order_number, log.cost FROM log JOIN attributes ON attributes.number = attribute "
        "WHERE log.cost IS NOT NULL"
    )
    of_attributes = sums((head, cost) for head, _, cost in charges)
    of_orders = sums((number or UNORDERED, cost) for _, number, cost in charges)
    counts = {
        "beforehand": state.known & ~state.paid,
        "paid": state.known & state.paid,
        "on_order": state.on_order,
        "unavailable": state.unavailable,
    }
    by_attribute = pd.DataFrame(
        {
            "attribute": state.attributes,
            "price": state.costs,
            **{name: cells.sum(axis=0) for name, cells in counts.items()},
            "cost": [of_attributes.get(at, 0.0) for at in range(len(state.attributes))],
            "excluded": state.discontinued,
        }
    )
    orders = store.rows(
        "SELECT orders.number, SUM(cost), cancelled FROM orders JOIN lines ON order_number = orders.number "
        "GROUP BY orders.number ORDER BY orders.number"
    )
    rows = []
    for number, asked, cancelled in [*orders, (UNORDERED, 0.0, False)]:
        of_order = state.orders == number
        row = {name: int((counts[name] & of_order).sum()) for name in ("paid", "on_order", "unavailable")}
        cost = of_orders.get(number, 0.0)
        if number == UNORDERED and not (row["paid"] or row["unavailable"] or cost):
            continue
        rows.append({"order": number, "asked": asked, **row, "cost": cost, "cancelled": bool(cancelled)})
    columns = ["order", "asked", "paid", "on_order", "unavailable", "cost", "cancelled"]
    by_order = pd.DataFrame(rows, columns=columns)
    return StudyBill(state.unit, state.spent, fsum(state.owed.flat), by_attribute, by_order)


def ordered_prices(store: StudyFile) -> dict[Row, float]:
    """Return what each purchase costs by each of its orders, by order, example and first attribute of a group.

    A further order of the rest of a group lists nothing for it, as the first one, or a charge without an order, pays.
    If that is taken back, the purchase still costs as much. What had no price when it was ordered costs nothing.
    """
    asked: dict[int, int] = dict(store.rows("SELECT order_number, number FROM log WHERE event = 'ask'"))
    changes = store.rows("SELECT attribute, number, old FROM log WHERE event = 'price' ORDER BY number")
    now: dict[int, float] = dict(store.rows("SELECT number, cost FROM attributes"))

    def price_then(order: int, head: int) -> float:
        return next((old for at, number, old in changes if at == head and number > asked[order]), now[head])

    lines = store.rows(
        "SELECT order_number, example, head, lines.cost FROM lines JOIN attributes ON number = attribute"
    )
    prices = sums((tuple(purchase), cost) for *purchase, cost in lines)
    most: dict[Row, float] = {}
    for (_, *purchase), price in prices.items():
        most[tuple(purchase)] = max(price, most.get(tuple(purchase), 0.0))
    for each, price in prices.items():
        order, *purchase = each
        if not price and (then := price_then(order, purchase[-1])):
            prices[each] = most[tuple(purchase)] or then
    return prices


def sums(charges: Iterable[tuple[Any, float]]) -> dict[Any, float]:
    """Return the exactly rounded sum of the charges of each key."""
    costs: dict[Any, list[float]] = {}
    for key, cost in charges:
        costs.setdefault(key, []).append(cost)
    return {key: fsum(each) for key, each in costs.items()}


def csv_of(table: "pd.DataFrame") -> bytes:
    """Return a table of text and numbers, with all their digits; None and NaN are left empty."""
    rows = table.itertuples(index=False, name=None)
    return as_csv(table.columns, (dict(zip(table.columns, map(_text, row), strict=True)) for row in rows))


LOG = ("time", "event", "order", "example", "attribute", "old", "new", "cost")
"""The columns of the log."""


def events_of(store: StudyFile) -> list[Row]:
    """Return all events in their order, with the columns `LOG`; None where an event has no such thing."""
    return store.rows(
        "SELECT time, event, order_number, examples.name, attributes.name, old, new, log.cost FROM log "
        "LEFT JOIN examples ON examples.number = example LEFT JOIN attributes ON attributes.number = attribute "
        "ORDER BY log.number"
    )


def _text(cell: float | str | None) -> str:
    if cell is None or cell != cell:
        return ""
    return cell if isinstance(cell, str) else number_as_text(cell)


def number_as_text(number: float) -> str:
    """Return the shortest text of a number, without a fraction if it has none.

    Examples
    --------
    >>> number_as_text(12.0), number_as_text(0.1)
    ('12', '0.1')
    """
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(float(number))


def _targets(targets: list[Target | None]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return targets as numbers, two labels as -1 and +1 in sorted order, and the labels.

    Numbers are labels if there are two different ones, each of which occurs again: the first two of many different
    targets are none.
    """
    labels = tuple(sorted({target for target in targets if isinstance(target, str)}))
    if labels:
        return np.array([np.nan if target is None else 2.0 * labels.index(target) - 1 for target in targets]), labels
    y = np.array(targets, dtype=float)  # where None becomes NaN
    distinct, times = np.unique(y[~np.isnan(y)], return_counts=True)
    if len(distinct) != 2 or times.min() < 2:
        return y, ()
    low, high = distinct.tolist()
    return np.where(np.isnan(y), np.nan, np.where(y == high, 1.0, -1.0)), (f"{low:.15g}", f"{high:.15g}")

"""The bill of a study: paid and pending values, by attribute and by order."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from budgetreg.study.state import State
from budgetreg.study.store import StudyFile

if TYPE_CHECKING:
    import pandas as pd

UNORDERED = 0
"""In place of an order's number: values that nobody ordered."""


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
        values), and `cost`. Of attributes that are bought together, the first has the price and the cost.
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

    beforehand = state.known & ~state.paid
    pending = state.by_unit(state.on_order) & ~state.charged
    counts = {
        "beforehand": beforehand,
        "paid": state.paid,
        "on_order": state.on_order,
        "unavailable": state.unavailable,
    }
    by_attribute = pd.DataFrame(
        {
            "attribute": state.attributes,
            "price": state.costs,
            **{name: cells.sum(axis=0) for name, cells in counts.items()},
            "cost": state.charged.sum(axis=0) * state.costs,
        }
    )
    orders = store.rows(
        "SELECT orders.number, SUM(cost), cancelled FROM orders JOIN lines ON order_number = orders.number "
        "GROUP BY orders.number ORDER BY orders.number"
    )
    payer = _payers(state)
    rows = []
    for number, asked, cancelled in [*orders, (UNORDERED, 0.0, False)]:
        of_order = state.orders == number
        row = {name: int((counts[name] & of_order).sum()) for name in ("paid", "on_order", "unavailable")}
        if number == UNORDERED and not (row["paid"] or row["unavailable"]):
            continue
        cost = state.price(state.charged & (payer == number))
        rows.append({"order": number, "asked": asked, **row, "cost": cost, "cancelled": bool(cancelled)})
    columns = ["order", "asked", "paid", "on_order", "unavailable", "cost", "cancelled"]
    by_order = pd.DataFrame(rows, columns=columns)
    return StudyBill(state.unit, state.spent, state.price(pending), by_attribute, by_order)


def _payers(state: State) -> np.ndarray:
    """Return the order that each charged purchase (n, d) belongs to: the first one with a value of it."""
    never = np.iinfo(int).max
    payer = np.full(state.orders.shape, never)
    example, attribute = np.nonzero(state.paid & (state.orders != UNORDERED))
    np.minimum.at(payer, (example, state.heads[attribute]), state.orders[example, attribute])
    return np.where(payer == never, UNORDERED, payer)

"""Orders of cells, recorded before anybody sees them, and released if they are cancelled."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum

import numpy as np

from budgetreg.errors import ConfigError, quoted
from budgetreg.streams import generator
from budgetreg.study.fitting import fitted
from budgetreg.study.orders import recommend
from budgetreg.study.state import State, state_of
from budgetreg.study.store import StudyFile


@dataclass(frozen=True)
class Order:
    """An order.

    Attributes
    ----------
    number : int
        From 1.
    lines : list of (int, str, str, float)
        Order, example, attribute and cost of each value. Of attributes that are bought together, the first has the
        cost.
    reason : str
        Why these, in one sentence.
    unit : str
        The unit of the costs.
    """

    number: int
    lines: list[tuple[int, str, str, float]]
    reason: str
    unit: str

    @property
    def cost(self) -> float:
        """The total price of the order."""
        return fsum(cost for *_, cost in self.lines)


def ask(
    store: StudyFile, spend: float, per_example: int | None = None, seed: int | None = None, number: int | None = None
) -> Order:
    """Record the next order and return it.

    Parameters
    ----------
    store : StudyFile
        In a block `StudyFile.writing`.
    spend : float
        The most that it may cost.
    per_example : int, optional
        The most attributes (groups) of one example, over all orders together.
    seed : int, optional
        Seed of the draws; that of the study by default.
    number : int, optional
        The number that the order gets. If there is an order with it that was asked for in the same way, it is returned
        again, so that a call that was killed can be repeated.

    Raises
    ------
    ConfigError
        If nothing can be ordered, or the number belongs to another order.
    """
    last = store.one("SELECT COALESCE(MAX(number), 0) FROM orders")
    seed = int(store.one("SELECT content FROM facts WHERE name = 'seed'")) if seed is None else seed
    if number is not None and number <= last:
        return _repeated(store, number, (spend, per_example, seed))
    if number not in (None, last + 1):
        raise ConfigError(f"order={number}: the next order has the number {last + 1}")
    state = state_of(store)
    candidates, reason = recommended(state, spend, per_example, seed, last + 1)
    lines = _admitted(state, candidates, spend, per_example)
    if not lines:
        raise ConfigError(_nothing(state, spend, per_example))
    number = last + 1
    store.change("INSERT INTO orders VALUES (?, ?, ?, ?, ?, 0)", [(number, spend, per_example, seed, reason)])
    store.change("INSERT INTO lines VALUES (?, ?, ?, ?, ?)", ((number, at, *line) for at, line in enumerate(lines)))
    store.change("INSERT INTO cells VALUES (?, ?, 'on order', NULL, ?, 0)", ((*cell, number) for *cell, _ in lines))
    store.change("INSERT INTO log (event, order_number) VALUES ('ask', ?)", [(number,)])
    return order_of(store, number)


def order_of(store: StudyFile, number: int) -> Order:
    """Return an order as it was recorded.

    Raises
    ------
    ConfigError
        If there is no such order.
    """
    rows = store.rows("SELECT reason FROM orders WHERE number = ?", (number,))
    if not rows:
        last = store.one("SELECT COALESCE(MAX(number), 0) FROM orders")
        raise ConfigError(
            f"order={number}: there is no such order; {f'the last one is {last}' if last else 'none was asked for'}"
        )
    lines = store.rows(
        "SELECT examples.name, attributes.name, lines.cost FROM lines JOIN examples ON examples.number = example "
        "JOIN attributes ON attributes.number = attribute WHERE order_number = ? ORDER BY place",
        (number,),
    )
    unit = store.one("SELECT content FROM facts WHERE name = 'unit'")
    return Order(number, [(number, *line) for line in lines], rows[0][0], unit)


def cancel(store: StudyFile, number: int) -> int:
    """Cancel the pending cells of an order and return their number; repeating it changes nothing.

    Parameters
    ----------
    store : StudyFile
        In a block `StudyFile.writing`.
    number : int
        The order.

    Raises
    ------
    ConfigError
        If there is no such order.
    """
    order_of(store, number)
    pending = store.rows(
        "SELECT example, attribute FROM cells WHERE order_number = ? AND state = 'on order'", (number,)
    )
    store.change("DELETE FROM cells WHERE example = ? AND attribute = ?", pending)
    store.change("UPDATE orders SET cancelled = 1 WHERE number = ?", [(number,)])
    if pending:
        store.change("INSERT INTO log (event, order_number) VALUES ('cancel', ?)", [(number,)])
    return len(pending)


def recommended(
    state: State, spend: float, per_example: int | None, seed: int, number: int
) -> tuple[Iterable[tuple[int, int]], str]:
    """Return candidates for an order, example and attribute each, the best first, and the reason for them."""
    # Values alone show how attributes are related; without any, nothing can be preferred.
    model = fitted(state) if state.known.any() and state.known_targets.any() else None
    recommendation = recommend(
        model,
        state.known,
        state.on_order | state.unavailable,
        state.costs,
        state.groups,
        spend,
        per_example,
        generator("study order", seed, number),
        state.known_targets,
        ordered=state.orders > 0,
    )
    cells = recommendation.cells
    # What costs nothing counts for the limit of an example too, and comes last.
    free = state.costs[state.heads[cells[:, 1]]] == 0
    delivered = np.argwhere(state.charged & _open(state))  # what was paid for and released costs nothing more
    return np.concatenate([delivered, cells[~free], cells[free]]).tolist(), recommendation.reason


def _open(state: State) -> np.ndarray:
    """Return which purchases (n, d) can be ordered: some of their cells are neither known, on order nor unavailable."""
    return state.by_unit(~(state.known | state.on_order | state.unavailable))


def _admitted(
    state: State, candidates: Iterable[Sequence[int]], spend: float, per_example: int | None
) -> list[tuple[int, int, float]]:
    """Return the cells of an order, with costs: of the candidates, in order, those that stay within both limits."""
    open_cells = ~(state.known | state.on_order | state.unavailable)
    taken = state.by_unit(state.orders > 0)
    # The price of a group is charged once: its other values cost nothing more.
    costs = np.where(state.charged, 0.0, state.costs)
    counts, ordered = taken.sum(axis=1), np.zeros_like(taken)
    most = math.inf if per_example is None else per_example
    lines: list[tuple[int, int, float]] = []
    paid = Fraction()  # exact: sums of floats depend on their order
    for example, attribute in candidates:
        head = state.heads[attribute]
        cost, another = float(costs[example, head]), not taken[example, head]
        total = paid + Fraction(cost)
        if ordered[example, head] or float(total) > spend or counts[example] + another > most:
            continue
        members = np.flatnonzero((state.heads == head) & open_cells[example]).tolist()
        if not members:
            continue
        ordered[example, head] = True
        counts[example] += another
        paid = total
        lines += [(int(example), at, cost if at == members[0] else 0.0) for at in members]
    return lines


def _nothing(state: State, spend: float, per_example: int | None) -> str:
    """Return why nothing can be ordered."""
    units = _open(state)
    if not units.any():
        return "there is nothing left to order: every value is known, on order or unavailable"
    if state.known_targets.any():
        units = units & state.known_targets[:, None]
    if not units.any():
        return (
            f"there is nothing left to order of examples whose target is known: budgetreg study add records the column "
            f"{state.facts['target']}"
        )
    # Free cells come with those that have a price; alone they cannot be ordered.
    costs = np.where(state.charged, 0.0, state.costs)[units]
    least = costs[costs > 0].min(initial=math.inf)
    if spend < least < math.inf:
        return f"spend={spend:g}: nothing that is left costs less than {least:g} {state.unit}"
    limit = "" if per_example is None else f" per_example={per_example}"
    return f"spend={spend:g}{limit}: nothing that may be ordered is within these limits"


def _repeated(store: StudyFile, number: int, asked: tuple[float, int | None, int]) -> Order:
    """Return an order again, if it was asked for in the same way.

    Raises
    ------
    ConfigError
        If it was not, or it was cancelled.
    """
    ((*recorded, cancelled),) = store.rows(
        "SELECT spend, per_example, seed, cancelled FROM orders WHERE number = ?", (number,)
    )
    if cancelled:
        raise ConfigError(f"order={number}: this order was cancelled; leave out order= for a new one")
    if tuple(recorded) != asked:
        words = zip(("spend", "per_example", "seed"), recorded, strict=True)
        made = " ".join(f"{key}={value:g}" for key, value in words if value is not None)
        raise ConfigError(
            f"order={number}: this order was asked for with {quoted(made)}; leave out order= for a new one"
        )
    return order_of(store, number)

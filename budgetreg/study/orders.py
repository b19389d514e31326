"""What to buy next: orders of a study's cells, and measurements of new examples.

An order is recorded before anybody sees it, and its pending cells are released if it is cancelled.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from budgetreg.common.errors import ConfigError, quoted
from budgetreg.common.notices import Notice, plural
from budgetreg.common.streams import generator
from budgetreg.protocol.plan import listed
from budgetreg.revealed.designs import regression_weights
from budgetreg.revealed.purchases import LEAST_DEPTH, Alternative, Beliefs, Choice, Draws, Limit, Offer, choose
from budgetreg.runs.tables import as_csv
from budgetreg.study.file import StudyFile, exact
from budgetreg.study.model import JointModel, fitted, settled
from budgetreg.study.state import State, number_as_text, state_of

COLUMNS = ("order", "example", "attribute", "cost", "value")
"""The columns of an order, into whose last one the results are written."""

_NEGLIGIBLE = 1e-9
"""Share of the variance of ``<w, x>`` up to which a reduction is rounding, and of an attribute's variance up to which
the known attributes determine it."""

_ENTRIES = 2**22
"""Numbers in the covariances that are held at a time."""


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
    alternatives : tuple of Alternative
        What it was compared with, unless it was recorded before; empty while nothing is known.
    """

    number: int
    lines: list[tuple[int, str, str, float]]
    reason: str
    unit: str
    alternatives: tuple[Alternative, ...] = ()

    @property
    def cost(self) -> float:
        """The total price of the order."""
        return float(sum(exact(cost) for *_, cost in self.lines))

    def csv(self) -> bytes:
        """Return the order as a file: a line for each value, which is still empty."""
        lines = ((*line, number_as_text(cost)) for *line, cost in self.lines)
        return as_csv(COLUMNS, (dict(zip(COLUMNS, line, strict=False)) for line in lines))


def ask(store: StudyFile, spend: float, per_example: int | None, seed: int | None, number: int | None) -> Order:
    """Record the next order and return it.

    Parameters
    ----------
    store : StudyFile
        In a block `StudyFile.writing`.
    spend : float
        The most that it may cost.
    per_example : int or None
        The most attributes (groups) of one example, over all orders together.
    seed : int or None
        Seed of the draws; None for that of the study.
    number : int or None
        The number that the order gets. If there is an order with it that was asked for in the same way, it is returned
        again, so that a call that was killed can be repeated.

    Raises
    ------
    ConfigError
        If nothing can be ordered, or the number belongs to another order.
    """
    after, seed = _next_number(store), int(store.facts()["seed"]) if seed is None else seed
    if number is not None and number < after:
        return _repeated(store, number, (spend, per_example, seed))
    if number not in (None, after):
        raise ConfigError(f"order={number}: the next order has the number {after}")
    order, cells = propose(store, spend, per_example, seed)
    store.change("INSERT INTO orders VALUES (?, ?, ?, ?, ?, 0)", [(after, spend, per_example, seed, order.reason)])
    store.change("INSERT INTO lines VALUES (?, ?, ?, ?, ?)", ((after, at, *cell) for at, cell in enumerate(cells)))
    store.change("INSERT INTO cells VALUES (?, ?, 'on order', NULL, ?, 0)", ((*cell, after) for *cell, _ in cells))
    store.note(("ask", None, None, after, None, None, None))
    return order


def order_of(store: StudyFile, number: int) -> Order:
    """Return an order as it was recorded.

    Raises
    ------
    ConfigError
        If there is no such order.
    """
    last = _next_number(store) - 1
    if number > last:
        raise ConfigError(
            f"order={number}: there is no such order; {f'the last one is {last}' if last else 'none was asked for'}"
        )
    lines = store.rows(
        "SELECT examples.name, attributes.name, lines.cost FROM lines JOIN examples ON examples.number = example "
        "JOIN attributes ON attributes.number = attribute WHERE order_number = ? ORDER BY place",
        (number,),
    )
    reason = store.one("SELECT reason FROM orders WHERE number = ?", (number,))
    return Order(number, [(number, *line) for line in lines], reason, store.facts()["unit"])


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
    if pending:
        store.change("UPDATE orders SET cancelled = 1 WHERE number = ?", [(number,)])
        store.note(("cancel", None, None, number, None, None, None))
    return len(pending)


def _next_number(store: StudyFile) -> int:
    return 1 + int(store.one("SELECT COUNT(*) FROM orders"))


def propose(
    store: StudyFile, spend: float, per_example: int | None, seed: int | None
) -> tuple[Order, list[tuple[int, int, float]]]:
    """Return what `ask` would order, and its cells with costs; nothing is recorded.

    The parameters are those of `ask`. The file may be read only.

    Raises
    ------
    ConfigError
        If nothing can be ordered.
    """
    state, number = state_of(store), _next_number(store)
    seed = int(state.facts["seed"]) if seed is None else seed
    # Values alone show how attributes are related; without any, nothing can be preferred.
    model = fitted(state) if state.known.any() and state.known_targets.any() else None
    no_use = settled(state, model)
    seen, rng = state.known | state.on_order | state.unavailable, generator("study order", seed, number)
    # What was paid for, or is on order with others of its group, costs nothing more: the money is for other cells.
    no_more = (state.charged | state.by_unit(state.on_order)) & state.by_unit(state.open)
    rest = no_more[:, state.heads] & state.open
    seen, is_open = seen | rest, state.open & ~rest & ~no_use
    choice, reason = recommend(
        model, seen, is_open, state.taken, state.costs, state.heads, state.known_targets, spend, per_example, rng
    )
    if rest.any() and choice.cost:
        reason = f"{plural(int(rest.sum()), 'value')} that cost nothing more, and {reason}"
    elif rest.any():
        reason = _without_cost(spend, has_cells=True)
    chosen = choice.cells
    free = state.costs[state.heads[chosen[:, 1]]] == 0
    candidates = np.concatenate([np.argwhere(no_more), chosen[~free], chosen[free]]).tolist()
    cells = _admitted(state, candidates, spend, per_example)
    if not cells:
        raise ConfigError(_nothing(state, no_use, spend, per_example))
    if (unsaid := no_use & (state.open & ~rest).any(axis=0)).any():
        warnings.warn(f"not ordered, as {_shows_nothing(state, unsaid)}", Notice, stacklevel=3)
    lines = [(number, state.examples[example], state.attributes[attribute], cost) for example, attribute, cost in cells]
    return Order(number, lines, reason, state.unit, choice.alternatives), cells


def _admitted(
    state: State, candidates: Iterable[Sequence[int]], spend: float, per_example: int | None
) -> list[tuple[int, int, float]]:
    """Return the cells of an order, with costs: of the candidates, in order, those that stay within both limits."""
    taken, priced = state.taken, state.costs > 0  # what has no price does not count for the limit
    # The price of a group is charged once: its other values cost nothing more.
    costs = state.prices
    counts, ordered, open_cells = taken[:, priced].sum(axis=1), np.zeros_like(taken), state.open
    most = math.inf if per_example is None else per_example
    lines: list[tuple[int, int, float]] = []
    paid, most_paid = Fraction(), exact(spend)
    for example, attribute in candidates:
        head = state.heads[attribute]
        cost, another = float(costs[example, head]), priced[head] and not taken[example, head]
        total = paid + exact(cost)
        if ordered[example, head] or total > most_paid or (another and counts[example] >= most):
            continue
        members = np.flatnonzero((state.heads == head) & open_cells[example]).tolist()
        if not members:
            continue
        ordered[example, head] = True
        counts[example] += another
        paid = total
        lines += [(int(example), at, cost if at == members[0] else 0.0) for at in members]
    return lines


def _nothing(state: State, no_use: np.ndarray, spend: float, per_example: int | None) -> str:
    """Return why nothing can be ordered."""
    units = state.by_unit(state.open)
    if not units.any():
        closed = ", unavailable or excluded" if state.excluded.any() else " or unavailable"
        return f"there is nothing left to order: every value is known, on order{closed}"
    if state.known_targets.any():
        units = units & state.known_targets[:, None]
    if units.any() and not units[:, ~no_use].any():
        return f"there is nothing left to order: {_shows_nothing(state, no_use)}"
    if not units.any():
        return (
            f"there is nothing left to order of examples whose target is known: budgetreg study add records the column "
            f"{state.facts['target']}"
        )
    # Free cells come with those that have a price; alone they cannot be ordered.
    costs = state.prices[units & ~no_use]
    least = costs[costs > 0].min(initial=math.inf)
    limits = f"spend={number_as_text(spend)}"
    if spend < least < math.inf:
        free = "; values that cost nothing are ordered together with others" if (costs == 0).any() else ""
        priced = " and has a price" if free else ""
        return f"{limits}: nothing that is left{priced} costs less than {number_as_text(least)} {state.unit}{free}"
    limits += "" if per_example is None else f" per_example={per_example}"
    return f"{limits}: nothing that may be ordered is within these limits"


def _shows_nothing(state: State, no_use: np.ndarray) -> str:
    """Return why some attributes are not ordered."""
    names = listed([quoted(state.attributes[at]) for at in np.flatnonzero(no_use)])
    return (
        f"more values would show nothing of attributes that are left out, or whose many values are all equal: {names}"
    )


def _repeated(store: StudyFile, number: int, asked: tuple[float, int | None, int]) -> Order:
    """Return an order again, if it was asked for in the same way.

    Raises
    ------
    ConfigError
        If it was not, or it was cancelled, or all of its values were released.
    """
    ((*recorded, cancelled),) = store.rows(
        "SELECT spend, per_example, seed, cancelled FROM orders WHERE number = ?", (number,)
    )
    if cancelled:
        raise ConfigError(f"order={number}: this order was cancelled; leave out order= for a new one")
    if tuple(recorded) != asked:
        words = zip(("spend", "per_example", "seed"), recorded, strict=True)
        made = " ".join(f"{key}={number_as_text(value)}" for key, value in words if value is not None)
        raise ConfigError(
            f"order={number}: this order was asked for with {quoted(made)}; leave out order= for a new one"
        )
    order = order_of(store, number)
    released = store.one(
        "SELECT COUNT(*) FROM lines LEFT JOIN cells USING (example, attribute) "
        "WHERE lines.order_number = ? AND cells.order_number IS NOT lines.order_number",
        (number,),
    )
    if released == len(order.lines):
        raise ConfigError(f"order={number}: all of its values were released; leave out order= for a new one")
    if released:
        warnings.warn(
            f"order={number}: {released} of its {plural(len(order.lines), 'value')} were released: they are not to be "
            "measured, and what comes back of them is charged",
            Notice,
            stacklevel=4,
        )
    return order


def recommend(
    model: JointModel | None,
    seen: np.ndarray,
    is_open: np.ndarray,
    ordered: np.ndarray,
    prices: np.ndarray,
    heads: np.ndarray,
    has_target: np.ndarray,
    spend: float,
    per_example: int | None,
    rng: np.random.Generator,
) -> tuple[Choice, str]:
    """Recommend the cells that are worth most for their price, see `budgetreg.revealed.purchases`.

    Parameters
    ----------
    model : JointModel or None
        What was learned so far; None if no value is known.
    seen, is_open, ordered : ndarray of bool, shape (n, d)
        Cells that are known, on order or unavailable; that may be ordered; and of earlier orders.
    prices : ndarray of float, shape (d,)
        Prices of the attributes, at least 0. The price of a group is that of its first attribute.
    heads : ndarray of int, shape (d,)
        The first attribute of each attribute's group: itself, if it is alone.
    has_target : ndarray of bool, shape (n,)
        Examples whose target is known. Others are ordered only if no target is known yet.
    spend : float
        Most that the order may cost.
    per_example : int or None
        Most attributes with a price of one example, over all orders together; a group counts as one. None: no limit.
    rng : numpy.random.Generator
        The same state gives the same order.

    Returns
    -------
    choice : Choice
        Without cells if nothing can be ordered.
    reason : str
        One sentence.
    """
    leads, units = np.unique(heads, return_inverse=True)
    is_open = is_open & (prices[heads] <= spend)  # others would count in the mean price by which examples are planned
    offer = Offer(seen, is_open, units, prices[leads], np.full(len(seen), len(leads)))
    priced = offer.prices > 0
    if per_example is not None:
        offer.limits[:] = np.maximum(per_example - offer.by_unit(ordered)[:, priced].sum(axis=1), 0)
    if model is None:
        beliefs, weights = None, np.ones(len(heads))
    else:
        beliefs, weights = Beliefs(model.covariance, model.w, model.noise), _weights(model)
    buyable = has_target if has_target.any() else np.ones(len(seen), dtype=bool)
    begun = offer.by_unit(seen)[:, priced].any(axis=1)
    examples = np.concatenate([np.flatnonzero(buyable & begun), np.flatnonzero(buyable & ~begun)])
    choice = choose(offer, beliefs, np.bincount(units, weights), spend, rng, candidates=examples)
    paid = prices[heads] > 0
    rows = np.unique(choice.cells[paid[choice.cells[:, 1]], 0])
    complete = bool((seen | is_open)[np.ix_(rows, paid)].all())
    is_open[tuple(choice.cells.T)] = False
    filled = int((~is_open[np.ix_(rows, paid)].any(axis=1)).sum())
    free = len(choice.cells) - int(paid[choice.cells[:, 1]].sum())
    kinds = {"weighed": beliefs is not None, "all_priced": not free}
    reason = _reason(choice, len(rows), filled, int(priced.sum()), spend, complete, **kinds)
    return choice, f"{reason}; {plural(free, 'value')} of no cost besides" if free and choice.cost else reason


def _weights(model: JointModel) -> np.ndarray:
    """Return the weights by which attributes are drawn; attributes count in their standard deviations."""
    shared = model.covariance @ model.w
    variance = float(model.w @ shared) + model.noise
    residual = np.diagonal(model.covariance) - np.square(shared) / (variance or 1.0)
    w = model.w * model.units
    return regression_weights(np.sqrt(np.maximum(residual, 0.0)) / model.units, w, np.square(w))


def _without_cost(spend: float, *, has_cells: bool) -> str:
    """Return why an order costs nothing."""
    what = "cells that cost nothing are all that is ordered" if has_cells else "nothing is ordered"
    return f"{what}, as no other cell that may be ordered costs at most {spend:,.10g}"


def _reason(
    choice: Choice,
    examples: int,
    filled: int,
    units: int,
    spend: float,
    complete: bool,
    *,
    weighed: bool,
    all_priced: bool,
) -> str:
    """Return why a choice is as it is.

    `examples` is the number of examples that get any of the `units` units with a price. Of `filled` of these examples,
    everything that is offered is bought. `complete` says whether all their units are known, on order or offered.
    """
    many, offered = plural(examples, "example"), "that can be ordered" if all_priced else "with a price"
    if choice.limit is Limit.NOTHING or not choice.cost:
        return _without_cost(spend, has_cells=len(choice.cells) > 0)
    few = f"{choice.depth} of {units} attributes" if choice.depth > 1 else f"one of {units} attributes"
    each = f"up to {few} each of {many}"
    if choice.draws in (Draws.FIXED, Draws.MIXED) and choice.limit is not Limit.ALL:
        half = " in half of them" if choice.draws is Draws.MIXED else ""
        return f"{each}, about the same ones{half}, as others are expected to be worth clearly less"
    if choice.limit is Limit.ALL and choice.depth == 1:
        return f"the one attribute {offered}, of each of {many}"
    rows = "complete rows" if complete else f"all {choice.depth} attributes {offered}"
    rows = f"{rows}, of {many if filled == examples else f'{filled} of {many}'}"
    if not filled:
        rows = f"as much of {many} as the money pays for"
    if choice.limit is Limit.ALL and (choice.depth == LEAST_DEPTH or not weighed):
        fewer = (
            "one attribute alone does not show" if choice.depth == LEAST_DEPTH else "the money pays for enough to see"
        )
        return f"{rows}, as {fewer} how attributes are related"
    return {
        Limit.FEW_EXAMPLES: f"at most {few} per example, as so few known values reveal more about how attributes are "
        f"related if they are spread over {many} than in complete rows",
        Limit.SHARED: f"{each}, as more of fewer examples are not expected to be worth more",
        Limit.ALL: f"{rows}, as a few attributes of each of more examples are not expected to be worth more",
        Limit.PER_EXAMPLE: f"{each}, the most that one example may have",
        Limit.EXAMPLES: f"{each}, as there are no more examples to buy first attributes of",
    }[choice.limit]


@dataclass(frozen=True)
class Measurement:
    """A measurement, and what it brings.

    Attributes
    ----------
    attributes : tuple of int
        What is measured: one attribute, or those of a group that are missing.
    price : float
        What it costs; a group has one price.
    before, after : float
        Standard deviation of the prediction without it and with it.
    """

    attributes: tuple[int, ...]
    price: float
    before: float
    after: float


def next_cells(
    model: JointModel,
    X: np.ndarray,
    prices: np.ndarray,
    heads: np.ndarray,
    excluded: np.ndarray,
    spend: float = np.inf,
) -> list[list[Measurement]]:
    """Return what to measure next of each new example, in order: what lowers the variance of its prediction most.

    Of an example the attributes A are known; V is the covariance of the others given them. Under the factor model the
    variance of the prediction is ``w'V w + s2``, and a group G of attributes that is measured too lowers it by

        (V w)_G' V_GG^-1 (V w)_G,        for a single attribute j    (V w)_j^2 / V_jj,

    whatever the values turn out to be. V is then replaced by the covariance given A and G. As nothing depends on
    values, examples with the same holes get the same order.

    The order is greedy: next comes what lowers the variance most per price, of all that is still affordable. What costs
    nothing comes first. The list of an example ends when nothing affordable lowers the variance.

    Parameters
    ----------
    model : JointModel
    X : ndarray of float, shape (n, d)
        The examples; NaN for values that are missing.
    prices : ndarray of float, shape (d,)
        What attributes cost, at least 0. Of a group, the price of its first attribute counts, once.
    heads : ndarray of int, shape (d,)
        The first attribute of those that each attribute is measured together with: itself, if it is alone.
    excluded : ndarray of bool, shape (d,)
        Attributes that cannot be measured any more.
    spend : float
        What may be spent on each example.
    """
    patterns, pattern_of = np.unique(np.isnan(X), axis=0, return_inverse=True)
    step = max(1, _ENTRIES // len(heads) ** 2)
    orders: list[list[Measurement]] = []
    for start in range(0, len(patterns), step):
        orders += _Covariances(model, patterns[start : start + step], heads, excluded).greedy(prices, spend)
    return [list(orders[pattern]) for pattern in pattern_of.reshape(-1)]


class _Covariances:
    """The covariances of P patterns of holes, which shrink while measurements are chosen.

    Attributes are in units of their standard deviations, so that thresholds do not depend on the user's units.
    """

    def __init__(self, model: JointModel, missing: np.ndarray, heads: np.ndarray, excluded: np.ndarray) -> None:
        self._units, self._unit_of, sizes = np.unique(heads, return_inverse=True, return_counts=True)
        self._several = [np.flatnonzero((heads == head) & ~excluded) for head in self._units[sizes > 1]]
        self._offered = np.bincount(self._unit_of, ~excluded) > 0
        scale = model.units
        self._w, self._noise = model.w * scale, model.noise
        self._missing = missing & ~excluded
        given = model.conditional(np.where(missing, np.nan, 0.0))
        self._V = given.covariances[given.pattern] / np.outer(scale, scale)
        self._nothing = _NEGLIGIBLE * float(model.w @ model.covariance @ model.w)

    def greedy(self, prices: np.ndarray, spend: float) -> list[list[Measurement]]:
        """Choose measurements for all patterns side by side, one of each pattern in a round."""
        chosen: list[list[Measurement]] = [[] for _ in self._missing]
        price, left, row = prices[self._units], np.full(len(chosen), float(spend)), np.arange(len(chosen))
        rounding = 0.0 if np.isinf(spend) else _NEGLIGIBLE * spend  # ten times 0.1 are affordable with 1
        deviation = self._deviations()
        while True:
            gain = self._reductions()
            useful = self._offered & (gain > self._nothing) & (price <= left[:, None] + rounding)
            if (free := useful & (price == 0)).any():
                useful &= free | ~free.any(axis=1, keepdims=True)
            score = gain / np.where(price > 0, price, 1.0)  # what is free competes with nothing else
            best = np.where(useful, score, -1.0).argmax(axis=1)
            going = useful[row, best]
            if not going.any():
                return chosen
            bought = going[:, None] & (self._unit_of == best[:, None]) & self._missing
            for j in np.flatnonzero(bought.any(axis=0)):
                self._condition(int(j), bought[:, j])
            self._missing &= ~bought
            after = self._deviations()
            for p in np.flatnonzero(going):
                attributes = tuple(np.flatnonzero(bought[p]).tolist())
                cost = float(price[best[p]])
                chosen[p].append(Measurement(attributes, cost, float(deviation[p]), float(after[p])))
            left -= np.where(going, price[best], 0.0)
            deviation = after

    def _condition(self, j: int, given: np.ndarray) -> None:
        """Replace the covariances of some patterns by those given attribute j too."""
        column = self._V[given, :, j]
        variance = column[:, j]
        determined = variance <= _NEGLIGIBLE
        root = np.where(determined, 0.0, 1 / np.sqrt(np.where(determined, 1.0, variance)))
        column *= root[:, None]
        self._V[given] -= column[:, :, None] * column[:, None, :]
        self._V[given, j] = self._V[given, :, j] = 0.0

    def _deviations(self) -> np.ndarray:
        """Return the standard deviations of the predictions, shape (P,)."""
        explained = np.einsum("pi,i->p", self._V @ self._w, self._w)
        return np.sqrt(np.maximum(explained, 0.0) + self._noise)

    def _reductions(self) -> np.ndarray:
        """Return by how much each measurement lowers the variance, shape (P, units); 0 for what is known."""
        shared = self._V @ self._w
        variance = np.einsum("pjj->pj", self._V)
        undetermined = variance > _NEGLIGIBLE
        single = np.where(undetermined, np.square(shared) / np.where(undetermined, variance, 1.0), 0.0)
        gain = single[:, self._units]
        for members in filter(len, self._several):
            among = np.linalg.pinv(self._V[:, members[:, None], members], rcond=_NEGLIGIBLE, hermitian=True)
            part = shared[:, members]
            gain[:, self._unit_of[members[0]]] = np.einsum("pi,pij,pj->p", part, among, part)
        return np.asarray(gain)

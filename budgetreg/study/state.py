"""The contents of a study at a moment, as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np

from budgetreg.data.groups import Groups
from budgetreg.study.examples import Target
from budgetreg.study.store import StudyFile


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
    ranges : ndarray of float, shape (d, 2)
        Usual ranges; NaN if there are none.
    values : ndarray of float, shape (n, d)
        NaN where nothing is known.
    on_order, unavailable, paid : ndarray of bool, shape (n, d)
        Cells whose values are pending, will never be measured, and are charged.
    orders : ndarray of int, shape (n, d)
        The order of each cell, from 1; 0 if there is none.
    version : int
        The number of events so far that changed what is known.
    """

    facts: Mapping[str, str]
    examples: tuple[str, ...]
    attributes: tuple[str, ...]
    y: np.ndarray
    labels: tuple[str, ...]
    costs: np.ndarray
    heads: np.ndarray
    ranges: np.ndarray
    values: np.ndarray
    on_order: np.ndarray
    unavailable: np.ndarray
    paid: np.ndarray
    orders: np.ndarray
    version: int

    @property
    def unit(self) -> str:
        """The unit of the prices."""
        return self.facts["unit"]

    @property
    def groups(self) -> Groups | None:
        """Attributes that are bought together; None if each is bought alone."""
        groups = Groups(tuple(self.heads.tolist()))
        return None if groups.leads.all() else groups

    @property
    def known(self) -> np.ndarray:
        """Cells with a value, bool of shape (n, d)."""
        return ~np.isnan(self.values)

    @property
    def known_targets(self) -> np.ndarray:
        """Known targets, bool of shape (n,)."""
        return ~np.isnan(self.y)

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
    def spent(self) -> float:
        """The sum of all charges so far."""
        return self.price(self.charged)

    def price(self, units: np.ndarray) -> float:
        """Return the price of purchases (n, d), exactly rounded."""
        return fsum(count * cost for count, cost in zip(units.sum(axis=0).tolist(), self.costs.tolist(), strict=True))


def state_of(store: StudyFile) -> State:
    """Return what a study knows; in a block of `StudyFile.reading` or `StudyFile.writing`."""
    facts: dict[str, str] = dict(store.rows("SELECT name, content FROM facts"))
    attributes = store.rows("SELECT name, cost, head, low, high FROM attributes ORDER BY number")
    names, costs, heads, low, high = zip(*attributes, strict=True)
    examples = tuple(name for (name,) in store.rows("SELECT name FROM examples ORDER BY number"))
    y, labels = _targets(targets_of(store))
    shape = len(examples), len(names)
    values, orders = np.full(shape, np.nan), np.zeros(shape, dtype=int)
    on_order, unavailable, paid = (np.zeros(shape, dtype=bool) for _ in range(3))
    cells = store.rows("SELECT example, attribute, state, value, order_number, paid FROM cells")
    if cells:
        example, attribute, states, known, order, charged = zip(*cells, strict=True)
        at = np.array(example), np.array(attribute)
        values[at] = np.array(known, dtype=float)
        orders[at] = [number or 0 for number in order]
        on_order[at] = [state == "on order" for state in states]
        unavailable[at] = [state == "unavailable" for state in states]
        paid[at] = np.array(charged, dtype=bool)
    return State(
        facts,
        examples,
        names,
        y,
        labels,
        np.array(costs, dtype=float),
        np.array(heads),
        np.array([low, high], dtype=float).T,
        values,
        on_order,
        unavailable,
        paid,
        orders,
        store.one("SELECT COUNT(*) FROM log WHERE event NOT IN ('ask', 'cancel')"),
    )


def targets_of(store: StudyFile) -> list[Target | None]:
    """Return the targets as they were recorded; None where they are not known."""
    return [target for (target,) in store.rows("SELECT target FROM examples ORDER BY number")]


def _targets(targets: list[Target | None]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return targets as numbers, two labels as -1 and +1 in sorted order, and the labels.

    Numbers are labels if there are two different ones, each of which occurs again: the first two of many different
    targets are none.
    """
    labels = tuple(sorted({target for target in targets if isinstance(target, str)}))
    if labels:
        return np.array([np.nan if target is None else 2.0 * labels.index(target) - 1 for target in targets]), labels
    y = np.array([np.nan if target is None else target for target in targets], dtype=float)
    distinct, times = np.unique(y[~np.isnan(y)], return_counts=True)
    if len(distinct) != 2 or times.min() < 2:
        return y, ()
    low, high = distinct.tolist()
    return np.where(np.isnan(y), np.nan, np.where(y == high, 1.0, -1.0)), (f"{low:.15g}", f"{high:.15g}")

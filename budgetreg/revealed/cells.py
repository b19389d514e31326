"""Choose the cells of a table to buy next: how many attributes of each example, and which.

A design here is a depth k: examples are filled up to k attributes each, drawn about in proportion to given weights,
until the money is spent. So few attributes of many examples compete with complete rows of few. The criterion of
`budgetreg.revealed.information` judges each depth by a sample of such draws, after its noise is corrected by what has
been seen. Depths whose errors are within 2 % of the least are tied. The criterion takes the covariance of the
attributes for known, and complete rows alone do not need it. So they are chosen if they are among the tied, and else
the geometric mean of the smallest and the largest depth.

The depth is bounded: there must be at least 1.5 examples for each attribute, because fewer show little of how
attributes are related. While nothing is known, this bound decides alone.

Attributes may be bought together, as one unit; most units are single attributes.
"""

from dataclasses import dataclass
from enum import Enum
from math import ceil
from typing import NamedTuple

import numpy as np

from budgetreg.revealed.importance_weights import per_money
from budgetreg.revealed.information import Beliefs, Criterion

_EXAMPLES = 1.5
"""Fewest examples for each attribute that a design has, about."""

LEAST_DEPTH = 2
"""One attribute of an example shows no pair."""

_TIE = 0.02
"""Relative difference of errors up to which depths are tied."""

_MIX = 0.1
"""Share of equal probabilities in the draws."""

_SETS, _SHOWN, _LEAST_SETS = 32, 1024, 4
"""Most sets that a depth is judged by; about the most attributes of all these sets together; fewest sets."""

_ROUNDING = 1e-12
"""Relative rounding error of sums of prices that may make a purchase seem to cost more than is left."""


class Limit(Enum):
    """The reason for the number of attributes that an example gets."""

    FEW_EXAMPLES = "deeper examples would be too few to show how attributes are related"
    SHARED = "attributes are correlated, so that further ones of an example would add little"
    ALL = "nothing is clearly worth more than complete rows"
    PER_EXAMPLE = "no example may have more"
    EXAMPLES = "all examples are as deep, or nearly so"
    NOTHING = "no cell that is left can be paid for"


@dataclass(frozen=True)
class Offer:
    """The cells of a table, and what they cost.

    Attributes
    ----------
    seen : ndarray of bool, shape (n, d)
        Cells that are known or on order.
    open : ndarray of bool, shape (n, d)
        Cells that may be bought; none of them is seen.
    units : ndarray of int, shape (d,)
        The unit with which each attribute is bought, from 0 to u - 1.
    prices : ndarray of float, shape (u,)
        Prices of the units, at least 0.
    limits : ndarray of int, shape (n,)
        How many more units with a price each example may get.
    """

    seen: np.ndarray
    open: np.ndarray
    units: np.ndarray
    prices: np.ndarray
    limits: np.ndarray

    def by_unit(self, cells: np.ndarray) -> np.ndarray:
        """Return which units (n, u) have any of some cells (n, d)."""
        return np.asarray(cells @ (self.units[:, None] == np.arange(len(self.prices))).astype(float) > 0)


class Choice(NamedTuple):
    """The cells to buy.

    Attributes
    ----------
    cells : ndarray of int, shape (m, 2)
        Example and attribute of each cell, in order of examples.
    cost : float
        What they cost together.
    depth : int
        Number of units that examples are filled up to; 0 if nothing is bought.
    limit : Limit
        Why it is not more, or not less.
    """

    cells: np.ndarray
    cost: float
    depth: int
    limit: Limit


def choose(
    offer: Offer,
    beliefs: Beliefs | None,
    weights: np.ndarray,
    spend: float,
    rng: np.random.Generator,
    *,
    candidates: np.ndarray | None = None,
    price_aware: bool = True,
) -> Choice:
    """Choose the cells to buy next.

    Cells with a price of 0 are bought of each example that shows anything with a price; of all, if nothing has one.

    Parameters
    ----------
    offer : Offer
    beliefs : Beliefs or None
        None while nothing is known.
    weights : ndarray of float, shape (u,)
        Units are drawn about in proportion to these weights, at least 0.
    spend : float
        What the cells may cost together.
    rng : numpy.random.Generator
        The same state gives the same cells.
    candidates : ndarray of int, optional
        Examples of which cells may be bought, the preferred first. By default all: first those that show anything with
        a price, then the others, each in order.
    price_aware : bool
        Whether the weights are corrected for prices.
    """
    purchase = _Purchase(offer, weights, candidates, price_aware)
    depth, limit = purchase.depth(beliefs, spend, rng)
    left = spend
    while depth and purchase.affords(left):
        cost = purchase.fill(depth, left, rng)
        if not cost:
            depth, limit = depth + 1, Limit.EXAMPLES
        left -= cost
    cells = purchase.cells()
    if not len(cells):
        depth, limit = 0, Limit.NOTHING
    return Choice(cells, float(purchase.bought.sum(axis=0) @ offer.prices), depth, limit)


class _Purchase:
    """Units (n, u) that are bought in one go, at first none."""

    def __init__(self, offer: Offer, weights: np.ndarray, candidates: np.ndarray | None, price_aware: bool) -> None:
        self._offer = offer
        self._open = offer.by_unit(offer.open)
        seen = offer.by_unit(offer.seen) & ~self._open
        self.bought = np.zeros(self._open.shape, dtype=bool)
        self._priced = np.flatnonzero(offer.prices > 0)
        if candidates is None:
            new = ~seen[:, self._priced].any(axis=1)
            candidates = np.argsort(new, kind="stable")
        self._candidates = candidates
        able = self._open[:, self._priced].any(axis=1) & (offer.limits > 0)
        self._examples = candidates[able[candidates]]
        # Units that no example offers any more do not count: an example that has k of the others is k deep.
        self._varying = self._priced[self._open[np.ix_(self._examples, self._priced)].any(axis=0)]
        self._has = seen[:, self._varying]
        w = weights[self._varying]
        if price_aware and w.size:
            w = per_money(w, offer.prices[self._varying])
        self._p = (1 - _MIX) * w / (w.sum() or 1.0) + _MIX / max(len(w), 1)
        room = self._has.sum(axis=1) + np.minimum(offer.limits, self._open[:, self._varying].sum(axis=1))
        self.most = int(room[self._examples].max(initial=0))

    @property
    def _depths(self) -> np.ndarray:
        """How many of the varying units each example has or gets, shape (n,)."""
        return np.asarray((self._has | self.bought[:, self._varying]).sum(axis=1))

    def depth(self, beliefs: Beliefs | None, spend: float, rng: np.random.Generator) -> tuple[int, Limit]:
        """Return how deep examples are to be filled, at most `most`, and why; 0 if none can be."""
        if not self.most:
            return 0, Limit.NOTHING
        u, eligible = self._varying.size, np.union1d(self._examples, np.flatnonzero(self._has.any(axis=1)))
        price = self._offer.prices[self._varying] @ self._p / self._p.sum()
        units = self._has.sum() + spend / price
        top = min(self.most, max(LEAST_DEPTH, round(units / (_EXAMPLES * u))))
        depth = top
        if beliefs is not None and top > LEAST_DEPTH:
            depth = self._least_error(self._criterion(beliefs), top, units, len(eligible), rng)
        limit = Limit.SHARED if depth < top else Limit.FEW_EXAMPLES
        if depth == self.most:
            limit = Limit.ALL if self.most == u else Limit.PER_EXAMPLE
        reached = min(int(units / len(eligible)), self.most)  # if there are few examples, all of them get as much
        return (reached, Limit.EXAMPLES) if reached > depth else (depth, limit)

    def fill(self, depth: int, left: float, rng: np.random.Generator) -> float:
        """Fill up examples, in order, until the next unit costs more than is left; return what that costs."""
        price, depths = self._offer.prices[self._varying], self._depths
        got = self.bought[:, self._priced].sum(axis=1)
        need = np.minimum(depth - depths, self._offer.limits - got)[self._examples]
        offered = (self._open & ~self.bought)[np.ix_(self._examples, self._varying)] & (price <= left)
        able = np.flatnonzero((need > 0) & offered.any(axis=1))
        able = able[: np.searchsorted(np.cumsum(need[able]) * price.min(), left, side="right") + 1]
        examples, need, offered = self._examples[able], need[able], offered[able]
        keys = np.where(offered, self._keys(rng, len(offered)), -np.inf)
        order = np.argsort(-keys, axis=1, kind="stable")
        wanted = np.arange(order.shape[1]) < np.minimum(need, offered.sum(axis=1))[:, None]
        row, unit = np.nonzero(wanted)[0], order[wanted]
        total = np.cumsum(price[unit])
        paid = int(np.searchsorted(total, left * (1 + _ROUNDING), side="right"))
        self.bought[examples[row[:paid]], self._varying[unit[:paid]]] = True
        return float(total[paid - 1]) if paid else 0.0

    def affords(self, left: float) -> bool:
        """Return whether what is left buys anything more."""
        may = self._offer.limits > self.bought[:, self._priced].sum(axis=1)
        rows = self._examples[may[self._examples]]
        offered = (self._open & ~self.bought)[np.ix_(rows, self._varying)].any(axis=0)
        return bool(offered.any() and self._offer.prices[self._varying][offered].min() <= left)

    def cells(self) -> np.ndarray:
        """Return the cells of the units bought, and the free ones of examples that show anything with a price."""
        free = np.flatnonzero(self._offer.prices == 0)
        shown = (self._has | self.bought[:, self._varying]).any(axis=1)
        shown = shown | self._offer.by_unit(self._offer.seen)[:, self._priced].any(axis=1) | (not self._priced.size)
        bought = self.bought.copy()
        bought[np.ix_(np.flatnonzero(shown), free)] = True
        cells = bought[:, self._offer.units] & self._offer.open
        place = np.full(len(cells), len(cells))
        place[self._candidates] = np.arange(self._candidates.size)
        example, attribute = np.nonzero(cells)
        order = np.lexsort((attribute, place[example]))
        return np.stack([example, attribute], axis=1)[order]

    def _criterion(self, beliefs: Beliefs) -> Criterion:
        """Return the criterion, corrected by what has been seen."""
        criterion, seen = Criterion(beliefs), self._offer.by_unit(self._offer.seen)[:, self._offer.units]
        examples = np.flatnonzero(seen.any(axis=1))
        if examples.size:
            most = _sets_of(int(seen[examples].sum(axis=1).max()))
            some = np.unique(np.linspace(0, examples.size - 1, most).round().astype(int))
            criterion.correct(_padded(seen[examples[some]], seen.shape[1]), examples.size)
        return criterion

    def _least_error(self, criterion: Criterion, top: int, units: float, n: int, rng: np.random.Generator) -> int:
        """Return the depth from 2 to `top` that the criterion chooses, if n examples may be seen."""
        depths = np.unique(np.round(np.geomspace(LEAST_DEPTH, top, 1 + ceil(3 * np.log2(top / LEAST_DEPTH)))))
        # The same examples and nested sets for all depths, so that chance hardly changes their order.
        examples = rng.choice(self._examples, _SETS)
        order = np.argsort(-self._keys(rng, _SETS), axis=1, kind="stable")
        seen = self._offer.by_unit(self._offer.seen)[examples]
        seen[:, self._varying] = False
        seen[:, self._offer.prices == 0] = True
        errors = np.empty(len(depths))
        for j, k in enumerate(depths.astype(int)):
            m = 1 if k == self._varying.size else _sets_of(k)
            shown = seen[:m].copy()
            np.put_along_axis(shown, self._varying[order[:m, :k]], True, axis=1)
            information = criterion.information(_padded(shown[:, self._offer.units], len(self._offer.units)))
            errors[j] = criterion.error(information * min(units / k, n))
        good = depths[errors <= errors.min() * (1 + _TIE)]
        if good[-1] == self._varying.size:
            return self._varying.size
        return round(float(np.sqrt(good[0] * good[-1])))

    def _keys(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Return keys (rows, varying units), the largest of which are drawn: without replacement, by probabilities p.

        These are ``log p`` plus Gumbel noise.
        """
        return np.asarray(np.log(self._p) + rng.gumbel(size=(rows, self._varying.size)))


def _sets_of(k: int) -> int:
    """Return by how many sets of k attributes a design is judged."""
    return max(_LEAST_SETS, min(_SETS, _SHOWN // k))


def _padded(shown: np.ndarray, d: int) -> np.ndarray:
    """Return the attributes that rows (m, d) show, as indices (m, n); rows are filled up with d."""
    counts = shown.sum(axis=1)
    order = np.argsort(~shown, axis=1, kind="stable")[:, : counts.max()]
    return np.where(np.arange(order.shape[1]) < counts[:, None], order, d)

"""Which cells of a table to buy next: how many attributes of each example, and which, by what they are worth.

`choose` chooses them, for a study or for a learner. A learner that chooses within a total buys in rounds
(`purchases`): all examples are open from the start, the first round buys two values of each attribute on average, and
each of the others doubles what is spent. The choice is planned again after each round.

References
----------
K. Chaloner, I. Verdinelli. Bayesian experimental design: a review. Statistical Science 10, 1995.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import ceil
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from budgetreg.revealed.collection import MIX, Collected, pilot_entries
from budgetreg.revealed.designs import per_money, regression_weights

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor
    from budgetreg.metering.table import JointMoments

_VALUES = 2
"""Values of each attribute, on average, that the first round buys."""

_LAST_ROUND = 0.4
"""Least share of the total that is left for the round after the last plan."""


@dataclass(frozen=True)
class Purse:
    """The amount that a learner may spend on cells of its choice.

    Attributes
    ----------
    prices : ndarray of float, shape (d,)
        What attributes cost, in the unit of the total; 0 for attributes that are free or follow the head of a group.
    spent : float
        What the pilot has cost.
    """

    prices: np.ndarray
    spent: float


@dataclass(frozen=True)
class _Purchased(Collected):
    """Everything bought up to an amount, of one stream; `examples` is the amount."""

    then: _Buyer = field(kw_only=True)

    plans_draws_alone: ClassVar[bool] = False  # they judge how many attributes of an example are worth most
    is_everything: ClassVar[bool] = False

    def plan(
        self,
        spread: np.ndarray,
        W: np.ndarray,
        known: np.ndarray,
        joint: Callable[[int], JointMoments] | None = None,
        parts: np.ndarray | None = None,
    ) -> None:
        """Plan the next rounds, see `Collected.plan`."""
        assert joint is not None
        covariance, contrast = joint(0).covariance, np.append(-W[0], 1.0)  # y - <w, x>
        noise = float(contrast @ covariance @ contrast)
        weights = regression_weights(np.where(known, 0.0, spread)[0], W[0], None if parts is None else parts[0])
        self.then.plan(Beliefs(covariance[:-1, :-1], W[0], max(noise, 0.0)), weights, known[0])


def purchases(
    accessor: Accessor, checkpoints: Sequence[int], rngs: Sequence[np.random.Generator], purse: Purse, price_aware: bool
) -> Iterator[Collected]:
    """Buy cells until the last amount is spent.

    Parameters
    ----------
    accessor : Accessor
        One stream of examples, and its pilot.
    checkpoints : sequence of int
        Amounts, increasing, each with what the pilot has cost. The last is the total, which is never passed.
    rngs : sequence of numpy.random.Generator
        That of the stream.
    purse : Purse
    price_aware : bool
        Whether cheaper attributes are drawn more often.
    """
    (rng,) = rngs
    buyer, total = _Buyer(accessor, rng, purse, price_aware), checkpoints[-1]
    plans = {amount for amount in buyer.rounds(total) if amount < total}
    for amount in sorted({*checkpoints, *plans}):
        buyer.buy_until(amount)
        if amount in checkpoints:
            accessor.note(amount)
        yield buyer.collected(amount, amount in checkpoints, amount in plans)


class _Buyer:
    """Buys cells of one stream, and keeps their values."""

    def __init__(self, accessor: Accessor, rng: np.random.Generator, purse: Purse, price_aware: bool) -> None:
        n, d = accessor.n_examples, accessor.d
        accessor.open(0, n)
        self._accessor, self._rng, self._price_aware = accessor, rng, price_aware
        self._spent = purse.spent
        self._everything = np.broadcast_to(np.arange(d), (1, n, d))
        heads = np.arange(d) if accessor.groups is None else accessor.groups.head_of
        leads, self._units = np.unique(heads, return_inverse=True)
        self._prices = purse.prices[leads]
        X, _ = accessor.pilot()
        self._y = accessor.targets()[0]
        # The pilot's rows are examples of which nothing more can be bought.
        self._available = np.vstack([accessor.available(self._everything)[0], np.zeros(X.shape[1:], dtype=bool)])
        self._seen = np.vstack([np.zeros((n, d), dtype=bool), np.ones(X.shape[1:], dtype=bool)])
        self._values = np.zeros((n, d))
        self._beliefs: Beliefs | None = None
        self._weights: np.ndarray = np.ones(len(leads))
        self._known: np.ndarray = np.zeros(d, dtype=bool)

    def rounds(self, total: float) -> Iterator[int]:
        """Yield the amounts at which choices are planned again."""
        amount = self._spent + _VALUES * self._prices.sum()
        while amount <= (1 - _LAST_ROUND) * total:
            yield int(amount)
            amount *= 2

    def plan(self, beliefs: Beliefs, weights: np.ndarray, known: np.ndarray) -> None:
        """Choose by what is known, from now on; attributes whose values are known are not bought again."""
        self._beliefs = beliefs
        self._weights = np.bincount(self._units, weights)
        self._known = (np.bincount(self._units, ~known) == 0)[self._units]

    def buy_until(self, amount: float) -> None:
        """Buy cells until an amount is spent."""
        n = len(self._values)
        is_open = self._available & ~self._seen & ~self._known
        offer = Offer(self._seen, is_open, self._units, self._prices, np.full(len(is_open), len(self._prices)))
        spend = amount - self._spent
        choice = choose(offer, self._beliefs, self._weights, spend, self._rng, price_aware=self._price_aware)
        bought = np.zeros(self._seen.shape, dtype=bool)
        bought[tuple(choice.cells.T)] = True
        bought = offer.by_unit(bought)[:, self._units]  # groups are revealed as a whole
        drawn = bought[:n]
        if drawn.any():
            values = self._accessor.reveal_block(self._everything, drawn[None])[0]
            self._values = np.where(drawn, values, self._values)
        self._spent += choice.cost
        self._seen = self._seen | bought

    def collected(self, amount: int, is_checkpoint: bool, is_plan: bool) -> Collected:
        """Return everything bought so far, the pilot first, then the examples in order of their numbers of values."""
        n = len(self._values)
        entries, pilot = pilot_entries(self._accessor)
        shown = self._seen[:n] & self._available[:n]
        counts = shown.sum(axis=1)
        for count in np.unique(counts[counts > 0]):
            rows = np.flatnonzero(counts == count)
            attributes = np.nonzero(shown[rows])[1].reshape(len(rows), count)
            values = np.take_along_axis(self._values[rows], attributes, axis=1)
            entries.add(attributes[None], values[None], self._y[rows][None])
        examples = int(np.count_nonzero(counts))
        phases = (pilot, pilot + examples) if pilot else (examples,)
        return _Purchased(amount, is_checkpoint, is_plan, entries, phases, (), then=self)


# The choice of cells. A design here is a depth k and a way to draw: examples are filled up to k attributes each, until
# the money is spent. So few attributes of many examples compete with complete rows of few. Attributes are drawn about
# in proportion to given weights, or to what they are expected to explain, or those that are expected to explain most
# are taken, of all examples or of about half of them, while the others are drawn by weights. Each design is tried, and
# `Criterion` judges the table that it leaves, after its noise is corrected by what has been seen. The least expected
# error decides. What attributes explain is hardly known at first, so draws that do not follow the weights must be
# better by 2 %.
#
# The depth is bounded: there must be at least 1.5 examples for each attribute, because fewer show little of how
# attributes are related. While nothing is known, this bound decides alone.
#
# Attributes may be bought together, as one unit; most units are single attributes.

_EXAMPLES = 1.5
"""Fewest examples for each attribute that a design has, about."""

LEAST_DEPTH = 2
"""One attribute of an example shows no pair."""

_CLEARLY = 0.02
"""How much larger an error counts of designs whose draws do not follow the weights."""

_STEPS = 2
"""How many depths are tried for each doubling."""

_JUDGED, _SHOWN, _LEAST_JUDGED = 64, 2048, 4
"""Most examples by which a table is judged; about the most attributes that these show together; fewest examples."""

_TRIED = 4096
"""Most examples with which designs are tried."""

_ROUNDING = 1e-12
"""Relative rounding error of sums of prices that may make a purchase seem to cost more than is left."""


class Draws(Enum):
    """How the attributes of an example are chosen."""

    WEIGHTED = "by weights"
    EXPLAINING = "by what they explain"
    MIXED = "the same for half"
    FIXED = "the same for all"


_SAME = {Draws.FIXED: 1.0, Draws.MIXED: 0.5}
"""Share of the examples that get the same attributes, those that are expected to explain most."""


class Limit(Enum):
    """The reason for the number of attributes that an example gets."""

    FEW_EXAMPLES = "deeper examples would be too few to show how attributes are related"
    SHARED = "more attributes of fewer examples are not expected to be worth more"
    ALL = "nothing is expected to be worth more than complete rows"
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


class Alternative(NamedTuple):
    """Ways to spend the money that give examples equally many attributes.

    Attributes
    ----------
    depth : int
        Number of units with a price that examples are filled up to.
    examples : int
        How many examples get any, if they are drawn by weights.
    errors : mapping of Draws to float
        The expected errors of predictions from complete rows, as a share of the target's variance. They are for
        comparison.
    """

    depth: int
    examples: int
    errors: Mapping[Draws, float]


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
    draws : Draws
        How attributes were chosen.
    alternatives : tuple of Alternative
        What was compared, if anything was.
    """

    cells: np.ndarray
    cost: float
    depth: int
    limit: Limit
    draws: Draws
    alternatives: tuple[Alternative, ...]


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
        Units are drawn about in proportion to these weights, at least 0, unless other draws are clearly better.
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
    planned, limit = purchase.depth(beliefs, spend, rng)
    depth = purchase.spend(planned, spend, rng) if planned else 0
    limit = Limit.EXAMPLES if depth > planned else limit
    cells = purchase.cells()
    if not len(cells):
        depth, limit = 0, Limit.NOTHING
    cost = float(purchase.bought.sum(axis=0) @ offer.prices)
    return Choice(cells, cost, depth, limit, purchase.draws, purchase.alternatives)


class _Purchase:
    """Units (n, u) that are bought in one go, at first none; `draws` says how they are chosen."""

    def __init__(self, offer: Offer, weights: np.ndarray, candidates: np.ndarray | None, price_aware: bool) -> None:
        self._offer = offer
        self._open = offer.by_unit(offer.open)
        self._shown = offer.by_unit(offer.seen)
        seen = self._shown & ~self._open
        self.bought = np.zeros(self._open.shape, dtype=bool)
        self.draws = Draws.WEIGHTED
        self.alternatives: tuple[Alternative, ...] = ()
        self._priced = np.flatnonzero(offer.prices > 0)
        if candidates is None:
            new = ~seen[:, self._priced].any(axis=1)
            candidates = np.argsort(new, kind="stable")
        self._candidates = candidates
        able = self._open[:, self._priced].any(axis=1) & (offer.limits > 0)
        self._examples = candidates[able[candidates]]
        # Units that no example offers any more do not count: an example that has k of the others is k deep.
        self._varying = self._priced[self._open[np.ix_(self._examples, self._priced)].any(axis=0)]
        self._has, self._price = seen[:, self._varying], offer.prices[self._varying]
        self._price_aware = price_aware
        self._p = self._probabilities(weights[self._varying])
        self._order: dict[Draws, np.ndarray] = {Draws.WEIGHTED: np.log(self._p)}
        room = self._has.sum(axis=1) + np.minimum(offer.limits, self._open[:, self._varying].sum(axis=1))
        self.most = int(room[self._examples].max(initial=0))

    def _probabilities(self, w: np.ndarray) -> np.ndarray:
        """Return probabilities by which the varying units are drawn, given weights."""
        if self._price_aware and w.size:
            w = per_money(w, self._price)
        return np.asarray((1 - MIX) * w / (w.sum() or 1.0) + MIX / max(len(w), 1))

    def depth(self, beliefs: Beliefs | None, spend: float, rng: np.random.Generator) -> tuple[int, Limit]:
        """Return how deep examples are to be filled, at most `most`, and why; 0 if none can be."""
        if not self.most:
            return 0, Limit.NOTHING
        u = self._varying.size
        units = self._has.sum() + spend / (self._price @ self._p / self._p.sum())
        top = min(self.most, max(LEAST_DEPTH, round(units / (_EXAMPLES * u))))
        depth = top
        if beliefs is not None and top > LEAST_DEPTH:
            depth, self.draws = self._least_error(self._criterion(beliefs), top, spend, int(rng.integers(2**63)))
        limit = Limit.SHARED if depth < top else Limit.FEW_EXAMPLES
        if depth == self.most:
            limit = Limit.ALL if self.most == u else Limit.PER_EXAMPLE
        return depth, limit

    def spend(self, depth: int, money: float, rng: np.random.Generator) -> int:
        """Fill up examples to a depth and, if there are too few examples, further; return how deep they are then."""
        while self._affords(money):
            cost = self._fill(depth, money, rng)
            depth += not cost
            money -= cost
        return depth

    def _fill(self, depth: int, left: float, rng: np.random.Generator) -> float:
        """Fill up examples, in order, until the next unit costs more than is left; return what that costs."""
        places = np.ix_(self._examples, self._varying)
        bought = self.bought[places]
        depths, got = (self._has[self._examples] | bought).sum(axis=1), bought.sum(axis=1)
        need = np.minimum(depth - depths, self._offer.limits[self._examples] - got)
        offered = self._open[places] & ~bought & (self._price <= left)
        able = np.flatnonzero((need > 0) & offered.any(axis=1))
        able = able[: np.searchsorted(np.cumsum(need[able]) * self._price.min(), left, side="right") + 1]
        examples, need, offered = self._examples[able], need[able], offered[able]
        keys = np.where(offered, self._keys(rng, len(offered)), -np.inf)
        order = np.argsort(-keys, axis=1, kind="stable")
        wanted = np.arange(order.shape[1]) < np.minimum(need, offered.sum(axis=1))[:, None]
        row, unit = np.nonzero(wanted)[0], order[wanted]
        total = np.cumsum(self._price[unit])
        paid = int(np.searchsorted(total, left * (1 + _ROUNDING), side="right"))
        self.bought[examples[row[:paid]], self._varying[unit[:paid]]] = True
        return float(total[paid - 1]) if paid else 0.0

    def _affords(self, left: float) -> bool:
        """Return whether what is left buys anything more."""
        got = self.bought[np.ix_(self._examples, self._varying)].sum(axis=1)
        rows = self._examples[self._offer.limits[self._examples] > got]
        cells = np.ix_(rows, self._varying[self._price <= left])
        return bool((self._open[cells] & ~self.bought[cells]).any())

    def cells(self) -> np.ndarray:
        """Return the cells of the units bought, and the free ones of candidates that show anything with a price."""
        free = np.flatnonzero(self._offer.prices == 0)
        shown = (self._has | self.bought[:, self._varying]).any(axis=1)
        shown = shown | self._shown[:, self._priced].any(axis=1) | (not self._priced.size)
        bought = self.bought.copy()
        bought[np.ix_(self._candidates[shown[self._candidates]], free)] = True
        cells = bought[:, self._offer.units] & self._offer.open
        place = np.full(len(cells), len(cells))
        place[self._candidates] = np.arange(self._candidates.size)
        example, attribute = np.nonzero(cells)
        order = np.lexsort((attribute, place[example]))
        return np.stack([example, attribute], axis=1)[order]

    def _criterion(self, beliefs: Beliefs) -> Criterion:
        """Return the criterion, corrected by what has been seen."""
        criterion, seen = Criterion(beliefs), self._shown[:, self._offer.units]
        examples = np.flatnonzero(seen.any(axis=1))
        if examples.size:
            some = _some(seen[examples].sum(axis=1))
            criterion.correct(_padded(seen[examples[some]], seen.shape[1]), examples.size)
        return criterion

    def _least_error(self, criterion: Criterion, top: int, spend: float, seed: int) -> tuple[int, Draws]:
        """Return the depth from 2 to `top`, and the draws, that the criterion chooses."""
        parts = np.bincount(self._offer.units, criterion.squares(), len(self._offer.prices))[self._varying]
        self._order[Draws.EXPLAINING] = np.log(self._probabilities(parts))
        self._order[Draws.FIXED] = np.log(parts / (self._price if self._price_aware else 1.0))
        self._order[Draws.MIXED] = self._order[Draws.WEIGHTED]
        steps = 1 + ceil(_STEPS * np.log2(top / LEAST_DEPTH))
        depths = np.unique(np.round(np.geomspace(LEAST_DEPTH, top, steps))).astype(int).tolist()
        rows, share = self._part(spend, np.random.default_rng(seed))
        every, self._examples = self._examples, self._examples[np.isin(self._examples, rows)]
        designs: list[tuple[float, int, Draws]] = []
        for depth in reversed(depths):
            errors, reached, examples = {}, depth, 0
            for self.draws in reversed(Draws):
                # The same random numbers for all designs, so that chance hardly changes their order.
                reached = self.spend(depth, share * spend, np.random.default_rng(seed))
                errors[self.draws], examples = self._error(criterion, rows, share), self.bought.any(axis=1).sum()
                self.bought[:] = False
                handicap = 1.0 if self.draws is Draws.WEIGHTED else 1 + _CLEARLY
                designs.append((errors[self.draws] * handicap, depth, self.draws))
            alternative = Alternative(reached, round(examples / share), errors)
            if alternative not in self.alternatives:
                self.alternatives = (alternative, *self.alternatives)
            if reached > depth:  # all examples are deeper, as they are with smaller depths
                break
        self._examples = every
        return min(designs, key=itemgetter(0))[1:]

    def _part(self, spend: float, rng: np.random.Generator) -> tuple[np.ndarray, float]:
        """Return examples that stand for all that show something, or may come to, and which share of these they are."""
        rows = np.arange(len(self._shown))
        if rows.size <= _TRIED:
            return rows, 1.0
        begun = np.flatnonzero(self._shown[:, self._priced].any(axis=1))
        new = self._examples[~np.isin(self._examples, begun)][: int(spend / self._price.min()) + 1]
        rows = np.concatenate([begun, new])
        return rng.permutation(rows)[:_TRIED], min(1.0, _TRIED / rows.size)

    def _error(self, criterion: Criterion, rows: np.ndarray, share: float) -> float:
        """Return the expected error after the purchase, given which examples stand for all, and their share."""
        units = self._shown[rows] | self.bought[rows]
        units[:, self._offer.prices == 0] = True
        shown = units[units[:, self._priced].any(axis=1)][:, self._offer.units]
        n, d = shown.shape
        some = shown[_some(shown.sum(axis=1))]
        seen = shown.astype(np.float32)
        together = 1 / (1 + (seen.T @ seen) / share)
        a = some.sum(axis=1)
        rare = np.einsum("mi,ij,mj->m", some.astype(np.float32), together, ~some, optimize=True) / np.maximum(d - a, 1)
        return criterion.expected(_padded(some, d), n / share, 1 + _DOUBT * rare)

    def _keys(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Return keys (rows, varying units), the largest of which are drawn: without replacement, by probabilities p.

        These are ``log p`` plus Gumbel noise; without noise in rows that get the same units.
        """
        keys = self._order[self.draws] + rng.gumbel(size=(rows, self._varying.size))
        if self.draws in _SAME:
            keys[rng.random(rows) < _SAME[self.draws]] = self._order[Draws.FIXED]
        return np.asarray(keys)


def _some(counts: np.ndarray) -> np.ndarray:
    """Return the positions of some examples that stand for all, given how many attributes each shows."""
    order = np.argsort(counts, kind="stable")
    many = max(_LEAST_JUDGED, min(_JUDGED, _SHOWN // max(int(counts.max()), 1)))
    return order[np.unique(np.linspace(0, len(order) - 1, many).round().astype(int))]


def _padded(shown: np.ndarray, d: int) -> np.ndarray:
    """Return the attributes that rows (m, d) show, as indices (m, n); rows are filled up with d."""
    counts = shown.sum(axis=1)
    order = np.argsort(~shown, axis=1, kind="stable")[:, : counts.max()]
    return np.where(np.arange(order.shape[1]) < counts[:, None], order, d)


# The expected information about a regressor in examples of which some attributes are seen.
#
# The attributes x have the covariance S, and the target is ``w'x`` plus noise of variance s2. Of an example the set A
# is seen, and V is the covariance of x given what is seen. Its target then has the variance ``s2 + w'V w`` about its
# expectation, which is linear in w, and the example adds ``(S - V) / (s2 + w'V w)`` to the expected precision of w. The
# expected error of predictions from complete rows is ``s2 + tr(S M^-1)``, where M is the precision from all examples
# and the prior. This is the criterion of V-optimal designs (Chaloner & Verdinelli 1995).
#
# The prior covariance of w is proportional to the square root of S: targets tend to depend on what attributes share.
#
# An estimated s2 is mostly too large, because it contains the error of the estimated w. How large this error is
# expected to be, the criterion knows: it is ``tr(S M^-1)`` after the examples that have been seen. So s2 can be
# corrected.
#
# Neither w nor S is known. The regressor has the posterior covariance ``C = M^-1``, so that ``tr(V (w w' + C))`` takes
# the place of ``w'V w``; M depends on C, and is computed twice. A regression on a attributes that N examples show
# leaves a variance that is larger by about ``a / N``. Here N is the number of examples that show one of the attributes
# seen and one of the others together, and half of this counts, because factors are common to many pairs.

_LEAST_EXPLAINED = 0.2
"""Share of the target's variance that w explains a priori, at least."""

_PRIOR_POWER = 0.5
"""Power of S in the prior covariance of w."""

_DOUBT = 0.5
"""Share of ``a / N`` by which a variance is larger."""

_NOISES = np.geomspace(1.0, 0.02, 14)
"""Shares of an estimated noise variance that the noise may have."""

_LEAST_EIGENVALUE = 1e-6
"""Lower bound of the eigenvalues of S, whose mean is 1."""


class Beliefs(NamedTuple):
    """Beliefs about the attributes and the target.

    Attributes
    ----------
    covariance : ndarray of float, shape (d, d)
        Covariance S of the attributes, positive semidefinite.
    w : ndarray of float, shape (d,)
        The regressor.
    noise : float
        Variance s2 of the target given all attributes.
    """

    covariance: np.ndarray
    w: np.ndarray
    noise: float


class Criterion:
    """Expected errors of designs, given what is known.

    Parameters
    ----------
    beliefs : Beliefs
        Attributes of variance 0 are taken to be independent of all others.

    Attributes
    ----------
    S : ndarray of float, shape (d, d)
        Correlations of the attributes.
    w : ndarray of float, shape (d,)
        The regressor of attributes of variance 1.
    noise : float
        As a share of the target's variance, like all errors.
    """

    def __init__(self, beliefs: Beliefs) -> None:
        S = beliefs.covariance
        units = np.sqrt(np.diagonal(S))
        scale = 1 / np.where(units > 0, units, 1.0)
        values, Q = np.linalg.eigh(S * np.outer(scale, scale) + np.diag(np.where(units > 0, 0.0, 1.0)))
        values = np.maximum(values, _LEAST_EIGENVALUE)
        self.S = (Q * values) @ Q.T
        w = np.where(units > 0, beliefs.w * units, 0.0)
        explained = float(w @ self.S @ w)
        self._values, self._Q = values, Q
        self._root = Q * np.sqrt(values)  # of S
        self._believe(w, explained / (explained + max(beliefs.noise, np.finfo(float).tiny)))

    def _believe(self, w: np.ndarray, explained: float) -> None:
        """Take w, but for its length, as the regressor, which explains the given share of the target's variance."""
        length = float(w @ self.S @ w)
        self.w, self.noise = w * np.sqrt(explained / length if length else 0.0), 1 - explained
        prior = max(explained, _LEAST_EXPLAINED) / (self._values ** (1 + _PRIOR_POWER)).sum()
        root = self._Q.T / np.sqrt(prior * self._values**_PRIOR_POWER)[:, None]
        self._prior = root.T @ root
        self._uncertainty = np.linalg.inv(self._prior)

    def correct(self, sets: np.ndarray, n: int) -> None:
        """Take away from the noise what is the error of an estimated regressor, and make the regressor longer.

        Among shares of the noise, the one is taken with which the expected error is nearest to the noise as it was.

        Parameters
        ----------
        sets : ndarray of int, shape (m, n)
            As in `explained`: what some of the examples show that the regressor was estimated from.
        n : int
            How many examples these were.
        """
        w, noise, gaps, explained = self.w, self.noise, [], self.explained(sets)
        for share in _NOISES if w.any() else ():
            self._believe(w, 1 - share * noise)
            gaps.append(abs(self.error(n * self.information(explained)) - noise))
        if gaps:
            self._believe(w, 1 - _NOISES[np.argmin(gaps)] * noise)
        self._uncertainty = np.linalg.inv(self._prior + n * self.information(explained))

    def squares(self) -> np.ndarray:
        """Return the expected squares of the weights, shape (d,)."""
        return np.asarray(np.square(self.w) + np.diagonal(self._uncertainty))

    def expected(self, sets: np.ndarray, n: float, inflation: np.ndarray) -> float:
        """Return the expected error after n examples, if neither the regressor nor the covariance is known.

        Parameters
        ----------
        sets : ndarray of int, shape (m, n)
            As in `explained`: what some of these examples show.
        n : int
            How many there are, with those that the regressor was estimated from.
        inflation : ndarray of float, shape (m,)
            How much larger the variances that these sets leave are, because the covariance is estimated.
        """
        explained = self.explained(sets)
        after = np.linalg.inv(self._prior + n * self.information(explained, self._uncertainty, inflation))
        return self.error(n * self.information(explained, after, inflation))

    def explained(self, sets: np.ndarray) -> np.ndarray:
        """Return what sets of attributes explain of the covariance: matrices (m, n, d), each a root of ``S - V``.

        Parameters
        ----------
        sets : ndarray of int, shape (m, n)
            Distinct attributes that each example shows; rows are filled up with d.
        """
        m, n = sets.shape
        d = len(self.w)
        S = np.zeros((d + 1, d))
        S[:d] = self.S
        rows = S[sets]
        filler = sets == d
        K = np.take_along_axis(rows, np.broadcast_to(np.minimum(sets, d - 1)[:, None], (m, n, n)), axis=2)
        K = np.where(filler[:, None], 0.0, K) + filler[:, :, None] * np.eye(n)
        return np.asarray(np.linalg.solve(np.linalg.cholesky(K), rows))

    def information(
        self, explained: np.ndarray, uncertainty: np.ndarray | None = None, inflation: np.ndarray | float = 1.0
    ) -> np.ndarray:
        """Return the mean of what examples add to the precision of w, shape (d, d).

        Parameters
        ----------
        explained : ndarray of float, shape (m, n, d)
            What the attributes that each example shows explain, see `explained`.
        uncertainty : ndarray of float, shape (d, d), optional
            Covariance C of the regressor, positive definite; by default it is known.
        inflation : ndarray of float, shape (m,), or float
            See `expected`.
        """
        m, n, d = explained.shape
        left = self.w @ self.S @ self.w - np.square(explained @ self.w).sum(axis=1)
        if uncertainty is not None:
            root = np.linalg.cholesky(uncertainty)
            left += np.square(self._root.T @ root).sum() - np.square(explained @ root).sum(axis=(1, 2))
        unexplained = self.noise + np.maximum(left, 0.0) * inflation
        flat = (explained / np.sqrt(unexplained)[:, None, None]).reshape(m * n, d)
        return np.asarray(flat.T @ flat / m)

    def error(self, information: np.ndarray) -> float:
        """Return the expected error, given the information (d, d) of all examples together."""
        L = np.linalg.cholesky(self._prior + information)
        return float(self.noise + np.square(np.linalg.solve(L, self._root)).sum())

"""Which cells of a table to buy next: how many attributes of each example, and which, by what they are worth.

`choose` chooses them, for a study or for a learner. A learner that chooses within a total buys in rounds
(`purchases`): all examples are open from the start, the first round buys two values of each attribute on average, and
each of the others doubles what is spent. The choice is planned again after each round.

References
----------
K. Chaloner, I. Verdinelli. Bayesian experimental design: a review. Statistical Science 10, 1995.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import ceil
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


# The choice of cells. A design here is a depth k: examples are filled up to k attributes each, drawn about in
# proportion to given weights, until the money is spent. So few attributes of many examples compete with complete rows
# of few. `Criterion` judges each depth by a sample of such draws, after its noise is corrected by what has been seen.
# Depths whose errors are within 2 % of the least are tied. The criterion treats the covariance of the attributes as
# known, and complete rows alone do not need it. So they are chosen if they are among the tied, and else the geometric
# mean of the smallest and the largest depth.
#
# The depth is bounded: there must be at least 1.5 examples for each attribute, because fewer show little of how
# attributes are related. While nothing is known, this bound decides alone.
#
# Attributes may be bought together, as one unit; most units are single attributes.

_EXAMPLES = 1.5
"""Fewest examples for each attribute that a design has, about."""

LEAST_DEPTH = 2
"""One attribute of an example shows no pair."""

_TIE = 0.02
"""Relative difference of errors up to which depths are tied."""

_SETS, _SHOWN, _LEAST_SETS = 32, 1024, 4
"""Most sets that a depth is judged by; about the most attributes of all these sets together; fewest sets."""

_ROUNDING = 1e-12
"""Relative rounding error of sums of prices that may make a purchase seem to cost more than is left."""


class Limit(Enum):
    """The reason for the number of attributes that an example gets."""

    FEW_EXAMPLES = "deeper examples would be too few to show how attributes are related"
    SHARED = "more attributes of fewer examples are not expected to be worth more"
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


class Alternative(NamedTuple):
    """One way to spend the money.

    Attributes
    ----------
    depth : int
        Number of units with a price that each example gets.
    examples : int
        Of about how many examples.
    error : float
        The expected error of predictions from complete rows, as a share of the target's variance. It is for comparison.
    """

    depth: int
    examples: int
    error: float


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
    alternatives : tuple of Alternative
        What was compared, if anything was.
    """

    cells: np.ndarray
    cost: float
    depth: int
    limit: Limit
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
    return Choice(cells, float(purchase.bought.sum(axis=0) @ offer.prices), depth, limit, purchase.alternatives)


class _Purchase:
    """Units (n, u) that are bought in one go, at first none."""

    def __init__(self, offer: Offer, weights: np.ndarray, candidates: np.ndarray | None, price_aware: bool) -> None:
        self._offer = offer
        self._open = offer.by_unit(offer.open)
        seen = offer.by_unit(offer.seen) & ~self._open
        self.bought = np.zeros(self._open.shape, dtype=bool)
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
        w = weights[self._varying]
        if price_aware and w.size:
            w = per_money(w, self._price)
        self._p = (1 - MIX) * w / (w.sum() or 1.0) + MIX / max(len(w), 1)
        room = self._has.sum(axis=1) + np.minimum(offer.limits, self._open[:, self._varying].sum(axis=1))
        self.most = int(room[self._examples].max(initial=0))

    def depth(self, beliefs: Beliefs | None, spend: float, rng: np.random.Generator) -> tuple[int, Limit]:
        """Return how deep examples are to be filled, at most `most`, and why; 0 if none can be."""
        if not self.most:
            return 0, Limit.NOTHING
        u, eligible = self._varying.size, np.union1d(self._examples, np.flatnonzero(self._has.any(axis=1)))
        units = self._has.sum() + spend / (self._price @ self._p / self._p.sum())
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
        depths = (self._has | self.bought[:, self._varying]).sum(axis=1)
        got = self.bought[:, self._priced].sum(axis=1)
        need = np.minimum(depth - depths, self._offer.limits - got)[self._examples]
        offered = (self._open & ~self.bought)[np.ix_(self._examples, self._varying)] & (self._price <= left)
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

    def affords(self, left: float) -> bool:
        """Return whether what is left buys anything more."""
        may = self._offer.limits > self.bought[:, self._priced].sum(axis=1)
        rows = self._examples[may[self._examples]]
        offered = (self._open & ~self.bought)[np.ix_(rows, self._varying)].any(axis=0)
        return bool(offered.any() and self._price[offered].min() <= left)

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
        amounts = np.minimum(np.round(units / depths), n)
        each = zip(depths.tolist(), amounts.tolist(), errors.tolist(), strict=True)
        self.alternatives = tuple(Alternative(int(k), int(m), error) for k, m, error in each)
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

_LEAST_EXPLAINED = 0.2
"""Share of the target's variance that w explains a priori, at least."""

_PRIOR_POWER = 0.5
"""Power of S in the prior covariance of w."""

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
        self._prior = self._Q.T / np.sqrt(prior * self._values**_PRIOR_POWER)[:, None]  # M_0 = _prior' _prior

    def correct(self, sets: np.ndarray, n: int) -> None:
        """Take away from the noise what is the error of an estimated regressor, and make the regressor longer.

        Among shares of the noise, the one is taken with which the expected error is nearest to the noise as it was.

        Parameters
        ----------
        sets : ndarray of int, shape (m, n)
            As in `information`: what some of the examples show that the regressor was estimated from.
        n : int
            How many examples these were.
        """
        w, noise = self.w, self.noise
        if not w.any():
            return
        gaps = []
        for share in _NOISES:
            self._believe(w, 1 - share * noise)
            gaps.append(abs(self.error(n * self.information(sets)) - noise))
        self._believe(w, 1 - _NOISES[np.argmin(gaps)] * noise)

    def information(self, sets: np.ndarray) -> np.ndarray:
        """Return the mean of what examples add to the precision of w, shape (d, d).

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
        known = np.linalg.solve(np.linalg.cholesky(K), rows)  # known' known = S - V
        shown = np.square(known @ self.w).sum(axis=1)
        unexplained = self.noise + np.maximum(self.w @ self.S @ self.w - shown, 0.0)
        flat = (known / np.sqrt(unexplained)[:, None, None]).reshape(m * n, d)
        return np.asarray(flat.T @ flat / m)

    def error(self, information: np.ndarray) -> float:
        """Return the expected error, given the information (d, d) of all examples together."""
        L = np.linalg.cholesky(self._prior.T @ self._prior + information)
        return float(self.noise + np.square(np.linalg.solve(L, self._root)).sum())

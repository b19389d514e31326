"""The cells that a learner buys within a total: as many of each example as are worth most (`budgetreg.revealed.cells`).

All examples are open from the start. Cells are bought in rounds: the first buys two values of each attribute on
average, and each of the others doubles what is spent. The choice is planned again after each round.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import JointMoments
from budgetreg.revealed.cells import Offer, choose
from budgetreg.revealed.collection import Collected, Entries
from budgetreg.revealed.importance_weights import regression_weights
from budgetreg.revealed.information import Beliefs

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

    then: "_Buyer" = field(kw_only=True)

    @property
    def is_for_draws(self) -> bool:
        """Never: plans judge how many attributes of an example are worth most."""
        return False

    def plan(
        self,
        spread: np.ndarray,
        W: np.ndarray,
        known: np.ndarray,
        joint: Callable[[int], JointMoments] | None = None,
    ) -> None:
        """Plan the next rounds, see `Collected.plan`."""
        assert joint is not None
        covariance, contrast = joint(0).covariance, np.append(-W[0], 1.0)  # y - <w, x>
        noise = float(contrast @ covariance @ contrast)
        self.then.plan(Beliefs(covariance[:-1, :-1], W[0], max(noise, 0.0)), spread[0], known[0])


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
        X, y = accessor.pilot()
        self._pilot, self._y = (X, y), accessor.targets()[0]
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

    def plan(self, beliefs: Beliefs, spread: np.ndarray, known: np.ndarray) -> None:
        """Choose by what is known, from now on; attributes whose values are known are not bought again."""
        self._beliefs = beliefs
        weights = regression_weights(np.where(known, 0.0, spread), beliefs.w)
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
        n, d = self._values.shape
        entries, (X, y) = Entries(d + 1), self._pilot
        pilot = X.shape[1]
        if pilot:
            entries.add(np.broadcast_to(np.arange(d), X.shape), X, y)
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

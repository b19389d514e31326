"""What a run may spend: the pilot, where the run ends, and its checkpoints.

Everything is planned in draws of attributes, each of which costs 1 unless its value is missing. A total may be in
money, if there are prices. As a plan is made before any draw, it converts money by the expected price of a draw, and
expects as many missing values as the table has. What the draws of a repetition cost decides where it really ends, see
`budgetreg.protocol.passes.advance_within_total`: no run pays more than a total in money.

A `Spending` holds what is for sale and what was asked for. All else follows from these by arithmetic.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, fsum, inf, sqrt
from typing import NamedTuple

import numpy as np

from budgetreg.algorithms.learner import BudgetSplit, Missing, Observation
from budgetreg.common.errors import ConfigError
from budgetreg.data.attributes import Prices
from budgetreg.data.dataset import Groups, row_blocks, uncharged
from budgetreg.protocol.configuration import Config
from budgetreg.revealed.collection import MIX
from budgetreg.revealed.designs import per_money, working_probabilities
from budgetreg.revealed.purchases import Purse

PILOT_SHARE, LARGER_SHARE, ENOUGH_ROWS = 0.05, 0.1, 20
"""Share of all spending that an automatic pilot takes; the share up to which it takes more, and for how many rows."""

LEAST_ROWS, LARGEST_SHARE = 2, 0.25
"""The rows that a scale needs, and the share of all spending that an automatic pilot may take for so few."""

AXIS_SPAN = 256
"""The attribute axis begins at the cost of a full row, or at its end divided by this."""

_ROUNDING = 1e-9  # in attributes: rounding error of a quotient that should be whole

_RESERVE = 3.0
"""Standard deviations of what missing values save that a plan leaves unspent, so that few runs exceed their total."""


class HitRate(NamedTuple):
    """The share of draws that meet a value in a table with missing values.

    Attributes
    ----------
    mean, deviation : float
        Mean and standard deviation, over examples, of the number of values that the draws for one meet.
    shares : tuple of float
        The share of examples in which each of the d attributes has a value.
    """

    mean: float
    deviation: float
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Spending:
    """What is for sale to a learner, at which prices, and what it buys of it.

    Attributes
    ----------
    config : Config
        What was asked for.
    n_train, d : int
        Training examples and attributes.
    n_complete : int
        Complete rows of the training part, about.
    prices : Prices or None
        Prices of the attributes. If they are known, the bill is itemised, and is in money too.
    groups : Groups or None
        Attributes that are bought together, and count as one everywhere here; None if each is alone.
    hit_rate : HitRate or None
        How often draws meet a value; None if no value is missing.
    """

    config: Config
    n_train: int
    d: int
    n_complete: int
    prices: Prices | None
    groups: Groups | None
    hit_rate: HitRate | None

    # What is for sale

    @cached_property
    def free(self) -> np.ndarray | None:
        """Attributes that cost nothing, bool of shape (d,), and are seen of every example; None if all have a price."""
        if self.prices is None:
            return None
        costs = np.array(self.prices.costs)
        free = (costs if self.groups is None else costs[self.groups.head_of]) == 0
        return free if free.any() else None

    @cached_property
    def uncharged(self) -> np.ndarray | None:
        """Attributes on no bill, bool of shape (d,): free ones, and all of a group but one; None if there are none."""
        return uncharged(self.free, self.groups)

    @cached_property
    def charged(self) -> np.ndarray:
        """Attributes that are on the bill, bool of shape (d,)."""
        return np.ones(self.d, dtype=bool) if self.uncharged is None else ~self.uncharged

    @cached_property
    def full_row(self) -> int:
        """Attributes that are charged for a full row: those with a price, of each group one."""
        return int(self.charged.sum())

    @property
    def k(self) -> int:
        """The attribute budget, as a number: all attributes, if the learner chooses how many it sees."""
        return self.full_row if isinstance(self.config.k, str) else self.config.k

    @property
    def budget_split(self) -> BudgetSplit | None:
        """How k is divided, for learners that declare it."""
        return self.config.algo.split_budget(self.k)

    @property
    def per_example(self) -> int:
        """Attributes that a replica may be charged for one example: k, or all; for some learners on average."""
        return min(self.d if self.config.algo.observation is Observation.ALL else self.k, self.full_row)

    @property
    def in_money(self) -> bool:
        """Whether there is a total in money."""
        return self.prices is not None and self.config.total is not None

    @cached_property
    def payment(self) -> Prices:
        """The prices of attributes in the unit of the total: 1 each if it is attributes."""
        return self.prices if self.prices and self.in_money else Prices((), (1.0,) * self.full_row, "cells")

    @cached_property
    def price(self) -> float:
        """The expected price of an attribute, in money; 1 if the total is in attributes.

        Price-aware draws are taken to be those of equally relevant attributes, all others to be uniform. Attributes
        whose values are often missing are met less often.
        """
        if not self.in_money:
            return 1.0
        price_aware, split, costs = self.config.algo.cost_aware, self.budget_split, np.array(self.payment.costs)
        drawn = costs > 0
        c, roots = costs[drawn], np.sqrt(costs[drawn])
        shares = np.ones(len(c)) if self.hit_rate is None else np.array(self.hit_rate.shares)[drawn]
        mean = fsum(shares * c) / fsum(shares)
        if not price_aware:
            return mean
        if split is None:
            weights = shares * working_probabilities(per_money(np.ones(len(c)), c), self.per_example, MIX)
            return fsum(weights * c) / fsum(weights)
        guided, draws = fsum(shares * roots) / fsum(shares / roots), split._asdict()
        return fsum(n * (guided if part in price_aware else mean) for part, n in draws.items()) / sum(draws.values())

    @property
    def cheapest(self) -> float:
        """The lowest price on the bill, in the unit of the total."""
        return min(cost for cost in self.payment.costs if cost)

    @property
    def cheapest_example(self) -> float:
        """The lowest price of an example, in the unit of the total.

        Parts of a split budget are drawn independently, and may be the same attribute; with missing values an example
        may show fewer than k.
        """
        if self.budget_split is None and self.hit_rate is None:
            return fsum(sorted(cost for cost in self.payment.costs if cost)[: self.per_example])
        return self.per_example * self.cheapest

    @property
    def most_expensive_example(self) -> float:
        """The highest price of an example, in money if there are prices; as for `cheapest_example`."""
        costs = sorted(self.prices.costs if self.prices else self.payment.costs, reverse=True)
        return fsum(costs[: self.per_example]) if self.budget_split is None else self.per_example * costs[0]

    @property
    def total(self) -> str:
        """The total in words, with its unit if that is money."""
        return f"total={self.config.total}" + (f" {self.payment.unit}" if self.in_money else "")

    # What is bought

    def draws_bought(self, first: int) -> int | None:
        """Return how many draws the total pays for, some first full rows included; None if there is no total.

        With missing values the plan expects n examples to cost ``n mean``, in attributes. Unless draws decide where
        the run ends, it leaves ``3 sqrt(n)`` standard deviations of an example's cost unspent.
        """
        if self.config.total is None:
            return None
        values = (self.config.total - first * self.payment.row) / self.price
        hits = self.hit_rate
        if hits is not None and values > 0:
            reserve = 0.0 if self.config.ends_with_money else _RESERVE * hits.deviation
            root = 2 * values / (reserve + sqrt(reserve**2 + 4 * hits.mean * values))  # of the examples
            values = self.per_example * root**2
        return first * self.full_row + int(values + _ROUNDING)

    def axis_end(self, first: int) -> int:
        """Return the draws at which the axis ends, some first full rows included; at most those of all examples."""
        bought = self.draws_bought(first)
        if bought is None:
            return min(self.k, self.full_row) * self.n_train
        return min(bought, first * self.full_row + self.per_example * (self.n_train - first))

    @cached_property
    def pilot(self) -> int:
        """The number of full rows that are bought first.

        They are the first examples of learners that see all attributes; other learners take no step on them.

        Raises
        ------
        ConfigError
            If they are too few for what they have to estimate, or leave too little to learn with.
        """
        config, row = self.config, self.payment.row
        end = self.axis_end(0)
        spent = most = end * self.price  # as is expected
        if config.total is not None:
            by_total = end == self.draws_bought(0)
            spent, most = min(spent, config.total), config.total if by_total else most
        pilot = 0 if config.pilot == "auto" else int(config.pilot)
        if config.has_automatic_pilot:
            pilot = self.automatic_pilot(spent)
        if pilot and not config.algo.predicts:
            raise ConfigError(
                f"pilot={config.pilot}: {config.algo.name} learns a subspace and has no pilot; use pilot=0"
            )
        if pilot < LEAST_ROWS and self._scaled_by_pilot:
            half = f" (pilot=auto takes at most half of the complete rows, about {self.n_complete} here)"
            raise ConfigError(
                f"pilot={pilot}: too few rows for dataset.scale={config.dataset.options['scale']}; use at least 2, or "
                f"dataset.scale=max_abs or none, or dataset.ranges{half if config.has_automatic_pilot else ''}"
            )
        if not pilot and config.algo.given_moments == "pilot":
            raise ConfigError("pilot=0: too few rows for algo.moments=pilot; use at least 1, or algo.moments=given")
        if pilot and (pilot * row >= most or pilot >= self.n_train):
            limit = self.total if most == config.total else f"k={config.k} for {self.n_train} examples"
            way = f"{config.algo.name} needs them" if config.pilot == "auto" else "use a smaller pilot"
            raise ConfigError(
                f"pilot={config.pilot}: {pilot} full rows of {self.full_row} attributes cost as much as {limit}, "
                f"or more; {way}"
            )
        return pilot

    def automatic_pilot(self, spent: float) -> int:
        """Return the rows of an automatic pilot, given all spending.

        They are 5 % of it, or up to 20 rows if these are at most 10 %; and at most half of the complete rows. If 10 %
        pay for fewer than 2 rows, learners that need no pilot have none, and others have 2.

        Raises
        ------
        ConfigError
            If the fewest rows that the learner needs would take too much.
        """
        algo, row = self.config.algo, self.payment.row
        rows = max(round(PILOT_SHARE * spent / row), min(ENOUGH_ROWS, int(LARGER_SHARE * spent / row)))
        if rows < LEAST_ROWS:
            rows = LEAST_ROWS if self._scaled_by_pilot or algo.given_moments == "pilot" else 0
        if rows * row > LARGEST_SHARE * spent and algo.observation is not Observation.ALL:
            by_scale = self._scaled_by_pilot
            ways = "dataset.ranges=FILE, dataset.scale=max_abs or none" if by_scale else "algo.moments=given"
            raise ConfigError(
                f"pilot=auto: {algo.name} needs {rows} full rows of {self.full_row} attributes first, which cost "
                f"{rows * row:,.10g}, more than a quarter of {spent:,.10g}; use {ways}, or pilot={rows}"
            )
        return min(rows, self.n_complete // 2)

    @property
    def _scaled_by_pilot(self) -> bool:
        """Whether the scale of attributes has to come from a pilot, as the learner does not scale what it sees."""
        dataset = self.config.dataset
        return dataset.scaled_by_pilot and not (dataset.scaled_by_revealed and self.config.algo.scales_itself)

    @property
    def pilot_before_learning(self) -> int:
        """Examples on which the learner takes no step: the pilot, unless it sees all attributes anyway."""
        return 0 if self.config.algo.observation is Observation.ALL else self.pilot

    @property
    def money(self) -> float:
        """The rest of a total after the pilot, in its unit; infinite if there is no total."""
        total = self.config.total
        return inf if total is None else total - self.pilot_before_learning * self.payment.row

    @cached_property
    def checkpoints(self) -> tuple[int, ...]:
        """The numbers of examples, the pilot's rows among them, at which the curve is evaluated.

        If the learner chooses k, they are amounts, in the unit of the total.

        Raises
        ------
        ConfigError
            If the pilot cannot be had, see `pilot`; or what was asked for, or the total, is out of reach.
        """
        asked, pilot = self.config.examples_asked, self.pilot
        if not asked:
            return self._amounts() if self.config.chooses_k else self._examples()
        if asked[-1] > self.n_train:
            raise ConfigError(f"checkpoints={list(asked)}: there are only {self.n_train} training examples")
        if asked[0] <= pilot:
            raise ConfigError(f"checkpoints={list(asked)}: the first {pilot} examples are the pilot")
        return asked

    def _examples(self) -> tuple[int, ...]:
        """Return the numbers of examples that shares or even steps of the axis pay for."""
        config, d, per_example = self.config, self.full_row, self.per_example
        first, name = self.pilot_before_learning, config.algo.name
        end = self.axis_end(first)
        fewest = self.n_train  # examples after the pilot that a total in money pays for, whatever is drawn
        if config.ends_with_money:
            fewest = int(min(self.money / self.most_expensive_example + _ROUNDING, self.n_train))
        if config.axis == "examples":
            per_example = self.k
        if config.total is not None and (end - first * d < per_example or fewest < 1):
            after = f" after a pilot of {first} full rows of {d}" if first else ""
            price = self.most_expensive_example if config.ends_with_money else per_example * self.price
            least = ceil(first * self.payment.row + price - _ROUNDING)
            raise ConfigError(
                f"{self.total}: too little for one example of {per_example} attributes with {name}{after}; "
                f"give at least {least}"
            )
        if end < per_example:
            raise ConfigError(
                f"k={config.k}: {end} attributes in all do not pay for one full row of {d}, which {name} needs; with "
                f"k={d} it sees every example"
            )
        axis = self._axis(min(max(d, end // AXIS_SPAN, self.pilot * d + per_example), end), end)
        examples = {first + (int(attributes) - first * d) // per_example for attributes in axis}
        examples = {min(number, self.n_train) for number in examples if number > self.pilot}
        if not examples:
            raise ConfigError(
                f"checkpoints: none of these shares of {end} attributes pays for one example of {per_example} "
                f"attributes with {name}; give a share of at least {per_example / end:.2g}"
            )
        return tuple(sorted(examples)[-fewest:])

    def _amounts(self) -> tuple[int, ...]:
        """Return the checkpoints of a learner that chooses k: from a full row after the pilot to the total."""
        row, total, first = self.payment.row, self.config.total, self.pilot_before_learning
        assert total is not None
        end, least = min(total, ceil(row * self.n_train - _ROUNDING)), (first + 1) * row
        if end < least - _ROUNDING:
            after = f" and a pilot of {first}" if first else ""
            raise ConfigError(
                f"{self.total}: k=auto needs a full row{after} at least; give at least {ceil(least - _ROUNDING)}"
            )
        axis = self._axis(min(max(least, end / AXIS_SPAN), end), end)
        amounts = {int(amount + _ROUNDING) for amount in axis if amount >= least - _ROUNDING}
        if not amounts:
            raise ConfigError(
                f"checkpoints: each of these shares of {end} pays for less than a full row, which costs {least:,.10g}"
            )
        return tuple(sorted(amounts))

    def _axis(self, begin: float, end: int) -> np.ndarray:
        """Return places on an axis: as many as are asked for, in geometric progression; or the shares of its end."""
        asked = self.config.checkpoints
        if not isinstance(asked, int):
            return np.round(end * np.array(asked), 6)  # because 0.29 of 100 is slightly below 29
        axis = np.geomspace(begin, end, asked) if asked > 1 else np.array([end])
        axis[-1] = end
        return axis

    @property
    def most_examples(self) -> int:
        """The most examples that a run can end with, the pilot's among them."""
        if self.config.chooses_k:
            return self.n_train
        if not self.config.ends_with_money:
            return self.checkpoints[-1]
        examples = int(self.money / self.cheapest_example + _ROUNDING)
        return min(self.n_train, self.pilot_before_learning + examples)

    @cached_property
    def purse(self) -> Purse | None:
        """The purse of a learner that chooses k; None for all others."""
        if not self.config.chooses_k:
            return None
        prices = np.array(self.payment.costs) if self.in_money else np.ones(self.d)
        if self.uncharged is not None:
            prices = np.where(self.uncharged, 0.0, prices)
        return Purse(prices, self.pilot_before_learning * self.payment.row)


def hit_rate(available: np.ndarray, priced: np.ndarray, k: int, missing: Missing) -> HitRate:
    """Return how often k draws for an example meet a value.

    Parameters
    ----------
    available : ndarray of bool, shape (n, d)
        Which values exist.
    priced : ndarray of bool, shape (d,)
        Which attributes are drawn; the others are free.
    k : int
        Draws for an example.
    missing : Missing
        Learners that leave missing values out draw other attributes instead, as long as there are others. Those that
        see attributes of their choice, or none instead, may meet as many. All others skip missing values; their draws
        are taken to be uniform and independent.
    """
    counts, shares = np.zeros(len(available)), np.zeros(priced.size)
    for rows in row_blocks(np.arange(len(available)), priced.size):
        counts[rows] = available[rows][:, priced].sum(axis=1)
        shares += available[rows].sum(axis=0)
    if missing in (Missing.LEFT_OUT, Missing.SKIPPED):
        values, chance = np.minimum(counts, k), 0.0
    else:
        share = counts / np.count_nonzero(priced)
        values, chance = k * share, k * float((share * (1 - share)).mean())
    return HitRate(float(values.mean()), sqrt(float(values.var()) + chance), tuple((shares / len(available)).tolist()))

"""The spending of a run: where it ends, the cost of the pilot, and the checkpoints.

Everything is planned in draws of attributes, each of which costs 1 unless its value is missing. A total may be in
money, if there are prices. As a plan is made before any draw, it converts money by the expected price of a draw, and
expects as many missing values as the table has. What the draws of a repetition cost decides where it really ends, see
`budgetreg.protocol.money`: no run pays more than a total in money.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, fsum, sqrt
from typing import NamedTuple

import numpy as np

from budgetreg.algorithms.learner import BudgetSplit, Missing, Observation
from budgetreg.data.attributes import Prices
from budgetreg.data.dataset import Groups, row_blocks, uncharged
from budgetreg.errors import ConfigError
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


class Met(NamedTuple):
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


def met(available: np.ndarray, priced: np.ndarray, k: int, missing: Missing) -> Met:
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
    return Met(float(values.mean()), sqrt(float(values.var()) + chance), tuple((shares / len(available)).tolist()))


def free_of(prices: Prices | None, groups: Groups | None) -> np.ndarray | None:
    """Return which attributes cost nothing, bool of shape (d,); None if all have a price."""
    costs = np.array(prices.costs) if prices else np.ones(0)
    free = (costs if groups is None or not costs.size else costs[groups.head_of]) == 0
    return free if free.any() else None


@dataclass(frozen=True)
class Spending:
    """The amount that a run may spend, and how many examples that pays for.

    Attributes
    ----------
    config : Config
        What was asked for.
    n_train, d : int
        Training examples and attributes.
    budget_split : BudgetSplit or None
        How k is divided, for learners that declare it.
    prices : Prices or None
        Prices of the attributes. If they are known, the bill is itemised, and is in money too.
    n_complete : int
        Complete rows of the training part, about.
    met : Met or None
        How often draws meet a value; None if no value is missing.
    groups : Groups or None
        Attributes that are bought together, and count as one everywhere here; None if each is alone.
    """

    config: Config
    n_train: int
    d: int
    budget_split: BudgetSplit | None
    prices: Prices | None
    n_complete: int
    met: Met | None
    groups: Groups | None

    @cached_property
    def free(self) -> np.ndarray | None:
        """Attributes that cost nothing, shape (d,): they are seen of every example; None if all have a price."""
        return free_of(self.prices, self.groups)

    @property
    def uncharged(self) -> np.ndarray | None:
        """Attributes that are on no bill, shape (d,): those that are free, and all of a group but one."""
        return uncharged(self.free, self.groups)

    @property
    def full_row(self) -> int:
        """Attributes that are charged for a full row: those with a price, of each group one."""
        return self.d if self.uncharged is None else int(np.count_nonzero(~self.uncharged))

    @property
    def k(self) -> int:
        """The attribute budget, as a number: all attributes, if the learner chooses how many it sees."""
        return self.full_row if isinstance(self.config.k, str) else self.config.k

    @property
    def per_example(self) -> int:
        """Attributes that a replica may be charged for one example: k, or all; for some learners on average."""
        limit = self.d if self.config.algo.observation is Observation.ALL else self.k
        return min(limit, self.full_row)

    @cached_property
    def payment(self) -> Prices:
        """The prices of attributes in the unit of the total: 1 each if it is attributes."""
        if self.prices is not None and self.config.total is not None:
            return self.prices
        return Prices((), (1.0,) * self.full_row, "cells")

    @cached_property
    def price(self) -> float:
        """The expected price of an attribute, in money; 1 if the total is in attributes.

        Price-aware draws are taken to be those of equally relevant attributes, all others to be uniform. Attributes
        whose values are often missing are met less often.
        """
        price_aware = self.config.algo.cost_aware
        if self.payment is not self.prices:
            return 1.0
        costs = np.array(self.payment.costs)
        drawn = costs > 0
        c, roots = costs[drawn], np.sqrt(costs[drawn])
        shares = np.ones(len(c)) if self.met is None else np.array(self.met.shares)[drawn]
        mean = fsum(shares * c) / fsum(shares)
        if not price_aware:
            return mean
        if self.budget_split is None:
            weights = shares * working_probabilities(per_money(np.ones(len(c)), c), self.per_example, MIX)
            return fsum(weights * c) / fsum(weights)
        guided, draws = fsum(shares * roots) / fsum(shares / roots), self.budget_split._asdict()
        return fsum(n * (guided if part in price_aware else mean) for part, n in draws.items()) / sum(draws.values())

    @cached_property
    def purse(self) -> Purse | None:
        """The purse of a learner that chooses k; None for all others."""
        if not self.config.chooses_k:
            return None
        prices = np.ones(self.d) if self.payment is not self.prices else np.array(self.payment.costs)
        if self.uncharged is not None:
            prices = np.where(self.uncharged, 0.0, prices)
        return Purse(prices, self.lead * self.payment.row)

    @property
    def ends_with_money(self) -> bool:
        """Whether the draws of each repetition decide how many examples the total, which is money, pays for."""
        return self.config.ends_with_money

    @property
    def money(self) -> float:
        """The rest of a total after the pilot, in its unit."""
        assert self.config.total is not None
        return self.config.total - self.lead * self.payment.row

    @property
    def total(self) -> str:
        """The total in words, with its unit if that is money."""
        return f"total={self.config.total}" + (f" {self.prices.unit}" if self.payment is self.prices else "")

    @property
    def lead(self) -> int:
        """Examples on which the learner takes no step: the pilot, unless it sees all attributes anyway."""
        return 0 if self.config.algo.observation is Observation.ALL else self.pilot

    def bought(self, lead: int) -> int | None:
        """Return how many draws the total pays for, after some full rows; None if there is no total.

        With missing values the plan expects n examples to cost ``n mean``, in attributes. Unless draws decide where
        the run ends, it leaves ``3 sqrt(n)`` standard deviations of an example's cost unspent.
        """
        if self.config.total is None:
            return None
        values = (self.config.total - lead * self.payment.row) / self.price
        if self.met is not None and values > 0:
            reserve = 0.0 if self.ends_with_money else _RESERVE * self.met.deviation
            root = 2 * values / (reserve + sqrt(reserve**2 + 4 * self.met.mean * values))  # of the examples
            values = self.per_example * root**2
        return lead * self.full_row + int(values + _ROUNDING)

    def end(self, lead: int) -> int:
        """Return the draws at which the axis ends; with a total, at most those of all examples."""
        bought = self.bought(lead)
        if bought is None:
            return min(self.k, self.full_row) * self.n_train
        return min(bought, lead * self.full_row + self.per_example * (self.n_train - lead))

    def spent(self, draws: int) -> float:
        """Return what draws are expected to cost, a number of the total's unit, and at most the total."""
        return min(draws * self.price, self.config.total or draws * self.price)

    @property
    def scaled_by_pilot(self) -> bool:
        """Whether the scale of attributes has to come from a pilot, because the learner does not scale what it sees."""
        dataset = self.config.dataset
        return dataset.scaled_by_pilot and not (dataset.scaled_by_revealed and self.config.algo.scales_itself)

    def automatic_pilot(self, spent: float) -> int:
        """Return the pilot's rows, given all spending, see `pilot`.

        Raises
        ------
        ConfigError
            If the fewest rows that the learner needs would take too much.
        """
        algo, row = self.config.algo, self.payment.row
        rows = max(round(PILOT_SHARE * spent / row), min(ENOUGH_ROWS, int(LARGER_SHARE * spent / row)))
        if rows < LEAST_ROWS:
            rows = LEAST_ROWS if self.scaled_by_pilot or algo.given_moments == "pilot" else 0
        if rows * row > LARGEST_SHARE * spent and algo.observation is not Observation.ALL:
            by_scale = "dataset.ranges=FILE, dataset.scale=max_abs or none"
            ways = by_scale if self.scaled_by_pilot else "algo.moments=given"
            raise ConfigError(
                f"pilot=auto: {algo.name} needs {rows} full rows of {self.full_row} attributes first, which cost "
                f"{rows * row:,.10g}, more than a quarter of {spent:,.10g}; use {ways}, or pilot={rows}"
            )
        return min(rows, self.n_complete // 2)

    @cached_property
    def pilot(self) -> int:
        """The number of full rows that are bought first.

        They are the first examples of learners that see all attributes; other learners take no step on them. If it is
        automatic, it is 5 % of all spending, or up to 20 rows if these are at most 10 %; and at most half of the
        complete rows. If 10 % pay for fewer than 2 rows, learners that need no pilot have none, and others have 2.

        Raises
        ------
        ConfigError
            If they are too few for what they have to estimate, or leave too little to learn with.
        """
        config, row, spent = self.config, self.payment.row, self.spent(self.end(0))
        if config.pilot != "auto":
            pilot = int(config.pilot)
        else:
            pilot = self.automatic_pilot(spent) if config.has_automatic_pilot else 0
        if pilot and not config.algo.predicts:
            raise ConfigError(
                f"pilot={config.pilot}: {config.algo.name} learns a subspace and has no pilot; use pilot=0"
            )
        if pilot < LEAST_ROWS and self.scaled_by_pilot:
            scale = config.dataset.options["scale"]
            half = (
                f" (pilot=auto takes at most half of the complete rows, about {self.n_complete} here)"
                if config.has_automatic_pilot
                else ""
            )
            raise ConfigError(
                f"pilot={pilot}: too few rows for dataset.scale={scale}; "
                f"use at least 2, or dataset.scale=max_abs or none, or dataset.ranges{half}"
            )
        if not pilot and config.algo.given_moments == "pilot":
            raise ConfigError("pilot=0: too few rows for algo.moments=pilot; use at least 1, or algo.moments=given")
        if pilot and (pilot * row >= spent or pilot >= self.n_train):
            limit = f"k={config.k} for {self.n_train} examples" if config.total is None else self.total
            way = f"{config.algo.name} needs them" if config.pilot == "auto" else "use a smaller pilot"
            raise ConfigError(
                f"pilot={config.pilot}: {pilot} full rows of {self.full_row} attributes cost as much as {limit}, "
                f"or more; {way}"
            )
        return pilot

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """The numbers of examples, the pilot's rows among them, at which the curve is evaluated.

        If the learner chooses k, they are amounts, in the unit of the total.

        Raises
        ------
        ConfigError
            If the requested checkpoints, or the total, are out of reach.
        """
        config, asked, d, pilot, lead = self.config, self.config.checkpoints, self.full_row, self.pilot, self.lead
        if isinstance(asked, tuple) and not any(isinstance(checkpoint, float) for checkpoint in asked):
            if asked[-1] > self.n_train:
                raise ConfigError(f"checkpoints={list(asked)}: there are only {self.n_train} training examples")
            if asked[0] <= pilot:
                raise ConfigError(f"checkpoints={list(asked)}: the first {pilot} examples are the pilot")
            return tuple(map(int, asked))
        if config.chooses_k:
            return self._amounts
        end, name = self.end(lead), config.algo.name
        per_example = self.k if config.axis == "examples" else self.per_example
        if config.total is not None and (end - lead * d < per_example or self.fewest < 1):
            after = f" after a pilot of {lead} full rows of {d}" if lead else ""
            price = max(self.payment.costs) if self.ends_with_money else self.price
            least = ceil(lead * self.payment.row + per_example * price - _ROUNDING)
            raise ConfigError(
                f"{self.total}: too little for one example of {per_example} attributes with {name}{after}; "
                f"give at least {least}"
            )
        if end < per_example:
            raise ConfigError(
                f"k={config.k}: {end} attributes in all do not pay for one full row of {d}, which {name} needs; with "
                f"k={d} it sees every example"
            )
        begin = min(max(d, end // AXIS_SPAN, pilot * d + per_example), end)
        if isinstance(asked, int):
            axis = np.geomspace(begin, end, asked) if asked > 1 else np.array([end])
            axis[-1] = end
        else:
            axis = np.round(end * np.array(asked), 6)  # because 0.29 of 100 is slightly below 29
        examples = {lead + (int(attributes) - lead * d) // per_example for attributes in axis}
        examples = {min(number, self.n_train) for number in examples if number > pilot}
        if not examples:
            raise ConfigError(
                f"checkpoints: none of these shares of {end} attributes pays for one example of {per_example} "
                f"attributes with {name}; give a share of at least {per_example / end:.2g}"
            )
        return tuple(sorted(examples)[-self.fewest :])

    @property
    def _amounts(self) -> tuple[int, ...]:
        """The checkpoints of a learner that chooses k: from a full row after the pilot to the total."""
        row, lead, asked = self.payment.row, self.lead, self.config.checkpoints
        assert self.config.total is not None
        end, least = min(self.config.total, ceil(row * self.n_train - _ROUNDING)), (lead + 1) * row
        if end < least - _ROUNDING:
            after = f" and a pilot of {lead}" if lead else ""
            raise ConfigError(
                f"{self.total}: k=auto needs a full row{after} at least; give at least {ceil(least - _ROUNDING)}"
            )
        if isinstance(asked, int):
            axis = np.geomspace(min(max(least, end / AXIS_SPAN), end), end, asked) if asked > 1 else np.array([end])
            axis[-1] = end
        else:
            axis = np.round(end * np.array(asked), 6)
        amounts = {int(amount + _ROUNDING) for amount in axis if amount >= least - _ROUNDING}
        if not amounts:
            raise ConfigError(
                f"checkpoints: each of these shares of {end} pays for less than a full row, which costs {least:,.10g}"
            )
        return tuple(sorted(amounts))

    @property
    def fewest(self) -> int:
        """The fewest examples after the pilot that a total in money pays for, whatever is drawn; else all."""
        if not self.ends_with_money:
            return self.n_train
        return int(min(self.money / (self.per_example * max(self.payment.costs)) + _ROUNDING, self.n_train))

    @property
    def most_examples(self) -> int:
        """The most examples that a run can end with, the pilot's among them."""
        if self.config.chooses_k:
            return self.n_train
        if not self.ends_with_money:
            return self.checkpoints[-1]
        cheapest = min(cost for cost in self.payment.costs if cost)
        return min(self.n_train, self.lead + int(self.money / (self.per_example * cheapest) + _ROUNDING))

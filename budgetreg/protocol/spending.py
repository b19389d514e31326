"""What a run may spend: the pilot, where the run ends, and its checkpoints.

Everything is planned in draws of attributes, each of which costs 1 unless its value is missing. A total may be in
money, if there are prices. As a plan is made before any draw, it converts money by the expected price of a draw, and
expects as many missing values as the table has. What the draws of a repetition cost decides where it really ends, see
`budgetreg.protocol.passes.advance_within_total`: no run pays more than a total in money.

`rates` says what is for sale and at which prices, `spending` what is bought of it. Both return numbers only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
class Rates:
    """What is for sale to a learner, and at which prices.

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
    free : ndarray of bool, shape (d,), or None
        Attributes that cost nothing: they are seen for every example; None if all have a price.
    uncharged : ndarray of bool, shape (d,), or None
        Attributes that are on no bill: those that are free, and all of a group but one; None if all are charged.
    full_row : int
        Attributes that are charged for a full row: those with a price, of each group one.
    k : int
        The attribute budget, as a number: all attributes, if the learner chooses how many it sees.
    budget_split : BudgetSplit or None
        How k is divided, for learners that declare it.
    per_example : int
        Attributes that a replica may be charged for one example: k, or all; for some learners on average.
    hit_rate : HitRate or None
        How often draws meet a value; None if no value is missing.
    in_money : bool
        Whether there is a total in money.
    payment : Prices
        The prices of attributes in the unit of the total: 1 each if it is attributes.
    price : float
        The expected price of an attribute, in money; 1 if the total is in attributes.
    """

    config: Config
    n_train: int
    d: int
    n_complete: int
    prices: Prices | None
    groups: Groups | None
    free: np.ndarray | None
    uncharged: np.ndarray | None
    full_row: int
    k: int
    budget_split: BudgetSplit | None
    per_example: int
    hit_rate: HitRate | None
    in_money: bool
    payment: Prices
    price: float

    @property
    def total(self) -> str:
        """The total in words, with its unit if that is money."""
        return f"total={self.config.total}" + (f" {self.payment.unit}" if self.in_money else "")


@dataclass(frozen=True)
class Spending(Rates):
    """What a run may spend, and how many examples that pays for.

    Attributes
    ----------
    pilot : int
        The number of full rows that are bought first, see `pilot_rows`.
    pilot_before_learning : int
        Examples on which the learner takes no step: the pilot, unless it sees all attributes anyway.
    bought : int or None
        Draws that the total pays for; None if there is no total.
    end : int
        The draws at which the axis ends.
    money : float
        The rest of a total after the pilot, in its unit; infinite if there is no total.
    checkpoints : tuple of int
        The numbers of examples, the pilot's rows among them, at which the curve is evaluated. If the learner chooses
        k, they are amounts, in the unit of the total.
    most_examples : int
        The most examples that a run can end with, the pilot's among them.
    purse : Purse or None
        The purse of a learner that chooses k; None for all others.
    """

    pilot: int
    pilot_before_learning: int
    bought: int | None
    end: int
    money: float
    checkpoints: tuple[int, ...]
    most_examples: int
    purse: Purse | None


def spending(rates: Rates) -> Spending:
    """Return what a run may spend.

    Raises
    ------
    ConfigError
        If the pilot is too small for what it has to estimate, or leaves too little to learn with; or the requested
        checkpoints, or the total, are out of reach.
    """
    config = rates.config
    pilot = pilot_rows(rates)
    first = 0 if config.algo.observation is Observation.ALL else pilot
    money = inf if config.total is None else config.total - first * rates.payment.row
    checkpoints = _checkpoints(rates, pilot, first, money)
    most_examples = checkpoints[-1]
    if config.chooses_k:
        most_examples = rates.n_train
    elif config.ends_with_money:
        cheapest = min(cost for cost in rates.payment.costs if cost)
        most_examples = min(rates.n_train, first + int(money / (rates.per_example * cheapest) + _ROUNDING))
    return Spending(
        **vars(rates),
        pilot=pilot,
        pilot_before_learning=first,
        bought=draws_bought(rates, first),
        end=axis_end(rates, first),
        money=money,
        checkpoints=checkpoints,
        most_examples=most_examples,
        purse=_purse(rates, first) if config.chooses_k else None,
    )


def rates(
    config: Config,
    n_train: int,
    d: int,
    n_complete: int,
    prices: Prices | None = None,
    groups: Groups | None = None,
    available: np.ndarray | None = None,
) -> Rates:
    """Return what is for sale, and at which prices.

    Parameters
    ----------
    config, n_train, d, n_complete, prices, groups
        As in `Rates`.
    available : ndarray of bool, shape (n, d), or None
        Which values exist; None if all do.
    """
    algo, free = config.algo, free_of(prices, groups)
    unbilled = uncharged(free, groups)
    charged = np.ones(d, dtype=bool) if unbilled is None else ~unbilled
    full_row = int(charged.sum())
    k = full_row if isinstance(config.k, str) else config.k
    split = algo.split_budget(k)
    per_example = min(d if algo.observation is Observation.ALL else k, full_row)
    hits = None if available is None else hit_rate(available, charged, k, algo.missing)
    payment, price, in_money = Prices((), (1.0,) * full_row, "cells"), 1.0, False
    if prices is not None and config.total is not None:
        payment, in_money = prices, True
        price = _expected_price(prices, per_example, hits, split, algo.cost_aware)
    return Rates(
        config=config,
        n_train=n_train,
        d=d,
        n_complete=n_complete,
        prices=prices,
        groups=groups,
        free=free,
        uncharged=unbilled,
        full_row=full_row,
        k=k,
        budget_split=split,
        per_example=per_example,
        hit_rate=hits,
        in_money=in_money,
        payment=payment,
        price=price,
    )


def free_of(prices: Prices | None, groups: Groups | None) -> np.ndarray | None:
    """Return which attributes cost nothing, bool of shape (d,); None if all have a price."""
    costs = np.array(prices.costs) if prices else np.ones(0)
    free = (costs if groups is None or not costs.size else costs[groups.head_of]) == 0
    return free if free.any() else None


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


def _expected_price(
    prices: Prices, per_example: int, hits: HitRate | None, split: BudgetSplit | None, price_aware: Sequence[str]
) -> float:
    """Return the expected price of an attribute.

    Price-aware draws are taken to be those of equally relevant attributes, all others to be uniform. Attributes
    whose values are often missing are met less often.
    """
    costs = np.array(prices.costs)
    drawn = costs > 0
    c, roots = costs[drawn], np.sqrt(costs[drawn])
    shares = np.ones(len(c)) if hits is None else np.array(hits.shares)[drawn]
    mean = fsum(shares * c) / fsum(shares)
    if not price_aware:
        return mean
    if split is None:
        weights = shares * working_probabilities(per_money(np.ones(len(c)), c), per_example, MIX)
        return fsum(weights * c) / fsum(weights)
    guided, draws = fsum(shares * roots) / fsum(shares / roots), split._asdict()
    return fsum(n * (guided if part in price_aware else mean) for part, n in draws.items()) / sum(draws.values())


def draws_bought(rates: Rates, first: int) -> int | None:
    """Return how many draws the total pays for, some first full rows included; None if there is no total.

    With missing values the plan expects n examples to cost ``n mean``, in attributes. Unless draws decide where
    the run ends, it leaves ``3 sqrt(n)`` standard deviations of an example's cost unspent.
    """
    if rates.config.total is None:
        return None
    values = (rates.config.total - first * rates.payment.row) / rates.price
    hits = rates.hit_rate
    if hits is not None and values > 0:
        reserve = 0.0 if rates.config.ends_with_money else _RESERVE * hits.deviation
        root = 2 * values / (reserve + sqrt(reserve**2 + 4 * hits.mean * values))  # of the examples
        values = rates.per_example * root**2
    return first * rates.full_row + int(values + _ROUNDING)


def axis_end(rates: Rates, first: int) -> int:
    """Return the draws at which the axis ends, after some full rows; with a total, at most those of all examples."""
    bought = draws_bought(rates, first)
    if bought is None:
        return min(rates.k, rates.full_row) * rates.n_train
    return min(bought, first * rates.full_row + rates.per_example * (rates.n_train - first))


def pilot_rows(rates: Rates) -> int:
    """Return the number of full rows that are bought first.

    They are the first examples of learners that see all attributes; other learners take no step on them.

    Raises
    ------
    ConfigError
        If they are too few for what they have to estimate, or leave too little to learn with.
    """
    config, row = rates.config, rates.payment.row
    spent = axis_end(rates, 0) * rates.price  # as is expected
    if config.total is not None:
        spent = min(spent, config.total)
    if config.pilot != "auto":
        pilot = int(config.pilot)
    else:
        pilot = automatic_pilot(rates, spent) if config.has_automatic_pilot else 0
    if pilot and not config.algo.predicts:
        raise ConfigError(f"pilot={config.pilot}: {config.algo.name} learns a subspace and has no pilot; use pilot=0")
    if pilot < LEAST_ROWS and _scaled_by_pilot(config):
        scale = config.dataset.options["scale"]
        half = (
            f" (pilot=auto takes at most half of the complete rows, about {rates.n_complete} here)"
            if config.has_automatic_pilot
            else ""
        )
        raise ConfigError(
            f"pilot={pilot}: too few rows for dataset.scale={scale}; "
            f"use at least 2, or dataset.scale=max_abs or none, or dataset.ranges{half}"
        )
    if not pilot and config.algo.given_moments == "pilot":
        raise ConfigError("pilot=0: too few rows for algo.moments=pilot; use at least 1, or algo.moments=given")
    if pilot and (pilot * row >= spent or pilot >= rates.n_train):
        limit = f"k={config.k} for {rates.n_train} examples" if config.total is None else rates.total
        way = f"{config.algo.name} needs them" if config.pilot == "auto" else "use a smaller pilot"
        raise ConfigError(
            f"pilot={config.pilot}: {pilot} full rows of {rates.full_row} attributes cost as much as {limit}, "
            f"or more; {way}"
        )
    return pilot


def automatic_pilot(rates: Rates, spent: float) -> int:
    """Return the rows of an automatic pilot, given all spending.

    They are 5 % of it, or up to 20 rows if these are at most 10 %; and at most half of the complete rows. If 10 % pay
    for fewer than 2 rows, learners that need no pilot have none, and others have 2.

    Raises
    ------
    ConfigError
        If the fewest rows that the learner needs would take too much.
    """
    algo, row = rates.config.algo, rates.payment.row
    rows = max(round(PILOT_SHARE * spent / row), min(ENOUGH_ROWS, int(LARGER_SHARE * spent / row)))
    by_scale = _scaled_by_pilot(rates.config)
    if rows < LEAST_ROWS:
        rows = LEAST_ROWS if by_scale or algo.given_moments == "pilot" else 0
    if rows * row > LARGEST_SHARE * spent and algo.observation is not Observation.ALL:
        ways = "dataset.ranges=FILE, dataset.scale=max_abs or none" if by_scale else "algo.moments=given"
        raise ConfigError(
            f"pilot=auto: {algo.name} needs {rows} full rows of {rates.full_row} attributes first, which cost "
            f"{rows * row:,.10g}, more than a quarter of {spent:,.10g}; use {ways}, or pilot={rows}"
        )
    return min(rows, rates.n_complete // 2)


def _scaled_by_pilot(config: Config) -> bool:
    """Return whether the scale of attributes has to come from a pilot, as the learner does not scale what it sees."""
    return config.dataset.scaled_by_pilot and not (config.dataset.scaled_by_revealed and config.algo.scales_itself)


def _checkpoints(rates: Rates, pilot: int, first: int, money: float) -> tuple[int, ...]:
    """Return the checkpoints, given the pilot, the full rows before the first step, and what these leave of a total."""
    config, asked, d, per_example = rates.config, rates.config.checkpoints, rates.full_row, rates.per_example
    if isinstance(asked, tuple) and not any(isinstance(checkpoint, float) for checkpoint in asked):
        if asked[-1] > rates.n_train:
            raise ConfigError(f"checkpoints={list(asked)}: there are only {rates.n_train} training examples")
        if asked[0] <= pilot:
            raise ConfigError(f"checkpoints={list(asked)}: the first {pilot} examples are the pilot")
        return tuple(map(int, asked))
    if config.chooses_k:
        return _amounts(rates, first)
    end, name = axis_end(rates, first), config.algo.name
    dearest = max(rates.payment.costs)
    fewest = rates.n_train  # examples after the pilot that a total in money pays for, whatever is drawn
    if config.ends_with_money:
        fewest = int(min(money / (per_example * dearest) + _ROUNDING, rates.n_train))
    if config.axis == "examples":
        per_example = rates.k
    if config.total is not None and (end - first * d < per_example or fewest < 1):
        after = f" after a pilot of {first} full rows of {d}" if first else ""
        price = dearest if config.ends_with_money else rates.price
        least = ceil(first * rates.payment.row + per_example * price - _ROUNDING)
        raise ConfigError(
            f"{rates.total}: too little for one example of {per_example} attributes with {name}{after}; "
            f"give at least {least}"
        )
    if end < per_example:
        raise ConfigError(
            f"k={config.k}: {end} attributes in all do not pay for one full row of {d}, which {name} needs; with "
            f"k={d} it sees every example"
        )
    axis = _axis(asked, min(max(d, end // AXIS_SPAN, pilot * d + per_example), end), end)
    examples = {first + (int(attributes) - first * d) // per_example for attributes in axis}
    examples = {min(number, rates.n_train) for number in examples if number > pilot}
    if not examples:
        raise ConfigError(
            f"checkpoints: none of these shares of {end} attributes pays for one example of {per_example} "
            f"attributes with {name}; give a share of at least {per_example / end:.2g}"
        )
    return tuple(sorted(examples)[-fewest:])


def _amounts(rates: Rates, first: int) -> tuple[int, ...]:
    """Return the checkpoints of a learner that chooses k: from a full row after the pilot to the total."""
    row, total = rates.payment.row, rates.config.total
    assert total is not None
    end, least = min(total, ceil(row * rates.n_train - _ROUNDING)), (first + 1) * row
    if end < least - _ROUNDING:
        after = f" and a pilot of {first}" if first else ""
        raise ConfigError(
            f"{rates.total}: k=auto needs a full row{after} at least; give at least {ceil(least - _ROUNDING)}"
        )
    axis = _axis(rates.config.checkpoints, min(max(least, end / AXIS_SPAN), end), end)
    amounts = {int(amount + _ROUNDING) for amount in axis if amount >= least - _ROUNDING}
    if not amounts:
        raise ConfigError(
            f"checkpoints: each of these shares of {end} pays for less than a full row, which costs {least:,.10g}"
        )
    return tuple(sorted(amounts))


def _axis(asked: int | tuple[float, ...], begin: float, end: int) -> np.ndarray:
    """Return places on an axis: as many as are asked for, in geometric progression; or the shares of its end."""
    if not isinstance(asked, int):
        return np.round(end * np.array(asked), 6)  # because 0.29 of 100 is slightly below 29
    axis = np.geomspace(begin, end, asked) if asked > 1 else np.array([end])
    axis[-1] = end
    return axis


def _purse(rates: Rates, first: int) -> Purse:
    prices = np.array(rates.payment.costs) if rates.in_money else np.ones(rates.d)
    if rates.uncharged is not None:
        prices = np.where(rates.uncharged, 0.0, prices)
    return Purse(prices, first * rates.payment.row)

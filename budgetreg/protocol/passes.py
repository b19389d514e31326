"""Passes: a learner runs along many streams of examples at once, those of folds and those of final runs.

A final pass that a total in money ends sees as many examples as it pays for, given its draws. What an example costs is
known once its attributes are drawn, but learners are given the number of examples beforehand. So a pass is rehearsed on
more examples than are expected. The draws for an example depend on the examples before it alone, so that what the
rehearsal pays shows where the money ends. Values beyond that end change nothing. Then the pass runs to that end, with
the same draws, and with the rehearsal's plans, because these take long. Passes of learners whose outputs do not depend
on where others are wanted run together, and each ends where its money does.
Learners that plan by the number of examples may draw other attributes then. If they would pay more, they run again on
fewer examples. If they pay so little that the rest would have paid for any one of the examples, they run again on more,
a few times at most, and the longest run that the money pays for is kept. Where such a run ends may depend on values
that it does not see, by what the others would have paid.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any

import numpy as np

from budgetreg.algorithms import contract
from budgetreg.algorithms.learner import Settings, SideInformation
from budgetreg.common.errors import ConfigError
from budgetreg.common.streams import generator
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.ledger import Cells, Expenses, RevealLog
from budgetreg.metering.table import Origin, Table
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.split import Split
from budgetreg.protocol.tuning import count

Progress = Callable[[float], None]
Evaluate = Callable[[int, np.ndarray, Origin], Any]
"""Given the index of a checkpoint, the outputs of all settings there and their origin, returns what is kept of them."""

_MORE = 1.25
"""Examples of a first rehearsal, as a multiple of those that are expected."""

_LONGER = 6
"""Runs after the first one that the money pays for, at most. Few need more than two."""

_REHEARSAL, _RUN = 0.25, 0.9
"""Shares of the rest of the progress that a rehearsal and each run fill. How many runs follow is not known."""

_ROUNDING = 1e-9  # of a sum of money, relative


@dataclass(frozen=True)
class Pass:
    """One pass over a sequence of training examples.

    Attributes
    ----------
    split : Split
        The repetition's data, whose examples these are.
    stage : str
        ``fold 3`` or ``final``: with the repetition, the identity of its draws.
    order : ndarray of int, shape (m,)
        Row numbers of the examples, in the order in which they are presented.
    pilot : ndarray of int, shape (N,)
        Row numbers of examples that are known beforehand.
    checkpoints : tuple of int
        Numbers of examples, at most m, at which outputs are evaluated.
    begin : callable or None
        Called when the pass begins; returns what evaluates its outputs. None: nothing is evaluated.
    """

    split: Split
    stage: str
    order: np.ndarray
    pilot: np.ndarray
    checkpoints: tuple[int, ...]
    begin: Callable[[], Evaluate] | None

    @property
    def final(self) -> bool:
        """Whether cells are recorded for each setting separately, because one setting will be chosen."""
        return self.stage == "final"


@dataclass(frozen=True)
class PassResult:
    """The result of a pass.

    Attributes
    ----------
    checkpoints : tuple of int
        Those of the pass.
    kept : tuple
        What the evaluation returned at each checkpoint.
    attributes : ndarray of int, shape (C, G)
        Attributes charged up to each checkpoint.
    most : ndarray of int, shape (G,)
        The most attributes charged for any one example.
    paid : int
        Attributes charged over the whole pass, for all settings together.
    reveals : ndarray of int, shape (C, G, d), or None
        How often each attribute was charged up to each checkpoint, if there are prices.
    reveals_paid : ndarray of int, shape (d,), or None
        The same over the whole pass, for all settings together.
    seen : callable or None
        For a final pass: returns the rows and cells that a setting saw, see `budgetreg.metering.ledger.RevealLog.seen`.
    expenses : ndarray of float, shape (n, G), or None
        For a final pass that a total in money ends: what each example cost.
    """

    checkpoints: tuple[int, ...]
    kept: tuple[Any, ...]
    attributes: np.ndarray
    most: np.ndarray
    paid: int
    reveals: np.ndarray | None
    reveals_paid: np.ndarray | None
    seen: Callable[[int], tuple[np.ndarray, np.ndarray]] | None
    expenses: np.ndarray | None = None


def advance(
    plan: Plan,
    table: Table,
    passes: Sequence[Pass],
    settings: Settings,
    progress: Progress,
    cells: Cells,
    rehearsed: dict[Any, Any] | None = None,
) -> list[PassResult]:
    """Run passes, as many at a time as the plan allows; no number of any depends on which others there are.

    Parameters
    ----------
    plan : Plan
        Which learner runs.
    table : Table
        Where the examples are.
    passes : sequence of Pass
        Final ones last. Only some learners accept passes of unequal lengths, see `Plan.one_pass`.
    settings : mapping of str to ndarray of shape (G,)
        Parameters of the learner; empty for a learner without parameters.
    progress : callable
        Called with the fraction done, between 0 and 1.
    cells : Cells
        The set to which the cells are added that passes other than final ones see.
    rehearsed : dict, optional
        See `SideInformation`.

    Returns
    -------
    list of PassResult
        One for each pass.
    """
    # The same for all batches: stopping at a checkpoint may change the last bits of later outputs.
    ends = sorted({checkpoint for each in passes for checkpoint in each.checkpoints})
    results: list[PassResult] = []
    for begin in range(0, len(passes), plan.streams_at_once):
        batch = passes[begin : begin + plan.streams_at_once]
        part = portion(progress, begin / len(passes), (begin + len(batch)) / len(passes))
        results += _advance_batch(plan, table, batch, settings, ends, part, cells, rehearsed)
    return results


def _advance_batch(
    plan: Plan,
    table: Table,
    batch: Sequence[Pass],
    settings: Settings,
    ends: list[int],
    progress: Progress,
    cells: Cells,
    rehearsed: dict[Any, Any] | None,
) -> list[PassResult]:
    """Run passes together, all of which stop at some numbers of examples, see `advance`."""
    config = plan.config
    lengths = np.array([each.order.size for each in batch])
    longest = lengths.max() if config.chooses_k else max(lengths.max(), ends[-1])
    orders = np.stack([np.pad(each.order, (0, longest - each.order.size), mode="edge") for each in batch])
    n_final = sum(each.final for each in batch)
    log = RevealLog(cells, np.array([each.split.first_row - each.split.offset for each in batch]), n_final)
    expenses = None
    if plan.prices and config.ends_with_money and n_final == len(batch):
        expenses = Expenses(n_final, count(settings), ends[-1], np.array(plan.prices.costs))
    learner_centres = config.algo.centres_itself
    accessor = Accessor(
        table,
        orders,
        count(settings),
        plan.budget,
        ends,
        lambda stop: progress(min(stop / ends[-1], 1)),
        lengths=lengths,
        pilot=np.stack([each.pilot for each in batch]),
        centre_attributes=plan.centred and not learner_centres,
        centre_targets=plan.intercept and not learner_centres,
        itemised=plan.prices is not None,
        log=log,
        expenses=expenses,
        checkpoints_are_amounts=config.chooses_k,
        free=plan.free,
        groups=plan.groups,
    )
    known = [each.split.moments for each in batch if each.split.moments is not None]
    moments = np.stack(known) if known else None
    prices = np.array(plan.prices.costs) if plan.prices and config.algo.cost_aware else None
    scaled = config.dataset.scaled_by_revealed and config.algo.scales_itself
    zero_is_meaningful = config.dataset.center != "full"
    centring = plan.centred, plan.intercept, scaled
    wanted = {end: [s for s, each in enumerate(batch) if each.begin and end in each.checkpoints] for end in ends}
    given = SideInformation(
        plan.k, plan.budget_split, moments, *centring, prices, zero_is_meaningful, plan.purse, rehearsed, wanted
    )
    identity = ("draws", config.seed, plan.dataset, config.algo.name, config.k)
    rngs = [generator(*identity, each.split.repetition, each.stage) for each in batch]
    kept: list[list[Any]] = [[] for _ in batch]
    evaluate = {s: each.begin() for s, each in enumerate(batch) if each.begin}
    for checkpoint, outputs, origins in contract.run(config.algo, accessor, settings, ends, rngs, given):
        for s in wanted[checkpoint]:
            origin = origins[s]
            if batch[s].final:
                origin = origin._replace(seen=partial(log.seen, s - (len(batch) - n_final)))
            kept[s].append(evaluate[s](len(kept[s]), outputs[s], origin))
    bill = accessor.bill()
    total = bill.reveals.until() if bill.reveals else None
    until = {checkpoint: bill.reveals.until(checkpoint) for checkpoint in ends} if bill.reveals else {}
    return [
        PassResult(
            checkpoints=each.checkpoints,
            kept=tuple(kept[s]),
            attributes=np.stack([bill.at[checkpoint][s] for checkpoint in each.checkpoints]),
            most=bill.most[s],
            paid=int(bill.total[s].sum()),
            reveals=np.stack([until[checkpoint][s] for checkpoint in each.checkpoints]) if until else None,
            reveals_paid=None if total is None else total[s].sum(axis=0),
            seen=partial(log.seen, s - (len(batch) - n_final)) if each.final else None,
            expenses=expenses.of_stream(s) if expenses else None,
        )
        for s, each in enumerate(batch)
    ]


def advance_within_total(
    plan: Plan,
    table: Table,
    finals: Sequence[Pass],
    settings: Settings,
    chosen: np.ndarray,
    progress: Progress,
    cells: Cells,
) -> list[PassResult]:
    """Run final passes for as many examples as the total, which is money, pays for; or to a share of what it buys.

    Parameters
    ----------
    plan, table, settings, progress, cells
        As for `advance`.
    finals : sequence of Pass
        Passes over all training examples; only one, unless the learner has `Learner.independent_checkpoints`.
    chosen : ndarray of int, shape (R,)
        The setting of each pass, of those that run, that the money pays for.

    Returns
    -------
    list of PassResult
        They have as many checkpoints as the plan. The last one is the end, and the others are those of the plan,
        lowered where the money ends before them. The rest of the money would not pay for the most expensive example
        that was seen. It may be more if all examples were seen, or if no longer run was found that the money pays for.

    Raises
    ------
    ConfigError
        If the total does not pay for as many examples as there are checkpoints, which only draws of unlimited number
        can cause.
    """
    planned = [checkpoint - plan.pilot_before_learning for checkpoint in plan.checkpoints]
    rehearsed: dict[Any, Any] = {}
    done = 0.0

    def run(passes: Sequence[Pass], share: float) -> tuple[list[PassResult], list[np.ndarray]]:
        """Return the results, and what each example of each pass has cost."""
        nonlocal done
        start, done = done, done + (1 - done) * share
        results = advance(plan, table, passes, settings, portion(progress, start, done), cells, rehearsed)
        return results, [of.expenses[:, g] for of, g in zip(results, chosen, strict=True) if of.expenses is not None]

    def to(end: int, final: Pass) -> Pass:
        if end < len(planned):
            raise ConfigError(
                f"{plan.total}: the draws of {plan.config.algo.name} leave money for {max(end, 0)} examples in one "
                f"repetition, fewer than the {len(planned)} checkpoints; use a larger total, or checkpoints=1"
            )
        return replace(final, order=final.order[:end], checkpoints=_increasing([*planned[:-1], end]))

    share, pilot = plan.config.last_share, plan.pilot_before_learning * plan.payment.row
    n, most = ceil(_MORE * planned[-1] / share), finals[0].order.size
    while True:
        n = min(n, most)
        _, expected = run([replace(final, checkpoints=(n,), begin=None) for final in finals], _REHEARSAL)
        if n == most or max(affordable(costs[:n], plan.money) for costs in expected) < n:
            break
        n *= 2
    limits = [plan.money if share == 1 else share * (pilot + min(plan.money, of.sum())) - pilot for of in expected]
    ends = [affordable(costs[:n], limit) for costs, limit in zip(expected, limits, strict=True)]
    if plan.config.algo.independent_checkpoints:
        return run(list(map(to, ends, finals)), 1.0)[0]
    (end,), (money,), longest = ends, limits, None
    too_many, attempts = n if end < n else most + 1, _LONGER
    while True:
        (result,), (paid,) = run([to(end, finals[0])], _RUN)
        last = affordable(paid, money)
        if last < end:
            too_many = end
        else:
            longest, least, spent = result, end, paid.sum()
            if money - spent < paid.max() or np.array_equal(paid, expected[0][: paid.size]):
                return [longest]
            last = int(min(too_many, last * money / (spent or 1.0)))
        if longest is not None:
            if not least < last < too_many:  # what was paid does not show how many more examples to try
                last = (least + too_many) // 2
            if last == least or attempts == 0:
                return [longest]
            attempts -= 1
        end = last


def affordable(costs: np.ndarray, money: float) -> int:
    """Return how many examples a sum of money pays for, given what each costs (n,)."""
    return int(np.searchsorted(np.cumsum(costs), money * (1 + _ROUNDING), side="right"))


def _increasing(ends: list[int]) -> tuple[int, ...]:
    """Return numbers of examples, lowered as little as needed to increase up to the last one."""
    return tuple(min(end, ends[-1] - left) for left, end in zip(reversed(range(len(ends))), ends, strict=True))


def portion(progress: Progress, begin: float, end: float) -> Progress:
    """Return what reports the progress of a part of some work, which lies between two fractions of it."""
    return lambda done: progress(begin + done * (end - begin))

"""Passes: a learner runs along many streams of examples at once, those of folds and those of final runs.

A final pass that a total in money ends sees as many examples as it pays for, given its draws. What an example costs is
known once its attributes are drawn, but learners are given the number of examples beforehand. So a pass is rehearsed on
more examples than are expected. The draws for an example depend on the examples before it alone, so that what the
rehearsal pays shows where the money ends. Values beyond that end change nothing. Then the pass runs to that end, with
the same draws, and with the rehearsal's plans, because these take long.
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
    begin : callable
        Called when the pass begins; returns what evaluates its outputs.
    """

    split: Split
    stage: str
    order: np.ndarray
    pilot: np.ndarray
    checkpoints: tuple[int, ...]
    begin: Callable[[], Evaluate]

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

        def opened(stop: float, begin: int = begin, n: int = len(batch)) -> None:
            progress((begin + n * min(stop / ends[-1], 1)) / len(passes))

        results += _advance_batch(plan, table, batch, settings, ends, opened, cells, rehearsed)
    return results


def _advance_batch(
    plan: Plan,
    table: Table,
    batch: Sequence[Pass],
    settings: Settings,
    ends: list[int],
    opened: Progress,
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
        opened,
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
    given = SideInformation(
        plan.k, plan.budget_split, moments, *centring, prices, zero_is_meaningful, plan.purse, rehearsed
    )
    identity = ("draws", config.seed, plan.dataset, config.algo.name, config.k)
    rngs = [generator(*identity, each.split.repetition, each.stage) for each in batch]
    kept: list[list[Any]] = [[] for _ in batch]
    evaluate = [each.begin() for each in batch]
    for checkpoint, outputs, origins in contract.run(config.algo, accessor, settings, ends, rngs, given):
        for s, each in enumerate(batch):
            if checkpoint in each.checkpoints:
                origin = origins[s]
                if each.final:
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
    final: Pass,
    settings: Settings,
    best_in_final: np.ndarray,
    progress: Progress,
    cells: Cells,
) -> PassResult:
    """Run a final pass for as many examples as the total, which is money, pays for.

    Parameters
    ----------
    plan, table, settings, progress, cells
        As for `advance`.
    final : Pass
        The pass over all training examples.
    best_in_final : ndarray of int, shape (C,)
        The setting, of those that run, that was chosen for each checkpoint.

    Returns
    -------
    PassResult
        It has C checkpoints. They divide the money about as those of the plan divide its examples. What is left of the
        money is less than the most expensive example has cost, unless all examples were seen or no longer run that
        the money pays for was found.

    Raises
    ------
    ConfigError
        If the total does not pay for C examples, which only draws of unlimited number can cause.
    """
    rehearsed: dict[Any, Any] = {}
    done = 0.0

    def run(rehearsal: bool, *ends: int) -> tuple[PassResult, np.ndarray, tuple[int, ...]]:
        """Return the result, what each example cost, and the numbers of examples that the amounts pay for by that."""
        nonlocal done
        begin = (lambda: lambda checkpoint, outputs, origin: None) if rehearsal else final.begin
        start, done = done, done + (1 - done) * (_REHEARSAL if rehearsal else _RUN)
        part = portion(progress, start, done)
        passes = [replace(final, checkpoints=ends, begin=begin)]
        (result,) = advance(plan, table, passes, settings, part, cells, rehearsed)
        assert result.expenses is not None
        return result, result.expenses[:, best_in_final[-1]], affordable(result.expenses, amounts, best_in_final)

    planned, most = np.array(plan.checkpoints) - plan.pilot_before_learning, final.order.size
    amounts = plan.money * planned / planned[-1]
    n = min(most, ceil(_MORE * int(planned[-1])))
    while True:
        _, expected, ends = run(True, n)
        if ends[-1] < n or n == most:
            break
        n = min(most, 2 * n)
    longest: PassResult | None = None
    too_many, attempts = n if ends[-1] < n else most + 1, _LONGER
    while ends[-1] >= len(planned):
        result, paid, (*_, last) = run(False, *ends)
        if last < ends[-1]:
            too_many = ends[-1]
        else:
            longest, spent = result, paid.sum()
            if plan.money - spent < paid.max() or np.array_equal(paid, expected[: paid.size]):
                return longest
            last = int(min(too_many, last * plan.money / (spent or 1.0)))
        if longest is not None:
            least = longest.checkpoints[-1]
            if not least < last < too_many:  # what was paid does not show how many more examples to try
                last = (least + too_many) // 2
            if last == least or attempts == 0:
                return longest
            attempts -= 1
        ends = _increasing([checkpoint * last // ends[-1] for checkpoint in ends])
    raise ConfigError(
        f"{plan.total}: the draws of {plan.config.algo.name} leave money for {max(ends[-1], 0)} examples in one "
        f"repetition, fewer than the {len(planned)} checkpoints; use a larger total, or checkpoints=1"
    )


def affordable(expenses: np.ndarray, amounts: np.ndarray, best_in_final: np.ndarray) -> tuple[int, ...]:
    """Return the numbers of examples that amounts of money pay for.

    Parameters
    ----------
    expenses : ndarray of float, shape (n, G)
        What each example costs.
    amounts : ndarray of float, shape (C,)
        Increasing.
    best_in_final : ndarray of int, shape (C,)
        The setting whose expenses each amount pays for.

    Returns
    -------
    tuple of C int
        Increasing, each at least 1. The last one is affordable if it is at least C; earlier ones are about.
    """
    spent = np.cumsum(expenses, axis=0)
    ends = [
        int(np.searchsorted(spent[:, g], amount * (1 + _ROUNDING), side="right"))
        for amount, g in zip(amounts, best_in_final, strict=True)
    ]
    return _increasing(ends)


def _increasing(ends: list[int]) -> tuple[int, ...]:
    """Return numbers of examples, lowered as little as needed to increase, each but the last one at least 1."""
    for at in range(len(ends) - 2, -1, -1):
        ends[at] = min(ends[at], ends[at + 1] - 1)
    return tuple(max(end, at + 1) if at < len(ends) - 1 else end for at, end in enumerate(ends))


def portion(progress: Progress, begin: float, end: float) -> Progress:
    """Return what reports the progress of a part of some work, which lies between two fractions of it."""
    return lambda done: progress(begin + done * (end - begin))

"""Passes: a learner runs along many streams of examples at once, those of folds and those of final runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from budgetreg.algorithms import contract
from budgetreg.algorithms.learner import Settings, SideInformation
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.cells import Cells, RevealLog
from budgetreg.metering.centring import Origin
from budgetreg.metering.ledger import Expenses
from budgetreg.metering.table import Table
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.split import Split
from budgetreg.protocol.tuning import count
from budgetreg.streams import generator

Progress = Callable[[float], None]
Keep = Callable[[int, np.ndarray, Origin], Any]
"""Given the index of a checkpoint, the outputs of all settings there and their origin, returns what is kept of them."""
Begin = Callable[[], Keep]
"""Called when a pass begins."""


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
        Numbers of examples, at most m, at which something is kept.
    begin : callable
        Called when the pass begins; returns what keeps its outputs.
    """

    split: Split
    stage: str
    order: np.ndarray
    pilot: np.ndarray
    checkpoints: tuple[int, ...]
    begin: Begin

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
        What was kept at each checkpoint.
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
        For a final pass: returns the rows and cells that a setting saw, see `budgetreg.metering.cells.RevealLog.seen`.
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
    plan: Plan, table: Table, passes: Sequence[Pass], settings: Settings, progress: Progress, cells: Cells
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

        results += _advance_batch(plan, table, batch, settings, ends, opened, cells)
    return results


def _advance_batch(
    plan: Plan, table: Table, batch: Sequence[Pass], settings: Settings, ends: list[int], opened: Progress, cells: Cells
) -> list[PassResult]:
    """Run passes together, all of which stop at some numbers of examples, see `advance`."""
    config = plan.config
    lengths = np.array([each.order.size for each in batch])
    longest = lengths.max() if config.chooses_k else max(lengths.max(), ends[-1])
    orders = np.stack([np.pad(each.order, (0, longest - each.order.size), mode="edge") for each in batch])
    n_final = sum(each.final for each in batch)
    log = RevealLog(cells, np.array([each.split.first_row - each.split.offset for each in batch]), n_final)
    expenses = None
    if plan.prices and plan.ends_with_money and n_final == len(batch):
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
    given = SideInformation(
        plan.k, plan.budget_split, moments, plan.centred, plan.intercept, scaled, prices, zero_is_meaningful, plan.purse
    )
    identity = ("draws", config.seed, plan.dataset, config.algo.name, config.k)
    rngs = [generator(*identity, each.split.repetition, each.stage) for each in batch]
    kept: list[list[Any]] = [[] for _ in batch]
    keep = [each.begin() for each in batch]
    for checkpoint, outputs, origins in contract.run(config.algo, accessor, settings, ends, rngs, given):
        for s, each in enumerate(batch):
            if checkpoint in each.checkpoints:
                kept[s].append(keep[s](len(kept[s]), outputs[s], origins[s]))
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

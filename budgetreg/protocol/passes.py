"""Passes: a learner runs along many streams of examples at once, those of folds and those of final runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from budgetreg.learners.declaration import SideInformation, WithIntercept
from budgetreg.metering.accessor import Accessor, Streams
from budgetreg.metering.cells import Cells, RevealLog
from budgetreg.metering.centring import Centring, Origin
from budgetreg.metering.table import Table
from budgetreg.protocol.plan import Plan
from budgetreg.streams import generator

Progress = Callable[[float], None]
Keep = Callable[[np.ndarray, Origin], Any]


@dataclass
class Pass:
    """One pass over a sequence of training examples, and what is kept of it.

    Attributes
    ----------
    repetition : int
        Whose examples these are.
    stage : str
        ``fold 3`` or ``final``: with the repetition, the identity of its draws.
    order : ndarray of int, shape (m,)
        Row numbers of the examples, in the order in which they are presented.
    pilot : ndarray of int, shape (N,)
        Row numbers of examples that are known beforehand.
    moments : ndarray of float, shape (d,), or None
        What the learner is given of the attributes' second moments.
    checkpoints : tuple of int
        Numbers of examples, at most m, at which something is kept.
    keeping : callable
        Called when the pass begins; what it returns is given the outputs of all settings at a checkpoint and what they
        count from, and returns what is kept.
    offset : int
        What leads from a row of the table to that of the cells.
    final : bool
        Whether what each setting saw is to be told apart: one of them is chosen.
    kept : list
        What was kept at the checkpoints.
    attributes : ndarray of int, shape (C, G)
        Attributes charged up to each checkpoint.
    most : ndarray of int, shape (G,)
        The most attributes charged for any one example.
    paid : int
        Attributes charged in all, all settings together.
    seen : callable
        Of a final pass: given a setting, rows and cells that it saw, see `budgetreg.metering.cells.RevealLog.seen`.
    reveals : ndarray of int, shape (C, G, d), or None
        How often each attribute was revealed up to each checkpoint, where prices ask for it.
    reveals_paid : ndarray of int, shape (d,), or None
        The same in all, all settings together.
    """

    repetition: int
    stage: str
    order: np.ndarray
    pilot: np.ndarray
    moments: np.ndarray | None
    checkpoints: tuple[int, ...]
    keeping: Callable[[], Keep]
    offset: int
    final: bool
    kept: list[Any] = field(default_factory=list)
    attributes: np.ndarray = field(init=False)
    most: np.ndarray = field(init=False)
    paid: int = field(init=False)
    seen: Callable[[int], tuple[np.ndarray, np.ndarray]] = field(init=False)
    reveals: np.ndarray | None = None
    reveals_paid: np.ndarray | None = None


def advance(
    plan: Plan,
    table: Table,
    passes: Sequence[Pass],
    settings: Mapping[str, np.ndarray],
    n_settings: int,
    progress: Progress,
    cells: Cells,
) -> None:
    """Make passes, as many at a time as the plan allows; no number of any depends on which others there are.

    Parameters
    ----------
    plan : Plan
        Which learner runs.
    table : Table
        Where the examples are.
    passes : sequence of Pass
        Filled in, final ones last.  Passes of unequal lengths are for learners that let them be, see `Plan.one_pass`.
    settings : mapping of str to ndarray of shape (G,)
        Parameters of the learner.
    n_settings : int
        Their number G, 1 for a learner without parameters.
    progress : callable
        Told the fraction done, between 0 and 1.
    cells : Cells
        To which is added what other passes than final ones see.
    """
    # The same for all batches: to stop at a checkpoint may move the last bits of what comes after.
    checkpoints = sorted({checkpoint for one in passes for checkpoint in one.checkpoints})
    for begin in range(0, len(passes), plan.streams_at_once):
        batch = passes[begin : begin + plan.streams_at_once]

        def opened(stop: int, begin: int = begin, n: int = len(batch)) -> None:
            progress((begin + n * min(stop / checkpoints[-1], 1)) / len(passes))

        lengths = np.array([one.order.size for one in batch])
        longest = max(lengths.max(), checkpoints[-1])
        orders = np.stack([np.pad(one.order, (0, longest - one.order.size), mode="edge") for one in batch])
        n_final = sum(one.final for one in batch)
        record = RevealLog(cells, np.array([one.offset for one in batch]), n_final)
        centres_itself = plan.config.algo.centres_itself
        accessor = Accessor(
            table,
            Streams(orders, lengths, np.stack([one.pilot for one in batch])),
            n_settings,
            plan.budget,
            checkpoints,
            opened,
            centring=Centring(plan.centred and not centres_itself, plan.intercept and not centres_itself),
            itemised=plan.prices is not None,
            log=record,
        )
        _run(plan, accessor, settings, checkpoints, batch)
        bill = accessor.bill()
        for s, one in enumerate(batch):
            one.attributes = np.stack([bill.at[checkpoint][s] for checkpoint in one.checkpoints])
            one.most, one.paid = bill.most[s], int(bill.total[s].sum())
            if one.final:
                one.seen = partial(record.seen, s - (len(batch) - n_final))
        if bill.reveals:
            until = {checkpoint: bill.reveals.until(checkpoint) for checkpoint in checkpoints}
            total = bill.reveals.total()
            for s, one in enumerate(batch):
                one.reveals = np.stack([until[checkpoint][s] for checkpoint in one.checkpoints])
                one.reveals_paid = total[s].sum(axis=0)


def _run(
    plan: Plan,
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    batch: Sequence[Pass],
) -> None:
    config = plan.config
    identity = ("draws", config.seed, plan.dataset, config.algo.name, config.k)
    known = [one.moments for one in batch if one.moments is not None]
    outputs_at = config.algo.fit(
        accessor,
        settings,
        checkpoints,
        [generator(*identity, one.repetition, one.stage) for one in batch],
        SideInformation(
            config.k,
            plan.budget_split,
            np.stack(known) if known else None,
            plan.centred,
            plan.intercept,
            np.array(plan.prices.costs) if plan.prices and config.algo.cost_aware else None,
        ),
    )
    keep = [one.keeping() for one in batch]
    for checkpoint, outputs in outputs_at:
        if isinstance(outputs, WithIntercept):
            outputs, intercepts = outputs
            origins = [Origin(intercept=own) for own in intercepts]
        else:
            origins = accessor.origins(checkpoint)
        for s, one in enumerate(batch):
            if checkpoint in one.checkpoints:
                one.kept.append(keep[s](outputs[s], origins[s]))

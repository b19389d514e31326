"""The papers' protocol: split, cross-validation under the budget, one pass, errors at checkpoints."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.accessor import Accessor, Table, stack
from budgetreg.data import load
from budgetreg.knowledge import second_moments, table_of
from budgetreg.learners.dispatch import fit
from budgetreg.plan import Plan
from budgetreg.streams import generator
from budgetreg.tasks import Judge, task_of
from budgetreg.tuning import folds, on_edge, winners

Progress = Callable[[float], None]


@dataclass(frozen=True)
class _Split:
    """One repetition's data: the test, training rows in the order in which they are presented, and given moments."""

    repetition: int
    table: Table
    judge: Judge
    order: np.ndarray
    moments: np.ndarray | None


def run_repetitions(plan: Plan, repetitions: Sequence[int], progress: Progress) -> list[dict[str, Any]]:
    """Run some repetitions of a plan, all their replicas together: that is where the speed comes from.

    Parameters
    ----------
    plan : Plan
        What is run.
    repetitions : sequence of int
        Which repetitions; with the seed and the data each decides its split, folds and order, and none of its numbers
        depends on the others.
    progress : callable
        Told the fraction done, between 0 and 1.

    Returns
    -------
    list of dict
        For each: ``repetition``; ``curve``, a list of one dict per checkpoint; ``run``, the row of ``runs.csv``.

    Raises
    ------
    DataError
        If all targets of a test part are 0, or all attributes where subspaces are learned.
    """
    splits = [_split(plan, repetition) for repetition in repetitions]
    table, offsets = stack([split.table for split in splits])
    bills = np.zeros(len(splits), dtype=np.int64)
    best = np.zeros((len(splits), len(plan.checkpoints)), dtype=np.intp)
    if plan.tuned:
        losses, bills = _cross_validate(plan, splits, table, offsets, lambda done: progress(0.9 * done))
        best[:] = np.stack([winners(own) for own in losses])

    chosen, place = np.unique(best, return_inverse=True)
    place = place.reshape(best.shape)
    settings = {name: np.array(values)[chosen] for name, values in plan.settings.items()}
    orders = np.stack([split.order + offset for split, offset in zip(splits, offsets, strict=True)])
    accessor = _accessor(plan, table, orders, chosen.size, plan.checkpoints, lambda done: progress(0.9 + done / 10))
    stages = [(split, "final") for split in splits]
    curves: list[list[dict[str, Any]]] = [[] for _ in splits]
    for n, (checkpoint, outputs) in enumerate(_fit(plan, accessor, settings, plan.checkpoints, stages)):
        for i, split in enumerate(splits):
            errors = split.judge.columns(outputs[i], place[i, n], _zero(accessor, checkpoint, i))
            curves[i].append({"examples": checkpoint, **errors})
    bill = accessor.bill()
    for i, n in np.ndindex(best.shape):
        curves[i][n]["attributes"] = int(bill.at[plan.checkpoints[n]][i, place[i, n]])
    return [
        {
            "repetition": split.repetition,
            "curve": curves[i],
            "run": _run_row(
                plan, best[i, -1], curves[i][-1]["attributes"], int(bill.most[i, place[i]].max()), int(bills[i])
            ),
        }
        for i, split in enumerate(splits)
    ]


def _run_row(plan: Plan, best: int, total: int, most: int, tuning: int) -> dict[str, Any]:
    return {
        **{f"p_{name}": values[best] for name, values in plan.settings.items()},
        "edge": on_edge(plan.settings, best) if plan.tuned else "",
        "attributes_total": total,
        "attributes_mean": total / plan.checkpoints[-1],
        "attributes_max": most,
        "attributes_tuning": tuning,
    }


def _split(plan: Plan, repetition: int) -> _Split:
    config = plan.config
    data = load(config.dataset, config.seed, repetition)
    if config.dataset.split == "official":
        train, test = np.arange(plan.n_train), np.arange(plan.n_train, data.y.size)
    else:
        shuffled = generator("split", config.seed, data.name, repetition).permutation(data.y.size)
        train, test = np.sort(shuffled[plan.n_test :]), np.sort(shuffled[: plan.n_test])
    table = table_of(config.dataset, data, train)
    judge = task_of(config.algo).test(data, table, test)
    order = generator("order", config.seed, data.name, repetition).permutation(train)
    moments = second_moments(table, train) if config.algo.knows_moments else None
    return _Split(repetition, table, judge, order, moments)


def _cross_validate(
    plan: Plan, splits: Sequence[_Split], table: Table, offsets: Sequence[int], progress: Progress
) -> tuple[np.ndarray, np.ndarray]:
    """Return the held-out losses (N, C, F, G) of all settings on all folds of N splits, and what they paid (N,).

    There are C choices to make: one for each checkpoint, or a single one.
    """
    config = plan.config
    n_folds = config.tuning.folds
    streams, orders = [], []
    for i, (split, offset) in enumerate(zip(splits, offsets, strict=True)):
        rng = generator("folds", config.seed, plan.dataset, split.repetition)
        training, held_out = folds(split.order, n_folds, rng)
        streams += [(i, f, rows) for f, rows in enumerate(held_out)]
        orders.append(training + offset)
    training = np.concatenate(orders)
    length = training.shape[1]
    settings = {name: np.array(values) for name, values in plan.settings.items()}
    wanted = plan.checkpoints if config.tuning.at == "each" else plan.checkpoints[-1:]
    checkpoints = tuple(sorted({min(checkpoint, length) for checkpoint in wanted}))
    losses = np.empty((len(splits), len(checkpoints), n_folds, plan.n_settings))
    paid = np.zeros(len(splits), dtype=np.int64)
    for begin in range(0, len(streams), plan.streams_at_once):
        batch = streams[begin : begin + plan.streams_at_once]
        orders_of = training[begin : begin + len(batch)]

        def within(done: float, begin: int = begin, n: int = len(batch)) -> None:
            progress((begin + done * n) / len(streams))

        accessor = _accessor(plan, table, orders_of, plan.n_settings, checkpoints, within)
        stages = [(splits[i], f"fold {f}") for i, f, _ in batch]
        judges = [task_of(config.algo).held_out(splits[i].table, rows) for i, _, rows in batch]
        for n, (checkpoint, outputs) in enumerate(_fit(plan, accessor, settings, checkpoints, stages)):
            for s, (i, f, _) in enumerate(batch):
                losses[i, n, f] = judges[s].losses(outputs[s], _zero(accessor, checkpoint, s))
        for bill, (i, _, _) in zip(accessor.bill().total, batch, strict=True):
            paid[i] += bill.sum()
    return losses[:, [checkpoints.index(min(c, length)) for c in wanted]], paid


def _zero(accessor: Accessor, checkpoint: int, stream: int) -> np.ndarray | None:
    """Return the zero of a stream's outputs at a checkpoint, if the accessor centred by what it revealed."""
    shift = accessor.shift(checkpoint)
    return None if shift is None else shift[stream]


def _accessor(
    plan: Plan,
    table: Table,
    orders: np.ndarray,
    n_settings: int,
    checkpoints: tuple[int, ...],
    progress: Progress,
) -> Accessor:
    def opened(stop: int) -> None:
        progress(stop / checkpoints[-1])

    centred = plan.config.dataset.center == "revealed"
    return Accessor(table, orders, n_settings, plan.budget, checkpoints, opened, centred)


def _fit(
    plan: Plan,
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: tuple[int, ...],
    stages: Sequence[tuple[_Split, str]],
) -> Iterator[tuple[int, np.ndarray]]:
    """Run the plan's learner along the accessor's streams, each a stage of a split."""
    config = plan.config
    identity = ("draws", config.seed, plan.dataset, config.algo.name, config.k)
    rngs = [generator(*identity, split.repetition, stage) for split, stage in stages]
    known = [split.moments for split, _ in stages if split.moments is not None]
    moments = np.stack(known) if known else None
    return fit(
        config.algo,
        accessor,
        settings,
        checkpoints,
        rngs,
        k=config.k,
        k_x=plan.k_x,
        k_ip=plan.k_ip,
        moments=moments,
    )

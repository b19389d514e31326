"""The papers' protocol, one repetition: split, cross-validation under the budget, one pass, errors at checkpoints."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from budgetreg.accessor import Accessor, Table
from budgetreg.data import Dataset, load
from budgetreg.errors import DataError
from budgetreg.evaluation import error_columns, squared_error, svr_loss
from budgetreg.learners import exact, partial
from budgetreg.plan import Plan
from budgetreg.streams import generator
from budgetreg.tuning import folds, on_edge, winners
from budgetreg.values import as_values, means

Progress = Callable[[float], None]


def run_repetition(plan: Plan, repetition: int, progress: Progress) -> dict[str, Any]:
    """Run one repetition of a plan.

    Parameters
    ----------
    plan : Plan
        What is run.
    repetition : int
        Which repetition; with the seed and the data it decides split, folds and order.
    progress : callable
        Told the fraction done, between 0 and 1.

    Returns
    -------
    dict
        ``repetition``; ``curve``, a list of one dict per checkpoint; ``run``, the row of ``runs.csv``.

    Raises
    ------
    DataError
        If all targets of the test part are 0.
    """
    config = plan.config
    data = load(config.dataset, config.seed, repetition)
    where = (config.seed, data.name, repetition)
    train, test = _split(plan, data, generator("split", *where))
    if not data.y[test].any():
        raise DataError(f"the test part of {data.name} has only targets 0, which no error can be relative to")
    table = _table(plan, data, train)
    order = generator("order", *where).permutation(train)

    tuning_bill, best = 0, np.zeros(len(plan.checkpoints), dtype=np.intp)
    if plan.tuned:
        training, held_out = folds(order, config.tuning.folds, generator("folds", *where))
        losses, tuning_bill = _cross_validate(
            plan, table, training, held_out, repetition, lambda done: progress(0.9 * done)
        )
        best = winners(losses, config.tuning.at)

    chosen, place = np.unique(best, return_inverse=True)
    settings = {name: np.array(values)[chosen] for name, values in plan.settings.items()}
    accessor = _accessor(
        plan, table, order[None, :], chosen.size, plan.checkpoints, lambda done: progress(0.9 + done / 10)
    )
    regressors = {}
    for n, (checkpoint, W) in enumerate(_fit(plan, accessor, settings, plan.checkpoints, repetition, ["final"])):
        regressors[checkpoint] = W[0, :, place[n]]
    bill = accessor.bill()

    curve = [
        {
            "examples": checkpoint,
            "attributes": int(bill.at[checkpoint][0, place[n]]),
            **error_columns(table, test, regressors[checkpoint], data.two_valued, config.algo.delta),
        }
        for n, checkpoint in enumerate(plan.checkpoints)
    ]
    total = int(bill.at[plan.checkpoints[-1]][0, place[-1]])
    run = {
        **{f"p_{name}": values[best[-1]] for name, values in plan.settings.items()},
        "edge": on_edge(plan.settings, best[-1]) if plan.tuned else "",
        "attributes_total": total,
        "attributes_mean": total / plan.checkpoints[-1],
        "attributes_max": bill.most,
        "attributes_tuning": tuning_bill,
    }
    return {"repetition": repetition, "curve": curve, "run": run}


def _split(plan: Plan, data: Dataset, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    if plan.config.dataset.split == "official":
        return np.arange(plan.n_train), np.arange(plan.n_train, data.y.size)
    shuffled = rng.permutation(data.y.size)
    return np.sort(shuffled[plan.n_test :]), np.sort(shuffled[: plan.n_test])


def _table(plan: Plan, data: Dataset, train: np.ndarray) -> Table:
    centred = plan.config.dataset.center == "full"
    shift = means(as_values(data.X), train) * data.scale if centred else None
    return Table(data.X, data.y, data.scale, shift)


def _cross_validate(
    plan: Plan,
    table: Table,
    training: np.ndarray,
    held_out: Sequence[np.ndarray],
    repetition: int,
    progress: Progress,
) -> tuple[np.ndarray, int]:
    """Return the held-out losses (C, F, G) of all settings on all folds, and the attributes they were charged."""
    n_folds, length = training.shape
    settings = {name: np.array(values) for name, values in plan.settings.items()}
    checkpoints = tuple(sorted({min(checkpoint, length) for checkpoint in plan.checkpoints}))
    losses = np.empty((len(checkpoints), n_folds, plan.n_settings))
    step = max(1, plan.config.backend.batch_size // plan.n_settings)
    if plan.config.algo.core == "offline":
        step = n_folds  # they share examples, and how their sums are formed depends on who is there
    charged = 0
    for begin in range(0, n_folds, step):
        batch = range(begin, min(begin + step, n_folds))
        share = len(batch) / n_folds

        def within(done: float, begin: int = begin, share: float = share) -> None:
            progress(begin / n_folds + share * done)

        accessor = _accessor(plan, table, training[batch.start : batch.stop], plan.n_settings, checkpoints, within)
        stages = [f"fold {f}" for f in batch]
        for n, (_, W) in enumerate(_fit(plan, accessor, settings, checkpoints, repetition, stages)):
            for f in batch:
                losses[n, f] = _held_out_loss(plan, table, held_out[f], W[f - begin])
        charged += int(accessor.bill().total.sum())
    return losses[[checkpoints.index(min(c, length)) for c in plan.checkpoints]], charged


def _held_out_loss(plan: Plan, table: Table, index: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return the loss that the learner is after, by which its parameters are chosen."""
    delta = plan.config.algo.delta
    return squared_error(table, index, W) if delta is None else svr_loss(table, index, W, delta)


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

    return Accessor(table, orders, n_settings, plan.budget, checkpoints, opened)


def _fit(
    plan: Plan,
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: tuple[int, ...],
    repetition: int,
    stages: Sequence[str],
) -> Iterator[tuple[int, np.ndarray]]:
    """Run the plan's learner along the accessor's streams, one stage each."""
    config = plan.config
    algo = config.algo
    if algo.core == "offline":
        from budgetreg.learners import offline  # here, as only these learners need scipy, which is slow to load

        return offline.fit(accessor, settings, checkpoints, problem=algo.update)
    if algo.core == "exact":
        return exact.fit(accessor, settings, checkpoints, update=algo.update, average=str(algo.average))
    rngs = [generator("draws", config.seed, plan.dataset, algo.name, config.k, repetition, stage) for stage in stages]
    if algo.core == "pairs":
        from budgetreg.learners import pairs

        return pairs.fit(accessor, settings, checkpoints, rngs, k=config.k, problem=algo.update)
    assert plan.k_x and plan.k_ip
    if algo.core == "svr":
        from budgetreg.learners import svr  # here, as only this learner needs scipy, which is slow to load

        assert algo.residual and algo.delta is not None and algo.eps
        return svr.fit(
            accessor,
            settings,
            checkpoints,
            rngs,
            residual=algo.residual,
            delta=algo.delta,
            eps=algo.eps,
            k_x=plan.k_x,
            k_ip=plan.k_ip,
            average=str(algo.average),
        )
    assert algo.data_point
    return partial.fit(
        accessor,
        settings,
        checkpoints,
        rngs,
        update=algo.update,
        data_point=algo.data_point,
        k_x=plan.k_x,
        k_ip=plan.k_ip,
        average=str(algo.average),
    )

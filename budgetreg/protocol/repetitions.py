"""The papers' protocol: split, cross-validation under the budget, one pass, errors at checkpoints."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from budgetreg.data import Dataset, load
from budgetreg.errors import DataError
from budgetreg.learners.declaration import Missing
from budgetreg.metering.cells import Cells
from budgetreg.metering.centring import Origin
from budgetreg.metering.table import Table, stack
from budgetreg.protocol.models import packed
from budgetreg.protocol.passes import Keep, Pass, Progress, advance
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.side_information import pilot_moments, second_moments, table_of
from budgetreg.protocol.tuning import folds, on_edge, winners
from budgetreg.protocol.widening import widening
from budgetreg.streams import generator
from budgetreg.tasks.task import Columns, Judge, Task


@dataclass(frozen=True)
class _Split:
    """One repetition's data.

    Attributes
    ----------
    repetition : int
    table : Table
    judge : Judge
        The test.
    pilot : ndarray of int, shape (N,)
        Rows that are bought in full first.
    order : ndarray of int, shape (m,)
        The other training rows, in the order in which they are presented.
    moments : ndarray of float, shape (d,), or None
        What the learner is given of the attributes' second moments.
    complete : ndarray of bool, shape (n,)
        Which rows have all their values, and can be judged on.
    """

    repetition: int
    table: Table
    judge: Judge
    pilot: np.ndarray
    order: np.ndarray
    moments: np.ndarray | None
    complete: np.ndarray


class _Place(NamedTuple):
    """Where a repetition's rows are among those that run together."""

    split: _Split
    offset: int
    """Of its first row in the table."""
    first: int
    """Number of its first row among those whose cells are counted: not even equal data share one."""


def run_repetitions(plan: Plan, repetitions: Sequence[int], progress: Progress) -> list[dict[str, Any]]:
    """Run some repetitions of a plan, and again, with a larger grid, those whose best value lies on an edge of it.

    What a larger grid tries includes what was tried before: its bill is that of all that was tried.

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
        For each: ``repetition``; ``curve``, a list of one dict per checkpoint; ``run``, the row of ``runs.csv``;
        ``edge_before``, as the column ``edge`` but of what was chosen for the checkpoints before the last; ``model``,
        as `protocol.models.packed` has it, what was learned by the last checkpoint; ``widened``, if any were, the
        parameters whose grids grew, such as ``"B eta"``; and with prices ``reveals``, how often each attribute was
        revealed by each checkpoint.

    Raises
    ------
    DataError
        If all targets of a test part are 0, or all attributes where subspaces are learned.
    """
    return widening(_run_together, plan, repetitions, progress, plan.config.tuning.widen)


def _run_together(plan: Plan, repetitions: Sequence[int], progress: Progress) -> list[dict[str, Any]]:
    """Run some repetitions, all their replicas together: that is where the speed comes from."""
    splits = [_split(plan, repetition) for repetition in repetitions]
    table, offsets = stack([split.table for split in splits])
    n = len(splits[0].table.y)
    places = [_Place(split, offset, n * i) for i, (split, offset) in enumerate(zip(splits, offsets, strict=True))]
    cells = Cells(n * len(splits), plan.d)
    tried = [_fold_passes(plan, place) if plan.tuned else [] for place in places]
    grid = {name: np.array(values) for name, values in plan.settings.items()}
    if plan.one_pass:
        finals = [_final_pass(plan, place, lambda: _keep) for place in places]
        advance(plan, table, [*chain(*tried), *finals], grid, plan.n_settings, progress, cells)
    elif plan.tuned:
        advance(plan, table, list(chain(*tried)), grid, plan.n_settings, lambda done: progress(0.9 * done), cells)
    best = among = np.stack([_choose(plan, own) for own in tried])
    if not plan.one_pass:
        chosen, among = np.unique(best, return_inverse=True)
        among = among.reshape(best.shape)
        settings = {name: values[chosen] for name, values in grid.items()}
        finals = [
            _final_pass(plan, place, _judging(plan, place.split, at)) for place, at in zip(places, among, strict=True)
        ]
        advance(plan, table, finals, settings, chosen.size, lambda done: progress(0.9 + done / 10), cells)
    else:
        for split, final, at in zip(splits, finals, among, strict=True):
            judge = _judging(plan, split, at)()
            final.kept = [judge(outputs, origin) for outputs, origin in final.kept]
    return [
        _priced(
            plan,
            {
                "repetition": place.split.repetition,
                "curve": _curve(plan, finals[i], among[i]),
                "run": {
                    **_run_row(plan, best[i, -1], finals[i], among[i], sum(one.paid for one in tried[i])),
                    **_distinct(plan, place, cells, finals[i].seen(among[i, -1])),
                },
                "edge_before": _edge(plan, best[i, :-1]),
                "model": finals[i].kept[-1][1],
            },
            finals[i],
            among[i],
            tried[i],
        )
        for i, place in enumerate(places)
    ]


def _distinct(plan: Plan, place: _Place, cells: Cells, seen: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
    """Count the distinct cells that a final run saw, those that only its tuning did, and the rows held out.

    With prices, also what the last two of these cost.
    """
    rows, single = seen
    if plan.lead:
        rows = np.concatenate([rows, place.split.pilot + place.first])
    shared, all_rows = single[cells.holds(single)], place.first + np.arange(len(place.split.table.y))
    rows_full = int(np.count_nonzero(place.split.complete[place.split.order])) if plan.tuned else 0
    told: dict[str, float] = {
        "cells_run": rows.size * plan.d + single.size,
        "cells_tuning": cells.count(all_rows) - cells.count(rows) - shared.size,
        "rows_full": rows_full,
    }
    if plan.prices:
        both = cells.by_attribute(rows) + np.bincount(shared % plan.d, minlength=plan.d)
        told["cost_cells_tuning"] = plan.prices.of(cells.by_attribute(all_rows) - both)
        told["cost_rows_full"] = plan.prices.row * rows_full
    return told


def _final_pass(plan: Plan, place: _Place, keeping: Callable[[], Keep]) -> Pass:
    checkpoints = tuple(checkpoint - plan.lead for checkpoint in plan.checkpoints)
    return _pass(plan, place, "final", place.split.order, checkpoints, keeping, final=True)


def _pass(
    plan: Plan,
    place: _Place,
    stage: str,
    order: np.ndarray,
    checkpoints: tuple[int, ...],
    keeping: Callable[[], Keep],
    *,
    final: bool = False,
) -> Pass:
    """Return a pass after the pilot, or over it first if all attributes are seen anyway."""
    split, offset, first = place
    known = split.pilot if plan.lead else split.pilot[:0]
    rows = order if plan.lead else np.concatenate([split.pilot, order])
    return Pass(
        repetition=split.repetition,
        stage=stage,
        order=rows + offset,
        pilot=known + offset,
        moments=split.moments,
        checkpoints=checkpoints,
        keeping=keeping,
        offset=first - offset,
        final=final,
    )


def _keep(outputs: np.ndarray, origin: Origin) -> tuple[np.ndarray, Origin]:
    return outputs.copy(), origin


def _judging(plan: Plan, split: _Split, place: np.ndarray) -> Callable[[], Keep]:
    """Judge the outputs at each checkpoint by the setting, of those that run, that `place` (C,) says was chosen.

    With the errors is kept, at the last checkpoint, the model.
    """

    def begin() -> Keep:
        chosen = iter(enumerate(place.tolist(), start=1))

        def judge(outputs: np.ndarray, origin: Origin) -> tuple[Columns, dict[str, Any] | None]:
            checkpoint, setting = next(chosen)
            errors = split.judge.columns(outputs, setting, origin)
            if checkpoint < len(place):
                return errors, None
            return errors, packed(plan.config.algo.task.model(split.table, outputs, setting, origin))

        return judge

    return begin


def _curve(plan: Plan, final: Pass, place: np.ndarray) -> list[dict[str, Any]]:
    """Return a point for each checkpoint: what was judged, and what pilot and chosen setting were charged."""
    attributes = (final.attributes[np.arange(len(place)), place] + plan.lead * plan.d).tolist()
    points = zip(plan.checkpoints, final.kept, attributes, strict=True)
    return [{"examples": examples, **errors, "attributes": paid} for examples, (errors, _), paid in points]


def _run_row(plan: Plan, best: int, final: Pass, place: np.ndarray, tuning: int) -> dict[str, Any]:
    after = int(final.attributes[-1, place[-1]])
    total = after + plan.lead * plan.d
    return {
        **{f"p_{name}": values[best] for name, values in plan.settings.items()},
        "edge": _edge(plan, np.array([best])),
        "attributes_total": total,
        "attributes_mean": after / (plan.checkpoints[-1] - plan.lead),
        "attributes_max": int(final.most[place].max()),
        "attributes_tuning": tuning,
    }


def _priced(
    plan: Plan, result: dict[str, Any], final: Pass, place: np.ndarray, tried: Sequence[Pass]
) -> dict[str, Any]:
    """Add to a result what its reveals cost, and what they were, if there are prices."""
    if plan.prices is None:
        return result
    assert final.reveals is not None
    reveals = final.reveals[np.arange(len(place)), place] + plan.lead
    costs = [plan.prices.of(one) for one in reveals]
    tuning = sum((one.reveals_paid for one in tried if one.reveals_paid is not None), np.zeros(plan.d, dtype=np.int64))
    return {
        **result,
        "curve": [{**point, "cost": cost} for point, cost in zip(result["curve"], costs, strict=True)],
        "run": {**result["run"], "cost_total": costs[-1], "cost_tuning": plan.prices.of(tuning)},
        "reveals": reveals.tolist(),
    }


def _edge(plan: Plan, winners: np.ndarray) -> str:
    """Return which parameters of any of some winners are on the edge of the grid."""
    told = [on_edge(plan.settings, winner) for winner in np.unique(winners)] if plan.tuned else []
    return " ".join(sorted({word for one in told for word in one.split()}))


def _split(plan: Plan, repetition: int) -> _Split:
    config, task = plan.config, plan.config.algo.task
    data = load(config.dataset, config.seed, repetition, targets=config.algo.predicts)
    if config.dataset.split == "official":
        train, test = np.arange(plan.n_train), np.arange(plan.n_train, data.y.size)
    else:
        shuffled = generator("split", config.seed, data.name, repetition).permutation(data.y.size)
        train, test = np.sort(shuffled[plan.n_test :]), np.sort(shuffled[: plan.n_test])
    order = generator("order", config.seed, data.name, repetition).permutation(train)
    if data.available is not None:
        order = _pilot_first(plan.pilot, data, order, repetition, config.seed)
        whose = f"the test part of repetition {repetition} of {data.name}"
        test = _judged(data.complete, test, whose, "a larger dataset.test_fraction")
    pilot, order = order[: plan.pilot], order[plan.pilot :]
    constant = float(data.y[train].mean()) if plan.intercept else 0.0
    if config.dataset.split == "official" and not plan.pilot and not plan.gaps:
        table, judge = _official(data, config.dataset.center, plan.n_train, task, constant)
    else:
        scaled, weighed = config.dataset.scaled_by_pilot, config.algo.missing is Missing.WEIGHED
        table = table_of(config.dataset.center, data, train, pilot, scaled=scaled, weighed=weighed)
        judge = task.test(data, table, test, constant)
    moments = None
    if config.algo.given_moments:
        known = config.algo.given_moments == "given"
        moments = second_moments(table, train) if known else pilot_moments(table, pilot)
    return _Split(repetition, table, judge, pilot, order, moments, data.complete)


def _pilot_first(n: int, data: Dataset, order: np.ndarray, repetition: int, seed: int) -> np.ndarray:
    """Return training rows in their order, but for a pilot of n rows before them, all of whose values are there.

    It comes from anywhere in the order: were it the first complete rows, what follows would have fewer of those at its
    beginning than at its end.
    """
    complete = np.sort(order[data.complete[order]])
    if complete.size < n:
        raise DataError(
            f"pilot={n}: repetition {repetition} of {data.name} has {complete.size} training rows with all their values"
        )
    pilot = generator("pilot", seed, data.name, repetition).permutation(complete)[:n]
    return np.concatenate([pilot, order[~np.isin(order, pilot)]])


def _judged(complete: np.ndarray, rows: np.ndarray, whose: str, remedy: str) -> np.ndarray:
    """Return those of some rows that are complete (n,)."""
    rows = rows[complete[rows]]
    if not rows.size:
        raise DataError(f"{whose} has no row with all its values to be judged on; {remedy} may have some")
    return rows


@lru_cache(maxsize=1)
def _official(data: Dataset, center: str, n_train: int, task: Task, constant: float) -> tuple[Table, Judge]:
    """Return what an official split's repetitions have in common, as their order is all that differs."""
    table = table_of(center, data, np.arange(n_train))
    return table, task.test(data, table, np.arange(n_train, data.y.size), constant)


def _fold_passes(plan: Plan, place: _Place) -> list[Pass]:
    """Return the passes of a split's folds, which keep the held-out loss where something is chosen.

    The pilot was bought, and is in every fold: it is never held out.
    """
    config, split = plan.config, place.split
    training, held_out = folds(
        split.order, config.tuning.folds, generator("folds", config.seed, plan.dataset, split.repetition)
    )
    wanted = plan.checkpoints if config.tuning.at == "each" else plan.checkpoints[-1:]
    length = training.shape[1] + plan.pilot - plan.lead
    checkpoints = tuple(sorted({min(checkpoint - plan.lead, length) for checkpoint in wanted}))

    def judging(fold: int, rows: np.ndarray) -> Callable[[], Keep]:
        whose = f"fold {fold} of repetition {split.repetition} of {plan.dataset}"
        if plan.gaps:
            rows = _judged(split.complete, rows, whose, "fewer tuning.folds")
        return lambda: config.algo.task.held_out(split.table, rows).losses

    return [
        _pass(plan, place, f"fold {f}", order, checkpoints, judging(f, rows))
        for f, (order, rows) in enumerate(zip(training, held_out, strict=True))
    ]


def _choose(plan: Plan, tried: Sequence[Pass]) -> np.ndarray:
    """Return the setting chosen for each checkpoint, shape (C,), by what a repetition's folds have kept."""
    if not tried:
        return np.zeros(len(plan.checkpoints), dtype=np.intp)
    best = winners(np.array([one.kept for one in tried]).swapaxes(0, 1))
    # Folds are shorter than the final run: beyond their last checkpoint it decides, as it does if it is the only one.
    at = tried[0].checkpoints
    return best[np.searchsorted(at, np.minimum(np.array(plan.checkpoints) - plan.lead, at[-1]))]

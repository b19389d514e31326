"""The papers' protocol: split, cross-validation under the budget, one pass, and what is reported."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from budgetreg.data import load
from budgetreg.metering.cells import Cells
from budgetreg.metering.centring import JointMoments, Origin
from budgetreg.metering.table import Table, stack
from budgetreg.protocol.calibration import calibrated, explained_by_cells, explained_by_folds
from budgetreg.protocol.money import run_within_total
from budgetreg.protocol.parts import fold_parts
from budgetreg.protocol.passes import Begin, Keep, Pass, PassResult, Progress, advance
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.split import Split, split_data
from budgetreg.protocol.tuning import on_edge, winners
from budgetreg.tasks import Columns, Model, Regression, Task

_BYTES = "float64"  # little-endian in base64, which keeps every bit in less space than digits
Run = Callable[[Plan, Sequence[int], Progress], list[dict[str, Any]]]


def run_repetitions(plan: Plan, repetitions: Sequence[int], progress: Progress) -> list[dict[str, Any]]:
    """Run some repetitions of a plan, and rerun those on a larger grid whose best value is on an edge.

    A larger grid contains what was tried before: its bill is that of everything tried.

    Parameters
    ----------
    plan : Plan
        What is run.
    repetitions : sequence of int
        Which repetitions. The number of a repetition, the seed and the data decide its split, folds and order; none of
        its numbers depends on the other repetitions.
    progress : callable
        Called with the fraction done, between 0 and 1.

    Returns
    -------
    list of dict
        One dict for each repetition: ``repetition``, its number; ``curve``, a list of one dict per checkpoint; ``run``,
        the row of ``runs.csv``; ``edge_before``, like the column ``edge`` for the choices at earlier checkpoints;
        ``model``, what was learned by the last checkpoint, as `packed` returns it; ``widened``, the
        parameters whose grids grew, such as ``"B eta"``, if any did; with prices ``reveals``, how often each attribute
        was revealed by each checkpoint.

    Raises
    ------
    DataError
        If all targets of a test part are 0, or all attributes where subspaces are learned.
    """
    return widening(_run_together, plan, repetitions, progress, plan.config.tuning.widen)


def widening(run: Run, plan: Plan, repetitions: Sequence[int], progress: Progress, times: int) -> list[dict[str, Any]]:
    """Run repetitions, and rerun those on a larger grid whose best value is on an edge and has values beyond it.

    Each repetition decides by its own folds, so that its numbers depend neither on the others nor on an interruption.
    The larger grid contains what was tried before, with the same draws: its bill is that of everything tried.

    Parameters
    ----------
    run : callable
        Runs some repetitions together and returns what `run_repetitions` does.
    plan, repetitions, progress
        As for `run_repetitions`.
    times : int
        How often a grid may grow.

    Returns
    -------
    list of dict
        The last result of each repetition; if its grid grew, with the names of the parameters as ``widened``.
    """
    first = run(plan, repetitions, _portion(progress, 0, 1 / (times + 1)))
    results = dict(zip(repetitions, first, strict=True))
    again: dict[str, list[int]] = {}
    for number, result in results.items():
        words = {*result["run"]["edge"].split(), *result["edge_before"].split()}
        edge = " ".join(sorted(word for word in words if plan.config.algo.in_grid(word.partition(":")[0]).unlimited))
        if edge and times:
            again.setdefault(edge, []).append(number)
    parts = []
    for edge, numbers in again.items():
        larger = plan.widened(edge)
        n = larger.repetitions_at_once
        parts += [(edge, larger, numbers[begin : begin + n]) for begin in range(0, len(numbers), n)]
    for i, (edge, larger, part) in enumerate(parts):
        begin, end = (1 - times / (times + 1) * (1 - (i + j) / len(parts)) for j in (0, 1))
        grown = {word.partition(":")[0] for word in edge.split()}
        second = widening(run, larger, part, _portion(progress, begin, end), times - 1)
        for number, result in zip(part, second, strict=True):
            results[number] = {**result, "widened": " ".join(sorted({*grown, *result.get("widened", "").split()}))}
    return list(results.values())


def _run_together(plan: Plan, repetitions: Sequence[int], progress: Progress) -> list[dict[str, Any]]:
    return [outcome.report() for outcome in outcomes(plan, repetitions, progress)]


def outcomes(plan: Plan, repetitions: Sequence[int], progress: Progress) -> "list[Outcome]":
    """Run some repetitions, all their replicas together, which makes them fast; grids do not grow."""
    splits = [split_data(plan, repetition) for repetition in repetitions]
    table, offsets = stack([split.table for split in splits])
    n = len(splits[0].table.y)
    splits = [replace(split, offset=offsets[i], first_row=n * i) for i, split in enumerate(splits)]
    cells = Cells(n * len(splits), plan.d)
    tuning = [each for split in splits for each in _fold_passes(plan, split)] if plan.tuned else []
    grid = {name: np.array(values) for name, values in plan.settings.items()}
    finals = [_final_pass(plan, split, lambda: _keep_outputs) for split in splits] if plan.one_pass else []
    share = 1.0 if plan.one_pass else 0.9
    results = advance(plan, table, [*tuning, *finals], grid, _portion(progress, 0, share), cells)
    fold_results = [results[plan.folds * i : plan.folds * (i + 1)] for i in range(len(splits))]
    best = among = _choices(plan, fold_results)
    if plan.one_pass:
        tests = [_test(plan, split, settings) for split, settings in zip(splits, among, strict=True)]
        final_results = [
            replace(result, kept=tuple(test(i, outputs, origin) for i, (outputs, origin) in enumerate(result.kept)))
            for result, test in zip(results[len(tuning) :], tests, strict=True)
        ]
    elif plan.ends_with_money:
        # One after the other, as each ends where its own draws have spent the total.
        parts = [
            _portion(progress, *(share + (1 - share) * (i + j) / len(splits) for j in (0, 1)))
            for i in range(len(splits))
        ]
        spent = [_spend(plan, table, split, best[i], grid, parts[i], cells) for i, split in enumerate(splits)]
        final_results, among = [result for result, _ in spent], np.stack([each for _, each in spent])
    else:
        chosen, among = np.unique(best, return_inverse=True)
        among = among.reshape(best.shape)
        finals = [
            _final_pass(plan, split, partial(_test, plan, split, settings))
            for split, settings in zip(splits, among, strict=True)
        ]
        settings = {name: values[chosen] for name, values in grid.items()}
        final_results = advance(plan, table, finals, settings, _portion(progress, share, 1), cells)
    return [
        Outcome(plan, split, fold_results[i], final_results[i], best[i], among[i], cells)
        for i, split in enumerate(splits)
    ]


def _spend(
    plan: Plan,
    table: Table,
    split: Split,
    best: np.ndarray,
    grid: Mapping[str, np.ndarray],
    progress: Progress,
    cells: Cells,
) -> tuple[PassResult, np.ndarray]:
    """Run the final pass of a split until the total is spent, with the settings (C,) chosen for its checkpoints.

    Return what came out, and these settings as indices of those that ran.
    """
    chosen, among = np.unique(best, return_inverse=True)
    settings = {name: values[chosen] for name, values in grid.items()}

    def run(ends: Sequence[int], rehearsed: bool) -> PassResult:
        begin = (lambda: _keep_nothing) if rehearsed else partial(_test, plan, split, among)
        each = _new_pass(plan, split, "final", split.order, tuple(plan.lead + end for end in ends), begin)
        (result,) = advance(
            plan, table, [each], settings, _portion(progress, *((0, 0.5) if rehearsed else (0.5, 1))), cells
        )
        return result

    return run_within_total(plan, split.order.size, among, run), among


def _fold_passes(plan: Plan, split: Split) -> Iterator[Pass]:
    """Yield the passes of a split's folds, which keep the held-out loss where something is chosen.

    The pilot was bought, and is in every fold: it is never held out.
    """
    config, repetition = plan.config, split.repetition
    data = load(config.dataset, config.seed, repetition, targets=config.algo.predicts)
    wanted = plan.checkpoints if config.tuning.at == "each" else plan.checkpoints[-1:]
    for f, (order, rows) in enumerate(fold_parts(config, data, split.order, plan.folds, repetition)):
        yield _new_pass(plan, split, f"fold {f}", order, wanted, partial(_losses, config.algo.task, split.table, rows))


def _losses(task: Task, table: Table, rows: np.ndarray) -> Keep:
    """Return what keeps the losses of outputs on held-out rows."""
    held_out = task.held_out(table, rows)
    return lambda checkpoint, outputs, origin: held_out.losses(outputs, origin)


def _final_pass(plan: Plan, split: Split, begin: Begin) -> Pass:
    """Return the pass over all training examples."""
    return _new_pass(plan, split, "final", split.order, plan.checkpoints, begin)


def _new_pass(
    plan: Plan, split: Split, stage: str, order: np.ndarray, checkpoints: tuple[int, ...], begin: Begin
) -> Pass:
    """Return a pass after the pilot, or over it first if all attributes are seen anyway.

    Folds are shorter than the final run: they end at checkpoints beyond them.
    """
    pilot, rows = (split.pilot, order) if plan.lead else (split.pilot[:0], np.concatenate([split.pilot, order]))
    ends = tuple(sorted({min(checkpoint - plan.lead, rows.size) for checkpoint in checkpoints}))
    return Pass(split, stage, rows + split.offset, pilot + split.offset, ends, begin)


def _choices(plan: Plan, fold_results: Sequence[Sequence[PassResult]]) -> np.ndarray:
    """Return the setting chosen for each checkpoint by the losses that folds have kept, shape (n_repetitions, C)."""
    choices = np.zeros((len(fold_results), len(plan.checkpoints)), dtype=np.intp)
    for i, results in enumerate(fold_results if plan.tuned else ()):
        best = winners(np.array([fold.kept for fold in results]).swapaxes(0, 1))
        # Folds are shorter than the final run: their last checkpoint decides for all checkpoints beyond it.
        at = results[0].checkpoints
        choices[i] = best[np.searchsorted(at, np.minimum(np.array(plan.checkpoints) - plan.lead, at[-1]))]
    return choices


def _test(plan: Plan, split: Split, settings: np.ndarray) -> Keep:
    """Return what tests the outputs at each checkpoint by the setting (C,), of those that run, that was chosen for it.

    It also keeps the model of the last checkpoint.
    """
    task = plan.config.algo.task

    def test(checkpoint: int, outputs: np.ndarray, origin: Origin) -> Kept:
        setting = int(settings[checkpoint])
        errors = split.judge.columns(outputs, setting, origin)
        if checkpoint < len(settings) - 1:
            return Kept(errors)
        moments = partial(task.moments, split.table, origin)
        return Kept(errors, task.model(split.table, outputs, setting, origin), moments)

    return test


def _keep_outputs(checkpoint: int, outputs: np.ndarray, origin: Origin) -> tuple[np.ndarray, Origin]:
    return outputs.copy(), origin


def _keep_nothing(checkpoint: int, outputs: np.ndarray, origin: Origin) -> None:
    pass


def _portion(progress: Progress, begin: float, end: float) -> Progress:
    return lambda done: progress(begin + done * (end - begin))


class Kept(NamedTuple):
    """What is kept of the output at a checkpoint."""

    errors: Columns
    """The test errors, as columns of the curve."""
    model: Model = MappingProxyType({})
    """What was learned; empty except at the last checkpoint."""
    moments: Callable[[], JointMoments | None] = lambda: None
    """Returns the moments that were learned at the last checkpoint; None if none are modelled, or at another one."""


@dataclass(frozen=True)
class Outcome:
    """The passes of a repetition, and the settings that were chosen.

    Attributes
    ----------
    plan : Plan
    split : Split
    folds : sequence of PassResult
        Passes of the cross-validation.
    final : PassResult
        What it has kept at each checkpoint is a `Kept`.
    best : ndarray of int, shape (C,)
        The setting chosen for each checkpoint, as an index of the grid.
    among : ndarray of int, shape (C,)
        The same, as an index of the settings that the final run had.
    cells : Cells
        What cross-validation saw.
    """

    plan: Plan
    split: Split
    folds: Sequence[PassResult]
    final: PassResult
    best: np.ndarray
    among: np.ndarray
    cells: Cells

    @property
    def examples(self) -> tuple[int, ...]:
        """Numbers of examples at the checkpoints, the pilot's among them."""
        return tuple(self.plan.lead + checkpoint for checkpoint in self.final.checkpoints)

    def report(self) -> dict[str, Any]:
        """Return what `run_repetitions` returns of a repetition."""
        plan, final, best = self.plan, self.final, self.best
        charged, pilot = self._of_chosen(final.attributes).tolist(), plan.lead * plan.full_row
        points = zip(self.examples, final.kept, charged, strict=True)
        result: dict[str, Any] = {
            "repetition": self.split.repetition,
            "curve": [{"examples": n, **kept.errors, "attributes": pilot + paid} for n, kept, paid in points],
            "run": {
                **{f"p_{name}": values[best[-1]] for name, values in plan.settings.items()},
                "edge": self._edge(best[-1:]),
                "attributes_total": pilot + charged[-1],
                "attributes_mean": charged[-1] / (self.examples[-1] - plan.lead),
                "attributes_max": int(final.most[self.among].max()),
                "attributes_tuning": sum(fold.paid for fold in self.folds),
                **self._distinct_cells(),
            },
            "edge_before": self._edge(best[:-1]),
            "model": packed({**final.kept[-1].model, **self._calibration()}),
        }
        if plan.prices and final.reveals is not None:
            reveals = self._of_chosen(final.reveals) + plan.lead
            for point, counts in zip(result["curve"], reveals, strict=True):
                point["cost"] = plan.prices.of(counts)
            paid = [fold.reveals_paid for fold in self.folds if fold.reveals_paid is not None]
            tuning = np.sum(paid, axis=0) if paid else np.zeros(plan.d, dtype=np.int64)
            result["run"] |= {"cost_total": result["curve"][-1]["cost"], "cost_tuning": plan.prices.of(tuning)}
            result["reveals"] = reveals.tolist()
        return result

    def _calibration(self) -> Model:
        """Return what the model needs to give probabilities of two labels; nothing for other targets."""
        plan, split, table = self.plan, self.split, self.split.table
        if not plan.labels:
            return {}
        y = table.y[np.concatenate([split.pilot, split.order])]
        task = plan.config.algo.task
        if self.folds and isinstance(task, Regression) and task.delta is None:
            losses = np.array([fold.kept[-1][self.best[-1]] for fold in self.folds])
            explained = explained_by_folds(losses, y)
        else:
            rows, cells = self._seen()
            first, model = split.first_row, self.final.kept[-1].model
            explained = explained_by_cells(table, model, rows - first, cells - first * plan.d, float(y.var()))
        return calibrated(y, explained, self.examples[-1])

    def _seen(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that the final run saw in full, the pilot's among them, and its other cells."""
        assert self.final.seen is not None
        rows, single = self.final.seen(self.among[-1])
        if self.plan.lead:
            rows = np.concatenate([rows, self.split.pilot + self.split.first_row])
        return rows, single

    def _distinct_cells(self) -> dict[str, float]:
        """Count the distinct cells that the final run saw, those that only its tuning saw, and the rows held out.

        Cells of free attributes are not counted, and of a group only one. With prices, also what the last
        two of these cost.
        """
        plan, split = self.plan, self.split
        rows, single = self._seen()
        shared, all_rows = single[self.cells.holds(single)], split.first_row + np.arange(len(split.table.y))
        in_tuning, in_rows = self.cells.by_attribute(all_rows), self.cells.by_attribute(rows)
        only_tuning = in_tuning - in_rows - np.bincount(shared % plan.d, minlength=plan.d)
        if plan.uncharged is not None:
            single, only_tuning = single[~plan.uncharged[single % plan.d]], np.where(plan.uncharged, 0, only_tuning)
        rows_full = int(np.count_nonzero(split.complete[split.order])) if plan.tuned else 0
        counts: dict[str, float] = {
            "cells_run": rows.size * plan.full_row + single.size,
            "cells_tuning": int(only_tuning.sum()),
            "rows_full": rows_full,
        }
        if plan.prices:
            counts["cost_cells_tuning"] = plan.prices.of(only_tuning)
            counts["cost_rows_full"] = plan.prices.row * rows_full
        return counts

    def _of_chosen(self, values: np.ndarray) -> np.ndarray:
        """Return the values (C, G, ...) of the setting chosen for each checkpoint."""
        return values[np.arange(len(self.among)), self.among]

    def _edge(self, winners: np.ndarray) -> str:
        """Return which parameters of any of some winners are on the edge of the grid."""
        edges = (on_edge(self.plan.settings, winner).split() for winner in np.unique(winners))
        return " ".join(sorted(set().union(*edges)))


def packed(model: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return arrays of floats as JSON can hold them; an array of zeros takes no space."""
    arrays = {name: np.asarray(array, dtype="<f8") for name, array in model.items()}
    return {
        name: {
            "shape": list(array.shape),
            **({_BYTES: base64.b64encode(array.tobytes()).decode()} if array.any() else {}),
        }
        for name, array in arrays.items()
    }


def unpacked(text: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays that `packed` was given, bit by bit except for the sign of a zero in an array of zeros."""
    arrays = {}
    for name, array in text.items():
        arrays[name] = np.zeros(array["shape"])
        if _BYTES in array:
            arrays[name] = np.frombuffer(base64.b64decode(array[_BYTES]), "<f8").reshape(array["shape"])
    return arrays

"""The papers' protocol: split, cross-validation under the budget, one pass, errors at checkpoints."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from budgetreg.metering.cells import Cells
from budgetreg.metering.centring import Origin
from budgetreg.metering.table import stack
from budgetreg.protocol.outcome import Outcome, packed
from budgetreg.protocol.passes import Begin, Keep, Pass, PassResult, Progress, advance
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.split import Split, complete_rows, split_data
from budgetreg.protocol.tuning import folds, winners
from budgetreg.streams import generator
from budgetreg.tasks import Columns

Result = Mapping[str, Any]
Run = Callable[[Plan, Sequence[int], Progress], Sequence[Result]]


@dataclass(frozen=True)
class _Repetition:
    """A repetition among those that run together."""

    split: Split
    offset: int
    """Number of its first row in the table."""
    first_row: int
    """Number of its first row in the set of cells, in which not even equal data share a row."""

    def new_pass(self, plan: Plan, stage: str, order: np.ndarray, checkpoints: tuple[int, ...], begin: Begin) -> Pass:
        """Return a pass after the pilot, or over it first if all attributes are seen anyway."""
        split, offset = self.split, self.offset
        pilot, rows = (split.pilot, order) if plan.lead else (split.pilot[:0], np.concatenate([split.pilot, order]))
        from_table = self.first_row - offset
        return Pass(
            split.repetition, stage, rows + offset, pilot + offset, split.moments, checkpoints, begin, from_table
        )

    def final_pass(self, plan: Plan, begin: Begin) -> Pass:
        """Return the pass over all training examples."""
        checkpoints = tuple(checkpoint - plan.lead for checkpoint in plan.checkpoints)
        return self.new_pass(plan, "final", self.split.order, checkpoints, begin)


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
        ``model``, what was learned by the last checkpoint, as `protocol.outcome.packed` returns it; ``widened``, the
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
    results = {number: dict(result) for number, result in zip(repetitions, first, strict=True)}
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
    """Run some repetitions, all their replicas together, which makes them fast."""
    splits = [split_data(plan, repetition) for repetition in repetitions]
    table, offsets = stack([each.table for each in splits])
    n = len(splits[0].table.y)
    together = [_Repetition(each, offset, n * i) for i, (each, offset) in enumerate(zip(splits, offsets, strict=True))]
    cells = Cells(n * len(splits), plan.d)
    tuning = [each for repetition in together for each in _fold_passes(plan, repetition)] if plan.tuned else []
    n_folds = len(tuning) // len(together)
    grid = {name: np.array(values) for name, values in plan.settings.items()}
    finals = [repetition.final_pass(plan, lambda: _keep_outputs) for repetition in together] if plan.one_pass else []
    share = 1.0 if plan.one_pass else 0.9
    results = advance(plan, table, [*tuning, *finals], grid, lambda done: progress(share * done), cells)
    fold_results = [results[n_folds * i : n_folds * (i + 1)] for i in range(len(together))]
    best = among = _choices(plan, fold_results)
    if plan.one_pass:
        final_results = [
            _tested(result, _test(plan, repetition, settings))
            for result, repetition, settings in zip(results[len(tuning) :], together, among, strict=True)
        ]
    else:
        chosen, among = np.unique(best, return_inverse=True)
        among = among.reshape(best.shape)
        finals = [
            repetition.final_pass(plan, partial(_test, plan, repetition, settings))
            for repetition, settings in zip(together, among, strict=True)
        ]
        settings = {name: values[chosen] for name, values in grid.items()}
        final_results = advance(plan, table, finals, settings, lambda done: progress(0.9 + done / 10), cells)
    return [
        Outcome(plan, each.split, fold_results[i], final_results[i], best[i], among[i], each.first_row, cells).report()
        for i, each in enumerate(together)
    ]


def _fold_passes(plan: Plan, repetition: _Repetition) -> list[Pass]:
    """Return the passes of a split's folds, which keep the held-out loss where something is chosen.

    The pilot was bought, and is in every fold: it is never held out.
    """
    config, data = plan.config, repetition.split
    training, held_out = folds(
        data.order, config.tuning.folds, generator("folds", config.seed, plan.dataset, data.repetition)
    )
    wanted = plan.checkpoints if config.tuning.at == "each" else plan.checkpoints[-1:]
    length = training.shape[1] + plan.pilot - plan.lead
    checkpoints = tuple(sorted({min(checkpoint - plan.lead, length) for checkpoint in wanted}))

    def losses(fold: int, rows: np.ndarray) -> Begin:
        if plan.gaps:
            part = f"fold {fold} of repetition {data.repetition} of {plan.dataset}"
            rows = complete_rows(data.complete, rows, part, "fewer tuning.folds")

        def begin() -> Keep:
            held_out = config.algo.task.held_out(data.table, rows)
            return lambda checkpoint, outputs, origin: held_out.losses(outputs, origin)

        return begin

    return [
        repetition.new_pass(plan, f"fold {f}", order, checkpoints, losses(f, rows))
        for f, (order, rows) in enumerate(zip(training, held_out, strict=True))
    ]


def _choices(plan: Plan, fold_results: Sequence[Sequence[PassResult]]) -> np.ndarray:
    """Return the setting chosen for each checkpoint by the losses that folds have kept, shape (n_repetitions, C)."""
    choices = np.zeros((len(fold_results), len(plan.checkpoints)), dtype=np.intp)
    for i, results in enumerate(fold_results if plan.tuned else ()):
        best = winners(np.array([fold.kept for fold in results]).swapaxes(0, 1))
        # Folds are shorter than the final run: their last checkpoint decides for all checkpoints beyond it.
        at = results[0].checkpoints
        choices[i] = best[np.searchsorted(at, np.minimum(np.array(plan.checkpoints) - plan.lead, at[-1]))]
    return choices


def _test(plan: Plan, repetition: _Repetition, settings: np.ndarray) -> Keep:
    """Return what tests the outputs at each checkpoint by the setting (C,), of those that run, that was chosen for it.

    It returns the errors, and the model at the last checkpoint.
    """
    data = repetition.split

    def test(checkpoint: int, outputs: np.ndarray, origin: Origin) -> tuple[Columns, dict[str, Any] | None]:
        setting = int(settings[checkpoint])
        errors = data.judge.columns(outputs, setting, origin)
        if checkpoint < len(settings) - 1:
            return errors, None
        return errors, packed(plan.config.algo.task.model(data.table, outputs, setting, origin))

    return test


def _keep_outputs(checkpoint: int, outputs: np.ndarray, origin: Origin) -> tuple[np.ndarray, Origin]:
    return outputs.copy(), origin


def _tested(result: PassResult, test: Keep) -> PassResult:
    """Return the result of a pass that kept outputs, with what a test returns for them instead."""
    return replace(result, kept=tuple(test(i, outputs, origin) for i, (outputs, origin) in enumerate(result.kept)))


def _portion(progress: Progress, begin: float, end: float) -> Progress:
    return lambda done: progress(begin + done * (end - begin))

"""The papers' protocol: split, cross-validation under the budget, one pass, and what is reported."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from budgetreg.data.registry import load
from budgetreg.metering.cells import Cells
from budgetreg.metering.centring import Origin
from budgetreg.metering.table import Table, stack
from budgetreg.protocol.money import run_within_total
from budgetreg.protocol.outcome import Kept, Outcome
from budgetreg.protocol.parts import fold_parts
from budgetreg.protocol.passes import Begin, Keep, Pass, PassResult, Progress, advance
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.split import Split, split_data
from budgetreg.protocol.tuning import winners
from budgetreg.tasks import Task

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
    ends = checkpoints
    if not plan.config.chooses_k:
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
        return Kept(errors, task.model(split.table, outputs, setting, origin), moments, origin.left_out)

    return test


def _keep_outputs(checkpoint: int, outputs: np.ndarray, origin: Origin) -> tuple[np.ndarray, Origin]:
    return outputs.copy(), origin


def _keep_nothing(checkpoint: int, outputs: np.ndarray, origin: Origin) -> None:
    pass


def _portion(progress: Progress, begin: float, end: float) -> Progress:
    return lambda done: progress(begin + done * (end - begin))

"""The papers' protocol: split, cross-validation under the budget, one pass, and what is reported."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from budgetreg.algorithms.learner import Settings
from budgetreg.algorithms.tasks import Task
from budgetreg.metering.ledger import Cells
from budgetreg.metering.table import Origin, Table, stack
from budgetreg.protocol.outcome import Evaluation, Outcome, Result
from budgetreg.protocol.passes import Evaluate, Pass, PassResult, Progress, advance, advance_within_total, portion
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.prediction import narrowed, spread
from budgetreg.protocol.split import Split, fold_parts, split_data
from budgetreg.protocol.tuning import winners

Run = Callable[[Plan, Sequence[int], Progress], list[Result]]


def run_repetitions(plan: Plan, repetitions: Sequence[int], progress: Progress) -> list[Result]:
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
        A `Result` for each repetition.

    Raises
    ------
    DataError
        If all targets of a test part are 0, or all attributes where subspaces are learned.
    """
    return widening(_run_together, plan, repetitions, progress, plan.config.tuning.widen)


def _run_together(plan: Plan, repetitions: Sequence[int], progress: Progress) -> list[Result]:
    return [outcome.report() for outcome in outcomes(plan, repetitions, progress)]


def outcomes(plan: Plan, repetitions: Sequence[int], progress: Progress) -> list[Outcome]:
    """Run some repetitions, all their replicas together, which makes them fast; grids do not grow."""
    # Split
    splits = [split_data(plan.config, plan.n_test, plan.pilot, repetition) for repetition in repetitions]
    table, offsets = stack([split.table for split in splits])
    n = len(splits[0].table.y)
    splits = [replace(split, offset=offsets[i], first_row=n * i) for i, split in enumerate(splits)]
    cells = Cells(n * len(splits), plan.d)

    # Candidates along the folds
    candidates = {name: np.array(values) for name, values in plan.settings.items()}
    folds = [each for split in splits for each in _fold_passes(plan, split)] if plan.tuned else []
    beside = [_final_pass(plan, split, lambda: _copy) for split in splits] if plan.one_pass else []
    share = 1.0 if plan.one_pass else 0.9
    results = advance(plan, table, [*folds, *beside], candidates, portion(progress, 0, share), cells)
    held_out = [results[plan.folds * i : plan.folds * (i + 1)] for i in range(len(splits))]

    # Choice
    best = np.array([_choice(plan, losses) for losses in held_out])

    # Final pass and test
    if plan.one_pass:
        finals, best_in_final = _tested(plan, splits, results[len(folds) :], best), list(best)
    else:
        rest = portion(progress, share, 1)
        finals, best_in_final = _final_results(plan, table, splits, candidates, best, rest, cells)

    # Bill
    parts = zip(splits, held_out, finals, best, best_in_final, strict=True)
    return [Outcome(plan, *part, cells) for part in parts]


def _fold_passes(plan: Plan, split: Split) -> Iterator[Pass]:
    """Yield the passes of a split's folds, which are evaluated by the held-out loss where something is chosen.

    The pilot was bought, and is in every fold: it is never held out.
    """
    config = plan.config
    wanted = plan.checkpoints if config.tuning.at == "each" else plan.checkpoints[-1:]
    parts = fold_parts(config, split.data, split.order, plan.folds, split.repetition)
    for f, (order, rows) in enumerate(parts):
        yield _new_pass(plan, split, f"fold {f}", order, wanted, partial(_losses, config.algo.task, split.table, rows))


def _final_pass(plan: Plan, split: Split, begin: Callable[[], Evaluate]) -> Pass:
    """Return the pass over all training examples."""
    return _new_pass(plan, split, "final", split.order, plan.checkpoints, begin)


def _new_pass(
    plan: Plan,
    split: Split,
    stage: str,
    order: np.ndarray,
    checkpoints: tuple[int, ...],
    begin: Callable[[], Evaluate],
) -> Pass:
    """Return a pass after the pilot, or over it first if all attributes are seen anyway.

    Folds are shorter than the final run: they end at checkpoints beyond them.
    """
    first = plan.pilot_before_learning
    pilot, rows = (split.pilot, order) if first else (split.pilot[:0], np.concatenate([split.pilot, order]))
    ends = checkpoints
    if not plan.config.chooses_k:
        ends = tuple(sorted({min(checkpoint - first, rows.size) for checkpoint in checkpoints}))
    return Pass(split, stage, rows + split.offset, pilot + split.offset, ends, begin)


def _choice(plan: Plan, folds: Sequence[PassResult]) -> np.ndarray:
    """Return the setting chosen for each checkpoint by the losses on held-out folds, shape (C,)."""
    if not folds:
        return np.zeros(len(plan.checkpoints), dtype=np.intp)
    best = winners(np.array([fold.kept for fold in folds]).swapaxes(0, 1))
    # Folds are shorter than the final run: their last checkpoint decides for all checkpoints beyond it.
    at = folds[0].checkpoints
    return best[np.searchsorted(at, np.minimum(np.array(plan.checkpoints) - plan.pilot_before_learning, at[-1]))]


def _final_results(
    plan: Plan,
    table: Table,
    splits: Sequence[Split],
    candidates: Settings,
    best: np.ndarray,
    progress: Progress,
    cells: Cells,
) -> tuple[list[PassResult], list[np.ndarray]]:
    """Run the final passes with the settings (R, C) that were chosen, and test.

    Return the results, and the settings chosen for each checkpoint as indices of those that ran.
    """
    if not plan.config.ends_with_money:
        chosen, among = np.unique(best, return_inverse=True)
        best_in_final = list(among.reshape(best.shape))
        settings = {name: values[chosen] for name, values in candidates.items()}
        finals = [
            _final_pass(plan, split, partial(_test, plan, split, which))
            for split, which in zip(splits, best_in_final, strict=True)
        ]
        return advance(plan, table, finals, settings, progress, cells), best_in_final
    # One after the other, as each ends where its own draws have spent the total.
    results, best_in_final = [], []
    for i, split in enumerate(splits):
        chosen, which = np.unique(best[i], return_inverse=True)
        settings = {name: values[chosen] for name, values in candidates.items()}
        final = _final_pass(plan, split, partial(_test, plan, split, which))
        part = portion(progress, i / len(splits), (i + 1) / len(splits))
        results.append(advance_within_total(plan, table, final, settings, which, part, cells))
        best_in_final.append(which)
    return results, best_in_final


def _tested(plan: Plan, splits: Sequence[Split], finals: Sequence[PassResult], best: np.ndarray) -> list[PassResult]:
    """Return final passes that ran beside the folds, whose outputs for all candidates were kept, with their tests."""
    tested = []
    for split, final, settings in zip(splits, finals, best, strict=True):
        test = _test(plan, split, settings)
        evaluations = (test(i, outputs, origin) for i, (outputs, origin) in enumerate(final.kept))
        tested.append(replace(final, kept=tuple(evaluations)))
    return tested


def _losses(task: Task, table: Table, rows: np.ndarray) -> Evaluate:
    """Return what evaluates outputs by their losses on held-out rows."""
    held_out = task.held_out(table, rows)
    return lambda checkpoint, outputs, origin: held_out.losses(outputs, origin)


def _test(plan: Plan, split: Split, settings: np.ndarray) -> Evaluate:
    """Return what tests the outputs at each checkpoint by the setting (C,), of those that run, that was chosen for it.

    At the last checkpoint it also keeps the model.
    """
    task = plan.config.algo.task

    def test(checkpoint: int, outputs: np.ndarray, origin: Origin) -> Evaluation:
        setting, most, visible = int(settings[checkpoint]), plan.config.predict_k, None
        if most is not None:
            seen = partial(_spread, plan, split, origin, setting)
            outputs, origin, visible = narrowed(outputs, setting, origin, most, seen, intercept=plan.intercept)
            setting = 0
        errors = split.judge.columns(outputs, setting, origin, visible)
        if checkpoint < len(settings) - 1:
            return Evaluation(errors)
        moments = partial(task.moments, split.table, origin)
        return Evaluation(errors, task.model(split.table, outputs, setting, origin), moments, origin.left_out, visible)

    return test


def _spread(plan: Plan, split: Split, origin: Origin, setting: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return means, deviations and number of the values that a setting has seen, the pilot's rows among them."""
    assert origin.seen is not None
    rows, cells = origin.seen(setting)
    pilot = split.pilot[: plan.pilot_before_learning]
    return spread(split.table, np.append(pilot, rows - split.first_row), cells - split.first_row * plan.d)


def _copy(checkpoint: int, outputs: np.ndarray, origin: Origin) -> tuple[np.ndarray, Origin]:
    """Keep the outputs until it is known which setting is tested."""
    return outputs.copy(), origin


def widening(run: Run, plan: Plan, repetitions: Sequence[int], progress: Progress, times: int) -> list[Result]:
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
    first = run(plan, repetitions, portion(progress, 0, 1 / (times + 1)))
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
        second = widening(run, larger, part, portion(progress, begin, end), times - 1)
        for number, result in zip(part, second, strict=True):
            results[number] = {**result, "widened": " ".join(sorted({*grown, *result.get("widened", "").split()}))}
    return list(results.values())

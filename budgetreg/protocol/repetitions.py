"""A repetition as the papers run it: split, cross-validation under the budget, one pass, test, and bill."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from budgetreg.algorithms.learner import Settings
from budgetreg.algorithms.tasks import Columns, Model, Task
from budgetreg.metering.ledger import Cells
from budgetreg.metering.table import JointMoments, Origin, Table, stack
from budgetreg.protocol.passes import Evaluate, Pass, PassResult, Progress, advance, advance_within_total, portion
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.prediction import calibrated, explained_by_cells, explained_by_folds, narrowed, spread
from budgetreg.protocol.split import Split, fold_parts, split_data
from budgetreg.protocol.tuning import on_edge, winners

_MOST_JOINT = 1000  # attributes of which a model keeps the covariances

Result = dict[str, Any]
"""The result of a repetition, as a journal records it.

``repetition`` is its number; ``curve``, a list of one dict per checkpoint, has the columns of ``curves.csv``; ``run``
is the row of ``runs.csv``; ``edge_before`` is like its column ``edge``, for the choices at earlier checkpoints;
``model`` has the arrays that were learned by the last checkpoint. ``widened`` names the parameters whose grids grew,
such as ``"B eta"``, if any did; ``left_out`` the attributes that are left out, if any are; and ``reveals`` is, with
prices, how often each attribute was revealed by each checkpoint.
"""

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


def outcomes(plan: Plan, repetitions: Sequence[int], progress: Progress) -> "list[Outcome]":
    """Run some repetitions, all their replicas together, which makes them fast; grids do not grow."""
    # Split
    splits = [split_data(plan.config, plan.n_test, plan.pilot, repetition) for repetition in repetitions]
    table, offsets = stack([split.table for split in splits])
    n = len(splits[0].table.y)
    splits = [replace(split, offset=offsets[i], first_row=n * i) for i, split in enumerate(splits)]
    cells = Cells(n * len(splits), plan.d)

    # Candidates learn in the folds; where it is faster, also from the whole training part beside them
    candidates = {name: np.array(values) for name, values in plan.settings.items()}
    folds = [each for split in splits for each in _folds(plan, split)] if plan.tuned else []
    beside = [_final(plan, split, lambda: _copy) for split in splits] if plan.one_pass else []
    share = 1.0 if plan.one_pass else 0.9
    results = advance(plan, table, [*folds, *beside], candidates, portion(progress, 0, share), cells)
    held_out = [results[plan.folds * i : plan.folds * (i + 1)] for i in range(len(splits))]

    # Choice
    best = np.array([_choice(plan, losses) for losses in held_out])

    # Final pass and test
    if plan.one_pass:
        finals, best_in_final = list(map(partial(_tested, plan), splits, results[len(folds) :], best)), list(best)
    else:
        rest = portion(progress, share, 1)
        finals, best_in_final = _finals(plan, table, splits, candidates, best, rest, cells)

    # Bill
    parts = zip(splits, held_out, finals, best, best_in_final, strict=True)
    return [Outcome(plan, *part, cells) for part in parts]


def _folds(plan: Plan, split: Split) -> Iterator[Pass]:
    """Yield the passes of a split's folds, which are evaluated by the held-out loss where something is chosen.

    The pilot was bought, and is in every fold: it is never held out.
    """
    config = plan.config
    wanted = plan.checkpoints if config.tuning.at == "each" else plan.checkpoints[-1:]
    parts = fold_parts(config, split.data, split.order, plan.folds, split.repetition)
    for f, (order, rows) in enumerate(parts):
        yield _pass(plan, split, f"fold {f}", order, wanted, partial(_losses, config.algo.task, split.table, rows))


def _final(plan: Plan, split: Split, begin: Callable[[], Evaluate]) -> Pass:
    """Return the pass over all training examples."""
    return _pass(plan, split, "final", split.order, plan.checkpoints, begin)


def _pass(
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


def _finals(
    plan: Plan,
    table: Table,
    splits: Sequence[Split],
    candidates: Settings,
    best: np.ndarray,
    progress: Progress,
    cells: Cells,
) -> tuple[list[PassResult], list[np.ndarray]]:
    """Run and test the final passes with the settings (R, C) that were chosen.

    Return the results, and the settings chosen for each checkpoint as indices of those that ran. Passes that a total in
    money ends, each where its own draws have spent it, run together only if no output depends on where others end.
    """
    results, best_in_final, R = [], list[np.ndarray](), len(splits)
    size = R if plan.ends_together else 1
    for begin in range(0, R, size):
        chosen, among = np.unique(best[begin : begin + size], return_inverse=True)
        settings, which = {name: values[chosen] for name, values in candidates.items()}, among.reshape(size, -1)
        tests = [partial(_test, plan, split, each) for split, each in zip(splits[begin:], which, strict=False)]
        passes = list(map(partial(_final, plan), splits[begin:], tests))
        part = portion(progress, begin / R, (begin + size) / R)
        if plan.config.ends_with_money:
            results += advance_within_total(plan, table, passes, settings, which[:, -1], part, cells)
        else:
            results += advance(plan, table, passes, settings, part, cells)
        best_in_final += list(which)
    return results, best_in_final


def _tested(plan: Plan, split: Split, final: PassResult, settings: np.ndarray) -> PassResult:
    """Return a final pass that ran beside the folds, whose outputs for all candidates were kept, with its tests."""
    test = _test(plan, split, settings)
    return replace(final, kept=tuple(test(i, outputs, origin) for i, (outputs, origin) in enumerate(final.kept)))


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


class Evaluation(NamedTuple):
    """The evaluation of what was learned by a checkpoint."""

    errors: Columns
    """The test errors, as columns of the curve."""
    model: Model = MappingProxyType({})
    """What was learned; empty except at the last checkpoint."""
    moments: Callable[[], JointMoments | None] = lambda: None
    """Returns the moments that were learned at the last checkpoint; None if none are modelled, or at another one."""
    left_out: np.ndarray | None = None
    """The attributes, bool of shape (d,), that are left out at the last checkpoint; None if there are none."""
    visible: np.ndarray | None = None
    """The attributes that predictions see at the last checkpoint; None for all of them."""


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
        What it has kept at each checkpoint is an `Evaluation`.
    best : ndarray of int, shape (C,)
        The setting chosen for each checkpoint, as an index of the grid.
    best_in_final : ndarray of int, shape (C,)
        The same, as an index of the settings that the final run had.
    cells : Cells
        What cross-validation saw.
    """

    plan: Plan
    split: Split
    folds: Sequence[PassResult]
    final: PassResult
    best: np.ndarray
    best_in_final: np.ndarray
    cells: Cells

    @property
    def last(self) -> Evaluation:
        """The evaluation at the last checkpoint."""
        evaluation: Evaluation = self.final.kept[-1]
        return evaluation

    @property
    def examples(self) -> tuple[int, ...]:
        """Numbers of examples at the checkpoints, the pilot's among them; amounts, if the learner chooses k."""
        if self.plan.config.chooses_k:
            return self.final.checkpoints
        return tuple(self.plan.pilot_before_learning + checkpoint for checkpoint in self.final.checkpoints)

    def report(self) -> Result:
        """Return the curve, the bill and the model."""
        plan, final, best = self.plan, self.final, self.best
        pilot = plan.pilot_before_learning * plan.full_row
        charged = self._of_chosen(final.attributes).tolist()
        points = zip(self.examples, final.kept, charged, strict=True)
        result: Result = {
            "repetition": self.split.repetition,
            "curve": [{"examples": n, **kept.errors, "attributes": pilot + paid} for n, kept, paid in points],
            "run": {
                **{f"p_{name}": values[best[-1]] for name, values in plan.settings.items()},
                "edge": self._edge(best[-1:]),
                "attributes_total": pilot + charged[-1],
                "attributes_mean": charged[-1] / (self._examples_seen - plan.pilot_before_learning),
                "attributes_max": int(final.most[self.best_in_final].max()),
                "attributes_tuning": sum(fold.paid for fold in self.folds),
                **self._distinct_cells(),
            },
            "edge_before": self._edge(best[:-1]),
            "model": {
                name: _plain(array)
                for name, array in {**self.last.model, **self._calibration(), **self._joint()}.items()
            },
        }
        visible, left_out = self.last.visible, self.last.left_out
        if visible is not None:
            result["run"]["predicted_from"] = visible.size
            if plan.prices:
                result["run"]["predicted_cost"] = plan.prices.of(np.bincount(visible, minlength=plan.d))
        if left_out is not None and left_out.any():
            result["left_out"] = [self.split.data.label(i) for i in np.flatnonzero(left_out).tolist()]
        if plan.prices and final.reveals is not None:
            reveals = self._of_chosen(final.reveals) + plan.pilot_before_learning
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
        narrow = self.last.visible is not None  # the folds judged regressors of all attributes
        if self.folds and not narrow and task.by_squares:
            losses = np.array([fold.kept[-1][self.best[-1]] for fold in self.folds])
            explained = explained_by_folds(losses, y)
        else:
            rows, cells = self._seen()
            first = split.first_row
            explained = explained_by_cells(table, self.last.model, rows - first, cells - first * plan.d, float(y.var()))
        return calibrated(y, explained, self._examples_seen)

    def _joint(self) -> Model:
        """Return the moments by which a fit predicts incomplete rows; nothing of other runs, or for many attributes."""
        dataset, last = self.plan.config.dataset, self.last
        if not dataset.untested or dataset.given or self.plan.d > _MOST_JOINT or last.visible is not None:
            return {}
        moments = last.moments()
        return {} if moments is None else {"mean": moments.mean[:-1], "covariance": moments.covariance[:-1, :-1]}

    @property
    def _examples_seen(self) -> int:
        """How many examples the final run saw, the pilot's among them."""
        if not self.plan.config.chooses_k:
            return self.examples[-1]
        rows, single = self._seen()
        return len(np.union1d(rows, single // self.plan.d))

    def _seen(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that the final run saw in full, the pilot's among them, and its other cells."""
        assert self.final.seen is not None
        rows, single = self.final.seen(self.best_in_final[-1])
        if self.plan.pilot_before_learning:
            rows = np.concatenate([rows, self.split.pilot + self.split.first_row])
        return rows, single

    def _distinct_cells(self) -> dict[str, float]:
        """Count the distinct cells that the final run saw, those that only its tuning saw, and the full rows.

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
        held_out = int(np.count_nonzero(split.data.complete[split.order]))
        rows_full = split.pilot.size + held_out if plan.tuned else 0
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
        return values[np.arange(len(self.best_in_final)), self.best_in_final]

    def _edge(self, winners: np.ndarray) -> str:
        """Return which parameters of any of some winners are on the edge of the grid."""
        edges = (on_edge(self.plan.settings, winner).split() for winner in np.unique(winners))
        return " ".join(sorted(set().union(*edges)))


def _plain(array: np.ndarray) -> np.ndarray:
    """Return an array of float64; one of zeros has no signs, as a journal keeps its shape only."""
    return np.asarray(array, dtype=np.float64) if np.any(array) else np.zeros(np.shape(array))


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

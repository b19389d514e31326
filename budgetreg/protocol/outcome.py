"""The outcome of a repetition: its curve, its bill and its model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from budgetreg.algorithms.tasks import Columns, Model, Regression
from budgetreg.metering.ledger import Cells
from budgetreg.metering.table import JointMoments
from budgetreg.protocol.calibration import calibrated, explained_by_cells, explained_by_folds
from budgetreg.protocol.passes import PassResult
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.split import Split
from budgetreg.protocol.tuning import on_edge

_MOST_JOINT = 1000  # attributes of which a model keeps the covariances

Result = dict[str, Any]
"""The result of a repetition, as a journal records it.

``repetition`` is its number; ``curve``, a list of one dict per checkpoint, has the columns of ``curves.csv``; ``run``
is the row of ``runs.csv``; ``edge_before`` is like its column ``edge``, for the choices at earlier checkpoints;
``model`` has the arrays that were learned by the last checkpoint. ``widened`` names the parameters whose grids grew,
such as ``"B eta"``, if any did; ``left_out`` the attributes that are left out, if any are; and ``reveals`` is, with
prices, how often each attribute was revealed by each checkpoint.
"""


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
        if self.folds and not narrow and isinstance(task, Regression) and task.delta is None:
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
        rows_full = int(np.count_nonzero(split.data.complete[split.order])) if plan.tuned else 0
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

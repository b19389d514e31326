"""What a repetition reports: its curve, its row of ``runs.csv``, its costs and its model, as JSON can hold them."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.metering.cells import Cells
from budgetreg.protocol.passes import PassResult
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.split import Split
from budgetreg.protocol.tuning import on_edge

_BYTES = "float64"  # little-endian in base64, which keeps every bit in less space than digits


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
        At each checkpoint it has kept the test errors, as columns of the curve, and at the last one also the model.
    best : ndarray of int, shape (C,)
        The setting chosen for each checkpoint, as an index of the grid.
    among : ndarray of int, shape (C,)
        The same, as an index of the settings that the final run had.
    first_row : int
        Number of the split's first row in the set of cells.
    cells : Cells
        What cross-validation saw.
    """

    plan: Plan
    split: Split
    folds: Sequence[PassResult]
    final: PassResult
    best: np.ndarray
    among: np.ndarray
    first_row: int
    cells: Cells

    def report(self) -> dict[str, Any]:
        """Return what `budgetreg.protocol.repetitions.run_repetitions` returns of a repetition."""
        result = {
            "repetition": self.split.repetition,
            "curve": self._curve(),
            "run": {**self._run_row(), **self._distinct_cells()},
            "edge_before": self._edge(self.best[:-1]),
            "model": self.final.kept[-1][1],
        }
        return result if self.plan.prices is None else self._with_costs(result)

    def _curve(self) -> list[dict[str, Any]]:
        """Return a point for each checkpoint: the test errors, and what pilot and chosen setting were charged."""
        plan = self.plan
        attributes = (self._of_chosen(self.final.attributes) + plan.lead * plan.d).tolist()
        points = zip(plan.checkpoints, self.final.kept, attributes, strict=True)
        return [{"examples": examples, **errors, "attributes": paid} for examples, (errors, _), paid in points]

    def _run_row(self) -> dict[str, Any]:
        plan = self.plan
        after_pilot = int(self._of_chosen(self.final.attributes)[-1])
        return {
            **{f"p_{name}": values[self.best[-1]] for name, values in plan.settings.items()},
            "edge": self._edge(self.best[-1:]),
            "attributes_total": after_pilot + plan.lead * plan.d,
            "attributes_mean": after_pilot / (plan.checkpoints[-1] - plan.lead),
            "attributes_max": int(self.final.most[self.among].max()),
            "attributes_tuning": sum(fold.paid for fold in self.folds),
        }

    def _distinct_cells(self) -> dict[str, float]:
        """Count the distinct cells that the final run saw, those that only its tuning saw, and the rows held out.

        With prices, also what the last two of these cost.
        """
        plan, split = self.plan, self.split
        assert self.final.seen is not None
        rows, single = self.final.seen(self.among[-1])
        if plan.lead:
            rows = np.concatenate([rows, split.pilot + self.first_row])
        shared, all_rows = single[self.cells.holds(single)], self.first_row + np.arange(len(split.table.y))
        in_tuning, in_rows = self.cells.by_attribute(all_rows), self.cells.by_attribute(rows)
        only_tuning = in_tuning - in_rows - np.bincount(shared % plan.d, minlength=plan.d)
        rows_full = int(np.count_nonzero(split.complete[split.order])) if plan.tuned else 0
        counts: dict[str, float] = {
            "cells_run": rows.size * plan.d + single.size,
            "cells_tuning": int(only_tuning.sum()),
            "rows_full": rows_full,
        }
        if plan.prices:
            counts["cost_cells_tuning"] = plan.prices.of(only_tuning)
            counts["cost_rows_full"] = plan.prices.row * rows_full
        return counts

    def _with_costs(self, result: dict[str, Any]) -> dict[str, Any]:
        """Add to a report what its reveals cost, and how often each attribute was revealed."""
        plan, final = self.plan, self.final
        assert plan.prices is not None and final.reveals is not None
        reveals = self._of_chosen(final.reveals) + plan.lead
        costs = [plan.prices.of(counts) for counts in reveals]
        nothing = np.zeros(plan.d, dtype=np.int64)
        tuning = sum((fold.reveals_paid for fold in self.folds if fold.reveals_paid is not None), nothing)
        return {
            **result,
            "curve": [{**point, "cost": cost} for point, cost in zip(result["curve"], costs, strict=True)],
            "run": {**result["run"], "cost_total": costs[-1], "cost_tuning": plan.prices.of(tuning)},
            "reveals": reveals.tolist(),
        }

    def _of_chosen(self, values: np.ndarray) -> np.ndarray:
        """Return the values (C, G, ...) of the setting chosen for each checkpoint."""
        return values[np.arange(len(self.among)), self.among]

    def _edge(self, winners: np.ndarray) -> str:
        """Return which parameters of any of some winners are on the edge of the grid."""
        edges = [on_edge(self.plan.settings, winner) for winner in np.unique(winners)] if self.plan.tuned else []
        return " ".join(sorted({word for edge in edges for word in edge.split()}))


def packed(model: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return arrays of floats as JSON can hold them; an array of zeros takes no space."""
    return {name: _packed(np.asarray(array)) for name, array in model.items()}


def unpacked(text: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays that `packed` was given, bit by bit except for the sign of a zero in an array of zeros."""
    return {name: _unpacked(array) for name, array in text.items()}


def _packed(array: np.ndarray) -> dict[str, Any]:
    content = {_BYTES: base64.b64encode(array.astype("<f8").tobytes()).decode()} if array.any() else {}
    return {"shape": list(array.shape), **content}


def _unpacked(text: Mapping[str, Any]) -> np.ndarray:
    if _BYTES not in text:
        return np.zeros(text["shape"])
    return np.frombuffer(base64.b64decode(text[_BYTES]), "<f8").reshape(text["shape"])

"""Bounds of theorems on the axes of a figure, where they apply and are better than the zero predictor's error.

A bound limits the risk above that of the best regressor w* in the ball. That risk is unknown, and the least mean error
of the figure stands in for it. The risk of the best subspace is known if the distribution is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from budgetreg import data, learners
from budgetreg.learners.declaration import Theorem
from budgetreg.results.series import Series


@dataclass(frozen=True)
class Bounds:
    """Bounds of one panel.

    Attributes
    ----------
    lines : dict of str to ndarray of shape (C,)
        Bounds at the checkpoints, by the label of the series; only those worth drawing.
    remark : str
        The caption's sentence about them; empty if no learner has a theorem.
    """

    lines: dict[str, np.ndarray]
    remark: str


def bounds(series: Sequence[Series], curves: Sequence[pd.DataFrame], column: str) -> Bounds:
    """Return the bounds on the curves of a panel.

    Parameters
    ----------
    series : sequence of Series
        The series of one data set.
    curves : sequence of DataFrame
        Their mean curves, as `budgetreg.results.series.mean_curve` returns them.
    column : str
        The measure. Theorems bound ``test_relative`` and ``excess_loss``.

    Returns
    -------
    Bounds
    """
    if column == "test_relative":
        return _of_regressors(series, curves)
    return _of_subspaces(series, curves) if column == "excess_loss" else Bounds({}, "")


def _of_regressors(series: Sequence[Series], curves: Sequence[pd.DataFrame]) -> Bounds:
    """Return the bounds for learners that output the average of all iterates.

    A bound is the least mean error of all curves plus the excess that the theorem allows after as many examples, with
    the chosen radius (mean over repetitions). It is left out if the data may violate the theorem's assumptions, or if
    it never falls below the zero predictor's error.
    """
    least = min(curve["test_relative"].min() for curve in curves)
    lines, vacuous, outside = {}, [], []
    for learner, curve in zip(series, curves, strict=True):
        theorem = _theorem(learner)
        if theorem is None:
            continue
        if not _meets(learner, theorem) or "p_B" not in learner.runs or not (learner.runs["p_B"] >= 1).all():
            outside.append(learner.label)
            continue
        line = least + _relative_excess(learner, theorem, curve["examples"].tolist())
        if (line < 1).any():
            lines[learner.label] = line
        else:
            vacuous.append(learner.label)
    return Bounds(lines, _remark(list(lines), vacuous, outside))


def _theorem(series: Series) -> Theorem | None:
    """Return a learner's theorem; none applies if the data set the origin."""
    learner = learners.read(series.config.get("algo", {}))
    moved = series.config.get("dataset", {}).get("center") == "revealed" or series.config.get("intercept") == "mean"
    return None if learner is None or moved else learner.theorem


def _meets(series: Series, theorem: Theorem) -> bool:
    """Return whether the data certainly satisfy the theorem's assumptions."""
    dataset = series.config["dataset"]
    kind = data.kinds().get(dataset.get("kind", ""))
    return kind is not None and dataset.get("center", "none") == "none" and kind.lies_in(theorem.domain)


def _relative_excess(series: Series, theorem: Theorem, examples: Sequence[int]) -> np.ndarray:
    excess = [np.mean([theorem.excess(B, series.d, m, series.k) for B in series.runs["p_B"]]) for m in examples]
    zero = (series.points["test_mse"] / series.points["test_relative"]).median()
    return np.array(excess) / zero


def _of_subspaces(series: Sequence[Series], curves: Sequence[pd.DataFrame]) -> Bounds:
    """Return the bounds for POPCA, PCA and MBEG on examples in the unit ball; MBEG's starts where it holds."""
    lines = {}
    for learner, curve in zip(series, curves, strict=True):
        theorem = _theorem(learner)
        if theorem is not None and _meets(learner, theorem):
            line = np.array([theorem.excess(None, learner.d, m, learner.k) for m in curve["examples"].tolist()])
            if (line < 1).any():  # no subspace loses more
                lines[learner.label] = line
    remark = (
        "Thin dotted lines: what the learner's theorem allows after as many examples, in expectation and for the worst "
        "law (Gonen et al. 2016, Corollary 3 and Theorem 7)."
    )
    return Bounds(lines, remark if lines else "")


def _remark(drawn: Sequence[str], vacuous: Sequence[str], outside: Sequence[str]) -> str:
    parts = []
    if drawn:
        parts.append(
            "Thin dotted lines: the least mean error here, in place of the unknown risk of the best regressor in the "
            "ball, plus what the learner's theorem allows above it in expectation after as many examples, with the "
            "radius B that was chosen and the step size that the theorem has for them (a run has one step size for all "
            "its checkpoints, and need not keep to the line before the last)."
        )
    left_out = [
        f"{why} ({', '.join(labels)})"
        for labels, why in (
            (vacuous, "they lie above the zero predictor's error"),
            (outside, "the data may lie outside what the theorems assume, attributes in the unit range and |y| <= B"),
        )
        if labels
    ]
    if left_out:
        parts.append(f"{'Other bounds' if drawn else 'Bounds'} of theory are not drawn: {'; '.join(left_out)}.")
    return " ".join(parts)

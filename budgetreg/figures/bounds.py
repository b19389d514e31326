"""The theorems' bounds on the axes of a figure: where they apply, and where they say more than "no worse than zero".

A bound is on the risk above that of the best regressor w* in the ball. That risk is not known; the least mean error of
the figure stands in for it. That of the best subspace is known where the law is.
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
    """The bounds of one panel.

    Attributes
    ----------
    lines
        For each label of a series with a bound worth drawing its height at the checkpoints, shape (C,).
    remark
        What the caption says of them; empty if no learner has a theorem.
    """

    lines: dict[str, np.ndarray]
    remark: str


def bounds(series: Sequence[Series], curves: Sequence[pd.DataFrame], column: str) -> Bounds:
    """Draw up the bounds on what a figure shows.

    Parameters
    ----------
    series
        Those of one data set.
    curves
        Their mean curves, as `budgetreg.results.series.mean_curve` returns them.
    column
        What is shown of them. There are bounds on ``test_relative`` and on ``excess_loss``.

    Returns
    -------
    Bounds
    """
    if column == "test_relative":
        return _of_regressors(series, curves)
    return _of_subspaces(series, curves) if column == "excess_loss" else Bounds({}, "")


def _of_regressors(series: Sequence[Series], curves: Sequence[pd.DataFrame]) -> Bounds:
    """Draw up the bounds for learners that output the average of all iterates.

    That of a series is the least mean error of all curves plus the excess that its theorem allows after as many
    examples, with the radius that was chosen (mean over repetitions). It is left out where the data may not meet the
    theorem's assumptions, and where it never falls below the zero predictor's error.
    """
    least = min(curve["test_relative"].min() for curve in curves)
    lines, vacuous, outside = {}, [], []
    for one, curve in zip(series, curves, strict=True):
        theorem = _theorem(one)
        if theorem is None or one.d is None:
            continue
        if not _meets(one, theorem) or "p_B" not in one.runs or not (one.runs["p_B"] >= 1).all():
            outside.append(one.label)
            continue
        line = least + _relative_excess(one, theorem, one.d, curve["examples"].tolist())
        if (line < 1).any():
            lines[one.label] = line
        else:
            vacuous.append(one.label)
    return Bounds(lines, _remark(list(lines), vacuous, outside))


def _theorem(series: Series) -> Theorem | None:
    """Return the theorem of a learner whose origin was not what it saw, which no theorem speaks of."""
    learner = learners.read(series.config.get("algo", {}))
    moved = series.config.get("dataset", {}).get("center") == "revealed" or series.config.get("intercept") == "mean"
    return None if learner is None or moved else learner.theorem


def _meets(series: Series, theorem: Theorem) -> bool:
    """Tell whether the data surely lie where the theorem wants them."""
    told = series.config["dataset"]
    kind = data.kinds().get(told.get("kind", ""))
    return kind is not None and told.get("center", "none") == "none" and kind.lies_in(theorem.domain)


def _relative_excess(series: Series, theorem: Theorem, d: int, examples: Sequence[int]) -> np.ndarray:
    excess = [np.mean([theorem.excess(B, d, m, series.k) for B in series.runs["p_B"]]) for m in examples]
    zero = (series.points["test_mse"] / series.points["test_relative"]).median()
    return np.array(excess) / zero


def _of_subspaces(series: Sequence[Series], curves: Sequence[pd.DataFrame]) -> Bounds:
    """Draw up the bounds for POPCA, PCA and MBEG, on examples in the unit ball; MBEG's from where it holds."""
    lines = {}
    for one, curve in zip(series, curves, strict=True):
        theorem = _theorem(one)
        if theorem is not None and one.d is not None and _meets(one, theorem):
            line = np.array([theorem.excess(None, one.d, m, one.k) for m in curve["examples"].tolist()])
            if (line < 1).any():  # no subspace loses more
                lines[one.label] = line
    said = (
        "Thin dotted lines: what the learner's theorem allows after as many examples, in expectation and for the worst "
        "law (Gonen et al. 2016, Corollary 3 and Theorem 7)."
    )
    return Bounds(lines, said if lines else "")


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

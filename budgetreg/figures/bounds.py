"""Bounds of theorems on the axes of a figure, where they apply and are better than the zero predictor's error.

A bound limits the risk above that of the best regressor w* in the ball. That risk is unknown, and the least mean error
of the figure stands in for it. The risk of the best subspace is known if the distribution is.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from budgetreg.algorithms import registry
from budgetreg.algorithms.learner import Theorem
from budgetreg.data.registry import kinds
from budgetreg.runs.series import Series

_OF_SUBSPACES = (
    "Thin dotted lines: what the learner's theorem allows after as many examples, in expectation and for the worst "
    "distribution (Gonen et al. 2016, Corollary 3 and Theorem 7)."
)
_OF_REGRESSORS = (
    "Thin dotted lines: the least mean error here, in place of the unknown risk of the best regressor in the "
    "ball, plus what the learner's theorem allows above it in expectation after as many examples, with the "
    "radius B that was chosen and the step size that the theorem has for them (a run has one step size for all "
    "its checkpoints, and need not keep to the line before the last)."
)


def bounds(curves: Sequence[tuple[Series, pd.DataFrame]], column: str) -> tuple[dict[str, np.ndarray], str]:
    """Return the bounds on the curves of a panel.

    Theorems bound the excess loss of POPCA, PCA and MBEG on examples in the unit ball; MBEG's bound starts where it
    holds. They bound the relative error of learners that output the average of all iterates: a bound is the least mean
    error of all curves plus the excess that the theorem allows after as many examples, with the chosen radius (mean
    over repetitions). A bound is left out if the data may violate the theorem's assumptions, or if it never falls
    below the zero predictor's error, or below the excess loss of any subspace.

    Parameters
    ----------
    curves : sequence of Series and DataFrame
        The series of one data set that have points, with their mean curves, as
        `budgetreg.runs.series.mean_curve` returns them.
    column : str
        The measure. Theorems bound ``test_relative`` and ``excess_loss``.

    Returns
    -------
    lines : dict of str to ndarray of shape (C,)
        Bounds at the checkpoints, by the label of the series; only those worth drawing.
    remark : str
        The caption's sentence about them; empty if no learner has a theorem.
    """
    of_subspaces = column == "excess_loss"
    if not curves or not (of_subspaces or column == "test_relative"):
        return {}, ""
    least = 0.0 if of_subspaces else min(curve[column].min() for _, curve in curves)
    lines: dict[str, np.ndarray] = {}
    vacuous, outside = [], []
    for learner, curve in curves:
        theorem = _theorem(learner)
        if theorem is None:
            continue
        radii: list[float | None] = [None] if of_subspaces else list(learner.runs.get("p_B", ()))
        if not (_meets(learner, theorem) and radii and all(B is None or B >= 1 for B in radii)):
            outside.append(learner.label)
            continue
        zero = 1.0 if of_subspaces else (learner.points["test_mse"] / learner.points["test_relative"]).median()
        k = int(learner.k)  # a learner that chooses k has no theorem
        excess = [np.mean([theorem.excess(B, learner.d, m, k) for B in radii]) for m in curve["examples"]]
        line = least + np.array(excess) / zero
        if (line < 1).any():
            lines[learner.label] = line
        else:
            vacuous.append(learner.label)
    if of_subspaces:
        return lines, _OF_SUBSPACES if lines else ""
    left_out = [
        f"{why} ({', '.join(labels)})"
        for labels, why in (
            (vacuous, "they lie above the zero predictor's error"),
            (outside, "the data may lie outside what the theorems assume, attributes in the unit range and |y| <= B"),
        )
        if labels
    ]
    parts = [_OF_REGRESSORS] if lines else []
    if left_out:
        parts.append(f"{'Other bounds' if lines else 'Bounds'} of theory are not drawn: {'; '.join(left_out)}.")
    return lines, " ".join(parts)


def _theorem(series: Series) -> Theorem | None:
    """Return a learner's theorem; none applies if the data set the origin."""
    learner = registry.read(series.config.get("algo", {}))
    moved = series.config.get("dataset", {}).get("center") == "revealed" or series.config.get("intercept") == "mean"
    return None if learner is None or moved else learner.theorem


def _meets(series: Series, theorem: Theorem) -> bool:
    """Return whether the data certainly satisfy the theorem's assumptions."""
    dataset = series.config["dataset"]
    kind = kinds().get(dataset.get("kind", ""))
    return kind is not None and dataset.get("center", "none") == "none" and kind.lies_in(theorem.domain)

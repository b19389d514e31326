"""The theorems' bounds on the axes of a figure: where they apply, and where they say more than "no worse than zero".

A bound is on the risk above that of the best regressor w* in the ball. That risk is not known; the least mean error of
the figure stands in for it. That of the best subspace is known where the law is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from budgetreg.protocol.configuration import AlgoConfig
from budgetreg.protocol.plan import split_budget
from budgetreg.results.series import Series
from budgetreg.theory import aelr_bound, aerr_bound, mbeg_bound, mbeg_least_examples, popca_bound

_BOUNDS: dict[str, Callable[[float, int, int, int | None], float]] = {"ogd": aerr_bound, "eg": aelr_bound}
_IN_BALL = {"sphere", "hidden_basis"}
_IN_CUBE = _IN_BALL | {"mnist", "digits", "one_good_feature", "three_bits"}
_KINDS = {"ogd": _IN_BALL, "eg": _IN_CUBE}
"""By update, the kinds of data that surely meet its theorem: the unit range of attributes, and targets up to 1."""
_IN_UNIT_BALL = {"coins", "hadamard", "spike", "two_lines"}


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
        if not _has_theorem(one):
            continue
        if not _meets_it(one):
            outside.append(one.label)
            continue
        line = least + _relative_excess(one, curve["examples"].tolist())
        if (line < 1).any():
            lines[one.label] = line
        else:
            vacuous.append(one.label)
    return Bounds(lines, _remark(list(lines), vacuous, outside))


def _has_theorem(series: Series) -> bool:
    """Tell whether a bound without unknown constants is proved for the learner.

    Hazan & Koren 2012, Theorems 3.1 and 3.4, for uniform draws; with exact gradients the same inequalities.
    """
    algo, center = series.config.get("algo", {}), series.config.get("dataset", {}).get("center")
    drawn = (algo.get("core"), algo.get("data_point")) in {("partial", "uniform"), ("exact", None)}
    literal = algo.get("inner_product", "weight") in ("weight", None) and algo.get("control_variate") in ("none", None)
    averaged = algo.get("average") == "all"
    return (
        drawn
        and literal
        and averaged
        and center != "revealed"
        and algo.get("update") in _BOUNDS
        and series.d is not None
    )


def _meets_it(series: Series) -> bool:
    data = series.config["dataset"]
    known = data["kind"] in _KINDS[series.config["algo"]["update"]] and data["center"] == "none"
    return known and "p_B" in series.runs and bool((series.runs["p_B"] >= 1).all())


def _relative_excess(series: Series, examples: Sequence[int]) -> np.ndarray:
    told = series.config["algo"]
    k_x, _ = split_budget(AlgoConfig(**{field.name: told.get(field.name) for field in fields(AlgoConfig)}), series.k)
    bound, d = _BOUNDS[told["update"]], series.d
    assert d is not None
    excess = [np.mean([bound(B, d, m, k_x) for B in series.runs["p_B"]]) for m in examples]
    zero = (series.points["test_mse"] / series.points["test_relative"]).median()
    return 2 * np.array(excess) / zero  # the theorems' loss has a factor 1/2


def _of_subspaces(series: Sequence[Series], curves: Sequence[pd.DataFrame]) -> Bounds:
    """Draw up the bounds for POPCA, PCA and MBEG, on examples in the unit ball; MBEG's from where it holds."""
    lines = {}
    for one, curve in zip(series, curves, strict=True):
        bound = _excess(one)
        if bound is not None and one.config["dataset"]["kind"] in _IN_UNIT_BALL:
            line = np.array([bound(m) for m in curve["examples"].tolist()])
            if (line < 1).any():  # no subspace loses more
                lines[one.label] = line
    said = (
        "Thin dotted lines: what the learner's theorem allows after as many examples, in expectation and for the worst "
        "law (Gonen et al. 2016, Corollary 3 and Theorem 7)."
    )
    return Bounds(lines, said if lines else "")


def _excess(series: Series) -> Callable[[int], float] | None:
    """Return the function from examples to the excess loss that the learner's theorem allows; None if it has none."""
    algo, d, r = series.config.get("algo", {}), series.d, series.k
    kind, n = (algo.get("core"), algo.get("update")), algo.get("n_components")
    if d is None or not n:
        return None
    if kind == ("second_moment", "full"):
        return lambda m: popca_bound(n, d, d, m)
    if kind == ("second_moment", "passive"):
        return lambda m: popca_bound(n, d, r, m)
    if kind == ("second_moment", "active") and not algo.get("replacement"):
        return lambda m: popca_bound(n, d, r, m, passive=False)
    if kind == ("mbeg", "pairs") and (algo.get("alpha"), algo.get("output")) == ("theory", "decompose"):
        return lambda m: mbeg_bound(n, d, r, m) if m >= mbeg_least_examples(r, d) else np.nan
    return None


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

"""The axes of a figure: a column of the curves on each, and the words for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from budgetreg.data import registry
from budgetreg.figures.drawing import PLAIN, Drawing
from budgetreg.runs import tables
from budgetreg.runs.series import Series, common_unit


@dataclass(frozen=True)
class Axis:
    """An axis of a figure.

    Attributes
    ----------
    column : str
        A column of `budgetreg.runs.series.mean_curve`.
    label : str
        The text beside the axis.
    name : str
        The name in the figure's title.
    meaning : str
        The explanation in the caption.
    zero : float or None
        Value of the predictor that sees no attribute; None if unknown.
    constant : str
        What that predictor answers, in a word.
    most : float
        The axis always shows values up to this one.
    log : bool
        Whether the axis is always logarithmic. Another y axis becomes logarithmic if its values span decades.
    """

    column: str
    label: str
    name: str
    meaning: str
    zero: float | None = None
    constant: str = "zero"
    most: float = 0.0
    log: bool = False

    @property
    def text(self) -> str:
        """Return the text beside the axis."""
        return f"{self.label} (log scale)" if self.log else self.label

    @property
    def explanation(self) -> str:
        """Return the explanation in the caption, with the scale."""
        return f"{self.meaning}; log scale" if self.log else self.meaning


ATTRIBUTES = Axis(
    "attributes",
    "attributes seen in training",
    "attributes seen in training",
    "attributes seen in training, the mean over repetitions of what was charged at each checkpoint; a "
    "checkpoint is a number of training examples",
)
_BILLED = (
    "what pilot and final run were charged by each checkpoint, mean over repetitions, and before them what tuning "
    "revealed besides, a pair of an example and an attribute once, held-out examples in full; of checkpoints at the "
    "same bill the last is shown"
)
PAID = Axis("paid", "attributes paid for, tuning included", "attributes paid for", f"attributes paid for: {_BILLED}")
EXAMPLES = Axis(
    "examples",
    "training examples",
    "training examples",
    "training examples, as many for every learner, whatever it was charged for them",
)
COST = Axis(
    "cost",
    "spent on attributes in training, in {unit}",
    "money spent in training",
    "what the attributes seen in training cost, in {unit}: the mean over repetitions of what was charged at each "
    "checkpoint, by the price list; a checkpoint is a number of training examples",
)
PAID_COST = Axis(
    tables.PAID_COST,
    "spent on attributes, tuning included, in {unit}",
    "money spent",
    f"what attributes cost, in {{unit}}: {_BILLED}",
)
EFFECTIVE_EXAMPLES = Axis(
    "effective_examples",
    "m (r/d)² / n",
    "effective examples",
    "m (r/d)² / n, for m examples of d attributes, r of which are seen, and n dimensions of the subspace",
)


def _relative_to(predictor: str, does: str, constant: str, more: str = "") -> Axis:
    return Axis(
        "test_relative",
        f"test error / error {predictor}",
        "test error",
        f"mean squared test error divided by that of the predictor that {does}, so that the thin line at 1 is that "
        f"predictor{more}",
        zero=1.0,
        constant=constant,
    )


RELATIVE = _relative_to("of the zero predictor", "always answers zero", "zero")
TO_THE_MEAN = _relative_to("of the mean predictor", "always answers the mean of the training targets", "mean")
TO_EITHER = _relative_to(
    "without attributes",
    "sees no attribute",
    "constant",
    ": it answers the mean of the training targets to learners with an intercept, and else zero",
)
SVR_LOSS = Axis(
    "test_svr_loss",
    "test loss max(|residual| - delta, 0)",
    "SVR loss",
    "mean of max(|residual| - delta, 0) over the test part",
)
MSE = Axis(
    "test_mse",
    "mean squared test error",
    "test error",
    "mean squared error on the test part, in squared units of the target",
)
ERROR_RATE = Axis(
    "test_error_rate",
    "test examples of the wrong sign",
    "error rate",
    "share of test examples whose prediction has the wrong sign",
)
RELATIVE_ERROR = Axis(
    "relative_error",
    "relative error, loss / mean |x|²",
    "relative error",
    "mean squared distance from the subspace, divided by the mean squared length, of the test examples, or under the "
    "distribution that examples are drawn from where its second moment is known",
    most=1.0,
)
EXCESS_LOSS = Axis(
    "excess_loss",
    "excess loss",
    "excess loss",
    "mean squared distance from the subspace above that from the best one of as many dimensions, of the test examples, "
    "or under the distribution that examples are drawn from where its second moment is known, and then exact",
    log=True,
)
ANGLE = Axis(
    "principal_angle",
    "largest principal angle in degrees",
    "principal angle",
    "largest angle between the subspace and the best one, in degrees",
)
_X = {axis.column: axis for axis in (ATTRIBUTES, PAID, EXAMPLES, COST, PAID_COST, EFFECTIVE_EXAMPLES)}
_Y = {axis.column: axis for axis in (RELATIVE, SVR_LOSS, MSE, ERROR_RATE, RELATIVE_ERROR, EXCESS_LOSS, ANGLE)}


def axes_of(series: Sequence[Series], drawing: Drawing = PLAIN) -> tuple[Axis, Axis]:
    """Return the x and y axis of a figure.

    Parameters
    ----------
    series : sequence of Series
        All curves of the figure.
    drawing : Drawing, optional
        What a recipe asks for; the rest is chosen by the series.

    Returns
    -------
    x : Axis
        Examples if all runs have ``axis=examples``; else money if all have prices in one unit, else attributes. With
        ``axis=paid`` in all runs, money or attributes include tuning.
    y : Axis
        The SVR loss if all learners minimise it, else the relative squared error. For subspaces, the excess loss if it
        is exact for all, else the relative error.
    """
    x, y = _usual(series)
    x = _X[drawing.x] if drawing.x else x
    units = " or ".join(sorted({curve.unit for curve in series if curve.unit}))
    label, meaning = (text.format(unit=units) for text in (x.label, x.meaning))
    x = replace(x, label=label, meaning=meaning, log=drawing.x_scale == "log")
    y = _relative(series) if drawing.measure == RELATIVE.column else _Y[drawing.measure] if drawing.measure else y
    return x, y if drawing.y_scale == "auto" else replace(y, log=drawing.y_scale == "log")


def within_total(series: Series, curve: pd.DataFrame, x: Axis) -> pd.DataFrame:
    """Return a curve without the points beyond the total that ``axis=paid`` allows.

    Without a total in the axis's unit, the limit is the cost of k attributes of each training example.
    """
    in_money = x.column == PAID_COST.column
    if series.config.get("axis") != "paid" or not (in_money or x.column == PAID.column):
        return curve
    total = series.config.get("total") if in_money == (series.unit is not None) else None
    most = total or (curve[COST.column].max() if in_money else series.attributes_per_example * series.n_train)
    return curve[curve[x.column] <= most]


def _usual(series: Sequence[Series]) -> tuple[Axis, Axis]:
    asked = {str(curve.config.get("axis")) for curve in series}
    priced = common_unit(series) is not None
    x = COST if priced else ATTRIBUTES
    if asked == {"examples"}:
        x = EXAMPLES
    elif asked == {"paid"}:
        x = PAID_COST if priced else PAID
    if all(curve.of_subspaces for curve in series):
        exact = all(map(_distribution_is_known, series))
        return x, EXCESS_LOSS if exact else RELATIVE_ERROR
    of_svr = all(curve.points["test_svr_loss"].notna().any() for curve in series)
    return x, SVR_LOSS if of_svr else _relative(series)


def _relative(series: Sequence[Series]) -> Axis:
    means = {curve.config.get("intercept") == "mean" for curve in series}
    return TO_EITHER if len(means) > 1 else TO_THE_MEAN if means == {True} else RELATIVE


def _distribution_is_known(series: Series) -> bool:
    kind = registry.kinds().get(series.config.get("dataset", {}).get("kind", ""))
    return kind is not None and not kind.tested

"""What a figure shows of its curves: a column on either axis, and the words for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from budgetreg.curves import Series


@dataclass(frozen=True)
class Axis:
    """An axis of a figure.

    Attributes
    ----------
    column
        What is drawn, a column of `budgetreg.curves.mean_curve`.
    label
        Text beside the axis.
    name
        What the figure's title calls it.
    meaning
        What the caption says of it.
    zero
        Where the predictor that always answers zero lies; None if that is not known.
    log
        Whether it is logarithmic whatever it shows: rates are straight lines on it.
    """

    column: str
    label: str
    name: str
    meaning: str
    zero: float | None = None
    log: bool = False


ATTRIBUTES = Axis(
    "attributes",
    "attributes seen in training (log scale)",
    "attributes seen in training",
    "attributes seen in training (log scale), the mean over repetitions of what was charged at each checkpoint; a "
    "checkpoint is a number of training examples",
)
EXAMPLES = Axis(
    "examples",
    "training examples (log scale)",
    "training examples",
    "training examples (log scale), as many for every learner, whatever it was charged for them",
)
RELATIVE = Axis(
    "test_relative",
    "test error / error of the zero predictor",
    "test error",
    "mean squared test error divided by that of the predictor that always answers zero, so that the thin line at 1 is "
    "that predictor",
    zero=1.0,
)
SVR_LOSS = Axis(
    "test_svr_loss",
    "test loss max(|residual| - delta, 0)",
    "SVR loss",
    "mean of max(|residual| - delta, 0) over the test part",
)
RELATIVE_ERROR = Axis(
    "relative_error",
    "relative error: share of squared length outside the subspace",
    "relative error",
    "mean squared distance of the test examples from the subspace, divided by their mean squared length",
)
EXCESS_LOSS = Axis(
    "excess_loss",
    "excess loss (log scale)",
    "excess loss",
    "mean squared distance from the subspace above that from the best one of as many dimensions, exact, by the second "
    "moment of the law that examples are drawn from",
    log=True,
)
_KNOWN_LAWS = {"coins", "hadamard", "spike", "two_lines"}
"""Kinds of data whose second moment is known."""


def axes_of(series: Sequence[Series]) -> tuple[Axis, Axis]:
    """Choose the axes of a figure.

    Parameters
    ----------
    series
        All that it draws.

    Returns
    -------
    x : Axis
        Examples if all runs were made to be compared at equal examples (``axis=examples``), else attributes.
    y : Axis
        The SVR loss if all learners minimise it, else the relative squared error. Of subspaces: the excess loss if it
        is exact for all, else the relative error.
    """
    x = EXAMPLES if all(one.config.get("axis") == "examples" for one in series) else ATTRIBUTES
    if all(one.of_subspaces for one in series):
        exact = all(one.config.get("dataset", {}).get("kind") in _KNOWN_LAWS for one in series)
        return x, EXCESS_LOSS if exact else RELATIVE_ERROR
    of_svr = all(one.points["test_svr_loss"].notna().any() for one in series)
    return x, SVR_LOSS if of_svr else RELATIVE

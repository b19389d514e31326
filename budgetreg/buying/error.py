"""How good a model is that was learned from a table with holes, without any complete row.

Each fold of the examples is judged by a model of the others. Three estimates of the error with all attributes are
combined; none is good everywhere:

- the expected loss given what a held-out example shows and its target, under the model;
- the measured loss of predictions from what an example shows, less what the other attributes explain under the model;
- the moment estimate, in which each product of two values counts by the inverse of the share of the examples that show
  it. It is unbiased if all examples are equally likely to show a pair, but varies much.

The first two use the models with covariances that held-out products have corrected, see `budgetreg.buying.held_out`.
The third counts for more the less it varies.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.buying.held_out import Part, corrected, explained_slope, losses, unbiased
from budgetreg.buying.joint import JointModel
from budgetreg.buying.learning import learn
from budgetreg.buying.learning_curve import LearningCurve
from budgetreg.errors import DataError
from budgetreg.streams import generator

_FOLDS, _FEWEST = 5, 10
"""Folds, and the fewest examples that can be judged."""

_QUANTILE = 1.645
"""Of the normal distribution, for intervals of 90 %."""

_MODEL, _CORRECTION, _BOUGHT = 0.2, 0.5, 0.05
"""Relative standard errors beyond those that the examples show: of the error with all attributes, for the model, and as
a share of what the correction of the covariances changes; and of the error with as many as were bought."""

_TRUST = {"measured": 0.6, "moments": 0.3}
"""Relative standard errors at which an estimate counts half as much as without any: the measured loss against the
expected one, and the moments against both."""

_LEAST_SPREAD = 0.25
"""Least relative standard error of the moment estimate, whose own estimate is uncertain."""

_SLOPE = 0.15
"""Prior standard deviation of how much attributes and target vary together, relative to the model."""

_FLOOR, _LARGEST = 0.25, 1.2
"""An estimate is at least this share of the expected loss under the model, and no end of an interval is larger."""


@dataclass(frozen=True)
class Interval:
    """An estimate with an interval that holds the truth with a probability of 90 %.

    Attributes
    ----------
    estimate, low, high : float
        From 0 to 1.2.
    """

    estimate: float
    low: float
    high: float

    @classmethod
    def around(cls, estimate: float, relative: float) -> "Interval":
        """Return the interval of an estimate above 0 with a relative standard error, on a logarithmic scale."""
        factor = float(np.exp(_QUANTILE * relative))
        estimate = min(estimate, _LARGEST)
        return cls(float(estimate), float(estimate / factor), float(min(estimate * factor, _LARGEST)))

    @property
    def relative(self) -> float:
        """The relative standard error, from the lower end."""
        return float(np.log(self.estimate / self.low) / _QUANTILE)


@dataclass(frozen=True)
class ErrorEstimate:
    """Mean squared errors for a new example, relative to those of the mean target.

    Attributes
    ----------
    complete : Interval
        All attributes of it are measured.
    as_bought : Interval
        As many of them are measured as were bought of an example, on average over those of which any was bought.
    """

    complete: Interval
    as_bought: Interval


def estimate_error(
    values: np.ndarray,
    targets: np.ndarray,
    *,
    seed: int,
    algo: str = "aemr",
    model: JointModel | None = None,
    **choices: Any,
) -> ErrorEstimate:
    """Return how large the error of the model of all examples is, estimated by cross-fitting.

    Examples that have a target and a value are judged, each by a model of the examples outside its fold. All examples
    are learned from.

    Parameters
    ----------
    values : ndarray of float, shape (n, d)
        NaN for values that are not known.
    targets : ndarray of float, shape (n,)
        NaN for targets that are not known.
    seed : int
        Of folds and models.
    algo : str
        The learner, see `budgetreg.buying.learning.learn`, also for further choices.
    model : JointModel, optional
        What was learned from all examples; learned again if not given.

    Raises
    ------
    DataError
        If fewer than 10 examples have a target and a value, or their targets are all equal.
    """
    known = ~np.isnan(values)
    judged = np.flatnonzero(known.any(axis=1) & ~np.isnan(targets))
    if len(judged) < _FEWEST:
        raise DataError(
            f"at least {_FEWEST} examples with a target and a value are needed to estimate the error; "
            f"there are {len(judged)}: buy values of more examples"
        )
    if np.ptp(targets[judged]) == 0:
        raise DataError("the targets of all examples with a value are equal, so there is no error to estimate")
    if model is None:
        model = learn(values, targets, seed=seed, algo=algo, **choices)
    order = generator("folds of a table with holes", seed, len(judged)).permutation(judged)
    parts, references = [], []
    for fold in range(_FOLDS):
        held = order[fold::_FOLDS]
        others = np.ones(len(values), dtype=bool)
        others[held] = False
        fitted = learn(values[others], targets[others], seed=seed, algo=algo, **choices)
        parts.append(Part(fitted, values[held], targets[held]))
        references.append(np.square(targets[held] - np.nanmean(targets[others])))
    reference = np.concatenate(references)
    curve = LearningCurve(model, known[judged], float("nan"), float(np.var(targets[judged])))
    return combined(parts, reference, curve)


def combined(parts: list[Part], reference: np.ndarray, curve: LearningCurve) -> ErrorEstimate:
    """Return the error of a model of all examples, given models of all folds but one.

    Parameters
    ----------
    parts : list of Part
        The folds, each with the model of the others.
    reference : ndarray of float, shape (n,)
        Squared errors of the mean of the other folds' targets, in the order of the parts.
    curve : LearningCurve
        Of the model of all examples. Its error is replaced.
    """
    plain = [losses(part) for part in parts]
    improved = [losses(part) for part in corrected(parts)]
    slope = explained_slope(parts, _SLOPE)
    bought = np.concatenate([loss.bought for loss in plain])
    given = np.concatenate([loss.given for loss in improved])
    measured = np.concatenate([loss.bought - 2 * slope * loss.crossed + loss.unseen for loss in improved])
    moments = unbiased(parts)
    center = _relative(given, reference)[0]
    share = _weight("measured", _relative(measured, reference)[1] / center) / 2
    by_model = (1 - share) * given + share * measured
    center = max(_relative(by_model, reference)[0], _FLOOR * center)
    share = _weight("moments", max(_relative(moments, reference)[1] / center, _LEAST_SPREAD))
    error, deviation = _relative((1 - share) * by_model + share * moments, reference)
    error = max(error, _FLOOR * center)
    final = _of_all_examples(curve, error)
    unseen = float(np.concatenate([loss.unseen for loss in plain]).mean())
    explained = float(np.mean([part.model.w @ part.model.covariance @ part.model.w for part in parts]))
    seen = max(1 - unseen / explained, 0.0) if explained > 0 else 0.0
    uncorrected = np.concatenate([loss.given for loss in plain]).mean()
    change = _CORRECTION * abs(np.log(given.mean() / uncorrected))
    loss, its_deviation = _relative(bought, reference)
    shown = loss - (error - final) * seen
    return ErrorEstimate(
        Interval.around(final, float(np.linalg.norm([min(deviation / error, 1.0), _MODEL, change]))),
        Interval.around(shown, float(np.hypot(min(its_deviation / loss, 1.0), _BOUGHT))),
    )


def _weight(estimate: str, spread: float) -> float:
    """Return how much an estimate counts, given its relative standard error: from 1 to 0."""
    return _TRUST[estimate] ** 2 / (_TRUST[estimate] ** 2 + spread**2)


def _relative(losses: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Return the ratio of two means over the examples, and its standard error."""
    ratio = losses.mean() / reference.mean()
    deviations = (losses - ratio * reference) / reference.mean()
    return float(ratio), float(deviations.std(ddof=1) / np.sqrt(len(losses)))


def _of_all_examples(curve: LearningCurve, error: float) -> float:
    """Return the error of a model of all examples, given that of models of all folds but one."""
    fewer = curve.through(min(error, 1.0)).errors([1 - 1 / _FOLDS])[0]
    return float(error * min(error, 1.0) / max(fewer, error))

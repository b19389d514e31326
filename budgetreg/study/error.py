"""Estimate the error of a model that was learned from a table with holes, without any complete row.

Each fold of the examples is judged by a model of the others. Two estimates of the error with all attributes are
combined:

- the expected loss given what a held-out example shows and its target, under the model with covariances that held-out
  products have corrected, see `budgetreg.study.held_out`;
- the moment estimate, in which each product of two values counts by the inverse of the share of the examples that show
  it. It is unbiased if all examples are equally likely to show a pair, but varies much. So it counts for more the less
  it varies, and for little unless there are many examples.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.errors import DataError
from budgetreg.streams import generator
from budgetreg.study.held_out import Part, corrected, losses, unbiased
from budgetreg.study.joint import JointModel
from budgetreg.study.learning import learn
from budgetreg.study.learning_curve import LearningCurve

_FOLDS, _FEWEST = 5, 10
"""Folds, and the fewest examples that can be judged."""

_QUANTILE = 1.645
"""Of the normal distribution, for intervals of 90 %."""

_MODEL, _CORRECTION, _BOUGHT = 0.2, 0.5, 0.05
"""Relative standard errors beyond those that the examples show: of the error with all attributes, for the model, and as
a share of what the correction of the covariances changes; and of the error with as many as were bought."""

_TRUST, _LEAST_SPREAD = 0.06, 0.1
"""Relative standard error at which the moment estimate counts half; and the least one, as it is itself estimated."""

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
        The learner, see `budgetreg.study.learning.learn`, also for further choices.
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
    curve = LearningCurve(model, known[judged], float(np.var(targets[judged])))
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
        Of the model of all examples.
    """
    plain = [losses(part) for part in parts]
    improved = [losses(part) for part in corrected(parts)]
    bought = np.concatenate([loss.bought for loss in plain])
    given = np.concatenate([loss.given for loss in improved])
    moments = unbiased(parts)
    center = _relative(given, reference)[0]
    spread = max(_relative(moments, reference)[1] / center, _LEAST_SPREAD)
    share = _TRUST**2 / (_TRUST**2 + spread**2)
    error, deviation = _relative((1 - share) * given + share * moments, reference)
    error = max(error, _FLOOR * center)
    final = error / float(curve.ratios([1 - 1 / _FOLDS])[0])
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


def _relative(losses: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Return the ratio of two means over the examples, and its standard error."""
    ratio = losses.mean() / reference.mean()
    deviations = (losses - ratio * reference) / reference.mean()
    return float(ratio), float(deviations.std(ddof=1) / np.sqrt(len(losses)))

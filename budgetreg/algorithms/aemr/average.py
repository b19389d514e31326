"""AEMR's regressor: an average of three, weighted by how well each predicts the targets that were revealed."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from budgetreg.algorithms.aemr.target_regression import CompleteRegression, TargetRegression
from budgetreg.algorithms.aemr.weights_prior import LEAST_NOISE
from budgetreg.revealed.standardised import Moments, StandardisedEntries
from budgetreg.tasks import Outputs, WithIntercept

_TEMPER, _LARGEST_SHARE = 8.0, 0.1
"""The weights have the mean log likelihood times 8, at most times a tenth of the examples. The likelihood of all would
nearly choose one regressor, and often a wrong one, as it judges predictions from the attributes seen, not from all.
Complete examples judge what is wanted. Where more of them than that are left when as many as there are attributes do
not count, because the weights were fitted to them, they alone judge."""

_SHARES = np.array([1.0, 0.25, 1.0])
"""Weights of the factor model's regressor, the regression and the moments before any target is predicted: where the
covariance of the factor model is off, the regression is farther off than the other two."""


class Average(NamedTuple):
    """The average regressor of a stream, as moments that have it for their solution.

    Attributes
    ----------
    first : ndarray of float, shape (d + 1,)
    second : ndarray of float, shape (d + 1, d + 1)
        As in `Moments`. With the target they are what the regressor implies, as if it were right.
    inflation : ndarray of float, shape (d,)
        The factors to use with these moments: 1 for complete examples, whose regressor depends on no unit.
    complete : bool
        Whether all examples are complete.
    """

    first: np.ndarray
    second: np.ndarray
    inflation: np.ndarray
    complete: bool


def averaged(
    standardised: StandardisedEntries,
    moments: Moments,
    origin: np.ndarray,
    f: int,
    solved: np.ndarray,
    inflation: np.ndarray,
    rng: np.random.Generator,
    *,
    intercept: bool,
) -> Average:
    """Return a stream's moments, with those of the target that the average regressor has.

    Averaged are the regressor of the factor model, that of `TargetRegression`, and a given one.

    Parameters
    ----------
    standardised : StandardisedEntries
        Everything revealed.
    moments : Moments
        Posterior means under the factor model.
    origin : ndarray of float, shape (F, d + 1)
        See `StandardisedEntries.origin`.
    f : int
        The stream.
    solved : ndarray of float, shape (d,)
        The given regressor, of values as revealed.
    inflation : ndarray of float, shape (d,)
        Factors of the attributes' variances, see `budgetreg.revealed.units.Rescaled`. Attributes with an infinite one
        are left out.
    rng : numpy.random.Generator
    intercept : bool
        Whether predictions go through the target's mean.

    Returns
    -------
    Average
        A stream whose target or attributes have too few values keeps its moments.
    """
    first, second = moments.first[f], moments.second[f]
    live = np.flatnonzero(standardised.live[f, :-1] & np.isfinite(inflation))
    if not standardised.live[f, -1] or not live.size:
        return Average(first, second, inflation, False)
    covariance = second - np.outer(first, first)
    M, mean = covariance[np.ix_(live, live)], first - origin[f]
    blocks = [(block.attributes[f], block.values[f]) for block in standardised.blocks]
    complete = all(np.isin(attributes[:, :-1], live).sum(axis=1).min() == live.size for attributes, _ in blocks)
    regression = (CompleteRegression if complete else TargetRegression)(blocks, live, M, first, origin[f])
    if not regression.variance:
        return Average(first, second, inflation, False)
    by_factors = np.linalg.solve(M + np.outer(mean[live], mean[live]), covariance[live, -1] + mean[live] * mean[-1])
    members = np.stack([by_factors, regression.solve(rng), standardised.in_columns(f, solved)[live]])
    temper, judges = min(_TEMPER, _LARGEST_SHARE * regression.examples), np.full(regression.examples, True)
    if (beyond := int(regression.whole.sum()) - len(live)) > temper:
        temper, judges = beyond, regression.whole
    scores = np.log(_SHARES) + temper * np.array([regression.log_density(w, judges) for w in members])
    w = np.exp(scores - logsumexp(scores)) @ members
    first, level, shared = first.copy(), float(mean[live] @ w), M @ w
    if intercept:  # predictions go through the target's mean where attributes are at their origin
        shared += mean[live] * level
    else:
        first[-1] = origin[f, -1] + level
    covariance[-1] = covariance[:, -1] = 0.0
    covariance[live, -1] = covariance[-1, live] = shared
    explained = float(shared @ np.linalg.solve(M, shared))
    covariance[-1, -1] = max(regression.variance, explained + LEAST_NOISE * regression.variance)
    if regression.complete:
        inflation = np.where(np.isfinite(inflation), 1.0, inflation)
    return Average(first, covariance + np.outer(first, first), inflation, regression.complete)


def average_regressors(
    standardised: StandardisedEntries,
    moments: Moments,
    solved: np.ndarray,
    inflation: np.ndarray,
    rngs: Sequence[np.random.Generator],
    *,
    centred: bool,
    intercept: bool,
) -> Outputs:
    """Return the average regressors of all streams.

    Parameters
    ----------
    standardised, moments, rngs, intercept
        As for `averaged`, which has one stream's generator.
    solved, inflation : ndarray of float, shape (F, d)
        As for `averaged`, by stream.
    centred : bool
        Whether predictions go through the attributes' means.

    Returns
    -------
    ndarray of float, shape (F, d, 1); or WithIntercept if attributes or target are centred
    """
    centring = {"centred": centred, "intercept": intercept}
    origin = standardised.origin(moments, **centring)
    streams = [
        averaged(standardised, moments, origin, f, solved[f], inflation[f], rng, intercept=intercept)
        for f, rng in enumerate(rngs)
    ]
    first, second, factors, complete = map(np.stack, zip(*streams, strict=True))
    outputs = standardised.regressors(Moments(first, second), **centring, inflation=factors)
    if not isinstance(outputs, WithIntercept):
        return outputs
    # Moments that imply the average take it for right, which only complete examples show. Otherwise those of the factor
    # model are stated, with more noise.
    joint = Moments(
        np.where(complete[:, None], first, moments.first), np.where(complete[:, None, None], second, moments.second)
    )
    return outputs._replace(moments=partial(standardised.joint, joint))

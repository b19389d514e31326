"""Uncertainty from the spread over repetitions: whole repetitions are resampled, for all curves alike.

Learners of a figure share their splits, so that what they differ by is far better known than where they lie;
resampling the same repetitions for all of them keeps that. A statistic is computed from mean curves; the first of these
is the mean over all repetitions, the others are means over as many that are drawn with replacement.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from budgetreg.streams import generator

RESAMPLES = 2000
ONE_SIDED = 0.95
"""Each end of an interval is passed with probability 1 - ONE_SIDED."""
FEWEST = 5
"""Fewer repetitions say too little of their spread: there is no interval then."""


@dataclass(frozen=True)
class Estimate:
    """A number with an interval, whose ends are NaN for fewer than `FEWEST` repetitions.

    Attributes
    ----------
    value : float
    low, high : float
        Each a one-sided bound at the level `ONE_SIDED`.
    """

    value: float
    low: float
    high: float


def weights(repetitions: int) -> np.ndarray:
    """Return the weights of the repetitions in each mean, shape (1 + RESAMPLES, repetitions).

    The first row is the plain mean. The draws depend on the number of repetitions alone.
    """
    plain = np.full((1, repetitions), 1 / repetitions)
    drawn = generator("bootstrap", repetitions).multinomial(repetitions, plain[0], size=RESAMPLES)
    return np.concatenate([plain, drawn / repetitions])


def basic(values: np.ndarray, repetitions: int) -> Estimate:
    """Return the basic bootstrap interval (Efron & Tibshirani 1993), its ends as far out as Student's t asks.

    Parameters
    ----------
    values : ndarray, shape (1 + RESAMPLES,)
        The statistic of the means that `weights` gives.
    repetitions : int
        Their number n.
    """
    if not _suffices(values, repetitions):
        return Estimate(float(values[0]), np.nan, np.nan)
    below, above = np.quantile(_deviations(values, repetitions), [1 - ONE_SIDED, ONE_SIDED])
    return Estimate(float(values[0]), float(values[0] - above), float(values[0] - below))


def of_largest(values: np.ndarray, repetitions: int) -> Estimate:
    """Return an interval of the largest of several means, each of which has noise of its own.

    The largest of noisy means lies above the largest of what they estimate, and which one it is differs between
    resamples, so that `basic` would end too high. All are below a number if each of them is: the upper end is the
    largest of theirs (an intersection-union test, Berger 1982). Some is above a number if one is, allowing for how many
    there were to look at: the lower end is the largest of those that hold for all of them together.

    Parameters
    ----------
    values : ndarray, shape (1 + RESAMPLES, C)
        C statistics of the means that `weights` gives.
    repetitions : int
        As for `basic`.
    """
    value = float(values[0].max())
    if not _suffices(values, repetitions):
        return Estimate(value, np.nan, np.nan)
    deviations = _deviations(values, repetitions)
    scale = deviations.std(axis=0)
    together = np.quantile((deviations / np.where(scale > 0, scale, 1.0)).max(axis=1), ONE_SIDED)
    alone = np.quantile(deviations, 1 - ONE_SIDED, axis=0)
    return Estimate(value, float((values[0] - together * scale).max()), float((values[0] - alone).max()))


def of_share(count: int, repetitions: int) -> Estimate:
    """Return the exact interval of a share (Clopper & Pearson 1934); no resample would tell of one that is 0 or 1.

    Parameters
    ----------
    count : int
        Of how many repetitions something is true.
    repetitions : int
        Of how many.
    """
    value, others = count / repetitions, repetitions - count
    if repetitions < FEWEST:
        return Estimate(value, np.nan, np.nan)
    low = betaincinv(count, others + 1, 1 - ONE_SIDED) if count else 0.0
    high = betaincinv(count + 1, others, ONE_SIDED) if others else 1.0
    return Estimate(value, float(low), float(high))


def _suffices(values: np.ndarray, repetitions: int) -> bool:
    return repetitions >= FEWEST and bool(np.isfinite(values).all())


def _deviations(values: np.ndarray, repetitions: int) -> np.ndarray:
    """Return by how much resampled means deviate from the plain one, widened to what Student's t gives few of them.

    A resample's variance has the divisor n in place of n - 1, and its tails are those of the normal law.
    """
    student = float(stdtrit(repetitions - 1, ONE_SIDED) / ndtri(ONE_SIDED))
    return (values[1:] - values[0]) * sqrt(repetitions / (repetitions - 1)) * student


def of_ratio(values: np.ndarray, repetitions: int) -> Estimate:
    """Return the basic interval of the logarithm: a ratio of errors cannot be negative, and no end of it should be.

    One of differences may be negative, and is given the basic interval of `basic`.

    Parameters
    ----------
    values, repetitions
        As for `basic`.
    """
    if not (values > 0).all():
        return basic(values, repetitions)
    log = basic(np.log(values), repetitions)
    return Estimate(float(values[0]), float(np.exp(log.low)), float(np.exp(log.high)))


def percentile(values: np.ndarray, repetitions: int) -> Estimate:
    """Return the interval between two values of the statistic itself, which may be infinite.

    Parameters
    ----------
    values, repetitions
        As for `basic`.
    """
    value = float(values[0])
    if repetitions < FEWEST or np.isnan(values).any():
        return Estimate(value, np.nan, np.nan)
    low, high = np.quantile(values[1:], [1 - ONE_SIDED, ONE_SIDED], method="inverted_cdf")
    return Estimate(value, float(low), float(high))

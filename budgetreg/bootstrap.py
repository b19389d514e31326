"""Uncertainty from the spread over repetitions: whole repetitions are resampled, for all curves alike.

Learners of a figure share their splits, so that what they differ by is far better known than where they lie;
resampling the same repetitions for all of them keeps that. A statistic is computed from mean curves; the first of these
is the mean over all repetitions, the others are means over as many that are drawn with replacement.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

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
    """Return the basic bootstrap interval, which allows for the bias of a statistic such as a maximum.

    Efron & Tibshirani 1993; deviations are widened by sqrt(n/(n-1)), without which they are those of a variance with
    divisor n.

    Parameters
    ----------
    values : ndarray, shape (1 + RESAMPLES,)
        The statistic of the means that `weights` gives.
    repetitions : int
        Their number n.
    """
    value = float(values[0])
    if repetitions < FEWEST or not np.isfinite(values).all():
        return Estimate(value, np.nan, np.nan)
    deviations = (values[1:] - value) * sqrt(repetitions / (repetitions - 1))
    below, above = np.quantile(deviations, [1 - ONE_SIDED, ONE_SIDED])
    return Estimate(value, value - float(above), value - float(below))


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

"""Bootstrap intervals from the spread over repetitions: the same repetitions are resampled for all curves.

Learners of a figure share their splits, so that their differences vary far less than their errors. Resampling the same
repetitions for all of them keeps that. A statistic is computed from mean curves: the first is the mean over all
repetitions, each other one the mean over as many repetitions drawn with replacement.
"""

from dataclasses import dataclass
from functools import cache
from math import isnan, nan, sqrt

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from budgetreg.streams import generator

RESAMPLES = 2000
ONE_SIDED = 0.95
"""Level of each end of an interval, a one-sided bound."""
FEWEST = 5
"""Fewest repetitions that give an interval; the spread of fewer is too uncertain."""


@dataclass(frozen=True)
class Estimate:
    """A number with an interval, whose ends are NaN for fewer than `FEWEST` repetitions; NaN if it is unknown.

    Attributes
    ----------
    value : float
    low, high : float
        One-sided bounds at the level `ONE_SIDED`.
    """

    value: float = nan
    low: float = nan
    high: float = nan

    def columns(self, name: str, interval: str = "") -> dict[str, str]:
        """Return columns of a table: the number, and the ends of the interval under its name or another."""
        ends = interval or name
        columns = {name: self.value, f"{ends}_low": self.low, f"{ends}_high": self.high}
        return {column: "" if isnan(value) else f"{value:.4g}" for column, value in columns.items()}


@cache
def weights(repetitions: int) -> np.ndarray:
    """Return the weights of the repetitions in each mean, shape (1 + RESAMPLES, repetitions).

    The first row is the plain mean. The draws depend on the number of repetitions alone.
    """
    plain = np.full((1, repetitions), 1 / repetitions)
    drawn = generator("bootstrap", repetitions).multinomial(repetitions, plain[0], size=RESAMPLES)
    return np.concatenate([plain, drawn / repetitions])


def basic(values: np.ndarray, repetitions: int) -> Estimate:
    """Return the basic bootstrap interval (Efron & Tibshirani 1993), widened as Student's t requires.

    Parameters
    ----------
    values : ndarray, shape (1 + RESAMPLES,)
        The statistic of the means that `weights` gives.
    repetitions : int
        Number of repetitions n.
    """
    if not _suffices(values, repetitions):
        return Estimate(float(values[0]))
    below, above = np.quantile(_deviations(values, repetitions), [1 - ONE_SIDED, ONE_SIDED])
    return Estimate(float(values[0]), float(values[0] - above), float(values[0] - below))


def of_largest(values: np.ndarray, repetitions: int) -> Estimate:
    """Return an interval of the largest of several means, each of which has noise of its own.

    The largest of noisy means overestimates the largest expectation, and resamples differ in which one is the largest,
    so that `basic` would end too high. All expectations lie below a number if each of them does: the upper end is the
    largest upper end (an intersection-union test, Berger 1982). The lower end is the largest of the lower ends that
    hold for all of them together.

    Parameters
    ----------
    values : ndarray, shape (1 + RESAMPLES, C)
        C statistics of the means that `weights` gives.
    repetitions : int
        As for `basic`.
    """
    value = float(values[0].max())
    if not _suffices(values, repetitions):
        return Estimate(value)
    deviations = _deviations(values, repetitions)
    scale = deviations.std(axis=0)
    together = np.quantile((deviations / np.where(scale > 0, scale, 1.0)).max(axis=1), ONE_SIDED)
    alone = np.quantile(deviations, 1 - ONE_SIDED, axis=0)
    return Estimate(value, float((values[0] - together * scale).max()), float((values[0] - alone).max()))


def of_share(count: int, repetitions: int) -> Estimate:
    """Return the exact interval of a share (Clopper & Pearson 1934), since resamples of a share of 0 or 1 never vary.

    Parameters
    ----------
    count : int
        Number of repetitions for which something is true.
    repetitions : int
        Number of repetitions.
    """
    value, others = count / repetitions, repetitions - count
    if repetitions < FEWEST:
        return Estimate(value)
    low = betaincinv(count, others + 1, 1 - ONE_SIDED) if count else 0.0
    high = betaincinv(count + 1, others, ONE_SIDED) if others else 1.0
    return Estimate(value, float(low), float(high))


def _suffices(values: np.ndarray, repetitions: int) -> bool:
    return repetitions >= FEWEST and bool(np.isfinite(values).all())


def _deviations(values: np.ndarray, repetitions: int) -> np.ndarray:
    """Return the deviations of resampled means from the plain one, widened as Student's t requires for few of them.

    A resample's variance has the divisor n instead of n - 1, and its tails are those of the normal distribution.
    """
    student = float(stdtrit(repetitions - 1, ONE_SIDED) / ndtri(ONE_SIDED))
    return (values[1:] - values[0]) * sqrt(repetitions / (repetitions - 1)) * student


def of_ratio(values: np.ndarray, repetitions: int) -> Estimate:
    """Return the basic interval of the logarithm, so that the ends for a ratio of errors are never negative.

    A ratio of differences may be negative, and gets the interval of `basic`.

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
    """Return the interval between two quantiles of the statistic itself, which may be infinite.

    Parameters
    ----------
    values, repetitions
        As for `basic`.
    """
    value = float(values[0])
    if repetitions < FEWEST or np.isnan(values).any():
        return Estimate(value)
    low, high = np.quantile(values[1:], [1 - ONE_SIDED, ONE_SIDED], method="inverted_cdf")
    return Estimate(value, float(low), float(high))

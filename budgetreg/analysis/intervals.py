"""Intervals from the spread over repetitions: of resampled mean curves, and of mean errors and their differences.

Learners of a figure share their splits, so that their differences vary far less than their errors. Resampling the same
repetitions for all of them keeps that. A statistic is computed from mean curves: the first is the mean over all
repetitions, each other one the mean over as many repetitions drawn with replacement. Claims, savings and the table of
``compare`` rest on this bootstrap.

``advise`` and the tables of ``plot`` compare mean errors at the end, which `mean_error` and `difference` do in closed
form. Errors over random splits are skewed: one bad split can multiply an error by 100. So mean errors are compared on a
logarithmic scale, by Student's t. Repetitions are paired, because all learners have the same splits. For errors
``a_i`` and ``b_i`` of two learners in repetition i of n, with means a and b, the interval is

    log(b / a) ± t_{n-1} sd(z) / sqrt(n),    z_i = b_i / b - a_i / a.

``z_i`` is the influence of repetition i: the derivative of ``log(b / a)`` with respect to its weight. An end e of the
interval is shown as the difference ``a (exp(e) - 1)``. The interval of a single mean error is the same, with 0 in place
of ``a_i / a``, and shown as ``b exp(e - log b)``.

A single outlier cannot hide a difference: ``sd(z) / sqrt(n)`` is 1 at most for a mean that one error decides, so that a
mean of ten errors is clearly worse if it is ``exp(t_9) = 6.3`` times as large as one that hardly varies.

How often the ends of a difference miss the truth, in per cent, with 10 repetitions (5 is nominal;
``scripts/interval_coverage.py`` has more, and describes the cases):

    ===============  ===========  ===========
    errors           lower end    upper end
    ===============  ===========  ===========
    normal, 0.3      4.6          4.7
    lognormal, 0.3   5.2          5.5
    lognormal, 1     8.1          8.8
    t3, 0.3          4.8          4.8
    failures         11.6         12.1
    ===============  ===========  ===========

With failures, each learner fails in a tenth of all splits. Ten repetitions often show no failure then, and no interval
can reflect it; more repetitions can. Intervals do not correct for the choice of the best among several learners.

Claims judge where whole curves cross each other or a level. That has no influence in closed form, and may lie beyond
the end of a curve, which only the quantiles of resampled curves can express.

References
----------
Efron (1982), "The jackknife, the bootstrap and other resampling plans", Section 6 (the delta method).
"""

from dataclasses import dataclass
from functools import cache
from math import exp, expm1, isnan, log, nan, sqrt

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from budgetreg.common.streams import generator

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


_LEAST = float(np.finfo(float).tiny)  # in place of an error of 0, which has no logarithm


def mean_error(errors: np.ndarray) -> Estimate:
    """Return a mean error with its interval.

    Parameters
    ----------
    errors : ndarray, shape (n,)
        Errors of n repetitions, at least 0. Fewer than `FEWEST` give no interval.
    """
    mean = float(errors.mean())
    if len(errors) < FEWEST:
        return Estimate(mean)
    half_width = _half_width(_shares(errors))
    return Estimate(mean, mean * exp(-half_width), mean * exp(half_width))


def difference(errors: np.ndarray, reference: np.ndarray) -> Estimate:
    """Return how far a mean error lies above another one, with the interval of the paired comparison.

    Parameters
    ----------
    errors, reference : ndarray, shape (n,)
        Errors of two learners in the same n repetitions, at least 0. Fewer than `FEWEST` give no interval.
    """
    difference = float(errors.mean() - reference.mean())
    if len(errors) < FEWEST:
        return Estimate(difference)
    half_width = _half_width(_shares(errors) - _shares(reference))
    least = max(float(reference.mean()), _LEAST)
    theta = log(max(float(errors.mean()), _LEAST) / least)
    return Estimate(difference, least * expm1(theta - half_width), least * expm1(theta + half_width))


def _shares(errors: np.ndarray) -> np.ndarray:
    return np.asarray(errors / max(float(errors.mean()), _LEAST))


def _half_width(influences: np.ndarray) -> float:
    n = len(influences)
    return float(stdtrit(n - 1, ONE_SIDED) * influences.std(ddof=1) / np.sqrt(n))

"""The intervals of errors, and of their differences, that ``advise`` and the tables of ``plot`` show.

Errors over random splits are skewed: one bad split can multiply an error by 100. So mean errors are compared on a
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
can know of it: more repetitions can. Intervals do not correct for the choice of the best among several learners.

Claims, savings and the table of ``compare`` rest on resampled repetitions instead (`budgetreg.analysis.bootstrap`).
They judge where whole curves cross each other or a level. That has no influence in closed form, and may lie beyond the
end of a curve, which only the quantiles of resampled curves can express.

References
----------
Efron (1982), "The jackknife, the bootstrap and other resampling plans", Section 6 (the delta method).
"""

from math import exp, expm1, log

import numpy as np
from scipy.special import stdtrit

from budgetreg.analysis.bootstrap import FEWEST, ONE_SIDED, Estimate

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

"""Each attribute's regression on the target, shrunk: the moments with the target, and the pairs' control variate.

Of an example ``x_i = a_i + b_i u + e_i``, where u is the target less its mean. What is left, e, has the products of
pairs without what both attributes owe to the target, which is known of every example and need not be learned from
pairs. The prior is ``b_i ~ N(0, t v_i)``, with t such that slopes vary over attributes as much as they do.
"""

from dataclasses import dataclass

import numpy as np

_PSEUDO = 10
"""Values of the attributes' mean variance that are supposed of each."""

_LEAST_LEFT = 1e-6
"""Least part of an attribute's variance that the target leaves."""

_LEAST_T = 0.02
"""Least variance of a slope, in units of the attribute's variance over the target's."""


@dataclass(frozen=True)
class LabelRegression:
    """What the target tells of the attributes of one stream.

    Attributes
    ----------
    a, b : ndarray of float, shape (d,)
        The attribute where the target is at its mean, and how it goes with the target; 0 of those that are not live.
    v : ndarray of float, shape (d,)
        Variance that is left, above 0; of those that are not live what is supposed, less with each value seen.
    counts : ndarray of int, shape (d,)
        How often the attribute was seen.
    live : ndarray of bool, shape (d,)
        Attributes of which more than one value was seen.
    """

    a: np.ndarray
    b: np.ndarray
    v: np.ndarray
    counts: np.ndarray
    live: np.ndarray


def label_regression(attributes: np.ndarray, x: np.ndarray, u: np.ndarray, d: int) -> LabelRegression:
    """Regress attributes on the target, with a prior whose width the values tell.

    Parameters
    ----------
    attributes : ndarray of int, shape (N,)
        Of each value; d for a value that is missing.
    x, u : ndarray of float, shape (N,)
        Values, and targets of their examples less the mean target.
    d : int
        Attributes there are.
    """

    def total(weights: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(attributes, weights, d + 1)[:d]

    counts = total()
    n = np.maximum(counts, 1)
    x_mean, u_mean = total(x) / n, total(u) / n
    dx, du = x - np.append(x_mean, 0.0)[attributes], u - np.append(u_mean, 0.0)[attributes]
    xx, xu, uu = total(dx * dx), total(dx * du), total(du * du)
    live = (counts > 1) & (xx > 0)
    if not live.any():
        return LabelRegression(np.zeros(d), np.zeros(d), np.ones(d), counts, live)

    def shrunk(squares: np.ndarray) -> np.ndarray:
        pooled = squares[live].sum() / (counts[live] - 1).sum()
        return np.asarray((squares + _PSEUDO * pooled) / (counts + _PSEUDO))

    slope = xu / np.where(uu > 0, uu, 1.0)
    left = np.maximum(xx - slope * xu, 0.0)
    told = counts > 2
    v = left[told] / (counts[told] - 2)
    # Of a slope's square times uu, (t uu + 1) v is expected.
    surplus, per_t = (slope * xu)[told].sum() - v.sum(), (uu[told] * v).sum()
    deviation = uu[live].sum() / counts[live].sum()
    t = max(_LEAST_T / deviation, surplus / per_t if per_t > 0 else 0.0) if deviation > 0 else 0.0
    b = np.where(live, slope * uu * t / (uu * t + 1), 0.0)
    v = np.maximum(shrunk(np.maximum(xx - 2 * b * xu + b * b * uu, 0.0)), _LEAST_LEFT * shrunk(xx))
    a = np.where(live, x_mean - b * u_mean, 0.0)
    return LabelRegression(a, b, v, counts, live)

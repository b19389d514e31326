"""Regression of each attribute on the target, which is also the control variate of the pairs.

The model is ``x_i = a_i + b_i u + e_i`` with the prior ``b_i ~ N(0, t v_i)``, where u is the target less its mean and
``v_i`` the variance of e_i. The width t is estimated by the method of moments. Every example shows its target, so the
part of a product ``x_i x_j`` that the target explains needs no pairs; only the products of e are estimated from pairs.
"""

from dataclasses import dataclass

import numpy as np

_PSEUDO = 10
"""Pseudo-values of the mean residual variance that are added to those of each attribute."""

_MIN_RESIDUAL = 1e-6
"""Lower bound of v, as a fraction of the attribute's variance."""

_MIN_WIDTH = 0.02
"""Lower bound of t, in units of one over the target's variance."""


@dataclass(frozen=True)
class LabelRegression:
    """Regression of the attributes of one stream on its target.

    Attributes
    ----------
    a, b : ndarray of float, shape (d,)
        Each attribute's value at the mean target, and its slope; 0 for attributes that are not live.
    v : ndarray of float, shape (d,)
        Residual variances, above 0; for attributes that are not live, what the pseudo-values say.
    counts : ndarray of int, shape (d,)
        Number of values of each attribute.
    live : ndarray of bool, shape (d,)
        Attributes with at least two values that are not all equal.
    """

    a: np.ndarray
    b: np.ndarray
    v: np.ndarray
    counts: np.ndarray
    live: np.ndarray


def label_regression(attributes: np.ndarray, x: np.ndarray, u: np.ndarray, d: int) -> LabelRegression:
    """Regress attributes on the target, shrunk by a prior whose width is estimated.

    Parameters
    ----------
    attributes : ndarray of int, shape (N,)
        Attribute of each value; d for a missing value.
    x, u : ndarray of float, shape (N,)
        Values, and the centred targets of their examples.
    d : int
        Number of attributes.
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

    def shrunk_variance(squares: np.ndarray) -> np.ndarray:
        pooled = squares[live].sum() / (counts[live] - 1).sum()
        return np.asarray((squares + _PSEUDO * pooled) / (counts + _PSEUDO))

    slope = xu / np.where(uu > 0, uu, 1.0)
    residual_squares = np.maximum(xx - slope * xu, 0.0)
    fitted = counts > 2
    v = residual_squares[fitted] / (counts[fitted] - 2)
    # The square of a slope times uu has the mean (t uu + 1) v; summed over attributes this gives t.
    surplus, per_t = (slope * xu)[fitted].sum() - v.sum(), (uu[fitted] * v).sum()
    target_variance = uu[live].sum() / counts[live].sum()
    t = 0.0
    if target_variance > 0:
        t = max(_MIN_WIDTH / target_variance, surplus / per_t if per_t > 0 else 0.0)
    b = np.where(live, slope * uu * t / (uu * t + 1), 0.0)
    v = np.maximum(shrunk_variance(np.maximum(xx - 2 * b * xu + b * b * uu, 0.0)), _MIN_RESIDUAL * shrunk_variance(xx))
    a = np.where(live, x_mean - b * u_mean, 0.0)
    return LabelRegression(a, b, v, counts, live)

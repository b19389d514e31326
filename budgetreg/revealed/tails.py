"""Estimate how much larger new values are than those seen suggest, where tails are heavy.

Rare, large values dominate the variance of an attribute with heavy tails, and a few values are likely to contain none
of them. Then its variance seems small, its weight is too large, and the next large value spoils a prediction. How
often this happens can be seen by leaving out one value after the other: its square, compared with the variance of the
other values of its attribute, has the mean that follows from the F distribution if values are normal, and a larger one
if tails are heavy.

All attributes are averaged, because those that have not shown a large value yet do not show their tails either. If
the second moment of a prediction ``w'x`` is estimated by ``w'M w``, its mean for new values is about
``w'M w + (g - 1) sum w_i^2 v_i``, where g is the ratio of means and v_i the variance of attribute i.
"""

import numpy as np

_LEAST = 8
"""Values of an attribute that are needed: with fewer, the squares of normal values have no useful mean either."""

_ROUNDING = 1e-12
"""Share of the squares that must be left without a value, else the other values are all equal but for rounding."""


def excess(attributes: np.ndarray, values: np.ndarray, d: int) -> float:
    """Return ``g - 1`` of one stream, increased by the relative standard error of g; 0 if g is below 1 or unknown.

    Parameters
    ----------
    attributes : ndarray of int, shape (N,)
        Attribute of each value; d or more for what is no value of an attribute.
    values : ndarray of float, shape (N,)
    d : int
        Number of attributes.
    """
    attributes = np.minimum(attributes, d)
    counts = np.bincount(attributes, minlength=d + 1)
    n = np.maximum(counts, _LEAST)
    means = np.bincount(attributes, values, d + 1) / np.maximum(counts, 1)
    squares = np.square(values - means[attributes])
    total = np.bincount(attributes, squares, d + 1)
    # Without one value, the mean of the others moves away from it, and their squares lose more than its own.
    moved = (n / (n - 1))[attributes]
    left = total[attributes] - squares * moved
    kept = (attributes < d) & (counts >= _LEAST)[attributes] & (left > _ROUNDING * total[attributes])
    if not kept.any():
        return 0.0
    dof = (n - 2)[attributes][kept]
    ratio = squares[kept] * np.square(moved[kept]) * dof / left[kept]
    normal = moved[kept] * dof / (dof - 2)
    ratio /= normal
    g, error = float(ratio.mean()), float(ratio.std() / np.sqrt(ratio.size))
    return max(0.0, g - 1) * (1 + error / g)

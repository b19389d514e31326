"""Estimate how much larger new values are than those seen suggest, where tails are heavy.

Rare, large values dominate the variance of an attribute with heavy tails, and a few values are likely to contain none
of them. Then its variance seems small, its weight is too large, and the next large value spoils a prediction. How
often this happens can be seen by leaving out one value after the other: its square, compared with the variance of the
other values of its attribute, has the mean that follows from the F distribution if values are normal, and a larger one
if tails are heavy.

Two large values of one attribute hide each other from this estimate. They do not if half of the values are left out at
once, because each half then often holds both or neither. But that estimate is noisy, as it rests on half of the values.
So it counts only if it is at least twice as large.

All attributes are averaged, because those that have not shown a large value yet do not show their tails either. If
the second moment of a prediction ``w'x`` is estimated by ``w'M w``, its mean for new values is about
``w'M w + (g - 1) sum w_i^2 v_i``, where g is the ratio of means and v_i the variance of attribute i.

If the variance is infinite, no g is large enough: the next value may be larger than all seen together. Hill's estimate
of the tail index shows this. A tail that falls like ``x^-a`` has no variance if a is at most 2, and the logarithms of
its largest values exceed that of the next by ``1/a`` on average.

References
----------
B. M. Hill. A simple general approach to inference about the tail of a distribution. Annals of Statistics 3, 1975.
"""

import numpy as np

_LEAST = 8
"""Values of an attribute that are needed: with fewer, the squares of normal values have no useful mean either."""

_ROUNDING = 1e-12
"""Share of the squares that must be left without a value, else the other values are all equal but for rounding."""

_SPLITS = 8
"""Random splits into halves, which are averaged."""

_HIDDEN = 2
"""How many times as large as the estimate by single values that by halves must be, to show hidden large values."""

_TOP = 0.05
"""Share of an attribute's values, those farthest from the median, that its tail consists of; at least one value."""

_LEAST_TAIL = 20
"""Values in the tails of all attributes that are needed; the estimate's standard error is then 22 %."""

_LEAST_INDEX = 1.3
"""Tail index below which the variance counts as infinite. It is below 2 because the estimate is uncertain, and
too low for tails that get lighter farther out, such as the lognormal distribution's."""


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
    enough = kept & (counts >= 2 * _LEAST)[attributes]
    by_halves = _by_halves(attributes[enough], values[enough], d)
    return max(0.0, (by_halves if by_halves >= _HIDDEN * g else g) - 1) * (1 + error / g)


def infinite_variance(attributes: np.ndarray, values: np.ndarray, d: int) -> bool:
    """Return whether one stream's attributes have tails as heavy as those of a distribution without variance.

    The tail index is estimated for all attributes together, each by its own largest deviations from its median. So it
    does not depend on their units.

    Parameters
    ----------
    attributes, values : ndarray, shape (N,)
    d : int
        See `excess`.
    """
    order = np.argsort(attributes, kind="stable")
    order = order[attributes[order] < d]
    ends = np.cumsum(np.bincount(attributes[order], minlength=d))
    logarithms = [np.empty(0)]
    for x in np.split(values[order], ends[:-1]):
        if x.size < _LEAST:
            continue
        top = max(1, int(_TOP * x.size))
        distances = np.sort(np.abs(x - np.median(x)))[-top - 1 :]
        if distances[0] > 0:
            logarithms.append(np.log(distances[1:] / distances[0]))
    joined = np.concatenate(logarithms)
    return joined.size >= _LEAST_TAIL and bool(joined.mean() > 1 / _LEAST_INDEX)


def _by_halves(attributes: np.ndarray, values: np.ndarray, d: int) -> float:
    """Return g, the values of one half compared with the variance of those of the other, over random halves."""
    rng = np.random.default_rng(0)
    ratios = []
    for half in rng.random((_SPLITS, values.size)) < 0.5:
        for judged in (half, ~half):
            a, x = attributes[~judged], values[~judged]
            counts = np.bincount(a, minlength=d)
            n = np.maximum(counts, _LEAST)
            means = np.bincount(a, x, d) / n
            total, raw = np.bincount(a, np.square(x - means[a]), d), np.bincount(a, np.square(x), d)
            usable = (counts >= _LEAST) & (total > _ROUNDING * raw)
            a, x = attributes[judged], values[judged]
            a, x = a[usable[a]], x[usable[a]]
            normal = (1 + 1 / n) / (n - 3)
            ratios.append(np.square(x - means[a]) / (total * normal)[a])
    joined = np.concatenate(ratios)
    return float(joined.mean()) if joined.size else 0.0

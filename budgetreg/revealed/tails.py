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

from collections.abc import Iterator, Sequence

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

_ENOUGH = 12
"""Values other than the median that an attribute with values of both signs needs to show how they spread."""

_DECADES, _SUSPECT, _ORDINARY = 1.4, 1.2, 0.75
"""Spreads, see `over_decades`: one that shows decades, one that may be of decades, and one that a quarter of the
attributes must not exceed. It is 0.5 for normal values, and at most about 1 for the tables of scikit-learn."""

LARGER = 1e3
"""How many times larger than those seen the next value of such an attribute may be."""

_NEAR = 1e-5
"""Distance from the median, in the largest one, up to which a value counts as equal to it."""

_FEW, _RARE = 3, 0.15
"""Values away from the median, and their share, up to which they do not show how far away the next one will be."""

_UNLIKE = 3
"""How many times as far away the farthest of them must be as the nearest."""

_ONE = 0.05
"""The same share for a single one, as it may be one of two values of an attribute that has no others."""


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
    logarithms = [np.empty(0)]
    for x in by_attribute(attributes, values, d):
        if x.size < _LEAST:
            continue
        top = max(1, int(_TOP * x.size))
        distances = np.sort(np.abs(x - np.median(x)))[-top - 1 :]
        if distances[0] > 0:
            logarithms.append(np.log(distances[1:] / distances[0]))
    joined = np.concatenate(logarithms)
    return joined.size >= _LEAST_TAIL and bool(joined.mean() > 1 / _LEAST_INDEX)


def few_differ(x: np.ndarray, least: float = 0.0) -> bool:
    """Return whether nearly all values are equal, and the others do not show how far away the next one will be.

    They do not if they are up to three, and not about equally far away; or nearer than values of other attributes are.

    Parameters
    ----------
    x : ndarray of float, shape (n,)
    least : float
        A distance that few values must have from the others.
    """
    if x.size <= _FEW:
        return False
    distances = np.sort(np.abs(x - np.median(x)))
    away = distances[distances > _NEAR * distances[-1]]
    if not away.size:
        return False
    if away.size == 1:
        return bool(_ONE * x.size >= 1 or away[0] < least)
    return bool(away.size <= min(_FEW, _RARE * x.size) and (_UNLIKE * away[0] < away[-1] or away[-1] < least))


def over_decades(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return which attributes have values that spread over decades, bool of shape (d,), while others have not.

    One value decides the variance then, and the next may be many times as large. The spread of an attribute is the
    standard deviation of the logarithms of its values if all have the same sign; else the mean logarithm of the
    distances from the median that are above their median, in units of it. Once it shows decades by two standard errors
    for some attribute, others count as well if it may do so for them. Where all attributes have such tails, they show
    them together, see `excess` and `infinite_variance`.

    Parameters
    ----------
    columns : sequence of d ndarray of float
        The values of each attribute.
    """
    spreads, errors = np.zeros((2, len(columns)))
    for i, x in enumerate(columns):
        if x.size <= _FEW:
            continue
        if x.min() > 0 or x.max() < 0:
            spreads[i] = np.log(np.abs(x)).std(ddof=1)
            errors[i] = spreads[i] / np.sqrt(2 * (x.size - 1))
            continue
        distances = np.abs(x - np.median(x))
        distances = np.sort(distances[distances > 0])
        if distances.size >= _ENOUGH:
            upper = np.log(distances[distances.size // 2 :] / np.median(distances))
            spreads[i], errors[i] = upper.mean(), upper.mean() / np.sqrt(upper.size)
    if not (spreads - 2 * errors > _DECADES).any() or np.quantile(spreads, 0.25) > _ORDINARY:
        return np.zeros(len(columns), dtype=bool)
    return np.asarray(spreads + 2 * errors > _SUSPECT)


def by_attribute(attributes: np.ndarray, values: np.ndarray, d: int) -> Iterator[np.ndarray]:
    """Yield the values of each of d attributes; see `excess`."""
    order = np.argsort(attributes, kind="stable")
    order = order[attributes[order] < d]
    yield from np.split(values[order], np.cumsum(np.bincount(attributes[order], minlength=d))[:-1])


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

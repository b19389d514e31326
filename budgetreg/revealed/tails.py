"""Tails: how much larger new values are than those seen suggest, and which attributes do not show it.

Rare, large values dominate the variance of an attribute with heavy tails, and a few values are likely to contain none
of them. Then its variance seems small, its weight is too large, and the next large value spoils a prediction. How often
this happens can be seen by leaving out one value after the other: its square, compared with the variance of the other
values of its attribute, has the mean that follows from the F distribution if values are normal, and a larger one if
tails are heavy.

Two large values of one attribute hide each other from this estimate. They do not if half of the values are left out
at once, because each half then often holds both or neither. But that estimate is noisy, as it rests on half of the
values. So it counts only if it is at least twice as large.

All attributes are averaged, because those that have not shown a large value yet do not show their tails either. If
the second moment of a prediction ``w'x`` is estimated by ``w'M w``, its mean for new values is about
``w'M w + (g - 1) sum w_i^2 v_i``, where g is the ratio of means and v_i the variance of attribute i.

If the variance is infinite, no g is large enough: the next value may be larger than all seen together. Hill's
estimate of the tail index shows this. A tail that falls like ``x^-a`` has no variance if a is at most 2, and the
logarithms of its largest values exceed that of the next by ``1/a`` on average.

References
----------
B. M. Hill. A simple general approach to inference about the tail of a distribution. Annals of Statistics 3, 1975.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import stdtr

_LEAST_VALUES = 8
"""Values of an attribute that are needed: with fewer, the squares of normal values have no useful mean either."""

MANY_VALUES = 2 * _LEAST_VALUES
"""Values of an attribute from which on it is not left out only because they are few."""

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

LEAST_INDEX = 1.3
"""Tail index below which the variance counts as infinite. It is below 2 because the estimate is uncertain, and
too low for tails that get lighter farther out, such as the lognormal distribution's."""

_ENOUGH_SIGNED = 12
"""Values other than the median that an attribute with values of both signs needs to show how they spread."""

_DECADES, _SUSPECT, _ORDINARY = 1.4, 1.2, 0.75
"""Spreads, see `over_decades`: one that shows decades, one that may be of decades, and one that a quarter of the
attributes must not exceed. It is 0.5 for normal values, and at most about 1 for the tables of scikit-learn."""

_MANY = 50
"""Attributes with two to seven values that are needed; among fewer, one whose values are near each other is rare."""

_SURPRISING = 1.0
"""By how much the mean of ``-log p`` over N values must exceed 1, in units of ``1 / sqrt(N)``: two to three standard
errors, as the values of an attribute depend on each other."""

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
    n = np.maximum(counts, _LEAST_VALUES)
    means = np.bincount(attributes, values, d + 1) / np.maximum(counts, 1)
    squares = np.square(values - means[attributes])
    total = np.bincount(attributes, squares, d + 1)
    # Without one value, the mean of the others moves away from it, and their squares lose more than its own.
    moved = (n / (n - 1))[attributes]
    left = total[attributes] - squares * moved
    kept = (attributes < d) & (counts >= _LEAST_VALUES)[attributes] & (left > _ROUNDING * total[attributes])
    if not kept.any():
        return 0.0
    dof = (n - 2)[attributes][kept]
    ratio = squares[kept] * np.square(moved[kept]) * dof / left[kept]
    normal = moved[kept] * dof / (dof - 2)
    ratio /= normal
    g, error = float(ratio.mean()), float(ratio.std() / np.sqrt(ratio.size))
    enough = kept & (counts >= MANY_VALUES)[attributes]
    by_halves = _by_halves(attributes[enough], values[enough], d)
    return max(0.0, (by_halves if by_halves >= _HIDDEN * g else g) - 1) * (1 + error / g)


def inverse_tail_index(attributes: np.ndarray, values: np.ndarray, d: int) -> tuple[float, float]:
    """Return Hill's estimate of ``1/a`` for one stream's attributes, and its standard error; 0 if few values tell.

    It is that of all attributes together, each by its own largest deviations from its median. So it does not depend on
    their units.

    Parameters
    ----------
    attributes, values : ndarray, shape (N,)
    d : int
        See `excess`.
    """
    logarithms = [np.empty(0)]
    for x in by_attribute(attributes, values, d):
        if x.size < _LEAST_VALUES:
            continue
        top = max(1, int(_TOP * x.size))
        distances = np.sort(np.abs(x - np.median(x)))[-top - 1 :]
        if distances[0] > 0:
            logarithms.append(np.log(distances[1:] / distances[0]))
    joined = np.concatenate(logarithms)
    if joined.size < _LEAST_TAIL:
        return 0.0, 0.0
    return float(joined.mean()), float(joined.mean() / np.sqrt(joined.size))


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
    distances = np.abs(x - np.median(x))
    away = distances[distances > _NEAR * distances.max()]
    if not away.size:
        return False
    if away.size == 1:
        return bool(_ONE * x.size >= 1 or away[0] < least)
    nearest, farthest = away.min(), away.max()
    return bool(away.size <= min(_FEW, _RARE * x.size) and (_UNLIKE * nearest < farthest or farthest < least))


def over_decades(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return which attributes have values that spread over decades, bool of shape (d,), while others have not.

    One value decides the variance then, and the next may be many times as large. The spread of an attribute is the
    standard deviation of the logarithms of its values if all have the same sign; else the mean logarithm of the
    distances from the median that are above their median, in units of it. Once it shows decades by two standard errors
    for some attribute, others count as well if it may do so for them. Where all attributes have such tails, they show
    them together, see `excess` and `inverse_tail_index`.

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
        if distances.size >= _ENOUGH_SIGNED:
            upper = np.log(distances[distances.size // 2 :] / np.median(distances))
            spreads[i], errors[i] = upper.mean(), upper.mean() / np.sqrt(upper.size)
    if not (spreads - 2 * errors > _DECADES).any() or np.quantile(spreads, 0.25) > _ORDINARY:
        return np.zeros(len(columns), dtype=bool)
    return np.asarray(spreads + 2 * errors > _SUSPECT)


def few_of_many(counts: np.ndarray) -> np.ndarray:
    """Return which attributes have up to seven of these numbers of values, if there are many such; else none."""
    few = np.asarray(counts < _LEAST_VALUES)
    return few & bool(np.count_nonzero(few & (counts > 1)) >= _MANY)


def without_scale(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return which attributes have too few values to show their scale, bool of shape (d,), in a table of many such.

    With few values each, some of many attributes have values near each other by chance, and if tails are heavy, the
    next value is many times as far away. No attribute shows that alone, but all together do, see `_heavy_together`. Nor
    have values a scale that spread over decades, whatever the error of that spread. Of attributes most of whose values
    are equal, the others have to be about equally far away.

    Parameters
    ----------
    columns : sequence of d ndarray of float
        The values of each attribute, in units of the data.
    """
    sizes = np.array([x.size for x in columns])
    few = few_of_many(sizes) & (sizes > 1)
    heaps = np.zeros(few.shape, dtype=bool)
    if not few.any():
        return heaps
    if _heavy_together([x for x, is_few in zip(columns, few, strict=True) if is_few]):
        return np.asarray((sizes > 1) & (sizes < MANY_VALUES))
    away, decades = [], heaps.copy()
    for i, x in enumerate(columns):
        if few[i] and x.min() < x.max() and 2 * (x == np.median(x)).sum() > x.size:
            heaps[i] = True
            away.append(float(np.abs(x - np.median(x)).max()))
        elif few[i] and (x.min() > 0 or x.max() < 0):
            decades[i] = np.log(np.abs(x)).std(ddof=1) > _DECADES
    return decades | heaps & (bool(away) and _UNLIKE * min(away) < max(away))


def _heavy_together(columns: Sequence[np.ndarray]) -> bool:
    """Return whether attributes with few values show together that these are not like normal ones.

    Each value is compared with the others of its attribute. For normal values that gives Student's t, and the mean of
    ``-log p`` is 1; with heavy tails or skewed values it is larger. Attributes with equal values do not count. If most
    attributes have values of one sign, they are skewed if the logarithms of these spread widely.
    """
    surprises, signed, squares, degrees = [np.zeros(0)], [False], 0.0, 0
    for x in columns:
        one_sign = bool(x.min() > 0 or x.max() < 0)
        if one_sign:
            squares, degrees = squares + float(np.log(np.abs(x)).var() * x.size), degrees + x.size - 1
        if x.size > _FEW:
            signed.append(one_sign)
        if x.size >= _FEW and np.unique(x).size == x.size:
            parts = np.square(x - x.mean()) * x.size / (x.size - 1)
            total = np.square(x - x.mean()).sum()
            t = np.sqrt(parts * (x.size - 2) / np.maximum(total - parts, _ROUNDING * total))
            surprises.append(-np.log(2 * stdtr(x.size - 2, -t)))
    if np.mean(signed) > 0.5 and squares > _ORDINARY**2 * degrees:
        return True
    joined = np.concatenate(surprises)
    return joined.size > 0 and bool(joined.mean() > 1 + _SURPRISING / np.sqrt(joined.size))


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
        parts = [(attributes[i], values[i]) for i in map(np.flatnonzero, (half, ~half))]
        for (a, x), (judged, of_judged) in zip(parts[::-1], parts, strict=True):
            counts = np.bincount(a, minlength=d)
            n = np.maximum(counts, _LEAST_VALUES)
            means = np.bincount(a, x, d) / n
            total, raw = np.bincount(a, np.square(x - means[a]), d), np.bincount(a, np.square(x), d)
            usable = (counts >= _LEAST_VALUES) & (total > _ROUNDING * raw)
            there = usable[judged]
            judged, of_judged = judged[there], of_judged[there]
            normal = (1 + 1 / n) / (n - 3)
            ratios.append(np.square(of_judged - means[judged]) / (total * normal)[judged])
    joined = np.concatenate(ratios)
    return float(joined.mean()) if joined.size else 0.0

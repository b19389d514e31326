"""The kinds of claims: the keys of each, its statistic of curves, and the region where that must lie."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf, isnan
from typing import Any

import numpy as np

from budgetreg.analysis.bootstrap import Estimate, basic, of_largest, of_ratio, of_share, weights
from budgetreg.analysis.comparisons import Incomparable, Means, ResampledCurves, select
from budgetreg.config.options import (
    FRACTION,
    LIST,
    MAPPING,
    NAME,
    NOTHING,
    NUMBER,
    POSITIVE,
    Requirement,
    Rules,
    one_of,
)
from budgetreg.errors import ConfigError
from budgetreg.runs.series import Series, of

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
Published = Mapping[tuple[str, str], tuple[np.ndarray, np.ndarray]]
"""Positions and values of a figure's published points, by learner and variable of the x axis."""

_PER_RATIO = "d/k"
_SLACK = 1.05
"""Factor by which a published point may lie beyond the ends of a curve, as numbers of examples are rounded."""


@dataclass(frozen=True)
class Region:
    """An open interval in which a statistic must lie; at least one end is finite."""

    low: float
    high: float

    def verdict(self, estimate: Estimate) -> str:
        """Return whether a claim holds, by the interval of its estimate."""
        if isnan(estimate.low) or isnan(estimate.high):
            return UNDECIDED
        if self.low < estimate.low and estimate.high < self.high:
            return HOLDS
        return FAILS if estimate.high < self.low or self.high < estimate.low else UNDECIDED

    def __str__(self) -> str:
        """Return the region in words, such as ``below 0``, ``at most 0.36`` or ``0.8 to 1.2``."""
        if self.low == -inf:
            return f"at most {self.high:g}" if self.high else "below 0"
        if self.high == inf:
            return f"at least {self.low:g}" if self.low else "above 0"
        return f"{self.low:g} to {self.high:g}"


class Case:
    """A claim's options with the curves of its learners ``a``, ``b`` and ``minus``, and `notes` for its reader.

    Raises
    ------
    Incomparable
        If there is no curve of one of them.
    """

    def __init__(self, options: Mapping[str, Any], series: Sequence[Series], published: Published) -> None:
        self.options = options
        candidates = select(series, options["where"])
        self._of = {role: select(candidates, options[role]) for role in ("a", "b", "minus") if options.get(role)}
        self.comparison = ResampledCurves(list(chain(*self._of.values())), options["measure"], options["x"])
        self._published = published
        self.notes: list[str] = []

    def means(self, role: str) -> Means:
        """Return the curves of one learner."""
        return self.comparison.merged(self._of[role], self.options["across"])

    def each(self, role: str) -> list[tuple[float, Means]]:
        """Return the curves of one learner for each value of the key ``over``, ascending."""
        values: dict[float, list[Series]] = {}
        for series in self._of[role]:
            value = of(self.options["over"], series)
            if not isinstance(value, int | float):
                raise ConfigError(f"over={self.options['over']}: {value} is not a number")
            values.setdefault(float(value), []).append(series)
        if len(values) < 2:
            raise Incomparable(f"curves for one value of {self.options['over']}, where two are needed")
        across = self.options["across"]
        return [(value, self.comparison.merged(values[value], across)) for value in sorted(values)]

    def singles(self, role: str) -> Means:
        """Return the curves of the repetitions of one learner."""
        if len(self._of[role]) > 1:
            raise Incomparable(f"{len(self._of[role])} curves of {self.options[role]} where one is compared")
        return self.comparison.rows(self._of[role][0])

    def begin(self) -> float:
        """Return where the comparison begins by the keys ``from`` and ``from_examples``; 0 without them."""
        begin, text = float(self.options["from"] or 0), self.options["from_examples"]
        if text is None:
            return begin
        times = float(text.removesuffix(_PER_RATIO))
        return max(
            begin,
            *(self.comparison.position(a, times * a.d / a.attributes_per_example) for a in self._of["a"]),
        )

    def targets(self, means: Means) -> tuple[np.ndarray, np.ndarray]:
        """Return the points at which the learner ``a`` is compared with given numbers, and these numbers."""
        at, value = self.options.get("at"), self.options.get("value")
        if value is not None:
            return np.atleast_1d(means.x[-1] if at is None else at).astype(float), np.array([float(value)])
        name = self._of["a"][0].algo
        if (name, self.options["x"]) not in self._published:
            raise Incomparable(f"no published curve of {name} against {self.options['x']}")
        x, values = self._published[name, self.options["x"]]
        if at is not None:
            nearby = np.isclose(x[:, None], np.atleast_1d(at).astype(float), rtol=0.02).any(axis=1)
            x, values = x[nearby], values[nearby]
        inside = (means.x[0] / _SLACK <= x) & (x <= means.x[-1] * _SLACK)
        if not inside.any():
            raise Incomparable(f"no published point of {name} within the curve")
        return x[inside], values[inside]


def _below(case: Case) -> Estimate:
    """Return the largest amount by which a exceeds b, from some point on and wherever both have a curve."""
    a, b = case.means("a"), case.means("b")
    begin, end = max(a.x[0], b.x[0], case.begin()), _common_end([a, b])
    if begin > end:
        raise Incomparable("curves without a point where both can be compared")
    kinks = np.concatenate([[begin, end], a.x, b.x])
    points = np.unique(kinks[(begin <= kinks) & (kinks <= end)])
    return of_largest(a.at(points) - b.at(points), case.comparison.repetitions)


def _buys_more(case: Case) -> Estimate:
    """Return the largest amount by which a exceeds b, at any spending from the start of a, or from a later point, on.

    The error of b is 1 before its curve begins, and a curve keeps its last error beyond its end.
    """
    if case.options["measure"] != "test_relative":
        raise ConfigError(f"measure={case.options['measure']}: the error without attributes is known of test_relative")
    a, b = case.means("a"), case.means("b")
    begin = max(a.x[0], case.begin())
    points = np.unique(np.concatenate([[begin], a.x[a.x > begin], b.x[b.x > begin]]))
    before, since = points[points <= b.x[0]], points[points >= b.x[0]]
    above = np.concatenate([a.at(before) - 1, a.at(since) - b.at(since)], axis=1)
    return of_largest(above, case.comparison.repetitions)


def _ratio(case: Case) -> Estimate:
    curves = [case.means(role) for role in ("a", "b", "minus") if case.options[role]]
    above, below, *subtracted = (curve.at(_place(case, curves))[:, 0] for curve in curves)
    zero = subtracted[0] if subtracted else 0.0
    return _of_quotient(above - zero, below - zero, case)


def _slope(case: Case) -> Estimate:
    a = case.means("a")
    kept = a.x >= case.begin()
    return basic(_log_slope(a.x[kept], a.values[:, kept]), case.comparison.repetitions)


def _near(case: Case) -> Estimate:
    """Return by how much a lies above the given numbers, where it is farthest from them."""
    a = case.means("a")
    points, values = case.targets(a)
    above = a.at(points) - values
    distance = of_largest(np.concatenate([above, -above], axis=1), case.comparison.repetitions)
    if above[0].max() >= distance.value:
        return distance
    return Estimate(-distance.value, -distance.high, -distance.low)


def _inside(case: Case) -> Estimate:
    """Return the least share of repetitions on either side of a published value."""
    rows = case.singles("a")
    points, values = case.targets(rows)
    under = (rows.at(points) < values).sum(axis=0)
    return of_share(int(np.minimum(under, case.comparison.repetitions - under).min()), case.comparison.repetitions)


def _spread(case: Case) -> Estimate:
    """Return the standard deviation of a divided by that of b, over repetitions."""
    curves = [case.singles("a"), case.singles("b")]
    drawn = weights(case.comparison.repetitions)
    values = [curve.at(_place(case, curves)) for curve in curves]
    variances = [drawn @ value**2 - (drawn @ value) ** 2 for value in values]
    above, below = (np.sqrt(np.maximum(variance[:, 0], 0)) for variance in variances)
    return _of_quotient(above, below, case)


def _monotone(case: Case) -> Estimate:
    """Return the least step of the gap between a and b from one value of ``over`` to the next, at a common end."""
    a, b = dict(case.each("a")), dict(case.each("b"))
    shared = sorted(a.keys() & b.keys())
    if len(shared) < 2:
        raise Incomparable(f"curves for one value of {case.options['over']}, where two are needed")
    end = np.array([_common_end([curves[value] for curves in (a, b) for value in shared])])
    gaps = np.concatenate([a[value].at(end) - b[value].at(end) for value in shared], axis=1)
    steps = np.diff(gaps, axis=1) * {"increasing": 1, "decreasing": -1}[case.options["direction"]]
    back = of_largest(-steps, case.comparison.repetitions)
    return Estimate(-back.value, -back.high, -back.low)


def _place(case: Case, curves: Sequence[Means]) -> np.ndarray:
    """Return where curves are compared: at a given point, or at the last that all of them reach."""
    return np.array([case.options["at"] or _common_end(curves)], dtype=float)


def _common_end(curves: Sequence[Means]) -> float:
    return float(min(curve.x[-1] for curve in curves))


def _of_quotient(above: np.ndarray, below: np.ndarray, case: Case) -> Estimate:
    quotient = np.divide(above, below, out=np.full(above.shape, np.nan), where=below != 0)
    return of_ratio(quotient, case.comparison.repetitions)


def _exponent(case: Case) -> Estimate:
    """Return the slope, on log axes, of what is needed to fall to a level against the values of ``over``.

    Curves that never fall to the level, or begin below it, are left out; a note names them.
    """
    values, means = zip(*case.each("a"), strict=True)
    needed = np.stack([curve.crossing(case.options["level"]) for curve in means], axis=1)
    known = np.isfinite(needed) & (needed > 0)
    if known[0].sum() < 2:
        raise Incomparable(f"fewer than two curves that fall to {case.options['level']:g}")
    for value in np.array(values)[~known[0]]:
        case.notes.append(f"left out: {case.options['over']} = {value:g}")
    slopes = _log_slope(np.array(values), np.where(known, needed, np.nan))
    return basic(slopes, case.comparison.repetitions)


def _log_slope(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the least-squares slopes of log values against log x, shape (S,); NaN values are left out."""
    known = values > 0
    counts = known.sum(axis=1, keepdims=True)
    log_x = np.where(known, np.log(x), 0.0)
    log_y = np.log(values, out=np.zeros(values.shape), where=known)
    centred = np.where(known, log_x - log_x.sum(axis=1, keepdims=True) / np.maximum(counts, 1), 0.0)
    spread = (centred**2).sum(axis=1)
    return np.divide((centred * log_y).sum(axis=1), spread, out=np.full(len(values), np.nan), where=spread > 0)


def _within(options: Mapping[str, Any]) -> Region:
    low, high = options["within"]
    return Region(-inf if low is None else low, inf if high is None else high)


def _is_within(value: Any) -> bool:
    ends = value if isinstance(value, list) else []
    known = [end for end in ends if end is not None]
    return len(ends) == 2 and bool(known) and all(map(NUMBER.accepts, known)) and known == sorted(known)


def _is_multiple(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(rf"\d+(\.\d+)?{_PER_RATIO}", value) is not None


@dataclass(frozen=True)
class ClaimKind:
    """A kind of claim: its keys, the region of its statistic, how that is estimated, and defaults of keys."""

    rules: Rules
    region: Callable[[Mapping[str, Any]], Region]
    estimate: Callable[[Case], Estimate]
    defaults: Mapping[str, Any] = field(default_factory=dict)


_LEARNER = NAME | MAPPING
_A: Rules = {"a": ("the learner", _LEARNER)}
_A_AND_B: Rules = {**_A, "b": ("the other learner", _LEARNER)}
_FROM: Rules = {
    "from": ("where it begins", POSITIVE | NOTHING),
    "from_examples": (
        "the examples of a it begins after",
        Requirement(f"a multiple of d/k such as 2{_PER_RATIO}", _is_multiple) | NOTHING,
    ),
}
_WITHIN: Rules = {
    "within": ("where it must lie", Requirement("two increasing numbers, one of them perhaps null", _is_within))
}
_OVER: Rules = {"over": ("what is varied", NAME)}
_TARGETS: Rules = {
    "at": ("where it is compared", POSITIVE | LIST | NOTHING),
    "value": ("the number it is compared with", NUMBER | NOTHING),
}
_AT: Rules = {"at": ("where it is compared", POSITIVE | NOTHING)}
_MINUS: Rules = {"minus": ("the learner whose error is subtracted from both", _LEARNER | NOTHING)}
_TOLERANCE: Rules = {"tolerance": ("the tolerance", POSITIVE)}
_SHARE: Rules = {"share": ("the least share of repetitions on either side", FRACTION)}
_DIRECTION: Rules = {"direction": ("the direction", one_of("increasing", "decreasing"))}
_LEVEL: Rules = {"level": ("the level", POSITIVE)}


def _negative(options: Mapping[str, Any]) -> Region:
    return Region(-inf, 0)


def _tolerated(options: Mapping[str, Any]) -> Region:
    # An error is never below 0.
    low = -inf if options["value"] == 0 else -options["tolerance"]
    return Region(low, options["tolerance"])


KINDS: Mapping[str, ClaimKind] = {
    "below": ClaimKind({**_A_AND_B, **_FROM}, _negative, _below),
    "buys_more": ClaimKind({**_A_AND_B, **_FROM}, _negative, _buys_more),
    "ratio": ClaimKind({**_A_AND_B, **_WITHIN, **_MINUS, **_AT}, _within, _ratio),
    "spread": ClaimKind({**_A_AND_B, **_WITHIN, **_AT}, _within, _spread),
    "slope": ClaimKind({**_A, **_FROM, **_WITHIN}, _within, _slope),
    "near": ClaimKind({**_A, **_TARGETS, **_TOLERANCE}, _tolerated, _near),
    "inside": ClaimKind(
        {**_A, **_TARGETS, **_SHARE}, lambda options: Region(options["share"], inf), _inside, {"share": 0.05}
    ),
    "monotone": ClaimKind({**_A_AND_B, **_OVER, **_DIRECTION}, lambda options: Region(0, inf), _monotone),
    "exponent": ClaimKind({**_A, **_OVER, **_WITHIN, **_LEVEL}, _within, _exponent, {"x": "examples"}),
}
"""By name:

- ``below``: a lies below b wherever both have a curve
- ``buys_more``: a lies below b at any spending, also where one curve has ended or that of b has not begun
- ``ratio``: of the error of a to that of b
- ``spread``: the ratio of their standard deviations
- ``slope``: of a on log axes
- ``near``: a lies near each published point, or near a value
- ``inside``: published values lie inside the spread of a
- ``monotone``: the gap between a and b moves one way over a key
- ``exponent``: the slope, on log axes, of what a needs to fall to a level, over a variable

With ``from_examples: 2d/k`` a comparison begins at the first checkpoint of a with at least 2 d / k examples, when each
attribute was seen twice on average. Without ``at``, the kinds ``ratio``, ``spread`` and ``monotone`` compare at the
last point that all their curves reach.
"""

"""The claims of a recipe: tests on curves, each with the verdict ``holds``, ``fails`` or ``undecided``.

A claim is a statistic of curves and a region in which it must lie. One rule decides: the claim holds if the
statistic's interval lies in the region, fails if it lies outside, and is undecided otherwise. The kinds are:

- ``below``: a lies below b, or below ``times`` b, wherever both have a curve
- ``below_at_any_spending``: a lies below b at any spending, also where one curve has ended or that of b has not begun
- ``ratio``: of the error of a to that of b
- ``spread``: the ratio of their standard deviations
- ``slope``: of a, or of its excess over ``above``, on log axes
- ``near``: a lies near each published point, or near a value
- ``inside``: published values lie inside the spread of a
- ``monotone``: the gap between a and b moves one way over a key
- ``exponent``: the slope, on log axes, of what a needs to fall to a level, over a variable

With ``from_examples: 2d/k`` a comparison begins at the first checkpoint of a with at least 2 d / k examples, when each
attribute was seen twice on average. Without ``at``, the kinds ``ratio``, ``spread`` and ``monotone`` compare at the
last point that all their curves reach.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np

from budgetreg.analysis.comparisons import ACROSS, Incomparable, Means, ResampledCurves, select
from budgetreg.analysis.intervals import FEWEST, Estimate, basic, of_largest, of_ratio, of_share, weights
from budgetreg.common.errors import ConfigError, nearest
from budgetreg.config.options import (
    FORMER,
    FRACTION,
    LIST,
    MAPPING,
    NAME,
    NOTHING,
    NUMBER,
    POSITIVE,
    TEXT,
    Option,
    Options,
    Requirement,
    checked,
    matching,
    one_of,
)
from budgetreg.runs.series import Series, of
from budgetreg.runs.tables import as_csv

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
        return max(begin, *(self.comparison.position(a, times * a.d / a.attributes_per_example) for a in self._of["a"]))

    def targets(self, means: Means) -> tuple[np.ndarray, np.ndarray]:
        """Return the points at which the learner ``a`` is compared with given numbers, and these numbers."""
        at, value = self.options.get("at"), self.options.get("value")
        if value is not None:
            points = np.atleast_1d(means.x[-1] if at is None else at).astype(float)
            _refuse_beyond([means], points)
            return points, np.array([float(value)])
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
    """Return the largest amount by which a exceeds a multiple of b, from a point on and where both have a curve."""
    a, b = case.means("a"), case.means("b")
    begin, end = max(a.x[0], b.x[0], case.begin()), _common_end([a, b])
    if begin > end:
        raise Incomparable("curves without a point where both can be compared")
    kinks = np.concatenate([[begin, end], a.x, b.x])
    points = np.unique(kinks[(begin <= kinks) & (kinks <= end)])
    return of_largest(a.at(points) - case.options["times"] * b.at(points), case.comparison.repetitions)


def _below_at_any_spending(case: Case) -> Estimate:
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
    return basic(_log_slope(a.x[kept], a.values[:, kept] - case.options["above"]), case.comparison.repetitions)


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
    at = case.options["at"]
    if at is None:
        return np.array([_common_end(curves)])
    points = np.array([at], dtype=float)
    _refuse_beyond(curves, points)
    return points


def _refuse_beyond(curves: Sequence[Means], points: np.ndarray) -> None:
    """Refuse points at which not all curves have values."""
    begin, end = max(curve.x[0] for curve in curves), _common_end(curves)
    if points.min() < begin / _SLACK or points.max() > end * _SLACK:
        raise Incomparable(f"curves from {begin:,.10g} to {end:,.10g}, which do not reach each point that is compared")


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


def _negative(options: Mapping[str, Any]) -> Region:
    return Region(-inf, 0)


def _tolerated(options: Mapping[str, Any]) -> Region:
    # An error is never below 0.
    low = -inf if options["value"] == 0 else -options["tolerance"]
    return Region(low, options["tolerance"])


def _shared(options: Mapping[str, Any]) -> Region:
    return Region(options["share"], inf)


def _is_within(value: Any) -> bool:
    ends = value if isinstance(value, list) else []
    known = [end for end in ends if end is not None]
    return len(ends) == 2 and bool(known) and all(map(NUMBER.accepts, known)) and known == sorted(known)


_LEARNER = NAME | MAPPING
_WITHIN = Requirement("two increasing numbers, one of them perhaps null", _is_within)
_MULTIPLE = matching(f"a multiple of d/k such as 2{_PER_RATIO}", rf"\d+(\.\d+)?{_PER_RATIO}")
_OPTIONS: Options = {
    "a": Option("the learner", _LEARNER),
    "b": Option("the other learner", _LEARNER),
    "minus": Option("the learner whose error is subtracted from both", _LEARNER | NOTHING, None),
    "from": Option("where it begins", POSITIVE | NOTHING, None),
    "from_examples": Option("the examples of a it begins after", _MULTIPLE | NOTHING, None),
    "at": Option("where it is compared", POSITIVE | NOTHING, None),
    "times": Option("the multiple of b that a is compared with", POSITIVE, 1),
    "above": Option("the error that is subtracted", NUMBER, 0),
    "value": Option("the number it is compared with", NUMBER | NOTHING, None),
    "within": Option("where it must lie", _WITHIN),
    "tolerance": Option("the tolerance", POSITIVE),
    "share": Option("the least share of repetitions on either side", FRACTION, 0.05),
    "over": Option("what is varied", NAME),
    "direction": Option("the direction", one_of("increasing", "decreasing")),
    "level": Option("the level", POSITIVE),
}
_POINTS = Option("where it is compared", POSITIVE | LIST | NOTHING, None)
_COMMON: Options = {
    "id": Option("the claim's name", NAME),
    "says": Option("what the paper says", TEXT),
    "kind": Option("the kind", NAME),
    "where": Option("the condition on all curves", MAPPING, {}),
    "measure": Option("what is measured", NAME, "test_relative"),
    "x": Option("what it is measured against", NAME, "attributes"),
    "across": Option("how several curves become one", one_of(*ACROSS) | NOTHING, None),
    "also": Option("other recipes", LIST, []),
}
_GRID: Options = {
    "rows": Option("the words for each learner b", MAPPING),
    "columns": Option("the key of the condition, with its values", MAPPING, {}),
    "by_column": Option("the keys that differ by column", MAPPING, {}),
}


def _keys(*names: str, **of_its_own: Option) -> Options:
    """Return the options of a kind: those of all, some by their names, and its own."""
    return {**_COMMON, **{name: _OPTIONS[name] for name in names}, **of_its_own}


class ClaimKind(NamedTuple):
    """A kind of claim.

    Attributes
    ----------
    options : mapping of str to Option
        Its keys.
    region : callable
        Where the statistic must lie, by the values of the keys.
    estimate : callable
        Estimates the statistic.
    """

    options: Options
    region: Callable[[Mapping[str, Any]], Region]
    estimate: Callable[[Case], Estimate]


_BEGIN = ("from", "from_examples")
_ALONG_EXAMPLES = replace(_COMMON["x"], default="examples")
KINDS: Mapping[str, ClaimKind] = {
    "below": ClaimKind(_keys("a", "b", *_BEGIN, "times"), _negative, _below),
    "below_at_any_spending": ClaimKind(_keys("a", "b", *_BEGIN), _negative, _below_at_any_spending),
    "ratio": ClaimKind(_keys("a", "b", "within", "minus", "at"), _within, _ratio),
    "spread": ClaimKind(_keys("a", "b", "within", "at"), _within, _spread),
    "slope": ClaimKind(_keys("a", *_BEGIN, "within", "above"), _within, _slope),
    "near": ClaimKind(_keys("a", "value", "tolerance", at=_POINTS), _tolerated, _near),
    "inside": ClaimKind(_keys("a", "value", "share", at=_POINTS), _shared, _inside),
    "monotone": ClaimKind(_keys("a", "b", "over", "direction"), lambda options: Region(0, inf), _monotone),
    "exponent": ClaimKind(_keys("a", "over", "within", "level", x=_ALONG_EXAMPLES), _within, _exponent),
}
"""The kinds of claims, which the beginning of this module describes."""

_CLAIM_COLUMNS = (
    *("claim", "protocol", "verdict", "estimate", "interval_low", "interval_high"),
    *("wanted", "repetitions", "kind", "says", "note"),
)


@dataclass(frozen=True)
class Claim:
    """One claim of a recipe.

    Attributes
    ----------
    id : str
        Name of the claim within the recipe.
    says : str
        What the paper says.
    kind : str
        One of `KINDS`.
    options : mapping
        Values of the kind's keys and of the common keys ``where`` (conditions on all curves), ``measure``, ``x``,
        ``across`` and ``also`` (other recipes whose curves are compared, too).
    """

    id: str
    says: str
    kind: str
    options: Mapping[str, Any]

    @property
    def names_presets(self) -> bool:
        """Return whether the claim itself names the presets that it compares."""
        conditions = (self.options["where"], *(self.options.get(role) for role in ("a", "b", "minus")))
        return any(isinstance(condition, Mapping) and "protocol" in condition for condition in conditions)


@dataclass(frozen=True)
class ClaimResult:
    """The verdict on a claim.

    Attributes
    ----------
    claim : Claim
    protocol : str
        The preset under which the claim was judged; empty if the recipe has none.
    verdict : {'holds', 'fails', 'undecided'}
    estimate : Estimate
        The statistic; NaN if it cannot be computed.
    region : Region
    repetitions : int
        Number of repetitions behind the estimate.
    note : str
        Why nothing was decided, or what was left out; may be empty.
    """

    claim: Claim
    protocol: str
    verdict: str
    estimate: Estimate
    region: Region
    repetitions: int
    note: str


@dataclass(frozen=True)
class Grid:
    """Claims that say the same of several learners and several data sets or budgets.

    Attributes
    ----------
    sentence : str
        What all of them say, in Markdown, with words for what varies.
    rows, columns : tuple of str
        What each of them says there; there may be a single column without a name.
    entries : mapping of (str, str) to mapping
        The entry of each claim, by its row and column, column by column.
    """

    sentence: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    entries: Mapping[tuple[str, str], Mapping[str, Any]]


def grid_of(entry: Mapping[str, Any]) -> Grid | None:
    """Return the claims of an entry of a recipe that has the key ``rows``; None if it is a single claim.

    Raises
    ------
    ConfigError
        If its rows or columns are invalid.
    """
    if "rows" not in entry:
        return None
    filled = checked({key: value for key, value in entry.items() if key in _GRID}, _GRID, f"claims: {entry['id']}: ")
    shared = {key: value for key, value in entry.items() if key not in _GRID}
    rows = {name: str(words) for name, words in filled["rows"].items()}
    key, values = next(iter(filled["columns"].items()), ("", {"": ""}))
    places = values if isinstance(values, Mapping) else {value: value for value in values}
    heads = [f"k = {value}" if key == "k" else str(words) for value, words in places.items()]
    entries = {}
    for at, (head, (value, place)) in enumerate(zip(heads, places.items(), strict=True)):
        here = {option: by_column[at] for option, by_column in filled["by_column"].items()}
        here |= {"where": {**entry.get("where", {}), key: value}} if key else {}
        for name, words in rows.items():
            names = {"id": entry["id"].format(row=name, column=value)}
            names["says"] = entry["says"].format(row=words, column=place)
            entries[words, head] = {**shared, **here, **names, "b": name}
    sentence = entry["says"].format(row="*learner*", column="*k*" if key == "k" else "*data*")
    return Grid(sentence, tuple(rows.values()), tuple(heads), entries)


def parse_all(entries: Iterable[Any]) -> tuple[Claim, ...]:
    """Read the claims of a recipe; an entry with the key ``rows`` stands for several.

    Raises
    ------
    ConfigError
        If one is invalid, or two have the same id.
    """
    claims: list[Claim] = []
    for entry in entries:
        if not isinstance(entry, Mapping) or not {"id", "says", "kind"} <= entry.keys():
            raise ConfigError("claims: each must have the keys id, says and kind")
        grid = grid_of(entry)
        claims += map(parse, grid.entries.values() if grid else [entry])
    counts = Counter(claim.id for claim in claims)
    repeated = sorted(name for name, count in counts.items() if count > 1)
    if repeated:
        raise ConfigError(f"claims: {', '.join(repeated)}: every claim needs an id of its own")
    return tuple(claims)


def parse(entry: Mapping[str, Any]) -> Claim:
    """Read a single claim of a recipe, which has the keys ``id``, ``says`` and ``kind``.

    Raises
    ------
    ConfigError
        If a key is unknown or missing, or a value is invalid.
    """
    name, kind = entry["id"], entry["kind"]
    if str(kind) in FORMER["kind"]:
        raise ConfigError(f"claims: {name}: kind {kind}: is now {FORMER['kind'][kind]}")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"claims: {name}: {kind}: no such kind{nearest(str(kind), KINDS)}; kinds: {', '.join(KINDS)}")
    filled = checked(entry, KINDS[kind].options, f"claims: {name}: ")
    options = {key: value for key, value in filled.items() if key not in ("id", "says", "kind")}
    return Claim(str(name), str(entry["says"]), str(kind), options)


def judge(
    claim: Claim, series: Sequence[Series], published: Published, protocol: str = "", lacking: Sequence[str] = ()
) -> ClaimResult:
    """Judge one claim; it is undecided if curves are missing.

    Parameters
    ----------
    claim : Claim
    series : sequence of Series
        All curves that the claim may compare.
    published : mapping
        The figure's published curves.
    protocol : str, optional
        The preset under which the claim is judged; curves of other presets are left out.
    lacking : sequence of str, optional
        Names of recipes whose curves the claim compares, and which have no results.
    """
    region = KINDS[claim.kind].region(claim.options)
    where = {**({"protocol": protocol} if protocol else {}), **claim.options["where"]}
    try:
        if lacking:
            raise Incomparable(f"without the results of {', '.join(lacking)}")
        case = Case({**claim.options, "where": where}, series, published)
        estimate = KINDS[claim.kind].estimate(case)
        repetitions = case.comparison.repetitions
        if isnan(estimate.value):
            case.notes.append(f"{claim.options['measure']} is undefined")
        elif isnan(estimate.low) or isnan(estimate.high):
            few = repetitions < FEWEST
            case.notes.append("too few repetitions for an interval" if few else "undefined in some resamples")
        note = "; ".join(case.notes)
    except Incomparable as lack:
        estimate, repetitions, note = Estimate(), 0, str(lack)
    return ClaimResult(claim, protocol, region.verdict(estimate), estimate, region, repetitions, note)


def claims_csv(results: Iterable[ClaimResult]) -> bytes:
    """Return ``claims.csv``, a row for each claim and preset, with numbers to four significant digits.

    Its columns:

    - ``claim``: its name in the recipe
    - ``protocol``: the preset it was judged under; empty if the recipe has none
    - ``verdict``: holds if the interval lies where the claim wants it, fails if it lies outside, else undecided
    - ``estimate``: the statistic of the claim's kind, from the mean curves; empty if it cannot be computed
    - ``interval_low``, ``interval_high``: ends of its interval, each passed with probability .05
    - ``wanted``: where the claim wants the statistic
    - ``repetitions``: number of repetitions
    - ``kind``: the kind of claim
    - ``says``: what the paper says, in other words
    - ``note``: why nothing could be computed, or what was left out
    """
    return as_csv(_CLAIM_COLUMNS, map(claim_row, results))


def claim_row(result: ClaimResult) -> dict[str, str]:
    """Return a row of ``claims.csv``: the fields of a result and of its claim as texts."""
    return {
        "claim": result.claim.id,
        "protocol": result.protocol,
        "verdict": result.verdict,
        **result.estimate.columns("estimate", "interval"),
        "wanted": str(result.region),
        "repetitions": str(result.repetitions),
        "kind": result.claim.kind,
        "says": result.claim.says,
        "note": result.note,
    }

"""Compare series over the repetitions that all of them have: their mean curves, and which is best at the end."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from budgetreg.analysis.intervals import FEWEST, Estimate, difference, mean_error, percentile, weights
from budgetreg.common.errors import DataError
from budgetreg.config.nested import flatten
from budgetreg.runs.manifest import PROMISED
from budgetreg.runs.series import LABEL_MEASURES, Series, along, attainable, by_checkpoint, common_unit, series_paid
from budgetreg.runs.tables import COST, as_csv

Condition = str | Mapping[str, object]
"""A learner's name, or values by key: ``algo``, ``k``, ``protocol`` and the keys of the configuration."""

_MERGED: dict[str, Callable[..., np.ndarray]] = {"median": np.median, "mean": np.mean, "worst": np.max}
ACROSS = tuple(_MERGED)
"""How the mean curves of several series become one; ``worst`` is the largest value at each checkpoint."""


class Incomparable(DataError):  # noqa: N818 - the name describes the problem
    """A comparison lacks a curve or has several; the message names the learner."""


@dataclass(frozen=True)
class Means:
    """Mean curves over the same checkpoints: over all repetitions first, then over resampled repetitions.

    Attributes
    ----------
    x : ndarray, shape (C,)
        Position of each checkpoint, ascending and above 0.
    values : ndarray, shape (S, C)
        The means.
    """

    x: np.ndarray
    values: np.ndarray

    def at(self, points: np.ndarray) -> np.ndarray:
        """Return the values at some points, shape (S, number of points).

        Values between checkpoints are interpolated linearly in log x; beyond the ends they stay constant.
        """
        if self.x.size == 1:
            return np.repeat(self.values, np.size(points), axis=1)
        x, points = np.log(self.x), np.log(points)
        left = np.clip(np.searchsorted(x, points, side="right") - 1, 0, x.size - 2)
        share = np.clip((points - x[left]) / (x[left + 1] - x[left]), 0, 1)
        return self.values[:, left] * (1 - share) + self.values[:, left + 1] * share

    @property
    def end(self) -> np.ndarray:
        """Return the values at the last checkpoint, shape (S,)."""
        return self.values[:, -1]

    def crossing(self, level: float) -> np.ndarray:
        """Return where each curve first falls to a level, shape (S,), interpolated linearly in log x.

        The result is 0 for a curve that starts below the level, and infinite for one that never reaches it: such a
        number is censored, that is, only a bound. A curve whose start differs from the level by what may be round-off
        starts at it.
        """
        reached = self.values <= level
        first = np.argmax(reached, axis=1)
        rows = np.arange(len(first))
        before = np.maximum(first - 1, 0)
        above, below = self.values[rows, before], self.values[rows, first]
        drop = np.where(above > below, above - below, 1.0)
        x = np.log(self.x)
        at = np.exp(x[before] + (x[first] - x[before]) * np.clip((above - level) / drop, 0, 1))
        return np.where(reached.any(axis=1), np.where(self.values[:, 0] < level * (1 - PROMISED), 0.0, at), np.inf)


def select(series: Sequence[Series], condition: Condition) -> list[Series]:
    """Return the series that meet a condition, in order.

    Raises
    ------
    Incomparable
        If no series does.
    """
    wanted = {"algo": condition} if isinstance(condition, str) else condition
    selected = []
    for curve in series:
        values = {**flatten(curve.config), "algo": curve.algo, "k": curve.k}
        if all(values.get(key) == value for key, value in wanted.items()):
            selected.append(curve)
    if not selected:
        raise Incomparable(f"no curve of {', '.join(f'{key}={value}' for key, value in wanted.items())}")
    return selected


class ResampledCurves:
    """Series with resampled mean curves, over the repetitions that all of them have.

    Parameters
    ----------
    series : sequence of Series
        The compared series; at least one.
    measure : str
        The compared column of the curves.
    x : str
        The variable of `budgetreg.runs.series` that the curves run along.

    Attributes
    ----------
    repetitions : int
        Number of repetitions that all series have.

    Raises
    ------
    Incomparable
        If a series lacks the column, or no repetition is common to all: other seeds split the data in other ways.
    """

    def __init__(self, series: Sequence[Series], measure: str, x: str) -> None:
        self.measure, self.x = measure, x
        if any(measure not in curve.points for curve in series):
            raise Incomparable(f"curves without a column {measure}")
        splits: dict[str, set[tuple[object, object]]] = {}
        for curve in series:
            split = curve.config.get("seed"), curve.config.get("dataset", {}).get("test_fraction")
            splits.setdefault(curve.dataset, set()).add(split)
        if any(len(of_data) > 1 for of_data in splits.values()):
            raise Incomparable("curves of different random splits (seed, dataset.test_fraction): none can be paired")
        self._shared = shared_repetitions(series)
        if not self._shared:
            raise Incomparable("curves without a repetition in common")
        self.repetitions = len(self._shared)

    def rows(self, series: Series, measure: str = "") -> Means:
        """Return the curves of the single repetitions in place of means, shape (repetitions, checkpoints).

        They are those of another column if one is named.
        """
        points = by_checkpoint(series.points[series.points["repetition"].isin(self._shared)])
        table = points.pivot(index="repetition", columns="examples", values=measure or self.measure)
        x = along(self.x, series, _checkpoints(points))
        available = attainable(x)
        return Means(x[available], table.to_numpy(dtype=float)[:, available])

    def position(self, series: Series, examples: float) -> float:
        """Return where a series has its first checkpoint with at least a given number of examples.

        Raises
        ------
        Incomparable
            If it has none.
        """
        points = series.points[series.points["repetition"].isin(self._shared)]
        checkpoints = _checkpoints(points)
        later = along(self.x, series, checkpoints)[checkpoints["examples"].to_numpy() >= examples]
        if not later.size:
            raise Incomparable(f"no checkpoint of {series.algo} from {examples:g} examples on")
        return float(later[0])

    def means(self, series: Series) -> Means:
        """Return the mean curves of one series."""
        rows = self.rows(series)
        means = np.zeros((len(weights(self.repetitions)), rows.x.size))
        # Processors multiply matrices in orders of their own, and round-off decides whether a mean equals a level.
        for weight, values in zip(weights(self.repetitions).T, rows.values, strict=True):
            means += weight[:, None] * values
        return Means(rows.x, means)

    def merged(self, several: Sequence[Series], across: str | None) -> Means:
        """Return the mean curves of one series, or of several that one way of `ACROSS` merges.

        Raises
        ------
        Incomparable
            If there are several and `across` is None, or their numbers of checkpoints differ.
        """
        labels = ", ".join(f"{series.algo} on {series.dataset}" for series in several)
        if across is None and len(several) > 1:
            raise Incomparable(f"{len(several)} curves where one is compared: {labels}")
        means = [self.means(series) for series in several]
        if len({curves.x.size for curves in means}) > 1:
            raise Incomparable(f"curves of different lengths: {labels}")
        if across is None:
            return means[0]
        values = _MERGED[across](np.stack([curves.values for curves in means]), axis=0)
        return Means(np.mean([curves.x for curves in means], axis=0), values)


@dataclass(frozen=True)
class Candidate:
    """A learner with a budget, at its last checkpoint.

    Attributes
    ----------
    series : Series
    examples : int
        Training examples up to it, mean over repetitions.
    attributes : float
        Attributes charged for them, mean over repetitions.
    cost : float
        Their cost, mean over repetitions; NaN without prices.
    error : Estimate
        Mean error.
    behind : Estimate
        Difference from the error of the best in the same repetitions; 0 for the best.
    best_in : float
        Share of the resampled means in which it is the best, ties divided; NaN for fewer than `FEWEST` repetitions.
    measures : mapping of str to float
        Means of those of `LABEL_MEASURES` that all repetitions have.
    billed : float
        What is paid for in all, tuning included, mean over repetitions, in the unit of the total; NaN if unknown.
    beyond : bool
        Whether tuning looks at more than the total pays for.
    outside : bool
        Whether it is no learner of this tool, see `budgetreg.analysis.outside`.
    """

    series: Series
    examples: int
    attributes: float
    cost: float
    error: Estimate
    behind: Estimate
    best_in: float
    measures: Mapping[str, float] = field(default_factory=dict)
    billed: float = np.nan
    beyond: bool = False
    outside: bool = False

    @property
    def is_worse(self) -> bool:
        """Return whether the interval of the difference from the best lies above 0."""
        return self.behind.low > 0  # False for NaN


def shared_repetitions(series: Sequence[Series]) -> list[int]:
    """Return the repetitions that all series have, ascending."""
    return sorted(set.intersection(*(set(curve.points["repetition"]) for curve in series)))


def ranked(series: Sequence[Series], measure: str, total: float = np.inf) -> list[Candidate]:
    """Rank series by their errors at the last checkpoint, over the repetitions that all have.

    Those whose tuning looks at more than the total pays for come last, and none of them is the best unless there are no
    others. Intervals are those of `budgetreg.analysis.intervals`.

    Parameters
    ----------
    series : sequence of Series
        At least one.
    measure : str
        Column of the curves in which less is better.
    total : float
        The attributes that may be seen, or with prices the money.

    Returns
    -------
    list of Candidate
        The best first.

    Raises
    ------
    Incomparable
        If a series lacks the column, or no repetition is common to all.
    """
    comparison = ResampledCurves(series, measure, "attributes")
    means = np.stack([comparison.means(curve).end for curve in series])
    errors = [comparison.rows(curve).end for curve in series]
    bills = [series_paid(curve)[common_unit(series) is not None] for curve in series]
    beyond = np.array(
        [
            bill is not None and bill.total > max(bill.final, total * len(curve.runs))
            for bill, curve in zip(bills, series, strict=True)
        ]
    )
    rivals = np.where(beyond[:, None] & ~beyond.all(), np.inf, means)
    least = rivals == rivals.min(axis=0)
    shares = (least / least.sum(axis=0))[:, 1:].mean(axis=1)
    shares[np.isinf(rivals[:, 0]) | (comparison.repetitions < FEWEST)] = np.nan
    order = np.lexsort((means[:, 0], beyond))
    best = errors[order[0]]
    return [
        Candidate(
            series=series[i],
            examples=round((last := _checkpoints(series[i].points).iloc[-1])["examples"]),
            attributes=float(last["attributes"]),
            cost=float(last.get(COST, np.nan)),
            error=mean_error(errors[i]),
            behind=difference(errors[i], best) if i != order[0] else Estimate(0.0, 0.0, 0.0),
            best_in=float(shares[i]),
            measures={
                name: float(comparison.rows(series[i], name).end.mean())
                for name in LABEL_MEASURES
                if name in series[i].points and series[i].points[name].notna().all()
            },
            billed=bill.total / len(series[i].runs) if (bill := bills[i]) else np.nan,
            beyond=bool(beyond[i]),
        )
        for i in order
    ]


def _checkpoints(points: pd.DataFrame) -> pd.DataFrame:
    """Return what was charged by each checkpoint, mean over repetitions."""
    paid = [column for column in ("attributes", COST) if column in points]
    return by_checkpoint(points).groupby("examples")[paid].mean().reset_index()


SAVING_COLUMNS = (
    *("panel", "measure", "error", "learner"),
    *("attributes", "attributes_are", "attributes_low", "attributes_high"),
    *("reference", "factor", "factor_is", "factor_low", "factor_high"),
)
MONEY_COLUMNS = (
    *("unit", "cost", "cost_is", "cost_low", "cost_high"),
    *("cost_reference", "cost_factor", "cost_factor_is", "cost_factor_low", "cost_factor_high"),
)
"""Added if all learners of a panel have prices in one unit."""
AT_LEAST, AT_MOST, UNKNOWN = "at least", "at most", "unknown"
_DECADES = 4


@dataclass(frozen=True)
class Saving:
    """The attributes or money that one learner needs to reach one error.

    If a mean curve starts below the error or never reaches it, only a bound is known: its first or last checkpoint.
    Intervals lie between percentiles of resampled means; an end that lies beyond the curve is NaN.

    Attributes
    ----------
    error : float
        The level, in units of the measure.
    label : str
        The learner.
    needed : Estimate
        What the mean curve needs, in attributes or in money.
    needed_is : {'', 'at least', 'at most'}
        Whether that number is exact or a bound.
    reference : str
        The full-information learner that needs least, or the named reference; empty without either.
    factor : Estimate
        What the reference needs, divided by that; NaN without a reference, or if unknown.
    factor_is : {'', 'at least', 'at most', 'unknown'}
        Whether that number is exact or a bound.
    """

    error: float
    label: str
    needed: Estimate
    needed_is: str
    reference: str
    factor: Estimate
    factor_is: str


@dataclass(frozen=True)
class _Needed:
    """Bounds, shape (S,), on what each resampled mean needs; they differ only if the curve is censored."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, means: Means, level: float) -> "_Needed":
        crossing = means.crossing(level)
        first, last = means.x[0], means.x[-1]
        return cls(np.where(np.isinf(crossing), last, crossing), np.where(crossing == 0, first, crossing))

    def times_less_than(self, other: "_Needed") -> "_Needed":
        with np.errstate(divide="ignore"):
            return _Needed(other.low / self.high, other.high / self.low)

    def estimate(self, repetitions: int) -> tuple[Estimate, str]:
        """Return the number, or the known bound, and which of these it is."""
        low, high = (percentile(end, repetitions) for end in (self.low, self.high))
        if low.value == 0 and np.isinf(high.value):
            return Estimate(), UNKNOWN
        value, bound = (high.value, AT_MOST) if low.value == 0 else (low.value, AT_LEAST)
        ends = (low.low if low.low > 0 else np.nan, high.high if np.isfinite(high.high) else np.nan)
        return Estimate(value, *ends), "" if low.value == high.value else bound


def savings(
    series: Sequence[Series], measure: str, level: float | None = None, reference: str = "", x: str = "attributes"
) -> list[Saving]:
    """Compute what each learner of a panel saves at levels of error.

    Parameters
    ----------
    series : sequence of Series
        The learners of one panel; at least one.
    measure : str
        Column of the curves that falls to a level.
    level : float, optional
        The level to reach; by default every round number that some curve falls to.
    reference : str, optional
        Label of the learner to compare with if none sees full rows.
    x : str
        What is saved, a variable of an axis: ``attributes``, or ``cost`` if all have prices.

    Returns
    -------
    list of Saving
        By level, from the largest, and learner. The levels do not depend on x.

    Raises
    ------
    ConfigError
        If x is ``cost`` and a learner has no prices.
    Incomparable
        If a series lacks the column, or no repetition is common to all.
    """
    comparison = ResampledCurves(series, measure, x)
    means = {learner.label: comparison.means(learner) for learner in series}
    full = [learner.label for learner in series if learner.of_full_rows and not learner.of_subspaces]
    references = full or ([reference] if reference else [])
    result: list[Saving] = []
    for error in _levels([curves.values[0] for curves in means.values()]) if level is None else [level]:
        needed = {label: _Needed.of(curves, error) for label, curves in means.items()}
        best = min(references, key=lambda label: (needed[label].high[0], needed[label].low[0], label), default="")
        for label, bounds in needed.items():
            amount, amount_is = bounds.estimate(comparison.repetitions)
            factor, factor_is = Estimate(), ""
            if best:
                times = _ONCE if label == best else bounds.times_less_than(needed[best])
                factor, factor_is = times.estimate(comparison.repetitions)
            result.append(Saving(error, label, amount, amount_is, best, factor, factor_is))
    return result


_ONCE = _Needed(*2 * (np.ones(2),))


def _levels(curves: Sequence[np.ndarray]) -> list[float]:
    """Return the levels .9, .8, ... .1, .09, ... that some curve falls to after its first checkpoint."""
    levels = [float(f"{digit}e-{decade}") for decade in range(1, _DECADES + 1) for digit in range(9, 0, -1)]
    return [level for level in levels if any(curve.min() <= level < curve[0] for curve in curves)]


def savings_csv(panels: Iterable[tuple[str, Sequence[Series]]], measure: str) -> bytes:
    """Return ``savings.csv``.

    Its columns:

    - ``panel``: the panel of the figure
    - ``measure``: what is reached
    - ``error``: the level
    - ``learner``: the learner, as the figure's legend calls it
    - ``attributes``: attributes after which its mean curve has fallen to the level
    - ``attributes_are``: empty, or ``at least`` and ``at most`` where the curve ends above the level or begins below it
    - ``attributes_low``, ``attributes_high``: ends of the bootstrap interval, each passed with probability .05; empty
      if before or beyond the curve
    - ``reference``: the full-information learner that needs fewest
    - ``factor``: the attributes that the reference needs, divided by these
    - ``factor_is``: empty, ``at least``, ``at most`` or ``unknown``
    - ``factor_low``, ``factor_high``: ends of its interval; empty if a curve ends, or begins, too early
    - ``unit``: what money is counted in; empty, and what follows too, in panels without prices
    - ``cost``, ``cost_is``, ``cost_low``, ``cost_high``, ``cost_reference``, ``cost_factor``, ...: the same in money

    Parameters
    ----------
    panels : iterable of str and sequence of Series
        The name of each panel, and its learners, each with one curve. A panel whose learners cannot be compared has no
        rows.
    measure : str
        Column of the curves that falls to a level.
    """
    rows: list[dict[str, str]] = []
    for panel, series in panels:
        unit = common_unit(series)
        try:
            needs = [savings(series, measure, x=x) for x in (["attributes", COST] if unit else ["attributes"])]
        except Incomparable:
            continue
        for saving, *in_money in zip(*needs, strict=True):
            words = {"panel": panel, "measure": measure, "error": f"{saving.error:g}", "learner": saving.label}
            rows.append({**words, **_amounts(saving, "attributes", "are")})
            for cost in in_money:
                rows[-1] |= {"unit": str(unit), **_amounts(cost, "cost", "is", "cost_")}
    return as_csv([*SAVING_COLUMNS, *(MONEY_COLUMNS if any("unit" in row for row in rows) else ())], rows)


def _amounts(saving: Saving, amount: str, verb: str, prefix: str = "") -> dict[str, str]:
    """Return the columns of what is needed and of the reference's ratio to it, in attributes or in money."""
    return {
        f"{amount}_{verb}": saving.needed_is,
        **saving.needed.columns(amount),
        f"{prefix}reference": saving.reference,
        f"{prefix}factor_is": saving.factor_is,
        **saving.factor.columns(f"{prefix}factor"),
    }

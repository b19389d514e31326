"""Compare series over the repetitions that all of them have: their mean curves, and which is best at the end."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from budgetreg.analysis.bootstrap import FEWEST, Estimate, weights
from budgetreg.analysis.paired import difference, mean_error
from budgetreg.config.nested import flatten
from budgetreg.errors import DataError
from budgetreg.runs.manifest import PROMISED
from budgetreg.runs.series import LABEL_MEASURES, Series, along, attainable, by_checkpoint
from budgetreg.runs.tables import COST

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
        If a series lacks the column, or no repetition is common to all.
    """

    def __init__(self, series: Sequence[Series], measure: str, x: str) -> None:
        self.series, self.measure, self.x = series, measure, x
        if any(measure not in curve.points for curve in series):
            raise Incomparable(f"curves without a column {measure}")
        shared = set.intersection(*(set(curve.points["repetition"]) for curve in series))
        if not shared:
            raise Incomparable("curves without a repetition in common")
        self._shared = sorted(shared)
        self.repetitions = len(shared)

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
    """

    series: Series
    examples: int
    attributes: float
    cost: float
    error: Estimate
    behind: Estimate
    best_in: float
    measures: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_worse(self) -> bool:
        """Return whether the interval of the difference from the best lies above 0."""
        return self.behind.low > 0  # False for NaN


def ranked(series: Sequence[Series], measure: str) -> list[Candidate]:
    """Rank series by their errors at the last checkpoint, over the repetitions that all have.

    Their intervals are those of `budgetreg.analysis.paired`.

    Parameters
    ----------
    series : sequence of Series
        At least one.
    measure : str
        Column of the curves in which less is better.

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
    least = means == means.min(axis=0)
    shares = (least / least.sum(axis=0))[:, 1:].mean(axis=1)
    enough = comparison.repetitions >= FEWEST
    order = np.argsort(means[:, 0], kind="stable")
    best = errors[order[0]]
    return [
        Candidate(
            series=series[i],
            examples=round((last := _checkpoints(series[i].points).iloc[-1])["examples"]),
            attributes=float(last["attributes"]),
            cost=float(last.get(COST, np.nan)),
            error=mean_error(errors[i]),
            behind=difference(errors[i], best) if i != order[0] else Estimate(0.0, 0.0, 0.0),
            best_in=float(shares[i]) if enough else np.nan,
            measures={
                name: float(comparison.rows(series[i], name).end.mean())
                for name in LABEL_MEASURES
                if name in series[i].points and series[i].points[name].notna().all()
            },
        )
        for i in order
    ]


def _checkpoints(points: pd.DataFrame) -> pd.DataFrame:
    """Return what was charged by each checkpoint, mean over repetitions."""
    paid = [column for column in ("attributes", COST) if column in points]
    return by_checkpoint(points).groupby("examples")[paid].mean().reset_index()

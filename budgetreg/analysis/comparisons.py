"""The curves that a claim speaks of: chosen by learner and configuration, with what repetitions they share."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from budgetreg.analysis.bootstrap import weights
from budgetreg.analysis.mean_curves import Means
from budgetreg.results.axis_variables import along, can_be_had
from budgetreg.results.naming import flatten
from budgetreg.results.schema import COST
from budgetreg.results.series import Series

Condition = str | Mapping[str, object]
"""A learner's name, or keys with values: ``algo``, ``k``, ``protocol`` and those of the configuration."""

_MERGED: dict[str, Callable[..., np.ndarray]] = {"median": np.median, "mean": np.mean, "worst": np.max}
ACROSS = tuple(_MERGED)
"""How the mean curves of several series become one: ``worst`` is the largest at each checkpoint."""


class Incomparable(Exception):  # noqa: N818 - it says what is the matter
    """There is no curve, or not one, of what a claim speaks of; the message says of what."""


def chosen(series: Sequence[Series], condition: Condition) -> list[Series]:
    """Return the series that meet a condition, in order.

    Raises
    ------
    Incomparable
        If there are none.
    """
    wanted = {"algo": condition} if isinstance(condition, str) else condition
    found = [one for one in series if all(_value(one, key) == value for key, value in wanted.items())]
    if not found:
        raise Incomparable(f"no curve of {_told(wanted)}")
    return found


def _value(series: Series, key: str) -> object:
    own: dict[str, object] = {"algo": series.algo, "k": series.k}
    return own[key] if key in own else flatten(series.config).get(key)


def _told(wanted: Mapping[str, object]) -> str:
    return ", ".join(f"{key}={value}" for key, value in wanted.items())


class Comparison:
    """Series with resampled mean curves; all means are over the repetitions that all series have.

    Parameters
    ----------
    series : sequence of Series
        Everything that is compared; at least one.
    measure : str
        What is looked at, a column of the curves.
    x : str
        Against what, a variable of `budgetreg.results.axis_variables`.

    Raises
    ------
    Incomparable
        If they have no such column, or no repetition in common.
    """

    def __init__(self, series: Sequence[Series], measure: str, x: str) -> None:
        self.series, self.measure, self.x = series, measure, x
        if any(measure not in one.points for one in series):
            raise Incomparable(f"curves without a column {measure}")
        shared = set.intersection(*(set(one.points["repetition"]) for one in series))
        if not shared:
            raise Incomparable("curves without a repetition in common")
        self._shared = sorted(shared)

    @property
    def repetitions(self) -> int:
        """Number of repetitions that all series have."""
        return len(self._shared)

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights of the repetitions in each mean, shape (S, repetitions)."""
        return weights(self.repetitions)

    def rows(self, one: Series) -> Means:
        """Return the curves of the single repetitions in place of means, shape (repetitions, checkpoints)."""
        points = one.points[one.points["repetition"].isin(self._shared)]
        table = points.pivot(index="repetition", columns="examples", values=self.measure)
        paid = [column for column in ("attributes", COST) if column in points]
        checkpoints = points.groupby("examples")[paid].mean().reset_index()
        x = along(self.x, one, checkpoints)
        there = can_be_had(x)
        return Means(x[there], table.to_numpy(dtype=float)[:, there])

    def means(self, one: Series) -> Means:
        """Return the mean curves of one series."""
        rows = self.rows(one)
        return Means(rows.x, self.weights @ rows.values)

    def merged(self, several: Sequence[Series], across: str | None) -> Means:
        """Return the mean curves of one series, or those of several made one by `ACROSS`.

        Raises
        ------
        Incomparable
            If there are several and it is not said how they are merged, or they differ in their checkpoints' number.
        """
        if across is None and len(several) > 1:
            raise Incomparable(f"{len(several)} curves where one is compared: {_labels(several)}")
        means = [self.means(one) for one in several]
        if len({own.x.size for own in means}) > 1:
            raise Incomparable(f"curves of different lengths: {_labels(several)}")
        if across is None:
            return means[0]
        values = _MERGED[across](np.stack([own.values for own in means]), axis=0)
        return Means(np.mean([own.x for own in means], axis=0), values)


def _labels(series: Sequence[Series]) -> str:
    return ", ".join(f"{one.algo} on {one.dataset}" for one in series)

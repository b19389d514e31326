"""Savings: what each learner of a figure needs to reach an error, attributes or money, and how much less that is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.analysis.bootstrap import Estimate, percentile
from budgetreg.analysis.comparisons import Comparison
from budgetreg.analysis.mean_curves import Means
from budgetreg.results.series import Series

AT_LEAST, AT_MOST, UNKNOWN = "at least", "at most", "unknown"
_DECADES = 4


@dataclass(frozen=True)
class Saving:
    """What one learner needs to reach one error.

    A mean curve that has reached it by its first checkpoint, or does not by its last, tells no more than a bound: that
    checkpoint. Intervals lie between percentiles of resampled means; one that reaches beyond the curve has
    no end there (NaN).

    Attributes
    ----------
    error : float
        The level, in units of the measure.
    label : str
        The learner.
    needed : Estimate
        What its mean curve needs, in attributes or in money.
    needed_is : {'', 'at least', 'at most'}
        How that number is to be read.
    reference : str
        The full-information learner that needs least, or the one that was named; empty if there is none.
    factor : Estimate
        Times less than the reference needs; NaN if there is none, or it is unknown.
    factor_is : {'', 'at least', 'at most', 'unknown'}
        How that number is to be read.
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
    """What is needed by each resampled mean, shape (S,), between bounds that differ where the curve is censored."""

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

    def told(self, repetitions: int) -> tuple[Estimate, str]:
        """Return the number, or the bound there is for it, and how it is to be read."""
        low, high = (percentile(end, repetitions) for end in (self.low, self.high))
        if low.value == 0 and np.isinf(high.value):
            return _NO_NUMBER, UNKNOWN
        value, are = (high.value, AT_MOST) if low.value == 0 else (low.value, AT_LEAST)
        ends = (low.low if low.low > 0 else np.nan, high.high if np.isfinite(high.high) else np.nan)
        return Estimate(value, *ends), "" if low.value == high.value else are


def savings(
    series: Sequence[Series], measure: str, level: float | None = None, reference: str = "", x: str = "attributes"
) -> list[Saving]:
    """Compute what each learner of a panel saves at levels of error.

    Parameters
    ----------
    series : sequence of Series
        The learners of one panel; at least one.
    measure : str
        What is to be reached, a column of the curves.
    level : float, optional
        The one error to be reached; unless it is given, all round ones that some learner reaches along its curve.
    reference : str, optional
        Label of the learner to compare with where none sees full rows.
    x : str
        What is saved, a variable of `budgetreg.results.axis_variables`: ``attributes``, or ``cost`` where all have
        prices.

    Returns
    -------
    list of Saving
        By level, from the largest, and learner; whatever x is, the levels are the same.

    Raises
    ------
    ConfigError
        If x is money, and a learner has no prices.
    Incomparable
        If the curves have no such column, or no repetition in common.
    """
    comparison = Comparison(series, measure, x)
    means = {one.label: comparison.means(one) for one in series}
    full = [one.label for one in series if one.of_full_rows and not one.of_subspaces]
    references = full or ([reference] if reference else [])
    found: list[Saving] = []
    for error in _levels([own.values[0] for own in means.values()]) if level is None else [level]:
        needed = {label: _Needed.of(own, error) for label, own in means.items()}
        best = min(references, key=lambda label: (needed[label].high[0], needed[label].low[0], label), default="")
        for label, own in needed.items():
            amount, amount_is = own.told(comparison.repetitions)
            factor, factor_is = _NO_NUMBER, ""
            if best:
                times = _ONCE if label == best else own.times_less_than(needed[best])
                factor, factor_is = times.told(comparison.repetitions)
            found.append(Saving(error, label, amount, amount_is, best, factor, factor_is))
    return found


_NO_NUMBER = Estimate(np.nan, np.nan, np.nan)
_ONCE = _Needed(*2 * (np.ones(2),))


def _levels(curves: Sequence[np.ndarray]) -> list[float]:
    """Return the round levels that some curve reaches after its first checkpoint, largest first."""
    return [level for level in _round_levels() if any(curve.min() <= level < curve[0] for curve in curves)]


def _round_levels() -> Iterator[float]:
    """Give .9, .8, ... .1, .09, ... .01, and so on."""
    for decade in range(1, _DECADES + 1):
        for digit in range(9, 0, -1):
            yield float(f"{digit}e-{decade}")

"""Savings: the attributes or money that each learner needs to reach an error, and how many times less that is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.analysis.bootstrap import Estimate, percentile
from budgetreg.analysis.comparisons import Incomparable, Means, ResampledCurves
from budgetreg.runs.series import Series, common_unit
from budgetreg.runs.tables import COST, as_csv

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
        Number of times less than the reference needs; NaN without a reference, or if unknown.
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
        What is saved, a variable of `budgetreg.runs.series`: ``attributes``, or ``cost`` if all have prices.

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
    - ``factor``: times fewer attributes than the reference needs
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
    """Return the columns of what is needed and of how many times less that is, in attributes or in money."""
    return {
        f"{amount}_{verb}": saving.needed_is,
        **saving.needed.columns(amount),
        f"{prefix}reference": saving.reference,
        f"{prefix}factor_is": saving.factor_is,
        **saving.factor.columns(f"{prefix}factor"),
    }

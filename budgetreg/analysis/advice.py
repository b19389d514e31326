"""Rank learners and budgets by their last errors, with the uncertainty of the ranking."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.analysis.bootstrap import FEWEST, Estimate, basic, of_ratio
from budgetreg.analysis.comparisons import ResampledCurves
from budgetreg.results.schema import COST
from budgetreg.results.series import Series


@dataclass(frozen=True)
class Candidate:
    """A learner with a budget, at its last checkpoint or where it has spent a given total.

    Attributes
    ----------
    series : Series
    examples : int
        Training examples up to that point.
    attributes : float
        Attributes charged for them, mean over repetitions.
    cost : float
        Their cost, mean over repetitions; NaN without prices.
    error : Estimate
        Mean error.
    behind : Estimate
        Difference from the error of the best, from the same resampled repetitions; 0 for the best.
    best_in : float
        Share of the resampled means in which it is the best, ties divided; NaN for fewer than `FEWEST` repetitions.
    """

    series: Series
    examples: int
    attributes: float
    cost: float
    error: Estimate
    behind: Estimate
    best_in: float

    @property
    def is_worse(self) -> bool:
        """Return whether the interval of the difference from the best lies above 0."""
        return self.behind.low > 0  # False for NaN


def ranked(series: Sequence[Series], measure: str, spent: float | None = None) -> list[Candidate]:
    """Rank series by their errors at the last checkpoint, over the repetitions that all have.

    Parameters
    ----------
    series : sequence of Series
        At least one.
    measure : str
        Column of the curves in which less is better.
    spent : float, optional
        An amount of money, if all have prices: a longer curve is compared at that amount, by interpolation.

    Returns
    -------
    list of Candidate
        The best first.

    Raises
    ------
    Incomparable
        If a series lacks the column, or no repetition is common to all.
    """
    comparison = ResampledCurves(series, measure, "attributes" if spent is None else COST)
    means = map(comparison.means, series)
    ends = np.stack([curve.end if spent is None else curve.at(np.array([spent]))[:, 0] for curve in means])
    least = ends == ends.min(axis=0)
    shares = (least / least.sum(axis=0))[:, 1:].mean(axis=1)
    enough = comparison.repetitions >= FEWEST
    order = np.argsort(ends[:, 0], kind="stable")
    best = ends[order[0]]
    return [
        Candidate(
            series=series[i],
            examples=round((last := _at(series[i], spent))["examples"]),
            attributes=last["attributes"],
            cost=last.get(COST, np.nan),
            error=of_ratio(ends[i], comparison.repetitions),
            behind=basic(ends[i] - best, comparison.repetitions) if i != order[0] else Estimate(0.0, 0.0, 0.0),
            best_in=float(shares[i]) if enough else np.nan,
        )
        for i in order
    ]


def _at(series: Series, spent: float | None) -> dict[str, float]:
    """Return mean examples, attributes and cost at the last checkpoint, or where the money is spent."""
    paid = [column for column in ("attributes", COST) if column in series.points]
    columns = ["examples", *paid]
    curve = series.points.groupby("examples")[paid].mean().reset_index()
    if spent is None or len(curve) == 1 or curve[COST].iloc[-1] <= spent:
        return {column: float(curve[column].iloc[-1]) for column in columns}
    x = np.log(curve[COST])
    return {column: float(np.exp(np.interp(np.log(spent), x, np.log(curve[column])))) for column in columns}

"""Which of several learners and budgets ends best, how sure that is, and which cannot be told from it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.analysis.bootstrap import FEWEST, Estimate, basic, of_ratio
from budgetreg.analysis.comparisons import Comparison
from budgetreg.results.schema import COST
from budgetreg.results.series import Series


@dataclass(frozen=True)
class Candidate:
    """A learner with a budget, at its last checkpoint or where it has spent a total.

    Attributes
    ----------
    series : Series
    examples : int
        Training examples by then.
    attributes : float
        What was charged for them, the mean over repetitions.
    cost : float
        What these cost, likewise; NaN without prices.
    error : Estimate
        Its mean error.
    behind : Estimate
        By how much that is above the error of the best, from the same resampled repetitions; 0 for the best.
    best_in : float
        Share of the resampled means of which it is the best, ties divided; NaN for fewer than `FEWEST` repetitions.
    """

    series: Series
    examples: int
    attributes: float
    cost: float
    error: Estimate
    behind: Estimate
    best_in: float

    @property
    def told_apart(self) -> bool:
        """Whether it is known to be worse than the best: the interval of the difference is above 0."""
        return self.behind.low > 0  # which NaN is not


def ranked(series: Sequence[Series], measure: str, spent: float | None = None) -> list[Candidate]:
    """Compare series at their last checkpoints, over the repetitions that all have.

    Parameters
    ----------
    series : sequence of Series
        At least one.
    measure : str
        What is to be small, a column of the curves.
    spent : float, optional
        Money, where all have prices: series that end beyond it are compared there, between their checkpoints.

    Returns
    -------
    list of Candidate
        The best first.

    Raises
    ------
    Incomparable
        If they have no such column, or no repetition in common.
    """
    comparison = Comparison(series, measure, "attributes" if spent is None else COST)
    means = map(comparison.means, series)
    ends = np.stack([own.end if spent is None else own.at(np.array([spent]))[:, 0] for own in means])
    least = ends == ends.min(axis=0)
    shares = (least / least.sum(axis=0))[:, 1:].mean(axis=1)
    enough = comparison.repetitions >= FEWEST
    order = np.argsort(ends[:, 0], kind="stable")
    best = ends[order[0]]
    found = []
    for i in order:
        last = _at(series[i], spent)
        error = of_ratio(ends[i], comparison.repetitions)
        behind = basic(ends[i] - best, comparison.repetitions) if i != order[0] else Estimate(0.0, 0.0, 0.0)
        found.append(
            Candidate(
                series=series[i],
                examples=round(last["examples"]),
                attributes=last["attributes"],
                cost=last.get(COST, np.nan),
                error=error,
                behind=behind,
                best_in=float(shares[i]) if enough else np.nan,
            )
        )
    return found


def _at(series: Series, spent: float | None) -> dict[str, float]:
    """Return examples, attributes and money, means over repetitions, at the last checkpoint or where money is spent."""
    paid = [column for column in ("attributes", COST) if column in series.points]
    curve, told = series.points.groupby("examples")[paid].mean().reset_index(), ["examples", *paid]
    if spent is None or len(curve) == 1 or curve[COST].iloc[-1] <= spent:
        return {column: float(curve[column].iloc[-1]) for column in told}
    x = np.log(curve[COST])
    return {column: float(np.exp(np.interp(np.log(spent), x, np.log(curve[column])))) for column in told}

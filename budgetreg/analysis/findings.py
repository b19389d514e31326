"""What a reproduction found, as tables: ``claims.csv`` and ``savings.csv``."""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any

from budgetreg.analysis.bootstrap import Estimate
from budgetreg.analysis.claims import ClaimResult
from budgetreg.analysis.savings import Saving
from budgetreg.results.tables import as_csv

CLAIM_COLUMNS: dict[str, str] = {
    "claim": "its name in the recipe",
    "protocol": "the preset it was judged under; empty if the recipe has none",
    "verdict": "holds if the interval lies where the claim wants it, fails if it lies outside, else undecided",
    "estimate": "the statistic of the claim's kind, from the mean curves; empty if it cannot be computed",
    "interval_low": "lower end of its interval, passed with probability .05",
    "interval_high": "upper end, passed with probability .05",
    "wanted": "where the claim wants the statistic",
    "repetitions": "number of repetitions",
    "kind": "the kind of claim",
    "says": "what the paper says, in other words",
    "note": "why nothing could be computed, or what was left out",
}
SAVING_COLUMNS: dict[str, str] = {
    "panel": "the panel of the figure",
    "measure": "what is reached",
    "error": "the level",
    "learner": "the learner, as the figure's legend calls it",
    "attributes": "attributes after which its mean curve has fallen to the level",
    "attributes_are": "empty, or 'at least' and 'at most' where the curve ends above the level or begins below it",
    "attributes_low": "lower end of the bootstrap interval, passed with probability .05; empty if before the curve",
    "attributes_high": "upper end, passed with probability .05; empty if beyond the curve",
    "reference": "the full-information learner that needs fewest",
    "factor": "times fewer attributes than the reference needs",
    "factor_is": "empty, 'at least', 'at most' or 'unknown'",
    "factor_low": "lower end of its interval; empty if a curve ends, or begins, too early to tell",
    "factor_high": "upper end, likewise",
}
# Where all learners of a panel have prices in one unit.
MONEY_COLUMNS: dict[str, str] = {
    "unit": "what money is counted in; empty, and what follows too, in panels without prices",
    "cost": "money after which its mean curve has fallen to the level",
    "cost_is": "as attributes_are",
    "cost_low": "lower end of its interval, as attributes_low",
    "cost_high": "upper end, as attributes_high",
    "cost_reference": "the full-information learner that needs least money",
    "cost_factor": "times less money than that needs",
    "cost_factor_is": "as factor_is",
    "cost_factor_low": "lower end of its interval, as factor_low",
    "cost_factor_high": "upper end, likewise",
}


def claims_csv(judgements: Iterable[ClaimResult]) -> bytes:
    """Return ``claims.csv``: a row for each claim and preset, numbers to four significant digits."""
    return as_csv(CLAIM_COLUMNS, map(claim_row, judgements))


def claim_row(judgement: ClaimResult) -> dict[str, Any]:
    """Return a row of ``claims.csv``, all of it text."""
    return {
        "claim": judgement.claim.id,
        "protocol": judgement.protocol,
        "verdict": judgement.verdict,
        **_numbers(judgement.estimate, "estimate", "interval_low", "interval_high"),
        "wanted": str(judgement.region),
        "repetitions": str(judgement.repetitions),
        "kind": judgement.claim.kind,
        "says": judgement.claim.says,
        "note": judgement.note,
    }


def savings_csv(
    savings: Mapping[str, Sequence[Saving]], measure: str, money: Mapping[str, tuple[str, Sequence[Saving]]]
) -> bytes:
    """Return ``savings.csv``.

    Parameters
    ----------
    savings : mapping
        Of each panel what is saved in attributes.
    measure : str
        What is reached.
    money : mapping
        Of each panel whose learners all have prices in one unit, that unit, and what is saved in money, row by row.
    """
    rows = [
        {
            "panel": panel,
            "measure": measure,
            "error": f"{one.error:g}",
            "learner": one.label,
            "attributes_are": one.needed_is,
            **_numbers(one.needed, "attributes", "attributes_low", "attributes_high"),
            "reference": one.reference,
            "factor_is": one.factor_is,
            **_numbers(one.factor, "factor", "factor_low", "factor_high"),
        }
        for panel, own in savings.items()
        for one in own
    ]
    if not money:
        return as_csv(SAVING_COLUMNS, rows)
    paid = [row for panel, own in savings.items() for row in _in_money(*money.get(panel, ("", [])), len(own))]
    return as_csv([*SAVING_COLUMNS, *MONEY_COLUMNS], [{**row, **also} for row, also in zip(rows, paid, strict=True)])


def _in_money(unit: str, savings: Sequence[Saving], length: int) -> list[dict[str, str]]:
    """Return the cells of a panel's rows that tell money, empty ones if it has no prices."""
    told = [
        {
            "unit": unit,
            "cost_is": one.needed_is,
            **_numbers(one.needed, "cost", "cost_low", "cost_high"),
            "cost_reference": one.reference,
            "cost_factor_is": one.factor_is,
            **_numbers(one.factor, "cost_factor", "cost_factor_low", "cost_factor_high"),
        }
        for one in savings
    ]
    return told or [{}] * length


def _numbers(estimate: Estimate, *columns: str) -> dict[str, str]:
    values = (estimate.value, estimate.low, estimate.high)
    return {column: "" if isnan(value) else f"{value:.4g}" for column, value in zip(columns, values, strict=True)}

"""Write the claims and savings of a recipe as ``claims.csv`` and ``savings.csv``."""

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
# Added if all learners of a panel have prices in one unit.
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


def claims_csv(results: Iterable[ClaimResult]) -> bytes:
    """Return ``claims.csv``, a row for each claim and preset, with numbers to four significant digits."""
    return as_csv(CLAIM_COLUMNS, map(claim_row, results))


def claim_row(result: ClaimResult) -> dict[str, Any]:
    """Return a row of ``claims.csv`` as texts."""
    return {
        "claim": result.claim.id,
        "protocol": result.protocol,
        "verdict": result.verdict,
        **_numbers(result.estimate, "estimate", "interval"),
        "wanted": str(result.region),
        "repetitions": str(result.repetitions),
        "kind": result.claim.kind,
        "says": result.claim.says,
        "note": result.note,
    }


def savings_csv(
    savings: Mapping[str, Sequence[Saving]], measure: str, money: Mapping[str, tuple[str, Sequence[Saving]]]
) -> bytes:
    """Return ``savings.csv``.

    Parameters
    ----------
    savings : mapping
        Savings in attributes, by panel.
    measure : str
        Column of the curves that falls to a level.
    money : mapping
        Unit and savings in money, row by row, of each panel whose learners all have prices in one unit.
    """
    rows: list[dict[str, str]] = []
    for panel, of_panel in savings.items():
        unit, costs = money.get(panel, ("", ()))
        in_money = [{"unit": unit, **_amounts(saving, "cost", "is", "cost_")} for saving in costs]
        for saving, row in zip(of_panel, in_money or [{}] * len(of_panel), strict=True):
            words = {"panel": panel, "measure": measure, "error": f"{saving.error:g}", "learner": saving.label}
            rows.append({**words, **_amounts(saving, "attributes", "are"), **row})
    return as_csv([*SAVING_COLUMNS, *(MONEY_COLUMNS if money else ())], rows)


def _amounts(saving: Saving, amount: str, verb: str, prefix: str = "") -> dict[str, str]:
    """Return the columns of what is needed and of how many times less that is, in attributes or in money."""
    return {
        f"{amount}_{verb}": saving.needed_is,
        **_numbers(saving.needed, amount),
        f"{prefix}reference": saving.reference,
        f"{prefix}factor_is": saving.factor_is,
        **_numbers(saving.factor, f"{prefix}factor"),
    }


def _numbers(estimate: Estimate, name: str, interval: str = "") -> dict[str, str]:
    """Return an estimate and its interval in three columns."""
    ends = interval or name
    columns = {name: estimate.value, f"{ends}_low": estimate.low, f"{ends}_high": estimate.high}
    return {column: "" if isnan(value) else f"{value:.4g}" for column, value in columns.items()}

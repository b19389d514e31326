"""The claims of a recipe: tests on curves, each with the verdict ``holds``, ``fails`` or ``undecided``.

A claim is a statistic of curves and a region in which it must lie. One rule decides: the claim holds if the
statistic's interval lies in the region, fails if it lies outside, and is undecided otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from budgetreg.analysis.bootstrap import Estimate
from budgetreg.analysis.claim_kinds import KINDS, Case, Published, Region
from budgetreg.analysis.comparisons import ACROSS, Incomparable
from budgetreg.config.options import LIST, MAPPING, NAME, NOTHING, TEXT, Rules, check, one_of
from budgetreg.errors import ConfigError, nearest
from budgetreg.runs.series import Series
from budgetreg.runs.tables import as_csv

_CLAIM_COLUMNS = (
    *("claim", "protocol", "verdict", "estimate", "interval_low", "interval_high"),
    *("wanted", "repetitions", "kind", "says", "note"),
)
_COMMON: Rules = {
    "id": ("the claim's name", NAME),
    "says": ("what the paper says", TEXT),
    "kind": ("the kind", NAME),
    "where": ("the condition on all curves", MAPPING),
    "measure": ("what is measured", NAME),
    "x": ("what it is measured against", NAME),
    "across": ("how several curves become one", one_of(*ACROSS) | NOTHING),
    "also": ("other recipes", LIST),
}
_COMMON_DEFAULTS: Mapping[str, Any] = {
    "where": {},
    "measure": "test_relative",
    "x": "attributes",
    "also": [],
}


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


def parse(entry: Any) -> Claim:
    """Read a claim of a recipe.

    Raises
    ------
    ConfigError
        If a key is unknown or missing, or a value is invalid.
    """
    if not isinstance(entry, Mapping) or not {"id", "says", "kind"} <= entry.keys():
        raise ConfigError("claims: each must have the keys id, says and kind")
    name, kind = entry["id"], entry["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"claims: {name}: {kind}: no such kind{nearest(str(kind), KINDS)}; kinds: {', '.join(KINDS)}")
    rules = {**_COMMON, **KINDS[kind].rules}
    nulls = {key: None for key, (_, requirement) in rules.items() if requirement.accepts(None)}
    filled = {**nulls, **_COMMON_DEFAULTS, **KINDS[kind].defaults, **entry}
    check(filled, rules, f"claims: {name}: ")
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
        repetitions, note = case.comparison.repetitions, "; ".join(case.notes)
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

"""Tables of results: one run checkpoint by checkpoint, or several runs side by side."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table

from budgetreg.analysis.advice import ranked
from budgetreg.analysis.comparisons import Incomparable
from budgetreg.figures.captions import charged_per_example, chosen_parameters, edges, money, with_interval
from budgetreg.results.series import Series, labelled, mean_curve, read_folder

_MOST_ROWS = 20
_ROUNDING = 1e-12
_HEADS = {
    "test_relative": "relative error",
    "test_mse": "test mse",
    "test_error_rate": "error rate",
    "test_svr_loss": "SVR loss",
}
_SUBSPACE_HEADS = {"excess_loss": "excess loss", "relative_error": "relative error", "principal_angle": "angle"}
_ONLY_ALONG_A_RUN = ("test_mse", "test_svr_loss")
_BEHIND = (
    "behind: error above that of the best that sees as much of an example, with its 90 % interval, over the "
    "repetitions that these have in common"
)
_MEANING = "mean ± s.d. over repetitions; relative error: mse / that without attributes"
_SUBSPACE_MEANING = (
    "mean ± s.d. over repetitions; excess loss: above that of the best subspace; relative error: share of squared "
    "length outside the subspace; angle: largest to the best subspace, in degrees"
)


def run_table(folder: Path) -> Table:
    """Return a table of a run: a row per checkpoint, at most 20 of them, the last one always included.

    Parameters
    ----------
    folder : Path
        The folder of the run, or of merged results. Runs in folders below it are left out.

    Returns
    -------
    Table
        Examples, attributes (mean over repetitions) and test errors (mean ± standard deviation over
        repetitions); below it repetitions, attributes charged per example and chosen parameters.

    Raises
    ------
    DataError
        As for `budgetreg.results.series.read_series`.
    """
    series = labelled(read_folder(folder))
    several = len(series) > 1
    shared = sorted({f"{curve.dataset}, k = {curve.k}" for curve in series})
    bills = [f"{curve.label}: {_bill(curve)}" if several else _bill(curve) for curve in series]
    heads, meaning = _wording(series)
    table = new_table(
        "; ".join(shared if several else [f"{series[0].label} on {shared[0]}"]), "\n".join([meaning, *bills])
    )
    means = [mean_curve(curve.points) for curve in series]
    measures = [measure for measure in heads if any(mean[measure].notna().any() for mean in means)]
    if not series[0].of_subspaces and all(mean["test_mse"].equals(mean["test_relative"]) for mean in means):
        measures.remove("test_mse")  # equal for labels of -1 and +1
    if several:
        table.add_column("learner")
    units = _units(series)
    for head in ("examples", "attributes", *units, *(heads[measure] for measure in measures)):
        table.add_column(head, justify="right", no_wrap=True)
    for curve, mean in zip(series, means, strict=True):
        for _, row in _thinned(mean).iterrows():
            cells = [f"{row['examples']:.0f}", f"{row['attributes']:.0f}", *_paid(curve, row, units)]
            cells += [_mean_sd(row, measure, mean[measure].max()) for measure in measures]
            table.add_row(*([curve.label] if several else []), *cells)
        table.add_section()
    return table


def comparison_table(series: Sequence[Series]) -> Table:
    """Return a table of several runs at their last checkpoints: learners on a budget, then on full rows, best first.

    Parameters
    ----------
    series : sequence of Series
        As `budgetreg.results.series.read_series` returns them.

    Returns
    -------
    Table
        One row per series, with its difference from the best of its group: same data set, full rows or a budget.
    """
    heads, meaning = _wording(series)
    by = "relative_error" if series[0].of_subspaces else "test_relative"
    groups = [list(group) for _, group in groupby(sorted(series, key=_kind), key=_kind)]
    ranks = [rank for group in groups for rank in _ranks(group, by)]
    last = [(curve, mean_curve(curve.points).iloc[-1], behind) for curve, behind in ranks]
    measures = [
        measure
        for measure in heads
        if measure not in _ONLY_ALONG_A_RUN and any(pd.notna(row[measure]) for _, row, _ in last)
    ]
    datasets = {curve.dataset for curve in series}
    several = len(datasets) > 1
    table = new_table(
        "At the last checkpoint" if several else f"{datasets.pop()}, at the last checkpoint", f"{meaning}; {_BEHIND}"
    )
    for head in ("data set", "learner", "sees") if several else ("learner", "sees"):
        table.add_column(head, min_width=len(head))
    units = _units(series)
    for head in ("k", "examples", "attributes", *units, *(heads[measure] for measure in measures), "behind", "reps"):
        # On a narrow terminal, the interval stands below its number.
        table.add_column(head, justify="right", no_wrap=head != "behind")
    before = _kind(last[0][0])
    for curve, row, behind in last:
        if _kind(curve) != before:
            table.add_section()
            before = _kind(curve)
        table.add_row(
            *([curve.dataset] if several else []),
            f"{curve.algo} {curve.variant}".strip(),
            "all" if curve.of_full_rows else "k",
            str(curve.k),
            f"{row['examples']:.0f}",
            f"{row['attributes']:.0f}",
            *_paid(curve, row, units),
            *(_mean_sd(row, measure, max(other[measure] for _, other, _ in last)) for measure in measures),
            behind,
            str(curve.repetitions),
        )
    return table


def _kind(series: Series) -> tuple[str, bool]:
    """Return what all series of one ranking share."""
    return series.dataset, series.of_full_rows


def _ranks(series: Sequence[Series], by: str) -> list[tuple[Series, str]]:
    """Return the series, the best first, with the difference of each from the best."""
    try:
        candidates = ranked(series, by)
    except Incomparable:  # no repetition in common
        return [(curve, "-") for curve in sorted(series, key=lambda curve: mean_curve(curve.points)[by].iloc[-1])]
    best, *others = [(candidate.series, candidate.behind) for candidate in candidates]
    return [(best[0], "-"), *((curve, with_interval(behind)) for curve, behind in others)]


def _wording(series: Sequence[Series]) -> tuple[dict[str, str], str]:
    """Return the names of the measures of some series, and the table's text about them."""
    return (_SUBSPACE_HEADS, _SUBSPACE_MEANING) if series[0].of_subspaces else (_HEADS, _MEANING)


def _units(series: Sequence[Series]) -> list[str]:
    """Return the units of money; each has a column."""
    return sorted({curve.unit for curve in series if curve.unit})


def _paid(series: Series, row: pd.Series, units: Sequence[str]) -> list[str]:
    return [money(row["cost"]) if series.unit == unit else "-" for unit in units]


def new_table(title: str, caption: str) -> Table:
    """Return an empty table in the style of all results."""
    return Table(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )


def _thinned(curve: pd.DataFrame) -> pd.DataFrame:
    kept = np.linspace(0, len(curve) - 1, min(len(curve), _MOST_ROWS)).round().astype(int)
    return curve.iloc[kept]


def _mean_sd(row: pd.Series, measure: str, largest: float) -> str:
    """Return a mean and its deviation; what is rounding beside the column's largest value counts as 0."""
    mean, sd = (0.0 if abs(value) < _ROUNDING * largest else value for value in (row[measure], row[f"{measure}_sd"]))
    if pd.isna(mean):
        return "-"
    return f"{mean:.4g}" if pd.isna(sd) else f"{mean:.4g} ± {sd:.2g}"


def _bill(series: Series) -> str:
    bill = charged_per_example(series.runs)
    parts = [
        f"{series.repetitions} repetition{'s' if series.repetitions > 1 else ''}",
        f"attributes per example: {bill}" if bill else "",
        ", ".join(filter(None, [*chosen_parameters(series.runs), edges(series.runs)])),
    ]
    return "; ".join(filter(None, parts))

"""Tables of results: one run checkpoint by checkpoint, or several runs side by side."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
from rich import box
from rich.table import Column, Table
from rich.text import Text

from budgetreg.analysis.comparisons import Incomparable, ranked
from budgetreg.figures.captions import amount, charged_per_example, chosen_parameters, repetitions_of, with_interval
from budgetreg.notices import in_one_line
from budgetreg.runs.series import Series, labelled, read_folder
from budgetreg.runs.tables import AUC

_MOST_ROWS = 20
_ROUNDING = 1e-12
OF_LABELS = {"test_error_rate": "error rate", AUC: "AUC"}
"""Names of the measures of targets with two values."""
_OF_REGRESSORS = {
    "test_relative": "relative error",
    "test_mse": "test mse",
    **OF_LABELS,
    "test_svr_loss": "SVR loss",
}
_OF_SUBSPACES = {"excess_loss": "excess loss", "relative_error": "relative error", "principal_angle": "angle"}
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
        As for `budgetreg.runs.series.read_series`.
    """
    series = labelled(read_folder(folder))
    several = len(series) > 1
    shared = sorted({f"{curve.dataset}, k = {curve.k}" for curve in series})
    bills = [f"{curve.label}: {_bill(curve)}" if several else _bill(curve) for curve in series]
    means = [curve.mean for curve in series]
    measures = _measures(series, pd.concat(means))
    if all("test_mse" in mean and mean["test_mse"].equals(mean["test_relative"]) for mean in means):
        measures.pop("test_mse", None)  # equal for labels of -1 and +1
    units = _units(series)
    table = new_table(
        "; ".join(shared if several else [f"{series[0].label} on {shared[0]}"]),
        [_SUBSPACE_MEANING if series[0].of_subspaces else _MEANING, *bills],
        *(["learner"] if several else []),
        *(Column(head, justify="right", no_wrap=True) for head in _heads(units, measures)),
    )
    for curve, mean in zip(series, means, strict=True):
        kept = np.linspace(0, len(mean) - 1, min(len(mean), _MOST_ROWS)).round().astype(int)
        for _, row in mean.iloc[kept].iterrows():
            table.add_row(*([curve.label] if several else []), *_cells(curve, row, units, mean[list(measures)].max()))
        table.add_section()
    return table


def comparison_table(series: Sequence[Series]) -> Table:
    """Return a table of several runs at their last checkpoints: learners on a budget, then on full rows, best first.

    Parameters
    ----------
    series : sequence of Series
        As `budgetreg.runs.series.read_series` returns them.

    Returns
    -------
    Table
        One row per series, with its difference from the best of its group: same data set, full rows or a budget.
    """
    of_subspaces = series[0].of_subspaces
    by = "relative_error" if of_subspaces else "test_relative"
    ranks = [
        [(curve, curve.mean.iloc[-1], behind) for curve, behind in _ranks(list(group), by)]
        for _, group in groupby(sorted(series, key=_kind), key=_kind)
    ]
    last = pd.DataFrame([row for group in ranks for _, row, _ in group])
    measures = {key: head for key, head in _measures(series, last).items() if key not in _ONLY_ALONG_A_RUN}
    largest = last[list(measures)].max()
    datasets = {curve.dataset for curve in series}
    several = len(datasets) > 1
    units = _units(series)
    words = ("data set", "learner", "sees") if several else ("learner", "sees")
    numbers = ("k", *_heads(units, measures), "behind", "reps")
    table = new_table(
        "At the last checkpoint" if several else f"{datasets.pop()}, at the last checkpoint",
        [f"{_SUBSPACE_MEANING if of_subspaces else _MEANING}; {_BEHIND}"],
        *(Column(head, min_width=len(head)) for head in words),
        # On a narrow terminal, the interval stands below its number.
        *(Column(head, justify="right", no_wrap=head != "behind") for head in numbers),
    )
    for group in ranks:
        for curve, row, behind in group:
            table.add_row(
                *([curve.dataset] if several else []),
                f"{curve.algo} {curve.variant}".strip(),
                "all" if curve.of_full_rows else "k",
                str(curve.k),
                *_cells(curve, row, units, largest),
                behind,
                str(curve.repetitions),
            )
        table.add_section()
    return table


def _kind(series: Series) -> tuple[str, bool]:
    """Return what all series of one ranking share."""
    return series.dataset, series.of_full_rows


def _ranks(series: Sequence[Series], by: str) -> list[tuple[Series, str]]:
    """Return the series, the best first, with the difference of each from the best."""
    try:
        candidates = ranked(series, by)
    except Incomparable:  # no repetition in common
        return [(curve, "-") for curve in sorted(series, key=lambda curve: curve.mean[by].iloc[-1])]
    best, *others = [(candidate.series, candidate.behind) for candidate in candidates]
    return [(best[0], "-"), *((curve, with_interval(behind)) for curve, behind in others)]


def new_table(title: str, caption: Iterable[str], *columns: str | Column) -> Table:
    """Return an empty table in the style of all results, with the lines of its caption."""
    return Table(
        *columns,
        title=title,
        caption=Text("\n".join(map(in_one_line, caption)), "table.caption"),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )


def _measures(series: Sequence[Series], means: pd.DataFrame) -> dict[str, str]:
    """Return the measures that are known of some series, with their names."""
    heads = _OF_SUBSPACES if series[0].of_subspaces else _OF_REGRESSORS
    return {measure: head for measure, head in heads.items() if measure in means and means[measure].notna().any()}


def _units(series: Sequence[Series]) -> list[str]:
    """Return the units of money; each has a column."""
    return sorted({curve.unit for curve in series if curve.unit})


def _heads(units: Sequence[str], measures: Mapping[str, str]) -> list[str]:
    return ["examples", "attributes", *units, *measures.values()]


def _cells(series: Series, row: pd.Series, units: Sequence[str], largest: pd.Series) -> list[str]:
    """Return a checkpoint's numbers, one for each of `_heads`, with the largest value of each measure."""
    paid = [amount(row["cost"]) if series.unit == unit else "-" for unit in units]
    errors = [_mean_sd(row, str(measure), value) for measure, value in largest.items()]
    return [f"{row['examples']:,.0f}", f"{row['attributes']:,.0f}", *paid, *errors]


def _mean_sd(row: pd.Series, measure: str, largest: float) -> str:
    """Return a mean and its deviation; what is rounding beside the column's largest value counts as 0."""
    mean, sd = (0.0 if abs(value) < _ROUNDING * largest else value for value in (row[measure], row[f"{measure}_sd"]))
    if pd.isna(mean):
        return "-"
    return f"{mean:.4g}" if pd.isna(sd) else f"{mean:.4g} ± {sd:.2g}"


def _bill(series: Series) -> str:
    bill = charged_per_example(series.runs)
    parts = [
        repetitions_of([series]),
        f"attributes per example: {bill}" if bill else "",
        chosen_parameters(series.runs),
    ]
    return "; ".join(filter(None, parts))

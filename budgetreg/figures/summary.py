"""Tables of what runs left: one run checkpoint by checkpoint, or several runs side by side."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table

from budgetreg.analysis.advice import ranked
from budgetreg.analysis.comparisons import Incomparable
from budgetreg.figures.captions import chosen_parameters, edges, money, with_interval
from budgetreg.results.series import Series, mean_curve, read_own, read_series

_MOST_ROWS = 20
_ROUNDING = 1e-12
_HEADS = {
    "test_relative": "relative error",
    "test_mse": "test mse",
    "test_error_rate": "error rate",
    "test_svr_loss": "SVR loss",
}
_SUBSPACE_HEADS = {
    "excess_loss": "excess loss",
    "relative_error": "relative error",
    "principal_angle": "angle",
}
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
    """Tabulate the curves of a run: a row per checkpoint, at most 20 of them, the last one always included.

    Parameters
    ----------
    folder
        The folder of the run, or of merged results. Runs below it are others.

    Returns
    -------
    Table
        Examples, attributes (mean over repetitions) and test errors (mean ± standard deviation over
        repetitions); below it repetitions, attributes charged per example and chosen parameters.

    Raises
    ------
    DataError
        As `budgetreg.results.series.read_series`.
    """
    series = read_own(folder)
    several = len(series) > 1
    shared = sorted({f"{one.dataset}, k = {one.k}" for one in series})
    bills = [f"{one.label}: {_bill(one)}" if several else _bill(one) for one in series]
    heads, meaning = _wording(series)
    table = _table(
        "; ".join(shared if several else [f"{series[0].label} on {shared[0]}"]), "\n".join([meaning, *bills])
    )
    curves = [mean_curve(one.points) for one in series]
    measures = [measure for measure in heads if any(curve[measure].notna().any() for curve in curves)]
    if not series[0].of_subspaces and all(curve["test_mse"].equals(curve["test_relative"]) for curve in curves):
        measures.remove("test_mse")  # as labels of -1 and +1 make it: one column says both
    if several:
        table.add_column("learner")
    units = _units(series)
    for head in ("examples", "attributes", *units, *(heads[measure] for measure in measures)):
        table.add_column(head, justify="right", no_wrap=True)
    for one, curve in zip(series, curves, strict=True):
        for _, row in _thinned(curve).iterrows():
            cells = [f"{row['examples']:.0f}", f"{row['attributes']:.0f}", *_paid(one, row, units)]
            cells += [_mean_sd(row, measure, curve[measure].max()) for measure in measures]
            table.add_row(*([one.label] if several else []), *cells)
        table.add_section()
    return table


def comparison_table(folders: Iterable[Path]) -> Table:
    """Tabulate several runs at their last checkpoints: learners on a budget, then those on full rows, the best first.

    Parameters
    ----------
    folders
        Folders that hold a ``curves.csv``, or folders above them.

    Returns
    -------
    Table
        One row per series, with its distance from the best of its data set that sees as much of an example.

    Raises
    ------
    DataError
        As `budgetreg.results.series.read_series`.
    """
    return compared(read_series(folders))


def compared(series: Sequence[Series]) -> Table:
    """Tabulate series as `comparison_table` does."""
    heads, meaning = _wording(series)
    by = "relative_error" if series[0].of_subspaces else "test_relative"
    alike = [list(own) for _, own in groupby(sorted(series, key=_kind), key=_kind)]
    ranks = [rank for own in alike for rank in _ranks(own, by)]
    last = [(one, mean_curve(one.points).iloc[-1], behind) for one, behind in ranks]
    measures = [
        measure
        for measure in heads
        if measure not in _ONLY_ALONG_A_RUN and any(pd.notna(row[measure]) for _, row, _ in last)
    ]
    datasets = {one.dataset for one in series}
    several = len(datasets) > 1
    table = _table(
        "At the last checkpoint" if several else f"{datasets.pop()}, at the last checkpoint", f"{meaning}; {_BEHIND}"
    )
    for head in ("data set", "learner", "sees") if several else ("learner", "sees"):
        table.add_column(head, min_width=len(head))
    units = _units(series)
    for head in ("k", "examples", "attributes", *units, *(heads[measure] for measure in measures), "behind", "reps"):
        # On a narrow terminal the interval stands below its number.
        table.add_column(head, justify="right", no_wrap=head != "behind")
    before = _kind(last[0][0])
    for one, row, behind in last:
        if _kind(one) != before:
            table.add_section()
            before = _kind(one)
        table.add_row(
            *([one.dataset] if several else []),
            f"{one.algo} {one.variant}".strip(),
            "all" if one.of_full_rows else "k",
            str(one.k),
            f"{row['examples']:.0f}",
            f"{row['attributes']:.0f}",
            *_paid(one, row, units),
            *(_mean_sd(row, measure, max(other[measure] for _, other, _ in last)) for measure in measures),
            behind,
            str(one.repetitions),
        )
    return table


def _kind(series: Series) -> tuple[str, bool]:
    """Return what series have in common that are ranked among themselves."""
    return series.dataset, series.of_full_rows


def _ranks(series: Sequence[Series], by: str) -> list[tuple[Series, str]]:
    """Return series, the best first, and how far each lies behind it."""
    try:
        candidates = ranked(series, by)
    except Incomparable:  # no repetition in common
        return [(one, "-") for one in sorted(series, key=lambda one: mean_curve(one.points)[by].iloc[-1])]
    best, *others = [(one.series, one.behind) for one in candidates]
    return [(best[0], "-"), *((one, with_interval(behind)) for one, behind in others)]


def _wording(series: Sequence[Series]) -> tuple[dict[str, str], str]:
    """Return what the measures of some series are called, and what the table says of them."""
    return (_SUBSPACE_HEADS, _SUBSPACE_MEANING) if series[0].of_subspaces else (_HEADS, _MEANING)


def _units(series: Sequence[Series]) -> list[str]:
    """Return what money is counted in: a column for each unit."""
    return sorted({one.unit for one in series if one.unit})


def _paid(series: Series, row: pd.Series, units: Sequence[str]) -> list[str]:
    return [money(row["cost"]) if series.unit == unit else "-" for unit in units]


def _table(title: str, caption: str) -> Table:
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
    """Write a mean and its deviation, as 0 where they are rounding beside the largest value of the column."""
    mean, sd = (0.0 if abs(value) < _ROUNDING * largest else value for value in (row[measure], row[f"{measure}_sd"]))
    if pd.isna(mean):
        return "-"
    return f"{mean:.4g}" if pd.isna(sd) else f"{mean:.4g} ± {sd:.2g}"


def _bill(series: Series) -> str:
    runs = series.runs
    parts = [f"{series.repetitions} repetition{'s' if series.repetitions > 1 else ''}"]
    if {"attributes_mean", "attributes_max"} <= set(runs.columns) and len(runs):
        mean, most = runs["attributes_mean"].mean(), runs["attributes_max"].max()
        parts.append(f"attributes per example: {mean:.4g} on average, {most:g} at most")
    chosen = [*chosen_parameters(runs), edges(runs)]
    return "; ".join([*parts, ", ".join(filter(None, chosen))]).removesuffix("; ")

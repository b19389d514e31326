"""Tables of what runs left: one run checkpoint by checkpoint, or several runs side by side."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table

from budgetreg.figures.captions import chosen_parameters, edges, money
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
    """Tabulate several runs at their last checkpoints, the best first within each data set.

    Parameters
    ----------
    folders
        Folders that hold a ``curves.csv``, or folders above them.

    Returns
    -------
    Table
        One row per series.

    Raises
    ------
    DataError
        As `budgetreg.results.series.read_series`.
    """
    return compared(read_series(folders))


def compared(series: Sequence[Series]) -> Table:
    """Tabulate series as `comparison_table` does."""
    heads, meaning = _wording(series)
    last = [(one, mean_curve(one.points).iloc[-1]) for one in series]
    by = "relative_error" if series[0].of_subspaces else "test_relative"
    last.sort(key=lambda pair: (pair[0].dataset, pair[1][by]))
    measures = [
        measure
        for measure in heads
        if measure not in _ONLY_ALONG_A_RUN and any(pd.notna(row[measure]) for _, row in last)
    ]
    datasets = {one.dataset for one, _ in last}
    several = len(datasets) > 1
    table = _table("At the last checkpoint" if several else f"{datasets.pop()}, at the last checkpoint", meaning)
    for head in ("data set", "learner") if several else ("learner",):
        table.add_column(head)
    units = _units(series)
    for head in ("k", "examples", "attributes", *units, *(heads[measure] for measure in measures), "reps"):
        table.add_column(head, justify="right", no_wrap=True)
    for one, row in last:
        table.add_row(
            *([one.dataset] if several else []),
            f"{one.algo} {one.variant}".strip(),
            str(one.k),
            f"{row['examples']:.0f}",
            f"{row['attributes']:.0f}",
            *_paid(one, row, units),
            *(_mean_sd(row, measure, max(other[measure] for _, other in last)) for measure in measures),
            str(one.repetitions),
        )
    return table


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

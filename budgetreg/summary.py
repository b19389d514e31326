"""Tables of what runs left: one run checkpoint by checkpoint, or several runs side by side."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table

from budgetreg.captions import chosen_parameters, edges
from budgetreg.curves import Series, mean_curve, read_series

_MOST_ROWS = 20
_HEADS = {
    "test_relative": "relative error",
    "test_mse": "test mse",
    "test_error_rate": "error rate",
    "test_svr_loss": "SVR loss",
}
_MEANING = "mean ± s.d. over repetitions; relative error: mse / that of the zero predictor"


def run_table(folder: Path) -> Table:
    """Tabulate the curves of a run: a row per checkpoint, at most 20 of them, the last one always included.

    Parameters
    ----------
    folder
        A folder that holds a ``curves.csv``, or one above such folders.

    Returns
    -------
    Table
        Examples, attributes (mean over repetitions) and test errors (mean ± standard deviation over
        repetitions); below it repetitions, attributes charged per example and chosen parameters.

    Raises
    ------
    DataError
        As `budgetreg.curves.read_series`.
    """
    series = read_series([folder])
    several = len(series) > 1
    shared = sorted({f"{one.dataset}, k = {one.k}" for one in series})
    bills = [f"{one.label}: {_bill(one)}" if several else _bill(one) for one in series]
    table = _table(
        "; ".join(shared if several else [f"{series[0].label} on {shared[0]}"]), "\n".join([_MEANING, *bills])
    )
    curves = [mean_curve(one.points) for one in series]
    measures = [measure for measure in _HEADS if any(curve[measure].notna().any() for curve in curves)]
    if several:
        table.add_column("learner")
    for head in ("examples", "attributes", *(_HEADS[measure] for measure in measures)):
        table.add_column(head, justify="right", no_wrap=True)
    for one, curve in zip(series, curves, strict=True):
        for _, row in _thinned(curve).iterrows():
            cells = [f"{row['examples']:.0f}", f"{row['attributes']:.0f}"]
            cells += [_mean_sd(row, measure) for measure in measures]
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
        As `budgetreg.curves.read_series`.
    """
    last = [(one, mean_curve(one.points).iloc[-1]) for one in read_series(folders)]
    last.sort(key=lambda pair: (pair[0].dataset, pair[1]["test_relative"]))
    two_valued = any(pd.notna(row["test_error_rate"]) for _, row in last)
    measures = ["test_relative", *(["test_error_rate"] if two_valued else [])]
    datasets = {one.dataset for one, _ in last}
    several = len(datasets) > 1
    table = _table("At the last checkpoint" if several else f"{datasets.pop()}, at the last checkpoint", _MEANING)
    for head in ("data set", "learner") if several else ("learner",):
        table.add_column(head)
    for head in ("k", "examples", "attributes", *(_HEADS[measure] for measure in measures), "reps"):
        table.add_column(head, justify="right", no_wrap=True)
    for one, row in last:
        table.add_row(
            *([one.dataset] if several else []),
            f"{one.algo} {one.variant}".strip(),
            str(one.k),
            f"{row['examples']:.0f}",
            f"{row['attributes']:.0f}",
            *(_mean_sd(row, measure) for measure in measures),
            str(one.repetitions),
        )
    return table


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


def _mean_sd(row: pd.Series, measure: str) -> str:
    mean, sd = row[measure], row[f"{measure}_sd"]
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

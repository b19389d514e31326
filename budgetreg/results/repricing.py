"""Finished runs at other prices: what was revealed is known, so that no run has to be repeated.

Only draws that heed prices would have been others. Whatever else a run found stays as it is.
"""

from collections.abc import Iterable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd

from budgetreg import learners
from budgetreg.data.attribute_lists import EQUAL, read_prices
from budgetreg.errors import ConfigError, DataError
from budgetreg.results.manifest import read_tables
from budgetreg.results.reading import find_folders
from budgetreg.results.schema import COST, REVEAL_COLUMNS, REVEALS
from budgetreg.results.series import Series, labelled, read_folder
from budgetreg.results.tables import as_csv


def repriced(folders: Iterable[Path], costs: Path, unit: str | None = None) -> list[Series]:
    """Read runs as `budgetreg.results.series.read_series` does, with what their reveals cost by another price list.

    Parameters
    ----------
    folders : iterable of Path
        Runs, or folders above them.
    costs : Path
        The price list.
    unit : str, optional
        What its prices are in; that of the runs unless it is given.

    Raises
    ------
    ConfigError
        If the draws of a run heeded the prices that it had: by others it would have made others.
    DataError
        If a run does not tell what it revealed, a file is damaged, or the list does not fit.
    """
    return labelled(
        _repriced(series, folder, costs, unit) for folder in find_folders(folders) for series in read_folder(folder)
    )


def table_of(series: Iterable[Series]) -> bytes:
    """Return the points of series as a CSV file, each with its label."""
    rows = [
        {"label": one.label, **{str(column): value for column, value in point.items()}}
        for one in series
        for point in one.points.to_dict("records")
    ]
    return as_csv(list(dict.fromkeys(column for row in rows for column in row)), rows)


def _repriced(series: Series, folder: Path, costs: Path, unit: str | None) -> Series:
    dataset = series.config.get("dataset", {})
    learner = learners.read(series.config.get("algo", {}))
    # Draws by equal prices are those without any.
    if dataset.get("costs") not in (None, EQUAL) and (learner is None or learner.cost_aware):
        raise ConfigError(
            f"{folder}: {series.algo} drew by its prices, and would have drawn otherwise by others: run it again with "
            "dataset.costs, or once with algo.prices=ignored"
        )
    reveals = _reveals(folder)
    names = tuple(reveals.columns)
    prices = read_prices(costs, names, len(names))
    places = pd.MultiIndex.from_frame(series.points[["repetition", "examples"]])
    if not places.isin(reveals.index).all():
        raise DataError(f"{folder}: {REVEALS} is damaged: it lacks a checkpoint")
    paid = [prices.of(row) for row in reveals.loc[places].to_numpy()]
    told = {**dataset, "costs": str(costs), "unit": unit or dataset.get("unit")}
    return replace(series, points=series.points.assign(**{COST: paid}), config={**series.config, "dataset": told})


def _reveals(folder: Path) -> pd.DataFrame:
    """Return how often each attribute, a column, was revealed by each repetition's checkpoints, the rows."""
    content = read_tables(folder, (REVEALS,)).get(REVEALS)
    if content is None:
        raise DataError(
            f"{folder}: there is no {REVEALS} in it: only runs with prices keep it; run it again, into another folder, "
            f"with dataset.costs={EQUAL}"
        )
    types = {name: str if name == "attribute" else np.int64 for name in REVEAL_COLUMNS}
    try:
        table = pd.read_csv(BytesIO(content), dtype=types, keep_default_na=False, usecols=list(types))
        counts = table.pivot(index=["repetition", "examples"], columns="attribute", values="count")
        return counts[table["attribute"].drop_duplicates()].astype(np.int64)
    except ValueError as error:
        raise DataError(f"{folder}: {REVEALS} is damaged: {str(error).splitlines()[0]}") from None

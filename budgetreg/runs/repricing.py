"""Finished runs at other prices: the reveals are recorded, so that no run has to be repeated.

Only price-aware draws, and those of runs with other free attributes, would have been different. All other results of a
run stay as they are.
"""

from collections.abc import Iterable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd

from budgetreg.algorithms import registry
from budgetreg.data.attributes import EQUAL, read_prices
from budgetreg.data.dataset import Groups
from budgetreg.data.tables import damage_reported, shown
from budgetreg.errors import ConfigError, DataError
from budgetreg.runs.manifest import read_manifest, read_tables
from budgetreg.runs.series import Series, labelled, read_tested
from budgetreg.runs.tables import COST, REVEAL_COLUMNS, REVEALS


def repriced(folders: Iterable[Path], costs: Path, unit: str | None = None) -> list[Series]:
    """Return series as `budgetreg.runs.series.read_series` does, with the costs by another price list.

    Parameters
    ----------
    folders : iterable of Path
        Runs, or folders above them.
    costs : Path
        The price list.
    unit : str, optional
        The unit of its prices; that of the runs by default.

    Raises
    ------
    ConfigError
        If other prices would have changed the draws of a run: they were price-aware, or other attributes were free.
    DataError
        If a run does not record what it revealed, a file is damaged, or the list does not fit.
    """
    return labelled(_repriced(series, series.folder, costs, unit) for series in read_tested(folders))


def _repriced(series: Series, folder: Path, costs: Path, unit: str | None) -> Series:
    dataset = series.config.get("dataset", {})
    learner = registry.read(series.config.get("algo", {}))
    # Equal prices change no draw.
    if dataset.get("costs") not in (None, EQUAL) and (learner is None or learner.cost_aware):
        raise ConfigError(
            f"{folder}: the draws of {series.algo} depend on its prices: run it again with the other prices in "
            "dataset.costs, or once with algo.prices=ignored"
        )
    reveals = read_reveals(folder)
    names = tuple(reveals.columns)
    manifest = read_manifest(folder) or {}
    groups = Groups(tuple(manifest["groups"])) if "groups" in manifest else None
    prices = read_prices(costs, names, len(names), dropped=manifest.get("dropped", ()), groups=groups)
    places = pd.MultiIndex.from_frame(series.points[["repetition", "examples"]])
    recorded = manifest.get("prices", {})
    now_free = {name for name, cost in zip(prices.names, prices.costs, strict=True) if cost == 0}
    changed = sorted(now_free ^ {name for name in names if recorded.get(name) == 0})
    if changed:
        raise ConfigError(
            f"{folder}: the price of {shown(changed)} is 0 in only one of the two lists, and free attributes are seen "
            "of every example: run it again with the other list in dataset.costs"
        )
    paid = [prices.of(row) for row in reveals.loc[places].to_numpy()]
    priced = {**dataset, "costs": str(costs), "unit": unit or dataset.get("unit")}
    return replace(series, points=series.points.assign(**{COST: paid}), config={**series.config, "dataset": priced})


def read_reveals(folder: Path) -> pd.DataFrame:
    """Return how often each attribute (columns) was revealed by each repetition and checkpoint (rows).

    Raises
    ------
    DataError
        If the run had no prices, or the file is damaged.
    """
    content = read_tables(folder, (REVEALS,)).get(REVEALS)
    if content is None:
        raise DataError(
            f"{folder}: there is no {REVEALS} in it, as only runs with prices write one: run it again, into another "
            f"folder, with dataset.costs={EQUAL}"
        )
    types = {name: str if name == "attribute" else np.int64 for name in REVEAL_COLUMNS}
    with damage_reported(folder / REVEALS, ValueError, KeyError, OverflowError):  # a manifest may hold no digests
        table = pd.read_csv(BytesIO(content), dtype=types, keep_default_na=False)
        counts = table.pivot(index=["repetition", "examples"], columns="attribute", values="count")
        return counts[table["attribute"].drop_duplicates()].astype(np.int64)

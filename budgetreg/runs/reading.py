"""The tables and the manifest in a folder of results, read into frames and checked."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from budgetreg.config.sections import AUTO
from budgetreg.data.tables import damage_reported
from budgetreg.errors import DataError
from budgetreg.files import files_below
from budgetreg.runs.manifest import read_tables, results_manifest
from budgetreg.runs.schema import CELL, CURVES, RUNS

CELL_COLUMNS = ("dataset", "algo", "k")
_TEXT_COLUMNS = ("experiment", "algo", "dataset", "edge", "status", CELL)
_COUNT_COLUMNS = ("k", "repetition", "examples")
_NO_RUNS = pd.DataFrame(columns=["repetition"])


@dataclass(frozen=True)
class Results:
    """The results of a run or of a reproduction.

    Attributes
    ----------
    folder : Path
        Where it is.
    curves : DataFrame
        ``curves.csv``: a row for each repetition and checkpoint (and cell, of a reproduction).
    runs : DataFrame
        ``runs.csv``: a row for each repetition, with the parameters chosen and the attribute bill; empty if missing.
    manifest : dict
        ``manifest.json``: configuration, versions, and what the columns mean.
    """

    folder: Path
    curves: pd.DataFrame
    runs: pd.DataFrame
    manifest: dict[str, Any]


def find_folders(folders: Iterable[Path]) -> list[Path]:
    """Find the folders that hold a ``curves.csv``, at or below those given.

    Parameters
    ----------
    folders
        Folders of single runs, or folders above them (a multirun, a reproduction).

    Returns
    -------
    list of Path
        Sorted below each folder given, in the order given; no folder twice.

    Raises
    ------
    DataError
        If a folder does not exist, or no ``curves.csv`` is at or below it.
    """
    places: dict[Path, Path] = {}
    for folder in map(Path, folders):
        if not os.path.isdir(folder):
            raise DataError(f"{folder}: no such folder")
        below = sorted(path.parent for path in files_below(folder, CURVES))
        if not below:
            raise DataError(f"{folder}: no {CURVES} in it or below it; is the run finished?")
        for path in below:
            places.setdefault(path.resolve(), path)
    return list(places.values())


def read(folder: Path) -> Results:
    """Read the results in a folder.

    Raises
    ------
    DataError
        If there are none, or a file is damaged or of another schema.
    """
    if not os.path.isdir(folder):
        raise DataError(f"{folder}: no such folder")
    tables = read_tables(folder, (CURVES, RUNS))
    if CURVES not in tables:
        raise DataError(f"{folder}: no {CURVES} in it; is the run finished?")
    manifest = results_manifest(folder)
    frames = {}
    for name, content in tables.items():
        with damage_reported(folder / name, ValueError, OverflowError):  # a manifest may hold no digests
            frames[name] = _frame(content)
    curves = frames[CURVES]
    if curves.empty:
        raise DataError(f"{folder / CURVES}: holds no finished repetition yet")
    return Results(folder, curves, frames.get(RUNS, _NO_RUNS), manifest)


def _frame(content: bytes) -> pd.DataFrame:
    # As text first: the reader's own conversion to numbers is not exact in all its versions.
    table = pd.read_csv(BytesIO(content), dtype=str, keep_default_na=False)
    for column in table.columns.difference(list(_TEXT_COLUMNS)):
        if column == "k" and (table[column] == AUTO).any():
            table[column] = [value if value == AUTO else int(value) for value in table[column]]
            continue
        table[column] = table[column].replace("", "nan").astype(int if column in _COUNT_COLUMNS else float)
    return table

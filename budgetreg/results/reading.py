"""The tables and the manifest in a folder of results, read into frames and checked."""

from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from budgetreg.errors import DataError
from budgetreg.files.writing import files_below
from budgetreg.results.manifest import read_tables, results_manifest
from budgetreg.results.schema import CELL, CURVES, RUNS, columns

CELL_COLUMNS = ("dataset", "algo", "k")
_TEXT_COLUMNS = ("experiment", "algo", "dataset", "edge", "status", CELL)
_COUNT_COLUMNS = ("k", "repetition", "examples")


@dataclass(frozen=True)
class Results:
    """What a run, or a reproduction, left.

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
        if not folder.is_dir():
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
        If there are none, or a file is empty, damaged or of another schema.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    tables = read_tables(folder, (CURVES, RUNS))
    if CURVES not in tables:
        raise DataError(f"{folder}: no {CURVES} in it; is the run finished?")
    curves = _read_curves(folder / CURVES, tables[CURVES])
    runs = _read_table(folder / RUNS, tables[RUNS]) if RUNS in tables else pd.DataFrame()
    return Results(folder, curves, runs, results_manifest(folder))


def _read_curves(path: Path, content: bytes) -> pd.DataFrame:
    table = _read_table(path, content)
    missing = [column for column in columns("relative_error" in table)[CURVES] if column not in table.columns]
    if missing:
        raise DataError(f"{path}: not the curves of a run: no column {', '.join(missing)}")
    if table.empty:
        raise DataError(f"{path}: holds no finished repetition yet")
    identity = [column for column in (*CELL_COLUMNS, "repetition", "examples", CELL) if column in table]
    if table.duplicated(identity).any():
        raise DataError(f"{path}: is damaged: holds a checkpoint of a repetition twice")
    return table


def _read_table(path: Path, content: bytes) -> pd.DataFrame:
    try:
        # As text first: the reader's own conversion to numbers is not exact in all its versions.
        table = pd.read_csv(BytesIO(content), dtype=str, keep_default_na=False)
    except pd.errors.EmptyDataError:
        raise DataError(f"{path}: the file is empty") from None
    except (OSError, UnicodeDecodeError, pd.errors.ParserError) as error:
        raise DataError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
    for column in table.columns.difference(list(_TEXT_COLUMNS)):
        try:
            table[column] = table[column].replace("", "nan").astype(int if column in _COUNT_COLUMNS else float)
        except ValueError:
            raise DataError(f"{path}: column {column} holds something that is not a number") from None
    return table

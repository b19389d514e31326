"""The results in a folder as frames, for who goes on with them in Python."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from budgetreg.errors import DataError
from budgetreg.results.schema import MANIFEST
from budgetreg.results.series import read_frames


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
        ``runs.csv``: a row for each repetition, with the parameters chosen and the attribute bill.
    manifest : dict
        ``manifest.json``: configuration, versions, and what the columns mean.
    """

    folder: Path
    curves: pd.DataFrame
    runs: pd.DataFrame
    manifest: dict[str, Any]


def read(folder: Path) -> Results:
    """Read the results in a folder.

    Raises
    ------
    DataError
        If there are none, or a file is damaged.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    curves, runs = read_frames(folder)
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    return Results(folder, curves, runs, manifest)

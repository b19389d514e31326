"""Reading ``curves.csv``, ``runs.csv`` and ``manifest.json`` of one or many folders, as labelled series."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from budgetreg import learners
from budgetreg.data.attribute_lists import UNIT
from budgetreg.errors import DataError
from budgetreg.files.writing import files_below
from budgetreg.learners.declaration import Observation
from budgetreg.results.checksums import check_manifest, read_tables
from budgetreg.results.naming import differences
from budgetreg.results.nested import merge
from budgetreg.results.schema import CELL, COST, CURVES, MANIFEST, RUNS, columns

MEASURES = ("test_relative", "test_mse", "test_error_rate", "test_svr_loss")
SUBSPACE_MEASURES = ("relative_error", "excess_loss", "principal_angle")
_TEXT_COLUMNS = ("experiment", "algo", "dataset", "edge", "status", CELL)
_CELL_COLUMNS = ("dataset", "algo", "k")
_COUNT_COLUMNS = ("k", "repetition", "examples")


@dataclass(frozen=True)
class Series:
    """The curve of one learner on one data set with one budget, under one configuration.

    Attributes
    ----------
    dataset, algo, k
        As in ``curves.csv``.
    variant
        What sets it apart from other series with the same three, such as ``"split=even"``; may be empty.
    label
        Learner, budget (only where several occur among the series read together) and variant.
    points
        Its rows of ``curves.csv``: one per repetition and checkpoint.
    runs
        Its rows of ``runs.csv``: one per repetition with a curve; empty if the file is missing.
    config
        The resolved configuration, nested; empty if there is no manifest.
    d
        Number of attributes of the data; None if there is no manifest.
    folder
        Where it was read.
    n_train
        Number of training examples; None if there is no manifest.
    """

    dataset: str
    algo: str
    k: int
    variant: str
    label: str
    points: pd.DataFrame
    runs: pd.DataFrame
    config: dict[str, Any]
    d: int | None
    folder: Path
    n_train: int | None = None

    @property
    def of_subspaces(self) -> bool:
        """Whether the learner learns a subspace, and its points hold `SUBSPACE_MEASURES`."""
        return _is_of_subspaces(self.points)

    @property
    def unit(self) -> str | None:
        """What its column ``cost`` is in; None if it has no prices."""
        priced = COST in self.points and bool(self.points[COST].notna().all())
        return str(self.config.get("dataset", {}).get("unit") or UNIT) if priced else None

    @property
    def of_full_rows(self) -> bool:
        """Whether the learner sees all attributes, rather than k; of one that is not known it is not said."""
        learner = learners.read(self.config.get("algo", {}))
        return learner is not None and learner.observation is Observation.ALL

    @property
    def repetitions(self) -> int:
        """Number of repetitions read."""
        return int(self.points["repetition"].nunique())


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
    found: dict[Path, Path] = {}
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder")
        below = sorted(path.parent for path in files_below(folder, CURVES))
        if not below:
            raise DataError(f"{folder}: no {CURVES} in it or below it; is the run finished?")
        for path in below:
            found.setdefault(path.resolve(), path)
    return list(found.values())


def read_series(folders: Iterable[Path]) -> list[Series]:
    """Read all runs at or below some folders, one series per (data set, learner, k, configuration).

    Runs that share data set, learner and k are told apart by the configuration keys in which they differ.
    Where no key that changes a result differs, they are repetitions of one series (equal repetitions count
    once); if their results contradict each other all the same (another version, say), the folder's name tells
    them apart.

    Parameters
    ----------
    folders
        As for `find_folders`.

    Returns
    -------
    list of Series
        Sorted by data set, learner, k and variant.

    Raises
    ------
    DataError
        If a folder is missing or holds no curves, or a file is empty, damaged or of another schema; if some learn
        subspaces and others do not.
    """
    return labelled(series for folder in find_folders(folders) for series in read_folder(folder))


def read_own(folder: Path) -> list[Series]:
    """Read what lies in a folder itself, whatever runs lie below it.

    Parameters
    ----------
    folder
        The folder of one run, or of merged results.

    Returns
    -------
    list of Series
        As of `read_series`.

    Raises
    ------
    DataError
        As `read_series`.
    """
    return labelled(read_folder(folder))


def labelled(series: Iterable[Series]) -> list[Series]:
    """Give series the labels that tell them apart; those that repeat each other become one.

    Parameters
    ----------
    series
        As `read_folder` returns them.

    Returns
    -------
    list of Series
        As `read_series` does.

    Raises
    ------
    DataError
        If some learn subspaces and others do not.
    """
    read = list(series)
    kinds = {series.of_subspaces: series.folder for series in read}
    if len(kinds) > 1:
        raise DataError(
            f"{kinds[True]} holds errors of subspaces, {kinds[False]} of regressors: give folders of one kind"
        )
    read.sort(key=_cell)
    merged = [series for _, same in groupby(read, key=_cell) for series in _tell_apart(list(same))]
    several_budgets = len({series.k for series in merged}) > 1
    told = [replace(series, label=_label(series, several_budgets)) for series in merged]
    return sorted(told, key=lambda series: (*_cell(series), series.variant))


def common_unit(series: Iterable[Series]) -> str | None:
    """Return what money is counted in if all series have prices, in one unit; else None."""
    units = {one.unit for one in series}
    return units.pop() if len(units) == 1 else None


def mean_curve(points: pd.DataFrame) -> pd.DataFrame:
    """Average a curve over its repetitions.

    Repetitions are grouped by the number of examples: the attributes really charged by a checkpoint differ a
    little between them.

    Parameters
    ----------
    points
        `Series.points`.

    Returns
    -------
    DataFrame
        One row per checkpoint, ascending: ``examples``, ``attributes`` (mean; with prices also ``cost``),
        ``repetitions`` (count), and for each of `MEASURES`, or of `SUBSPACE_MEASURES`, its mean and, as
        ``<measure>_sd``, its standard deviation over repetitions (divisor n - 1; NaN for one repetition).
    """
    groups = points.groupby("examples", sort=True)
    curve = groups.agg(attributes=("attributes", "mean"), repetitions=("repetition", "nunique"))
    if COST in points:
        curve[COST] = groups[COST].mean()
    for measure in _measures(points):
        # What is undefined in one repetition is so in the mean.
        curve[measure] = groups[measure].agg(lambda values: values.mean(skipna=False))
        curve[f"{measure}_sd"] = groups[measure].agg(lambda values: values.std(ddof=1, skipna=False))
    return curve.reset_index()


def _is_of_subspaces(points: pd.DataFrame) -> bool:
    return "relative_error" in points


def _measures(points: pd.DataFrame) -> tuple[str, ...]:
    return SUBSPACE_MEASURES if _is_of_subspaces(points) else MEASURES


def _cell(series: Series) -> tuple[str, str, int]:
    return series.dataset, series.algo, series.k


def _label(series: Series, several_budgets: bool) -> str:
    budget = f"k={series.k}" if several_budgets else ""
    return " ".join(part for part in (series.algo, budget, series.variant) if part)


def _tell_apart(same: Sequence[Series]) -> list[Series]:
    """Merge series of one cell that agree, and give the others the text in which they differ."""
    merged: list[Series] = []
    for variant, series in zip(differences([series.config for series in same]), same, strict=True):
        fitting = (i for i, other in enumerate(merged) if other.variant == variant and _agree(other, series))
        at = next(fitting, None)
        if at is None:
            merged.append(replace(series, variant=variant))
        else:
            merged[at] = _union(merged[at], series)
    times = Counter(series.variant for series in merged)
    names = _folder_names([series.folder for series in merged])
    return [
        series if times[series.variant] == 1 else replace(series, variant=f"{series.variant} ({name})".strip())
        for series, name in zip(merged, names, strict=True)
    ]


def _folder_names(folders: Sequence[Path]) -> list[str]:
    """Name each folder by the shortest end of its path that tells it from the others."""
    parts = [folder.resolve().parts for folder in folders]
    different = len(set(parts))
    depth = next(n for n in range(1, max(map(len, parts)) + 1) if len({part[-n:] for part in parts}) == different)
    return ["/".join(part[-depth:]) for part in parts]


def _agree(one: Series, other: Series) -> bool:
    keys = ["repetition", "examples"]
    priced = [COST] if COST in one.points and COST in other.points else []
    values = ["attributes", *priced, *_measures(one.points)]
    if set(one.points["examples"]) != set(other.points["examples"]):
        return False
    both = one.points.merge(other.points, on=keys, suffixes=("", "_other"))
    return bool(both[values].equals(both[[f"{value}_other" for value in values]].set_axis(values, axis=1)))


def _union(one: Series, other: Series) -> Series:
    points = pd.concat([one.points, other.points]).drop_duplicates(["repetition", "examples"])
    runs = pd.concat([one.runs, other.runs])
    if "repetition" in runs:
        runs = runs.drop_duplicates("repetition")
    return replace(one, points=points.sort_values(["repetition", "examples"], ignore_index=True), runs=runs)


def read_frames(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read ``curves.csv`` and ``runs.csv``, the latter empty if it is missing.

    Raises
    ------
    DataError
        If a file is missing, empty, damaged or of another schema.
    """
    tables = read_tables(folder, (CURVES, RUNS))
    if CURVES not in tables:
        raise DataError(f"{folder}: no {CURVES} in it; is the run finished?")
    points = _read_curves(folder / CURVES, tables[CURVES])
    return points, _read_table(folder / RUNS, tables[RUNS]) if RUNS in tables else pd.DataFrame()


def read_folder(folder: Path) -> list[Series]:
    """Read the curves of one run, or of all cells of a reproduced figure, without labels.

    Raises
    ------
    DataError
        If a file is missing, empty, damaged or of another schema.
    """
    points, runs = read_frames(folder)
    found: list[Series] = []
    for cell, config, data in _read_manifest(folder / MANIFEST):
        own_points, own_runs = (
            table if cell is None or CELL not in table else table[table[CELL] == cell] for table in (points, runs)
        )
        found += _series(own_points, own_runs, config, data, folder)
    return found


def _series(
    points: pd.DataFrame, runs: pd.DataFrame, config: dict[str, Any], data: dict[str, Any], folder: Path
) -> Iterator[Series]:
    for _, rows in points.groupby(list(_CELL_COLUMNS), sort=True):
        cell: dict[str, Any] = {column: rows[column].iloc[0] for column in _CELL_COLUMNS}
        own = runs
        for column in cell.keys() & set(runs.columns):
            own = own[own[column] == cell[column]]
        if "repetition" in own:
            own = own[own["repetition"].isin(rows["repetition"])]  # failed repetitions have no curve
        yield Series(
            **cell,
            variant="",
            label="",
            points=rows,
            runs=own,
            config=config,
            d=data.get("d"),
            folder=folder,
            n_train=data.get("n_train"),
        )


def _read_curves(path: Path, content: bytes) -> pd.DataFrame:
    table = _read_table(path, content)
    of_subspaces = _is_of_subspaces(table)
    if not of_subspaces and "test_svr_loss" not in table:  # as in files from before there were learners of this loss
        table["test_svr_loss"] = float("nan")
    missing = [column for column in columns(of_subspaces)[CURVES] if column not in table.columns]
    if missing:
        raise DataError(f"{path}: not the curves of a run: no column {', '.join(missing)}")
    if table.empty:
        raise DataError(f"{path}: holds no finished repetition yet")
    identity = [column for column in (*_CELL_COLUMNS, "repetition", "examples", CELL) if column in table]
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


def _read_manifest(path: Path) -> list[tuple[str | None, dict[str, Any], dict[str, Any]]]:
    """Return the name, the configuration and the shape of the data of each cell; a run is one without a name."""
    if not path.exists():
        return [(None, {}, {})]
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        check_manifest(path, manifest)
        if "cells" not in manifest:
            return [(None, dict(manifest["config"]), dict(manifest.get("data", {})))]
        return [
            (cell[CELL], merge(manifest["config"], cell["config"]), dict(cell["data"])) for cell in manifest["cells"]
        ]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise DataError(f"{path}: is damaged: holds no configuration") from None

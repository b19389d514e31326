"""Results read back: the curves of folders, what distinguishes each, its bill, also at other prices, and its axes."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from budgetreg.algorithms import registry
from budgetreg.algorithms.learner import Observation
from budgetreg.common.errors import ConfigError, DataError, nearest
from budgetreg.common.files import files_below
from budgetreg.common.notices import say
from budgetreg.config.nested import flatten, variants
from budgetreg.config.options import AUTO
from budgetreg.data.attributes import EQUAL, UNIT, Columns, prices_in, read_list
from budgetreg.data.dataset import Groups
from budgetreg.data.registry import ALL
from budgetreg.data.tables import damage_reported, shown
from budgetreg.runs.manifest import cells_of, read_manifest, read_tables, results_manifest
from budgetreg.runs.tables import AUC, CELL, COST, CURVES, PAID_COST, REVEAL_COLUMNS, REVEALS, RUNS

_TEXT_COLUMNS = ("experiment", "algo", "dataset", "edge", "status", CELL)
_COUNT_COLUMNS = ("k", "repetition", "examples")

MEASURES = ("test_relative", "test_mse", "test_error_rate", "test_svr_loss")
LABEL_MEASURES = ("test_error_rate", AUC)
"""Measures of targets with two values; curves of some data lack the second."""
SUBSPACE_MEASURES = ("relative_error", "excess_loss", "principal_angle")

_ATTRIBUTES = ("attributes_total", "cells_tuning", "rows_full")
_MONEY = ("cost_total", "cost_cells_tuning", "cost_rows_full")
"""Columns of ``runs.csv``: paid for learning, for other cells of tuning, and for rows seen in full."""


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
    return Results(folder, curves, frames.get(RUNS, pd.DataFrame(columns=["repetition"])), manifest)


def _frame(content: bytes) -> pd.DataFrame:
    # As text first: the reader's own conversion to numbers is not exact in all its versions.
    table = pd.read_csv(BytesIO(content), dtype=str, keep_default_na=False)
    for column in table.columns.difference(list(_TEXT_COLUMNS)):
        if column == "k" and (table[column] == AUTO).any():
            table[column] = [value if value == AUTO else int(value) for value in table[column]]
            continue
        table[column] = table[column].replace("", "nan").astype(int if column in _COUNT_COLUMNS else float)
    return table


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
        The resolved configuration, nested.
    d
        Number of attributes of the data.
    folder
        Where it was read.
    n_train
        Number of training examples.
    full_row
        What is charged for a full row, in attributes; None: all d.
    n_test
        Number of test examples, which tests see in full; None if that is not known.
    fingerprint
        The digest of the data; empty if it is not known.
    """

    dataset: str
    algo: str
    k: int | str
    variant: str
    label: str
    points: pd.DataFrame
    runs: pd.DataFrame
    config: dict[str, Any]
    d: int
    folder: Path
    n_train: int
    full_row: int | None = None
    n_test: int | None = None
    fingerprint: str = ""

    @cached_property
    def mean(self) -> pd.DataFrame:
        """The mean over repetitions: one row per checkpoint, ascending.

        Repetitions are grouped by checkpoint, because the attributes charged by a checkpoint differ a little between
        repetitions. The columns are ``examples`` (see `by_checkpoint`), ``attributes`` (mean; with prices also
        ``cost``), ``repetitions`` (count), and for each of `measures` its mean and, as ``<measure>_sd``, its standard
        deviation over repetitions (divisor n - 1; NaN for one repetition).
        """
        groups = by_checkpoint(self.points).groupby("examples", sort=True)
        curve = groups.agg(attributes=("attributes", "mean"), repetitions=("repetition", "nunique"))
        if COST in self.points:
            curve[COST] = groups[COST].mean()
        for measure in self.measures:
            # A mean is undefined if one of its repetitions is.
            curve[measure] = groups[measure].agg(lambda values: values.mean(skipna=False))
            curve[f"{measure}_sd"] = groups[measure].agg(lambda values: values.std(ddof=1, skipna=False))
        return curve.reset_index()

    @property
    def measures(self) -> tuple[str, ...]:
        """The errors that its points hold: `SUBSPACE_MEASURES`, or `MEASURES` and perhaps the area under the curve."""
        if self.of_subspaces:
            return SUBSPACE_MEASURES
        return (*MEASURES, AUC) if AUC in self.points else MEASURES

    @property
    def of_subspaces(self) -> bool:
        """Whether the learner learns a subspace, so that its points hold `SUBSPACE_MEASURES`."""
        return "relative_error" in self.points

    @property
    def unit(self) -> str | None:
        """The unit of its column ``cost``; None if it has no prices."""
        priced = COST in self.points and bool(self.points[COST].notna().all())
        return str(self.config["dataset"].get("unit") or UNIT) if priced else None

    @property
    def ends_with_money(self) -> bool:
        """Whether a total in money ends its repetitions, each at its own number of examples."""
        priced = self.config["dataset"].get("costs") not in (None, EQUAL)
        return priced and self.config.get("total") is not None

    @property
    def of_full_rows(self) -> bool:
        """Whether the learner sees all attributes rather than k; False for a learner that is not known."""
        learner = registry.read(self.config.get("algo", {}))
        return learner is not None and learner.observation is Observation.ALL

    @property
    def of_all_attributes(self) -> bool:
        """Whether the learner sees all attributes of an example, or all that have a value."""
        return self.of_full_rows or (not isinstance(self.k, str) and self.k >= (self.full_row or self.d))

    @property
    def attributes_per_example(self) -> float:
        """The budget k; if the learner chooses it, the attributes of an example on average."""
        return float(self.runs["attributes_mean"].mean()) if isinstance(self.k, str) else float(self.k)

    @property
    def repetitions(self) -> int:
        """Number of repetitions read."""
        return int(self.points["repetition"].nunique())


def read_series(folders: Iterable[Path]) -> list[Series]:
    """Read all runs at or below some folders, one series per (data set, learner, k, configuration).

    Runs that share data set, learner and k get the configuration keys in which they differ as their variant. Runs
    without such a difference are repetitions of one series, and equal repetitions count once. If their results still
    contradict each other, because of another version for example, their variants are the names of their folders.

    Parameters
    ----------
    folders
        As for `budgetreg.runs.series.find_folders`.

    Returns
    -------
    list of Series
        Sorted by data set, learner, k and variant.

    Raises
    ------
    DataError
        If a folder is missing or holds no curves, a file is empty, damaged or of another schema, or some learners
        learn subspaces and others do not.
    """
    return labelled(read_tested(folders))


def read_tested(folders: Iterable[Path]) -> list[Series]:
    """Return the series at or below some folders, without labels; a notice names models of `budgetreg fit`, left out.

    Raises
    ------
    DataError
        As `read_series` does, and if there are only such models.
    """
    found = [series for folder in find_folders(folders) for series in read_folder(folder)]
    tested = [series for series in found if series.config.get("dataset", {}).get("split") != ALL]
    untested = [series.folder for series in found if series.config.get("dataset", {}).get("split") == ALL]
    why = "was learned from all rows (budgetreg fit) and has no test errors"
    if not tested:
        raise DataError(f"{untested[0]} {why}; `budgetreg run` estimates errors")
    for folder in untested:
        say(f"{folder}: left out, as it {why}")
    return tested


def labelled(series: Iterable[Series]) -> list[Series]:
    """Return series with labels that distinguish them, and merge those that repeat each other.

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
        If some learn subspaces and others do not, or a file of data has changed between runs.
    """
    read = list(series)
    kinds = {series.of_subspaces: series.folder for series in read}
    if len(kinds) > 1:
        raise DataError(
            f"{kinds[True]} holds errors of subspaces and {kinds[False]} of regressors: give folders of one kind"
        )
    _refuse_changed_files(read)
    read.sort(key=_cell)
    merged = [series for _, same in groupby(read, key=_cell) for series in _with_variants(list(same))]
    several_budgets = len({series.k for series in merged}) > 1
    named = [replace(series, label=_label(series, several_budgets)) for series in merged]
    return sorted(named, key=lambda series: (*_cell(series), series.variant))


def _refuse_changed_files(read: Iterable[Series]) -> None:
    """Refuse series that are of the same file of data with different contents: they cannot be compared."""
    first: dict[str, Series] = {}
    for series in read:
        dataset = series.config.get("dataset", {})
        if dataset.get("kind") != "file":
            continue
        other = first.setdefault(str(sorted(dataset.items(), key=str)), series)
        if other.fingerprint != series.fingerprint:
            raise DataError(
                f"{other.folder} and {series.folder} learned from different tables, both from {dataset.get('path')}: "
                "the file, or a list of its attributes, has changed; run one again, or give folders of one table"
            )


def common_unit(series: Iterable[Series]) -> str | None:
    """Return the unit of money if all series have prices in the same unit; else None."""
    units = {curve.unit for curve in series}
    return units.pop() if len(units) == 1 else None


def by_checkpoint(points: pd.DataFrame) -> pd.DataFrame:
    """Return points with the mean of ``examples`` over repetitions, rounded, at each checkpoint.

    Repetitions see equally many examples by a checkpoint unless a total in money ends them. Then each has as many
    checkpoints as the others.
    """
    places = points.groupby("repetition")["examples"].rank().astype(int)
    if places.value_counts().nunique() > 1:
        return points
    examples = points["examples"].groupby(places).transform("mean")
    return points.assign(examples=np.floor(examples + 0.5).astype(np.int64))  # which keeps checkpoints distinct


def budgets_of(series: Iterable[Series]) -> list[int | str]:
    """Return the budgets k of some series, ascending; ``auto`` is the last."""
    return sorted({curve.k for curve in series}, key=_place)


def _place(k: int | str) -> tuple[bool, int]:
    return isinstance(k, str), 0 if isinstance(k, str) else k


def _cell(series: Series) -> tuple[str, str, tuple[bool, int]]:
    return series.dataset, series.algo, _place(series.k)


def _label(series: Series, several_budgets: bool) -> str:
    budget = f"k={series.k}" if several_budgets else ""
    return " ".join(part for part in (series.algo, budget, series.variant) if part)


def _with_variants(same: Sequence[Series]) -> list[Series]:
    """Merge series of one cell that agree, and give the others the keys in which they differ as variants."""
    merged: list[Series] = []
    for variant, series in zip(variants([series.config for series in same]), same, strict=True):
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
    """Return for each folder the shortest end of its path that distinguishes it from the others."""
    parts = [folder.resolve().parts for folder in folders]
    different = len(set(parts))
    depth = next(n for n in range(1, max(map(len, parts)) + 1) if len({part[-n:] for part in parts}) == different)
    return ["/".join(part[-depth:]) for part in parts]


def _agree(first: Series, second: Series) -> bool:
    keys = ["repetition", "examples"]
    priced = [COST] if COST in first.points and COST in second.points else []
    measures = [measure for measure in first.measures if measure in second.points]
    values = ["attributes", *priced, *measures]
    by_money = second.ends_with_money and first.points.groupby("repetition").size().max() == (
        second.points.groupby("repetition").size().max()
    )
    if not by_money and set(first.points["examples"]) != set(second.points["examples"]):
        return False
    both = first.points.merge(second.points, on=keys, suffixes=("", "_other"))
    if len(both) < first.points["repetition"].isin(second.points["repetition"]).sum():
        return False
    return bool(both[values].equals(both[[f"{value}_other" for value in values]].set_axis(values, axis=1)))


def _union(first: Series, second: Series) -> Series:
    points = pd.concat([first.points, second.points]).drop_duplicates(["repetition", "examples"])
    runs = pd.concat([first.runs, second.runs]).drop_duplicates("repetition")
    return replace(first, points=points.sort_values(["repetition", "examples"], ignore_index=True), runs=runs)


def read_folder(folder: Path) -> list[Series]:
    """Read the curves of one run, or of all cells of a reproduced figure, without labels.

    Raises
    ------
    DataError
        If a file is missing, empty, damaged or of another schema.
    """
    results = read(folder)
    series = []
    for cell in cells_of(results.manifest):
        points, runs = (
            table[table[CELL] == cell.name] if CELL in table else table for table in (results.curves, results.runs)
        )
        if points.empty:
            continue
        labels: dict[str, Any] = {column: points[column].iloc[0] for column in ("dataset", "algo", "k")}
        series.append(
            Series(
                **labels,
                variant="",
                label="",
                points=points,
                runs=runs[runs["repetition"].isin(points["repetition"])],  # failed repetitions have no curve
                config=cell.config,
                d=cell.data["d"],
                folder=folder,
                n_train=cell.data["n_train"],
                full_row=cell.data.get("full_row"),
                n_test=cell.data.get("n_test"),
                fingerprint=str(cell.data.get("fingerprint", "")),
            )
        )
    return series


class Payments(NamedTuple):
    """The payments of some repetitions together.

    A cell that was bought can be used again: what tuning revealed is counted without the cells that the final run has
    revealed, too, and the sum is at least that of the rows that pilot and tuning saw in full.

    Attributes
    ----------
    final, tuning, rows : float
        Paid for the final run, for other cells that candidates and folds revealed, and for rows seen in full.
    total : float
        In all.
    """

    final: float
    tuning: float
    rows: float
    total: float


def run_paid(results: Results, repetition: int | None = None) -> tuple[Payments | None, Payments | None]:
    """Return what repetitions of a run, all or one, have paid for, in attributes and in money.

    None stands for a bill in attributes that was not recorded, and for money if there are no prices.
    """
    data, wanted = results.manifest["data"], results.curves["repetition"] if repetition is None else [repetition]
    runs = results.runs[results.runs["repetition"].isin(wanted)]
    full_row = data.get("full_row", data["d"])  # fewer, if some attributes are free or bought together
    return _bill(runs, _ATTRIBUTES, full_row), _bill(runs, _MONEY, 1)


def series_paid(series: Series) -> tuple[Payments | None, Payments | None]:
    """Return what all repetitions of a series have paid for, as `run_paid` does."""
    return _bill(series.runs, _ATTRIBUTES, series.full_row or series.d), _bill(series.runs, _MONEY, 1)


def _bill(runs: pd.DataFrame, columns: Sequence[str], unit_of_rows: int) -> Payments | None:
    values = runs.reindex(columns=list(columns)).to_numpy(dtype=float)
    if not values.size or np.isnan(values).any():
        return None
    final, tuning, rows = values[:, 0], values[:, 1], values[:, 2] * unit_of_rows
    total = np.maximum(final + tuning, rows)
    return Payments(*(float(part.sum()) for part in (final, tuning, rows, total)))


def _with_tuning(
    series: Series, curve: pd.DataFrame, spent: str, columns: Sequence[str], unit_of_rows: float
) -> np.ndarray:
    """Return what pilot, tuning and final run pay for; what tuning revealed or saw in full was paid before them."""
    runs = series.runs.reindex(columns=list(columns[1:]))
    if runs.empty or runs.isna().any(axis=None):
        raise DataError(
            f"{series.folder}: what tuning of {series.label} paid for is not known, because {RUNS} does not count "
            "cells: run it again, into another folder"
        )
    cells, rows = runs.mean()
    return np.maximum(ALONG[spent](series, curve) + cells, rows * unit_of_rows)


def _cost(series: Series, curve: pd.DataFrame) -> np.ndarray:
    if COST not in curve:
        raise ConfigError(f"x: {COST}: {series.label or series.algo} has no prices: set dataset.costs")
    return _column(COST)(series, curve)


def _column(name: str) -> Callable[[Series, pd.DataFrame], np.ndarray]:
    return lambda series, curve: curve[name].to_numpy(dtype=float)


def _effective_examples(series: Series, curve: pd.DataFrame) -> np.ndarray:
    """Return m (r/d)^2/n, which decides the excess of a subspace if Theorem 7 of Gonen et al. 2016 is sharp."""
    if not series.of_subspaces:
        raise ConfigError(f"x: effective_examples: {series.label or series.algo} learns no subspace")
    return (
        _column("examples")(series, curve)
        * (series.attributes_per_example / series.d) ** 2
        / int(series.config["algo"]["n_components"])
    )


ALONG: Mapping[str, Callable[[Series, pd.DataFrame], np.ndarray]] = {
    "attributes": _column("attributes"),
    "paid": lambda series, curve: _with_tuning(series, curve, "attributes", _ATTRIBUTES, series.full_row or series.d),
    "examples": _column("examples"),
    COST: _cost,
    PAID_COST: lambda series, curve: _with_tuning(series, curve, COST, _MONEY, 1),
    "effective_examples": _effective_examples,
    "full_rows": lambda series, curve: curve["attributes"].to_numpy(dtype=float) / series.d**2,
}
"""Variables along a curve, as functions of a series and its mean curve."""

OF: Mapping[str, Callable[[Series], float]] = {
    "k": lambda series: series.attributes_per_example,
    "d": lambda series: float(series.d),
    "d/k": lambda series: series.d / series.attributes_per_example,
}
"""Variables of a whole series."""


def along(name: str, series: Series, curve: pd.DataFrame) -> np.ndarray:
    """Return a variable at each checkpoint of a series' mean curve.

    Raises
    ------
    ConfigError
        If there is no such variable, or the series has no prices.
    DataError
        If its runs do not record what was paid.
    """
    if name not in ALONG:
        raise ConfigError(f"x: {name}: no such variable{nearest(name, ALONG)}; variables: {', '.join(ALONG)}")
    return ALONG[name](series, curve)


def of(name: str, series: Series) -> object:
    """Return a variable of a whole series: one of `OF`, or a key of its configuration such as ``dataset.alpha``.

    Raises
    ------
    ConfigError
        If there is no such variable.
    """
    if name in OF:
        return OF[name](series)
    flat = flatten(series.config)
    if name not in flat:
        raise ConfigError(f"{name}: no such key{nearest(name, flat)} or variable ({', '.join(OF)})")
    return flat[name]


def attainable(x: np.ndarray) -> np.ndarray:
    """Return which checkpoints are the last at their place, bool.

    Parameters
    ----------
    x : ndarray, shape (C,)
        Where they lie, in increasing order. Several lie at the same place if what tuning saw in full pays for them all.
    """
    return np.append(np.diff(x) > 0, True)


def repriced(folders: Iterable[Path], costs: Path, unit: str | None = None) -> list[Series]:
    """Return series as `read_series` does, with the costs by another price list.

    The reveals are recorded, so that no run has to be repeated. Runs with other draws at other prices are refused, and
    a notice names those that a total in money ended. All other results of a run stay as they are.

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
        If other prices would have changed the draws of a run: they were price-aware, it chose k, or other attributes
        were free.
    DataError
        If a run does not record what it revealed, a file is damaged, or the list does not fit.
    """
    return labelled(_repriced(series, costs, unit) for series in read_tested(folders))


def _repriced(series: Series, costs: Path, unit: str | None) -> Series:
    folder = series.folder
    dataset = series.config.get("dataset", {})
    learner = registry.read(series.config.get("algo", {}))
    # Equal prices change no draw.
    if dataset.get("costs") not in (None, EQUAL) and (learner is None or learner.cost_aware):
        raise ConfigError(
            f"{folder}: the draws of {series.algo} depend on its prices: run it again with the other prices in "
            "dataset.costs, or once with algo.prices=ignored"
        )
    if series.ends_with_money and series.k == AUTO:
        raise ConfigError(
            f"{folder}: {series.algo} chose what it saw by its prices: run it again with the other prices in "
            "dataset.costs"
        )
    if series.ends_with_money:
        say(f"{folder}: a total in money ended it; at other prices it would have seen more or fewer examples")
    reveals = read_reveals(folder)
    names = tuple(reveals.columns)
    manifest = read_manifest(folder) or {}
    groups = Groups(tuple(manifest["groups"])) if "groups" in manifest else None
    columns = Columns.of(names, len(names), manifest.get("dropped", ()))
    prices = prices_in(read_list(costs, "dataset.costs"), columns, groups)
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

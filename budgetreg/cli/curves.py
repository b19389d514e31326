"""The commands on the curves of finished runs: ``budgetreg plot``, ``compare`` and ``reprice``."""

from argparse import Namespace
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from math import isfinite, isnan
from pathlib import Path

import numpy as np
from rich.table import Table

from budgetreg.analysis.bootstrap import Estimate
from budgetreg.analysis.comparisons import Incomparable, ResampledCurves
from budgetreg.analysis.savings import Saving, savings
from budgetreg.cli.common import console, right, table
from budgetreg.data.formats.chunks import is_number
from budgetreg.errors import ConfigError, DataError, cut, nearest
from budgetreg.figures.axes import axes_of
from budgetreg.figures.curves import plot_series
from budgetreg.figures.drawing import Drawing
from budgetreg.figures.summary import OF_LABELS, comparison_table
from budgetreg.files.paths import at_home
from budgetreg.files.writing import write_atomically
from budgetreg.notices import in_one_line
from budgetreg.results.repricing import repriced, table_of
from budgetreg.results.series import Series, common_unit, read_series

_HEADS = {"attributes": "times fewer", "cost": "times less"}
"""What can be compared, and what a saving of it is called."""
_REPRICED = "repriced"


def plot(arguments: Namespace) -> int:
    """Draw the curves in and below some folders, and print how they end, the best first, and the files.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Raises
    ------
    DataError
        If a folder is missing or holds no curves.
    """
    series = read_series(arguments.folders)
    written = plot_series(series, _target(arguments.out, arguments.folders), "curves")
    console().print(comparison_table(series))
    for path in written:
        print(in_one_line(str(path)))
    return 0


def reprice(arguments: Namespace) -> int:
    """Draw the curves in and below some folders against money, and print how they end, and the files.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Raises
    ------
    ConfigError
        If no price list is given, or a run drew attributes by the prices that it had.
    DataError
        If a run did not record what it revealed, or the list does not fit.
    """
    folders, keys = _sorted(arguments.words, ("costs", "unit"))
    if not folders or not keys.get("costs"):
        raise ConfigError("a folder and a price list are needed: DIR costs=FILE (see budgetreg reprice --help)")
    series = repriced(folders, at_home(keys["costs"]), keys.get("unit"))
    out = _target(arguments.out, folders)
    written = plot_series(series, out, _REPRICED, Drawing(x="cost"))
    write_atomically(out / f"{_REPRICED}.csv", table_of(series))
    console().print(comparison_table(series))
    for path in (*written, out / f"{_REPRICED}.csv"):
        print(in_one_line(str(path)))
    return 0


def compare(arguments: Namespace) -> int:
    """Tabulate what the runs in and below some folders need to reach an error.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Raises
    ------
    ConfigError
        If the error is no number above 0, or money is compared without prices in one unit.
    DataError
        If a folder is missing or holds no curves, if runs have no repetition in common, or no curve falls to any level.
    """
    folders, keys = _sorted(arguments.words, ("error", "axis"))
    if not folders:
        raise ConfigError("compare: a folder is needed (see budgetreg compare --help)")
    level = _level(keys["error"]) if "error" in keys else None
    axis = keys.get("axis")
    if axis is not None and axis not in _HEADS:
        raise ConfigError(f"axis={axis}: must be one of {', '.join(_HEADS)}{nearest(axis, _HEADS)}")
    series = read_series(folders)
    by_dataset = groupby(series, key=lambda curve: curve.dataset)
    tables = [_table(list(curves), folders[0], level, axis) for _, curves in by_dataset]
    for number, (needs, about) in enumerate(tables):
        console().print(*([""] if number else []), needs, sep="\n")
        print(in_one_line(about))
    return 0


def _sorted(words: Sequence[str], keys: Collection[str]) -> tuple[list[Path], dict[str, str]]:
    """Return the folders among some words, and the values of the keys; the last value of a key counts."""
    options = [word for word in words if word.partition("=")[0] in keys and "=" in word]
    return [Path(word) for word in words if word not in options], dict(word.split("=", 1) for word in options)


def _target(out: Path | None, folders: Sequence[Path]) -> Path:
    return out or (folders[0] if len(folders) == 1 else Path())


def _level(text: str) -> float:
    level = float(text) if is_number(text) else 0.0
    if not (level > 0 and isfinite(level)):
        raise ConfigError(f"error={cut(text)}: must be a number above 0")
    return level


def _table(series: Sequence[Series], first: Path, level: float | None, axis: str | None) -> tuple[Table, str]:
    """Return a table of the runs on one data set, and a line about it."""
    unit = common_unit(series)
    axis = axis or ("cost" if unit else "attributes")
    if axis == "cost" and unit is None:
        units = ", ".join(f"{run.label} {f'in {run.unit}' if run.unit else 'without'}" for run in series)
        raise ConfigError(f"axis=cost: {series[0].dataset}: all runs need prices in one unit: {units}")
    _, y = axes_of(series)
    reference = _reference(series, first, y.column)
    try:
        needs = savings(series, y.column, level, reference=reference, x=axis)
        measures = {head: _at_levels(series, needs, name, axis) for name, head in OF_LABELS.items()}
    except Incomparable as error:
        raise DataError(f"{series[0].dataset}: {error}") from error
    if not needs:
        raise DataError(f"{series[0].dataset}: no curve falls to a round level; give one, such as error=0.5")
    known = {head: values for head, values in measures.items() if values}
    amount = unit if unit and axis == "cost" else axis
    numbers = right(amount, "90 % interval", *known, _HEADS[axis], "90 % interval")
    heads = [*right("error"), "learner", *numbers, "than"]
    full = any(run.of_full_rows and not run.of_subspaces for run in series)
    than = "the learner on full rows that needs least" if full else f"{reference}, the best run in {first}"
    about = [f"than: {than}", *([f"{' and '.join(known)}: where the error is reached"] if known else [])]
    rows = _rows(needs, list(zip(*known.values(), strict=True)))
    return table(heads, rows, title=f"{series[0].dataset}: {y.label}"), "; ".join(about)


def _reference(series: Sequence[Series], first: Path, measure: str) -> str:
    """Return the label of the run with the least error at its end, among those in and below a folder."""
    below = [run for run in series if run.folder.resolve().is_relative_to(first.resolve())]
    return min(below, key=lambda run: run.mean[measure].iloc[-1]).label if below else ""


def _at_levels(series: Sequence[Series], needs: Sequence[Saving], measure: str, axis: str) -> list[str]:
    """Return the mean of a measure where each run needs what it needs; nothing if some curve lacks the measure."""
    if not all(measure in run.points and run.points[measure].notna().all() for run in series):
        return []
    comparison = ResampledCurves(series, measure, axis)
    curves = {run.label: comparison.means(run) for run in series}
    values = (float(curves[need.label].at(np.array([need.needed.value]))[0, 0]) for need in needs)
    return ["-" if isnan(value) else f"{value:.3g}" for value in values]


def _rows(needs: Sequence[Saving], measures: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    before = None
    for i, need in enumerate(needs):
        factor = ["", "", ""]
        if need.reference not in ("", need.label):
            factor = [_number(need.factor, need.factor_is), _interval(need.factor), need.reference]
        level = "" if need.error == before else f"{need.error:g}"
        at_level = measures[i] if measures else []
        yield [level, need.label, _number(need.needed, need.needed_is), _interval(need.needed), *at_level, *factor]
        before = need.error


def _number(estimate: Estimate, read: str) -> str:
    return read if isnan(estimate.value) else f"{read} {estimate.value:.4g}".lstrip()


def _interval(estimate: Estimate) -> str:
    """Return an interval as text, with a question mark for an unknown end."""
    if isnan(estimate.low) and isnan(estimate.high):
        return "-"
    low, high = ("?" if isnan(end) else f"{end:.4g}" for end in (estimate.low, estimate.high))
    return f"{low} to {high}"

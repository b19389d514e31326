"""A table of the attributes, or the money, that runs need to reach an error."""

from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path

import numpy as np
from rich.table import Table

from budgetreg.analysis.comparisons import Incomparable, ResampledCurves, Saving, savings
from budgetreg.analysis.intervals import Estimate
from budgetreg.errors import ConfigError, DataError
from budgetreg.figures.axes import axes_of
from budgetreg.figures.captions import amount
from budgetreg.figures.summary import OF_LABELS
from budgetreg.figures.tables import right, table
from budgetreg.runs.series import Series, common_unit

SAVED = {"attributes": "times fewer", "cost": "times less"}
"""What can be compared, and what a saving of it is called."""


def savings_table(
    series: Sequence[Series], first: Path | None = None, level: float | None = None, axis: str | None = None
) -> tuple[Table, str]:
    """Return a table of what the runs on one data set need to reach an error, and a line about it.

    Parameters
    ----------
    series : sequence of Series
        The runs, as `budgetreg.runs.series.read_series` returns them.
    first : Path, optional
        The folder whose best run the others are compared with if none sees full rows; by default the best of all.
    level : float, optional
        The error to reach; by default all round levels that some curve falls to.
    axis : str, optional
        A key of `SAVED`; money by default if all runs have prices in one unit, else attributes.

    Raises
    ------
    ConfigError
        If money is compared without prices in one unit.
    DataError
        If the runs have no repetition in common, or no curve falls to a level.
    """
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
    paid = unit if unit and axis == "cost" else axis
    numbers = right(paid, "90 % interval", *known, SAVED[axis], "90 % interval")
    heads = [*right("error"), "learner", *numbers, "than"]
    full = any(run.of_full_rows and not run.of_subspaces for run in series)
    best = "the best of these runs" if first is None else f"the best run in {first}"
    than = "the learner on full rows that needs least" if full else f"{reference}, {best}"
    about = [f"than: {than}", *([f"{' and '.join(known)}: where the error is reached"] if known else [])]
    rows = _rows(needs, list(zip(*known.values(), strict=True)))
    return table(heads, rows, title=f"{series[0].dataset}: {y.label}"), "; ".join(about)


def _reference(series: Sequence[Series], first: Path | None, measure: str) -> str:
    """Return the label of the run with the least error at its end, among those in and below a folder, or all."""
    below = [run for run in series if first is None or run.folder.resolve().is_relative_to(first.resolve())]
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
    return read if isnan(estimate.value) else f"{read} {amount(estimate.value)}".lstrip()


def _interval(estimate: Estimate) -> str:
    """Return an interval as text, with a question mark for an unknown end."""
    if isnan(estimate.low) and isnan(estimate.high):
        return "-"
    low, high = ("?" if isnan(end) else amount(end) for end in (estimate.low, estimate.high))
    return f"{low} to {high}"

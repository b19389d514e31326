"""``budgetreg compare``: what runs need to reach an error, attributes or money, and how many times less that is."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from budgetreg.cli.common import Parser, console
from budgetreg.errors import ConfigError, DataError, nearest

if TYPE_CHECKING:
    from budgetreg.analysis.bootstrap import Estimate
    from budgetreg.analysis.savings import Saving
    from budgetreg.results.series import Series

_ERROR, _AXIS = "error=", "axis="
_HEADS = {"attributes": "times fewer", "cost": "times less"}
"""What may be compared, and what saving it is called."""
_ABOUT = """Tell how many attributes each run needs until its mean error has fallen to a level, and how many times
fewer that is than the learner on full rows that needs fewest, or than the first run if none sees full rows. Where all
runs on a data set have prices in one unit, it is money that is compared. A curve that begins below the level, or ends
above it, tells only a bound."""


def main(argv: list[str]) -> int:
    """Tabulate what the runs in and below some folders need to reach an error.

    Parameters
    ----------
    argv : list of str
        What follows ``compare`` on the command line.

    Raises
    ------
    ConfigError
        If the error is no number above 0, or money is asked for where there are no prices, or several units.
    DataError
        If a folder is missing or holds no curves, if runs have no repetition in common, or no curve falls to any level.
    """
    told = (
        "runs, or folders above runs; the error to be reached (default: round levels that some curve falls to); "
        "attributes or cost"
    )
    words = Parser("compare", _ABOUT).words(argv, "+", "DIR | error=E | axis=A", told)
    folders = [Path(word) for word in words if not word.startswith((_ERROR, _AXIS))]
    if not folders:
        raise ConfigError("compare: a folder is needed (see budgetreg compare --help)")
    level = next((_level(word) for word in reversed(words) if word.startswith(_ERROR)), None)
    axis = next((_axis(word) for word in reversed(words) if word.startswith(_AXIS)), None)
    from budgetreg.results.series import read_series  # here, because numpy is slow to load and --help is not

    series = read_series(folders)
    tables = [_table(list(own), folders[0], level, axis) for _, own in groupby(series, key=lambda one: one.dataset)]
    for table in tables:
        console().print(table)
    return 0


def _level(word: str) -> float:
    try:
        level = float(word.removeprefix(_ERROR))
    except ValueError:
        level = 0.0
    if not (level > 0 and isfinite(level)):
        raise ConfigError(f"{word}: must be a number above 0")
    return level


def _axis(word: str) -> str:
    axis = word.removeprefix(_AXIS)
    if axis not in _HEADS:
        raise ConfigError(f"{word}: must be one of {', '.join(_HEADS)}{nearest(axis, _HEADS)}")
    return axis


def _table(series: Sequence["Series"], first: Path, level: float | None, axis: str | None) -> Table:
    """Tabulate the runs on one data set."""
    from budgetreg.analysis.comparisons import Incomparable
    from budgetreg.analysis.savings import savings
    from budgetreg.figures.axes import axes_of
    from budgetreg.results.series import common_unit

    unit = common_unit(series)
    axis = axis or ("cost" if unit else "attributes")
    if axis == "cost" and unit is None:
        units = ", ".join(f"{one.label} {f'in {one.unit}' if one.unit else 'without'}" for one in series)
        raise ConfigError(f"axis=cost: {series[0].dataset}: prices in one unit are needed of all runs: {units}")
    _, y = axes_of(series)
    below_first = (one.label for one in series if one.folder.resolve().is_relative_to(first.resolve()))
    try:
        found = savings(series, y.column, level, reference=next(below_first, ""), x=axis)
    except Incomparable as error:
        raise DataError(f"{series[0].dataset}: {error}") from error
    if not found:
        raise DataError(f"{series[0].dataset}: no curve falls to a round level on its way; name one, such as error=0.5")
    table = Table(title=f"{series[0].dataset}: {y.label}", title_justify="left", box=None, pad_edge=False)
    table.add_column("error", justify="right")
    table.add_column("learner")
    amount = unit if unit and axis == "cost" else axis
    for head in (amount, "90 % interval", _HEADS[axis], "90 % interval"):
        table.add_column(head, justify="right")
    table.add_column("than")
    for row in _rows(found):
        table.add_row(*row)
    return table


def _rows(found: Sequence["Saving"]) -> Iterator[list[str]]:
    before = None
    for one in found:
        compared = one.reference not in ("", one.label)
        factor = (
            [_number(one.factor, one.factor_is), _interval(one.factor), one.reference] if compared else ["", "", ""]
        )
        level = "" if one.error == before else f"{one.error:g}"
        yield [level, one.label, _number(one.needed, one.needed_is), _interval(one.needed), *factor]
        before = one.error


def _number(estimate: "Estimate", read: str) -> str:
    return read if isnan(estimate.value) else f"{read} {estimate.value:.4g}".lstrip()


def _interval(estimate: "Estimate") -> str:
    """Write an interval, an end that nobody knows as a question mark."""
    if isnan(estimate.low) and isnan(estimate.high):
        return "-"
    low, high = ("?" if isnan(end) else f"{end:.4g}" for end in (estimate.low, estimate.high))
    return f"{low} to {high}"

"""The commands that show what has been computed: ``budgetreg plot``, ``compare``, ``reprice`` and ``report``."""

from argparse import Namespace
from collections.abc import Collection, Sequence
from itertools import groupby
from math import inf
from pathlib import Path

from budgetreg.cli.console import console, shown
from budgetreg.common.errors import ConfigError, cut, nearest
from budgetreg.common.files import at_home, write_atomically
from budgetreg.common.notices import in_one_line
from budgetreg.data.tables import is_number
from budgetreg.figures import plot as plot_figure
from budgetreg.figures.specification import Drawing
from budgetreg.figures.tables import SAVED, comparison_tables, savings_table
from budgetreg.runs.series import read_series, repriced
from budgetreg.runs.tables import as_csv, refuse_other

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
    written = plot_figure(series, _target(arguments.out, arguments.folders), "curves")
    console().print(*comparison_tables(series), sep="\n")
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
    costs = at_home(keys["costs"])
    series = repriced(folders, costs, keys.get("unit"))
    out = _target(arguments.out, folders)
    rows = [
        {"label": curve.label, **{str(column): value for column, value in point.items() if value == value}}  # not NaN
        for curve in series
        for point in curve.points.to_dict("records")
    ]
    columns = dict.fromkeys(["label", *(str(column) for curve in series for column in curve.points)])
    table, content = out / f"{_REPRICED}.csv", as_csv(columns, rows)
    refuse_other(table, content, [costs])
    written = plot_figure(series, out, _REPRICED, Drawing(x="cost"))
    write_atomically(table, content)
    console().print(*comparison_tables(series), sep="\n")
    for path in (*written, table):
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
    error, axis = keys.get("error"), keys.get("axis")
    level = float(error) if error is not None and is_number(error) else None
    if error is not None and not (level and 0 < level < inf):
        raise ConfigError(f"error={cut(error)}: must be a number above 0")
    if axis is not None and axis not in SAVED:
        raise ConfigError(f"axis={axis}: must be one of {', '.join(SAVED)}{nearest(axis, SAVED)}")
    series = read_series(folders)
    by_dataset = groupby(series, key=lambda curve: curve.dataset)
    tables = [savings_table(list(curves), folders[0], level, axis) for _, curves in by_dataset]
    for number, (needs, about) in enumerate(tables):
        console().print(*([""] if number else []), needs, sep="\n")
        print(in_one_line(about))
    return 0


def report(arguments: Namespace) -> int:
    """Write the page, and print its path.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Raises
    ------
    ConfigError
        If another file would be replaced.
    DataError
        If a place holds no results, nothing is finished there, or a file is damaged.
    """
    from budgetreg.figures.report import write_report  # here, as it is slow to load

    out = None if arguments.out is None else at_home(arguments.out)
    print(shown(write_report([at_home(place) for place in arguments.places], out)))
    return 0


def _sorted(words: Sequence[str], keys: Collection[str]) -> tuple[list[Path], dict[str, str]]:
    """Return the folders among some words, and the values of the keys; the last value of a key counts."""
    options = [word for word in words if word.partition("=")[0] in keys and "=" in word]
    return [Path(word) for word in words if word not in options], dict(word.split("=", 1) for word in options)


def _target(out: Path | None, folders: Sequence[Path]) -> Path:
    return out or (folders[0] if len(folders) == 1 else Path())

"""``budgetreg status``: the progress of the runs in a folder, and with ``--why`` what they and merged results lack."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Column, Table

from budgetreg.cli.common import Parser, console
from budgetreg.errors import DataError
from budgetreg.files.writing import files_below

if TYPE_CHECKING:
    from budgetreg.results.folders import RunStatus

_Reason = tuple[str, str, str, str]
"""Folder; repetitions or cell; state; why."""


def main(argv: list[str]) -> int:
    """Tabulate the runs in and below a folder; with ``--why`` show what they and merged results lack.

    Parameters
    ----------
    argv : list of str
        What follows ``status`` on the command line.

    Raises
    ------
    DataError
        If the folder is missing or holds no run; after the table, if a file of a run is damaged.
    """
    parser = Parser("status", "Show the progress of the runs in and below a folder.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run, or a folder above runs")
    parser.add_argument(
        "--why", action="store_true", help="show what is missing, failed or stale, and why; also of merged results"
    )
    arguments = parser.parse_args(argv)
    folder = arguments.folder
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    from budgetreg.files.integrity import Damaged
    from budgetreg.results.folders import read_status  # here, as numpy is slow to load and --help is not
    from budgetreg.results.manifest import read_merged_manifest

    runs: list[RunStatus] = []
    merged: dict[Path, str] = {}
    damage: list[str] = []
    for path in files_below(folder, "manifest.json"):
        try:
            manifest = read_merged_manifest(path.parent) if arguments.why else None
            if manifest is None:
                runs.append(read_status(path.parent))
            else:
                merged[path.parent] = manifest["recipe"]
        except Damaged as error:
            damage.append(str(error))
        except DataError:  # such as merged results, which have a manifest of their own
            continue
    damage += [run.damage for run in runs if run.damage]
    if not runs and not damage and not merged:
        raise DataError(f"{folder} holds no run (a run leaves a manifest.json)")
    if runs:
        console().print(_table(runs))
    if arguments.why:
        reasons = [*_of_runs(runs), *_of_merged(merged, damage)]
        if reasons:
            console().print(_reasons(reasons))
        elif not damage:
            print("nothing is missing, failed or stale")
    if damage:
        raise DataError(f"{damage[0]}{f' (and {len(damage) - 1} more)' if len(damage) > 1 else ''}")
    return 0


def _table(runs: list["RunStatus"]) -> Table:
    counts = (Column(head, justify="right") for head in ("k", "planned", "finished", "failed"))
    table = Table("folder", "algo", "dataset", *counts, "state", box=None, pad_edge=False)
    for run in runs:
        numbers = map(str, (run.k, run.planned, run.finished, run.failed))
        table.add_row(str(run.folder), run.algo, run.dataset, *numbers, _state(run))
    return table


def _of_runs(runs: list["RunStatus"]) -> Iterator[_Reason]:
    """Give what runs lack: repetitions that were never computed, and those that failed with each message."""
    from budgetreg.reproduce.staleness import number_ranges

    for run in runs:
        by_message: dict[str, list[int]] = {}
        for number, message in run.unfinished.items():
            by_message.setdefault(message, []).append(number)
        never = by_message.pop("", [])
        if never:
            why = "a process works on it now" if run.running else "never finished: run it again"
            yield str(run.folder), f"repetition {number_ranges(never)}", "missing", why
        for message, numbers in by_message.items():
            yield str(run.folder), f"repetition {number_ranges(numbers)}", "failed", message


def _of_merged(recipes: Mapping[Path, str], damage: list[str]) -> Iterator[_Reason]:
    """Give what merged results, with the names of their recipes, lack of them; damage is added to the list."""
    from budgetreg.reproduce.recipes import names, read_recipe
    from budgetreg.reproduce.staleness import cell_problems

    for folder, name in recipes.items():
        if name not in names():
            yield str(folder), "all cells", "no longer", f"there is no recipe {name}"
            continue
        try:
            problems = cell_problems(folder, read_recipe(name))
        except DataError as error:
            damage.append(str(error))
            yield str(folder), "all cells", "damaged", str(error)
            continue
        for problem in problems:
            yield str(folder), problem.cell, problem.state, problem.why


def _reasons(reasons: list[_Reason]) -> Table:
    table = Table("folder", "what", "state", Column("why", overflow="fold"), box=None, pad_edge=False)
    for reason in reasons:
        table.add_row(*reason)
    return table


def _state(run: "RunStatus") -> str:
    if run.running:
        return "running"
    if run.damage:
        return "damaged"
    if run.finished == run.planned:
        return "complete"
    return "failed" if run.finished + run.failed == run.planned else "incomplete"

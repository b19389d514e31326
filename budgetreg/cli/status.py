"""``budgetreg status``: the progress of the runs in a folder, and with ``--why`` what is missing."""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.table import Column

from budgetreg.cli.console import console
from budgetreg.common.errors import DataError
from budgetreg.common.files import Damaged, files_below
from budgetreg.common.notices import right, table
from budgetreg.runs.journal import RunStatus, read_status
from budgetreg.runs.manifest import read_merged_manifest, run_manifest

_Reason = tuple[str, str, str, str]
"""Folder; repetitions or cell; state; why."""


def main(arguments: Namespace) -> int:
    """Tabulate the runs in and below a folder; with ``--why`` show what they and merged results lack.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Raises
    ------
    DataError
        If the folder holds no run; after the table, if a file of a run is damaged.
    """
    runs: list[RunStatus] = []
    merged: dict[Path, str] = {}
    damage: list[str] = []
    for path in files_below(arguments.folder, "manifest.json"):
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
        raise DataError(f"{arguments.folder} holds no run (a run leaves a manifest.json)")
    if runs:
        heads = ["folder", "algo", "dataset", *right("k", "planned", "finished", "failed"), "state"]
        rows = (
            (run.folder, run.algo, run.dataset, run.k, run.planned, run.finished, run.failed, run.state) for run in runs
        )
        console().print(table(heads, rows))
    if arguments.why:
        reasons = [*_of_runs(runs), *_of_merged(merged, damage)]
        if reasons:
            console().print(table(("folder", "what", "state", Column("why", overflow="fold")), reasons))
        elif not damage:
            print("nothing is missing, failed or stale; budgetreg verify compares data and results, too")
    if damage:
        raise DataError(f"{damage[0]}{f' (and {len(damage) - 1} more)' if len(damage) > 1 else ''}")
    return 0


def _of_runs(runs: Sequence[RunStatus]) -> Iterator[_Reason]:
    """Yield what runs lack, and which of them a reproduction made for a cell that its recipe does not have any more."""
    from budgetreg.reproduce.verification import STALE, why_stale  # here, as they are slow to load

    for run in runs:
        yield from ((str(run.folder), *lack) for lack in run.lacks())
        if why := why_stale(run.folder, run_manifest(run.folder)):
            yield str(run.folder), "all repetitions", STALE, why


def _of_merged(merged: Mapping[Path, str], damage: list[str]) -> Iterator[_Reason]:
    """Yield the missing parts of merged results, with the names of their recipes; damage is added to the list."""
    from budgetreg.reproduce import recipes  # here, as they are slow to load
    from budgetreg.reproduce.verification import cell_problems

    for folder, name in merged.items():
        if name not in recipes.names():
            yield str(folder), "all cells", "no longer", f"there is no recipe {name}"
            continue
        try:
            problems = cell_problems(folder, recipes.read_recipe(name))
        except DataError as error:
            damage.append(str(error))
            yield str(folder), "all cells", "damaged", str(error)
            continue
        yield from ((str(folder), *problem) for problem in problems)

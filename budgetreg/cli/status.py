"""``budgetreg status``: how far the runs in a folder are, and with ``--why`` what they and merged results lack."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from budgetreg.cli.common import Parser, console
from budgetreg.errors import DataError
from budgetreg.files.writing import files_below

if TYPE_CHECKING:
    from budgetreg.results.folders import RunStatus


_Reason = tuple[str, str, str, str]  # folder, repetitions or cell, state, why


def main(argv: list[str]) -> int:
    """Tabulate the runs in and below a folder; with ``--why`` tell what they, and merged results there, lack.

    Parameters
    ----------
    argv : list of str
        What follows ``status`` on the command line.

    Raises
    ------
    DataError
        If the folder is missing or holds no run; after the table, if a file of a run is damaged.
    """
    parser = Parser("status", "Tell how far the runs in and below a folder are.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run, or a folder above runs")
    parser.add_argument(
        "--why", action="store_true", help="tell what is missing, failed or stale, and why; also of merged results"
    )
    arguments = parser.parse_args(argv)
    folder = arguments.folder
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    from budgetreg.files.integrity import Damaged
    from budgetreg.results.folders import read_status  # here, because numpy is slow to load and --help is not

    runs, merged = [], []
    damage: list[str] = []
    for path in files_below(folder, "manifest.json"):
        if arguments.why and _is_merged(path.parent, damage):
            merged.append(path.parent)
            continue
        try:
            runs.append(read_status(path.parent))
        except Damaged as error:
            if str(error) not in damage:
                damage.append(str(error))
        except DataError:  # merged results, say, have a manifest of their own
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
    table = Table("folder", "algo", "dataset", box=None, pad_edge=False)
    for column in ("k", "planned", "finished", "failed"):
        table.add_column(column, justify="right")
    table.add_column("state")
    for run in runs:
        counts = (run.k, run.planned, run.finished, run.failed)
        table.add_row(str(run.folder), run.algo, run.dataset, *map(str, counts), _state(run, counts))
    return table


def _is_merged(folder: Path, damage: list[str]) -> bool:
    """Whether merged results lie in a folder; what is damaged is noted."""
    from budgetreg.results.manifest import read_merged_manifest

    try:
        return read_merged_manifest(folder) is not None
    except DataError as error:
        damage.append(str(error))
        return False


def _of_runs(runs: list["RunStatus"]) -> Iterator[_Reason]:
    from budgetreg.reproduce.staleness import ranges

    for run in runs:
        lacking = run.unfinished
        never = [number for number, message in lacking.items() if not message]
        if never:
            why = "a process works on it now" if run.running else "never computed, or not to the end: run it again"
            yield str(run.folder), f"repetition {ranges(never)}", "missing", why
        for message in dict.fromkeys(filter(None, lacking.values())):
            own = [number for number, told in lacking.items() if told == message]
            yield str(run.folder), f"repetition {ranges(own)}", "failed", message


def _of_merged(folders: list[Path], damage: list[str]) -> Iterator[_Reason]:
    """Give what merged results lack of what their recipes ask for; what is damaged is noted."""
    from budgetreg.reproduce.recipes import names, read_recipe
    from budgetreg.reproduce.staleness import stale_cells
    from budgetreg.results.manifest import read_merged_manifest

    for folder in folders:
        name = (read_merged_manifest(folder) or {})["recipe"]
        if name not in names():
            yield str(folder), "all cells", "no longer", f"there is no recipe {name}"
            continue
        try:
            found = stale_cells(folder, read_recipe(name))
        except DataError as error:
            damage.append(str(error))
            yield str(folder), "all cells", "damaged", str(error)
            continue
        for one in found:
            yield str(folder), one.cell, one.state, one.why


def _reasons(reasons: list[_Reason]) -> Table:
    table = Table("folder", "what", "state", box=None, pad_edge=False)
    table.add_column("why", overflow="fold")
    for reason in reasons:
        table.add_row(*reason)
    return table


def _state(run: "RunStatus", counts: tuple[int, int, int, int]) -> str:
    _, planned, finished, failed = counts
    if run.running:
        return "running"
    if run.damage:
        return "damaged"
    if finished == planned:
        return "complete"
    return "failed" if finished + failed == planned else "incomplete"

"""``budgetreg status``: how far the runs in a folder are."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from budgetreg.cli.common import Parser, console
from budgetreg.errors import DataError
from budgetreg.files import files_below

if TYPE_CHECKING:
    from budgetreg.results.store import RunStatus


def main(argv: list[str]) -> int:
    """Tabulate the runs in and below a folder.

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
    folder = parser.parse_args(argv).folder
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    from budgetreg.results.checksums import Damaged
    from budgetreg.results.store import read_status  # here, because numpy is slow to load and --help is not

    runs, damage = [], []
    for path in files_below(folder, "manifest.json"):
        try:
            runs.append(read_status(path.parent))
        except Damaged as error:
            damage.append(str(error))
        except DataError:  # merged results, say, have a manifest of their own
            continue
    damage += [run.damage for run in runs if run.damage]
    if not runs and not damage:
        raise DataError(f"{folder} holds no run (a run leaves a manifest.json)")
    if runs:
        console().print(_table(runs))
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


def _state(run: "RunStatus", counts: tuple[int, int, int, int]) -> str:
    _, planned, finished, failed = counts
    if run.running:
        return "running"
    if run.damage:
        return "damaged"
    if finished == planned:
        return "complete"
    return "failed" if finished + failed == planned else "incomplete"

"""``budgetreg status``: how far the runs in a folder are."""

from pathlib import Path

from rich.table import Table

from budgetreg.commands.common import Parser, console
from budgetreg.errors import DataError


def main(argv: list[str]) -> int:
    """Tabulate the runs in and below a folder.

    Parameters
    ----------
    argv : list of str
        What follows ``status`` on the command line.

    Raises
    ------
    DataError
        If the folder is missing or holds no run.
    """
    parser = Parser("status", "Tell how far the runs in and below a folder are.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run, or a folder above runs")
    folder = parser.parse_args(argv).folder
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    runs = sorted(path.parent for path in folder.rglob("manifest.json"))
    if not runs:
        raise DataError(f"{folder} holds no run (a run leaves a manifest.json)")
    console().print(_table(runs))
    return 0


def _table(runs: list[Path]) -> Table:
    from budgetreg.store import read_status  # here, because numpy is slow to load and --help is not

    table = Table("folder", "algo", "dataset", box=None, pad_edge=False)
    for column in ("k", "planned", "finished", "failed"):
        table.add_column(column, justify="right")
    table.add_column("state")
    for run in runs:
        status = read_status(run)
        counts = (status.k, status.planned, status.finished, status.failed)
        table.add_row(str(run), status.algo, status.dataset, *map(str, counts), _state(status.running, counts))
    return table


def _state(running: bool, counts: tuple[int, int, int, int]) -> str:
    _, planned, finished, failed = counts
    if running:
        return "running"
    if finished == planned:
        return "complete"
    return "failed" if finished + failed == planned else "incomplete"

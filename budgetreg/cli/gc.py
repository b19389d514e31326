"""``budgetreg gc``: list what nothing refers to, and remove it once the user confirms."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from budgetreg.cli.common import Parser, console
from budgetreg.errors import DataError

if TYPE_CHECKING:
    from budgetreg.files.garbage import Garbage

_ABOUT = """Remove what nothing refers to, once you confirm: stale runs of recipes, cached arrays of earlier layouts or
of files that were removed or changed, and temporary files of processes that were killed. Runs that no recipe made are
kept, as is everything that is in use, that merged results refer to, or that contains other files."""
_PLACES = (Path("runs"), Path("results"))


def main(argv: list[str]) -> int:
    """List what can be removed, and remove it if the user confirms.

    Parameters
    ----------
    argv : list of str
        What follows ``gc`` on the command line.

    Returns
    -------
    int
        0, or 1 if something could not be removed.

    Raises
    ------
    DataError
        If a folder is missing, or merged results are damaged, so that what they refer to is unknown.
    """
    parser = Parser("gc", _ABOUT)
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="DIR", help="where runs are; runs and results by default"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask; without it and a terminal nothing is removed")
    arguments = parser.parse_args(argv)
    for folder in arguments.folders:
        if not os.path.isdir(folder):  # which accepts names of any length
            raise DataError(f"{folder}: no such folder")
    folders = arguments.folders or [folder for folder in _PLACES if folder.is_dir()]
    removable = [(garbage, size) for garbage in _garbage(folders) if (size := garbage.size()) is not None]
    if not removable:
        print("nothing to remove")
        return 0
    console().print(_table(removable))
    if not (arguments.yes or _agreed(len(removable))):
        return 0
    kept = [garbage for garbage, _ in removable if not garbage.remove()]
    freed = sum(size for garbage, size in removable if garbage not in kept)
    print(f"removed: {len(removable) - len(kept)}, {_bytes(freed)}")
    for garbage in kept:
        print(f"budgetreg: {garbage.path}: in use, or cannot be removed", file=sys.stderr)
    return 1 if kept else 0


def _garbage(folders: Sequence[Path]) -> "Iterator[Garbage]":
    """Give everything that can be removed; of a folder, the folder alone."""
    from budgetreg.data import unused  # here, as Hydra and numpy are slow to load and --help is not
    from budgetreg.execution.scratch import abandoned
    from budgetreg.reproduce.receipts import outdated_receipts
    from budgetreg.reproduce.stale_runs import stale_runs
    from budgetreg.results.folders import abandoned_files

    seen: set[Path] = set()
    for folder in folders:
        results = (folder, folder.absolute().parent / "results", _PLACES[1])
        for garbage in (*stale_runs(folder, results), *abandoned_files(folder)):
            path = garbage.path.absolute()
            if not seen & {path, *path.parents}:
                seen.add(path)
                yield garbage
    yield from unused()
    yield from outdated_receipts()
    yield from abandoned()


def _table(removable: "Sequence[tuple[Garbage, int]]") -> Table:
    table = Table("what", box=None, pad_edge=False, show_footer=True)
    table.columns[0].footer = "together"
    table.add_column("size", justify="right", footer=_bytes(sum(size for _, size in removable)))
    table.add_column("why", overflow="fold")
    for garbage, size in removable:
        table.add_row(str(garbage.path), _bytes(size), garbage.why)
    return table


def _agreed(number: int) -> bool:
    """Ask on a terminal; without one, say which option removes it."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        print("budgetreg: nothing was removed (--yes removes these)", file=sys.stderr)
        return False
    print(f"remove {'these' if number > 1 else 'this'}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"

"""``budgetreg gc``: remove what nothing refers to, having shown it and asked."""

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

_ABOUT = """Remove what nothing refers to: runs of recipes that are stale, cached arrays of earlier layouts or of files
that are gone or changed, temporary files and folders of processes that were killed. All is listed first. Runs that no
recipe made stay, and so does whatever is in use, is referred to by merged results, or has files in it that are not
ours."""
_PLACES = (Path("runs"), Path("results"))


def main(argv: list[str]) -> int:
    """List what can be removed, and remove it if that is wanted.

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
        If a folder is missing, or merged results are damaged: what they refer to is not known then.
    """
    parser = Parser("gc", _ABOUT)
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="DIR", help="where runs are; runs and results by default"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask; without it and a terminal nothing is removed")
    arguments = parser.parse_args(argv)
    for folder in arguments.folders:
        if not os.path.isdir(folder):  # which no name is too long for
            raise DataError(f"{folder}: no such folder")
    folders = arguments.folders or [folder for folder in _PLACES if folder.is_dir()]
    found = [(garbage, size) for garbage in _garbage(folders) if (size := garbage.size()) is not None]
    if not found:
        print("nothing to remove")
        return 0
    console().print(_table(found))
    if not (arguments.yes or _agreed(len(found))):
        return 0
    kept = [garbage for garbage, _ in found if not garbage.remove()]
    freed = sum(size for garbage, size in found if garbage not in kept)
    print(f"removed: {len(found) - len(kept)}, {_bytes(freed)}")
    for garbage in kept:
        print(f"budgetreg: {garbage.path}: in use, or cannot be removed", file=sys.stderr)
    return 1 if kept else 0


def _garbage(folders: Sequence[Path]) -> "Iterator[Garbage]":
    """Give all there is, a folder that is removed as a whole without its files."""
    from budgetreg.data import unused  # here, because Hydra and numpy are slow to load and --help is not
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


def _table(found: "Sequence[tuple[Garbage, int]]") -> Table:
    table = Table("what", box=None, pad_edge=False, show_footer=True)
    table.columns[0].footer = "together"
    table.add_column("size", justify="right", footer=_bytes(sum(size for _, size in found)))
    table.add_column("why", overflow="fold")
    for garbage, size in found:
        table.add_row(str(garbage.path), _bytes(size), garbage.why)
    return table


def _agreed(number: int) -> bool:
    """Ask on a terminal; without one, say how to have it done."""
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

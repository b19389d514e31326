"""``budgetreg gc``: list what nothing refers to, and remove it once the user confirms."""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Column

from budgetreg.cli.common import console
from budgetreg.data.registry import unused
from budgetreg.execution.scratch import abandoned
from budgetreg.figures.tables import table
from budgetreg.files.garbage import Garbage
from budgetreg.notices import say
from budgetreg.reproduce.staleness import outdated_receipts, stale_runs
from budgetreg.results.folders import abandoned_files

_PLACES = (Path("runs"), Path("results"))


def main(arguments: Namespace) -> int:
    """List what can be removed, and remove it if the user confirms.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Returns
    -------
    int
        0, or 1 if something could not be removed.

    Raises
    ------
    DataError
        If merged results are damaged, so that what they refer to is unknown.
    """
    folders = arguments.folders or [folder for folder in _PLACES if folder.is_dir()]
    removable = [(garbage, size) for garbage in _garbage(folders) if (size := garbage.size()) is not None]
    if not removable:
        print("nothing to remove")
        return 0
    heads = (
        Column("what", footer="together"),
        Column("size", justify="right", footer=_bytes(sum(size for _, size in removable))),
        Column("why", overflow="fold"),
    )
    rows = ((garbage.path, _bytes(size), garbage.why) for garbage, size in removable)
    console().print(table(heads, rows, show_footer=True))
    if not (arguments.yes or _agreed(len(removable))):
        return 0
    kept = [garbage for garbage, _ in removable if not garbage.remove()]
    freed = sum(size for garbage, size in removable if garbage not in kept)
    print(f"removed: {len(removable) - len(kept)}, {_bytes(freed)}")
    for garbage in kept:
        say(f"{garbage.path}: in use, or cannot be removed")
    return 1 if kept else 0


def _garbage(folders: Sequence[Path]) -> Iterator[Garbage]:
    """Give everything that can be removed; of a folder, the folder alone."""
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


def _agreed(number: int) -> bool:
    """Ask on a terminal; without one, print which option removes it."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        say("nothing was removed (--yes removes these)")
        return False
    print(f"remove {'these' if number > 1 else 'this'}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"

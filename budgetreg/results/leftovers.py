"""What runs leave that can be removed: their folders, and temporary files of processes that were killed."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from budgetreg.files.garbage import Garbage
from budgetreg.files.writing import is_alive
from budgetreg.results.schema import CLAIMS, CURVES, JOURNAL, LOCK, MANIFEST, MODEL, MODELS, RUNS, SAVINGS
from budgetreg.results.store import is_locked

_FIGURES = tuple(f"{name}.{ending}" for name in ("curve", "curves") for ending in ("png", "pdf", "txt"))
_OF_RUNS = {CURVES, JOURNAL, LOCK, MANIFEST, MODEL, MODELS, RUNS, *_FIGURES}
_WRITTEN = _OF_RUNS | {CLAIMS, SAVINGS, "README.md"}
_TEMPORARY = re.compile(r"\.(.+)\.(\d+)\.tmp")  # as `budgetreg.files.writing.temporary_name` has it


def run_folder(folder: Path, why: str) -> Garbage:
    """Return the folder of a run as what can be removed, unless there is anything else in it."""
    return Garbage(folder, why, _is_of_run, folder / LOCK, last=(MANIFEST, LOCK))


def abandoned_files(folder: Path) -> Iterator[Garbage]:
    """Give the temporary files in and below a folder whose writers were killed; links are not followed."""
    for place, _, files in os.walk(folder):
        found = [name for name in sorted(files) if _is_abandoned(name)]
        if found and not is_locked(Path(place)):  # perhaps by a process of another machine
            for name in found:
                yield Garbage(Path(place, name), "left by a process that is gone")


def _is_of_run(name: str) -> bool:
    return name in _OF_RUNS or _is_abandoned(name)


def _is_abandoned(name: str) -> bool:
    match = _TEMPORARY.fullmatch(name)
    return match is not None and match[1] in _WRITTEN and not is_alive(int(match[2]))

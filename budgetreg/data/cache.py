"""The folder of what is prepared once and mapped by many workers; everything in it appears whole or not at all.

Every file in it is sealed, so that one which was damaged afterwards is noticed, and made again.
"""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import filelock

from budgetreg.data.seals import accept, is_intact, seal
from budgetreg.errors import DataError
from budgetreg.files.writing import sync_folder
from budgetreg.notices import say

LOCK, TEMPORARY = "lock", ".tmp"
"""Names in the folders of the cache: of the file by which one process keeps others out, and how unfinished ones end."""


def cache_root() -> Path:
    """Return budgetreg's folder below ``XDG_CACHE_HOME``, or below ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "budgetreg"


def ensure(path: Path, is_whole: Callable[[Path], bool], write: Callable[[Path], None]) -> None:
    """Prepare a file or folder of the cache, unless that was done before.

    Parameters
    ----------
    path : Path
        What is wanted. One process at a time prepares something in the folder around it; others wait.
    is_whole : callable
        Whether what lies at a path, intact, is what is wanted.
    write : callable
        Writes it to another path beside the one that is wanted; of a folder it writes the files alone.

    Raises
    ------
    DataError
        If the cache cannot be written.
    """

    def is_ready() -> bool:
        return is_intact(path) and is_whole(path)

    if is_ready():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(path.parent / LOCK):
            if is_ready():  # another worker was faster
                return
            if path.exists():
                say(f"{path} is damaged, and is made again")
            temporary = path.with_name(f"{path.name}{TEMPORARY}")
            _remove(temporary)  # of a process that was killed
            try:
                write(temporary)
                for file in sorted(temporary.iterdir()) if temporary.is_dir() else [temporary]:
                    seal(file)
                    _sync(file)
                if path.is_dir():  # damaged, and only an empty folder is replaced
                    _remove(path)
                os.replace(temporary, path)
                accept(path)
                sync_folder(path.parent)
            except BaseException:
                _remove(temporary)
                raise
    except OSError as error:
        raise DataError(
            f"cannot write the cache {path.parent} ({error.strerror or error}): "
            "set XDG_CACHE_HOME to a folder that can be written"
        ) from error


def remove_abandoned() -> None:
    """Remove what processes that were killed left half prepared; what another one is preparing now stays."""
    for temporary in cache_root().glob(f"*/*{TEMPORARY}"):
        with suppress(filelock.Timeout, OSError), filelock.FileLock(temporary.parent / LOCK, blocking=False):
            _remove(temporary)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

"""The cache of prepared arrays, which many workers map; every file in it appears whole or not at all.

Every file has a checksum at its end, so that one which is damaged later is detected and made again.
"""

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import filelock
import numpy as np

from budgetreg.data.seals import accept, is_intact, seal
from budgetreg.errors import DataError
from budgetreg.files.writing import sync_folder
from budgetreg.notices import say

LOCK, TEMPORARY = "lock", ".tmp"
"""Name of the file in a cache folder by which one process keeps others out; ending of unfinished files."""


def cache_root() -> Path:
    """Return budgetreg's folder below ``XDG_CACHE_HOME``, or below ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "budgetreg"


def ensure(path: Path, is_whole: Callable[[Path], bool], write: Callable[[Path], None]) -> None:
    """Prepare a file or folder of the cache, unless that was done before.

    Parameters
    ----------
    path : Path
        The file or folder. One process at a time prepares something in the folder around it; others wait.
    is_whole : callable
        Whether an intact file or folder at a path has the right content.
    write : callable
        Writes to another path in the same folder; into a folder it writes files only.

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
                say(f"{path} is damaged: it is prepared again")
            temporary = path.with_name(f"{path.name}{TEMPORARY}")
            _remove(temporary)  # of a process that was killed
            try:
                write(temporary)
                for file in sorted(temporary.iterdir()) if temporary.is_dir() else [temporary]:
                    seal(file)
                    _sync(file)
                if path.is_dir():  # damaged, and only an empty folder can be replaced
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


def ensure_array(path: Path, make: Callable[[], np.ndarray]) -> np.ndarray:
    """Return an array of the cache, memory-mapped, after preparing it unless that was done before.

    Parameters
    ----------
    path : Path
        The NPY file.
    make : callable
        Computes the array.

    Raises
    ------
    DataError
        If the cache cannot be written.
    """

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:  # np.save would append .npy to a name
            np.save(file, np.ascontiguousarray(make()))

    ensure(path, is_array, write)
    return mapped(path)


def mapped(path: Path) -> np.ndarray:
    """Map the array in an NPY file."""
    array: np.ndarray = np.load(path, mmap_mode="r")
    return array


def is_array(path: Path) -> bool:
    """Whether there is an NPY file of full length."""
    try:
        mapped(path)
    except (OSError, ValueError, EOFError):  # missing, or cut short by a full disk
        return False
    return True


def earlier_layouts(folders: Iterable[Path]) -> dict[Path, str]:
    """Return those of the cache folders of earlier layouts that exist, with the reason why they are unused."""
    return {folder: "arrays of an earlier layout" for folder in folders if folder.is_dir()}


def remove_abandoned() -> None:
    """Remove what killed processes left half prepared; what another process is preparing now stays."""
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

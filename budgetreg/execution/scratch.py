"""Folders for a while, and what is left of those whose process was killed.

A folder's owner holds a lock in it for as long as it lives; the system takes the lock away with the process, however
that ends. Whoever can take the lock may therefore remove the folder: it is nobody's.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from budgetreg.files.garbage import Garbage

_OWNER = ".owner"
_PREFIX = "budgetreg-"
_SUFFIX = ".tmp"  # so that nobody else's folder is called like one of ours


@contextmanager
def scratch_folder(prefix: str = _PREFIX, parent: Path | None = None) -> Iterator[Path]:
    """Make a folder that is removed at the end of the block; if the process is killed, by the next one that makes one.

    Parameters
    ----------
    prefix : str, optional
        How its name begins; abandoned folders are those that begin alike.
    parent : Path, optional
        Where it is made; among the system's temporary files by default.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    place = Path(tempfile.gettempdir()) if parent is None else parent
    remove_abandoned(prefix, place)
    while True:
        folder = Path(tempfile.mkdtemp(_SUFFIX, prefix, place))
        lock = FileLock(folder / _OWNER)
        with suppress(FileNotFoundError):
            lock.acquire()
            if (folder / _OWNER).exists():  # nobody took it for abandoned before the lock was ours
                break
        lock.release()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def abandoned() -> Iterator[Garbage]:
    """Give the folders among the system's temporary files whose process is gone; some may still be in use."""
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")):
        if (folder / _OWNER).is_file():
            yield Garbage(folder, "left by a process that is gone", lock=folder / _OWNER)


def remove_abandoned(prefix: str, parent: Path) -> None:
    """Remove the folders that killed processes left; what cannot be removed stays, as it harms nobody."""
    for folder in parent.glob(f"{prefix}*"):
        if (folder / _OWNER).is_file():
            with suppress(Timeout, OSError), FileLock(folder / _OWNER, blocking=False):
                shutil.rmtree(folder, ignore_errors=True)
        elif folder.name.endswith(_SUFFIX):  # killed before it was locked; who is about to lock it makes another one
            with suppress(OSError):
                folder.rmdir()

"""Temporary folders, and the removal of those whose process was killed.

The process that owns a folder holds a lock in it. The system releases the lock when the process ends, however it ends.
A process that can take the lock may therefore remove the folder.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

_OWNER = ".owner"
_PREFIX = "budgetreg-"
_SUFFIX = ".tmp"  # distinguishes our folders from other people's


@contextmanager
def scratch_folder(prefix: str = _PREFIX, parent: Path | None = None) -> Iterator[Path]:
    """Make a folder, and remove it at the end of the block.

    If the process is killed, the next process that makes such a folder removes it.

    Parameters
    ----------
    prefix : str, optional
        The beginning of its name, which folders of the same kind share.
    parent : Path, optional
        Where it is made; the system's folder of temporary files by default.

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
            if (folder / _OWNER).exists():  # nobody removed it before the lock was ours
                break
        lock.release()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def remove_abandoned(prefix: str = _PREFIX, parent: Path | None = None) -> None:
    """Remove the folders that killed processes left; what cannot be removed stays, because it does no harm."""
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    folders: list[Path] = []
    with suppress(OSError):  # a name that is too long
        folders += parent.glob(f"{prefix}*")
    for folder in folders:
        if (folder / _OWNER).is_file():
            with suppress(Timeout, OSError), FileLock(folder / _OWNER, blocking=False):
                shutil.rmtree(folder, ignore_errors=True)
        elif folder.name.endswith(_SUFFIX):  # not locked yet; a process that is about to lock it makes another one
            with suppress(OSError):
                folder.rmdir()

"""One process at a time changes a file that is replaced as a whole."""

import fcntl
import os
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from budgetreg.errors import UserError
from budgetreg.files import os_errors_explained, regular
from budgetreg.notices import say

SILENT, PATIENCE = 1.0, 30.0
"""Seconds of waiting before it is reported, and before it ends."""
_PAUSE = 0.02
_SQLITE = 0x40000001
"""The byte that SQLite locks in a database before it changes it."""


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Let no other process change a file during the block, nor another thread; they wait.

    The lock is on the file itself, so that nothing has to lie beside it, and the end of a process releases it.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    UserError
        If the file cannot be changed, or another process is still changing it after 30 s.
    """
    began, reported = time.monotonic(), False
    while True:
        with os_errors_explained(f"write {path}"):
            regular(path)
            file = path.open("r+b")
        with file:
            with os_errors_explained(f"write {path}"):
                # The one that held the lock before may have put another file in its place.
                ours = _lock(file.fileno()) and os.path.samestat(os.fstat(file.fileno()), path.stat())
            if ours:
                yield
                return
        waited = time.monotonic() - began
        if waited > PATIENCE:
            raise UserError(f"{path}: another process has been changing it for {waited:.0f} s: try again later")
        if waited > SILENT and not reported:
            say(f"waiting for another process, which is changing {path}")
            reported = True
        time.sleep(_PAUSE)


def _lock(descriptor: int) -> bool:
    """Lock an open file, unless somebody else has locked it; return whether it is locked."""
    try:
        if sys.platform == "linux":
            # Unlike other locks on bytes, it excludes threads of the same process too; unlike a lock on the whole file,
            # it is one that SQLite respects.
            lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _SQLITE, 1, 0)
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

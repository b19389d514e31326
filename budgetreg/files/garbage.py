"""Removal of files and folders that nobody needs, but never of links, of what is in use, or of other people's files."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout


@dataclass(frozen=True)
class Garbage:
    """A file or folder that can be removed.

    Attributes
    ----------
    path : Path
        The file or folder.
    why : str
        Why nobody needs it.
    is_ours : callable
        Takes the path of a file below the folder, and returns whether we write such files.
    lock : Path or None
        The file that is locked while the folder is in use.
    last : tuple of str
        Names of files that are removed after the others, in this order: they mark the folder as ours.
    """

    path: Path
    why: str
    is_ours: Callable[[str], bool] = lambda name: True
    lock: Path | None = None
    last: tuple[str, ...] = ()

    def size(self) -> int | None:
        """Return its size in bytes; None if it must not be removed, because it is in use or not all of it is ours."""
        try:
            if self.lock is not None and self.lock.exists():
                with FileLock(self.lock, blocking=False):
                    pass
            return sum(path.lstat().st_size for path in self._files())
        except (Timeout, OSError):
            return None

    def remove(self) -> bool:
        """Remove it, unless it is in use now or holds anything that is not ours; return whether it is gone."""
        try:
            self.path.lstat()  # raises if it is gone: taking the lock would make the folder again
            with nullcontext() if self.lock is None else FileLock(self.lock, blocking=False):
                for path in self._files():
                    if path != self.lock:
                        path.unlink()
                if self.lock is not None and self.lock.is_relative_to(self.path):
                    self.lock.unlink(missing_ok=True)
                for folder, _, _ in os.walk(self.path, topdown=False):
                    os.rmdir(folder)  # raises an error if a file came meanwhile, which stays
        except (Timeout, OSError):
            return False
        return not self.path.exists()

    def _files(self) -> list[Path]:
        """Return the files in the order of their removal.

        Raises
        ------
        OSError
            If one is not ours, is not a plain file, or cannot be inspected.
        """
        files = list(_plain_files(self.path))
        if self.path not in files and not all(self.is_ours(path.relative_to(self.path).as_posix()) for path in files):
            raise OSError(f"{self.path} holds a file that budgetreg did not write")
        place = {name: number for number, name in enumerate(self.last, 1)}
        return sorted(files, key=lambda path: (place.get(path.name, 0), path))


def _plain_files(path: Path) -> Iterator[Path]:
    mode = path.lstat().st_mode  # of a link itself, which is not followed
    if stat.S_ISREG(mode):
        yield path
    elif stat.S_ISDIR(mode):
        for inside in path.iterdir():
            yield from _plain_files(inside)
    else:
        raise OSError(f"{path} is neither a file nor a folder")

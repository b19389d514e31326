"""What of ours nothing refers to, and its removal: never of a link, of what is in use, or of somebody else's files."""

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
        What is removed.
    why : str
        Why nobody needs it.
    is_ours : callable
        Whether a file of the folder, told by its path below the folder, is one that we leave there.
    lock : Path or None
        The file whose lock says that somebody uses it.
    last : tuple of str
        Names of files that are removed after the others, in this order: what tells that the folder is ours.
    """

    path: Path
    why: str
    is_ours: Callable[[str], bool] = lambda name: True
    lock: Path | None = None
    last: tuple[str, ...] = ()

    def size(self) -> int | None:
        """Return how many bytes it takes; None if it must not be removed, as it is in use or not all of it is ours."""
        try:
            if self.lock is not None and self.lock.exists():
                with FileLock(self.lock, blocking=False):
                    pass
            return sum(path.lstat().st_size for path in self._files())
        except (Timeout, OSError):
            return None

    def remove(self) -> bool:
        """Remove it, unless it has come into use since, or something else lies there; return whether it is gone."""
        try:
            self.path.lstat()  # as taking a lock would make the folder that is gone
            with nullcontext() if self.lock is None else FileLock(self.lock, blocking=False):
                for path in self._files():
                    if path != self.lock:
                        path.unlink()
                if self.lock is not None and self.lock.is_relative_to(self.path):
                    self.lock.unlink(missing_ok=True)
                _remove_empty(self.path)
        except (Timeout, OSError):
            return False
        return not self.path.exists()

    def _files(self) -> list[Path]:
        """Return the files in the order of their removal.

        Raises
        ------
        OSError
            If one is not ours, is no plain file, or cannot be looked at.
        """
        mode = self.path.lstat().st_mode
        if stat.S_ISREG(mode):
            return [self.path]
        if not stat.S_ISDIR(mode):
            raise OSError(f"{self.path} is neither a file nor a folder")
        files = list(_plain_files(self.path))
        if not all(self.is_ours(path.relative_to(self.path).as_posix()) for path in files):
            raise OSError(f"{self.path} holds a file that is not ours")
        place = {name: number for number, name in enumerate(self.last, 1)}
        return sorted(files, key=lambda path: (place.get(path.name, 0), path))


def _plain_files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        mode = path.lstat().st_mode  # of a link itself: what it leads to is not looked at
        if stat.S_ISDIR(mode):
            yield from _plain_files(path)
        elif stat.S_ISREG(mode):
            yield path
        else:
            raise OSError(f"{path} is neither a file nor a folder")


def _remove_empty(folder: Path) -> None:
    """Remove a folder of folders in which nothing is left; what came meanwhile stays, and is an error."""
    if folder.is_dir():
        for path in folder.iterdir():
            _remove_empty(path)
        folder.rmdir()

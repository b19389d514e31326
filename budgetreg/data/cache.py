"""The cache of prepared arrays, which many workers map; every file in it appears whole or not at all.

A cached file ends in its *seal*, the digest of the bytes before it, so that damage of the same size is noticed and the
file made again. A seal lies in the file itself, because two files cannot appear at once. Readers of arrays stop before
it. MNIST's 55 MB are checked in about 40 ms.

Once this process has verified a file, it trusts the file for as long as the size, the time of change and the inode stay
the same. Worker processes trust what their parent has verified (`trust`).
"""

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import filelock
import numpy as np

from budgetreg.common.errors import DataError
from budgetreg.common.files import at_home, digest, file_digest, regular, replaceable, sync_folder
from budgetreg.common.notices import say

LOCK, TEMPORARY = "lock", ".tmp"
"""Name of the file in a cache folder by which one process keeps others out; ending of unfinished files."""

Stamp = tuple[int, int, int]

_LENGTH = len(digest(b""))
_verified: dict[str, Stamp] = {}


def cache_root() -> Path:
    """Return budgetreg's folder below ``XDG_CACHE_HOME``, or below ``~/.cache``.

    Raises
    ------
    DataError
        If there is neither.
    """
    root = at_home(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    if root.parts[0] == "~":
        raise DataError("there is no home folder for the cache: set XDG_CACHE_HOME to a folder that can be written")
    return root / "budgetreg"


def ensure(path: Path, write: Callable[[Path], None]) -> None:
    """Prepare a file or folder of the cache, unless that was done before.

    Parameters
    ----------
    path : Path
        The file or folder. One process at a time prepares something in the folder around it; others wait.
    write : callable
        Writes to another path in the same folder; into a folder it writes files only.

    Raises
    ------
    DataError
        If the cache cannot be written.
    """
    if is_intact(path):
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(path.parent / LOCK):
            if is_intact(path):  # another worker was faster
                return
            if path.exists():
                say(f"{path} is damaged: it is prepared again")
            temporary = path.with_name(f"{path.name}{TEMPORARY}")
            _remove(temporary)  # of a process that was killed
            try:
                write(temporary)
                for file in _files(temporary):
                    seal(file)
                if path.is_dir():  # damaged, and only an empty folder can be replaced
                    _remove(path)
                os.replace(temporary, replaceable(path))
                _verified.update({str(file): _stamp(file) for file in _files(path)})
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
        with temporary.open("xb") as file:  # np.save would append .npy to a name
            np.save(file, np.ascontiguousarray(make()))

    ensure(path, write)
    return mapped(path)


def mapped(path: Path) -> np.ndarray:
    """Map the array in an NPY file."""
    return np.load(path, mmap_mode="r")


def remove_abandoned() -> None:
    """Remove what killed processes left half prepared, unless another process is preparing it now."""
    for path in sorted(cache_root().glob(f"*/*{TEMPORARY}")):
        with suppress(filelock.Timeout, OSError), filelock.FileLock(path.parent / LOCK, blocking=False):
            _remove(path)


def seal(path: Path) -> None:
    """Append its seal to a file, and write the file to the disk."""
    ending = file_digest(path, path.stat().st_size).encode()
    with path.open("ab") as file:
        file.write(ending)
        file.flush()
        os.fsync(file.fileno())


def is_intact(path: Path) -> bool:
    """Return whether a file is as it was when it was sealed; for a folder, whether all its files are.

    Parameters
    ----------
    path : Path
        File or folder. A file that is missing, has no seal or cannot be read is not intact.
    """
    try:
        files = _files(path)
        return bool(files) and all(map(_is_intact, files))
    except OSError:
        return False


def unsealed(path: Path) -> bytes:
    """Return the content of a sealed file without its seal."""
    return path.read_bytes()[:-_LENGTH]


def verified() -> dict[str, Stamp]:
    """Return the files that this process has verified, for `trust` in another process."""
    return dict(_verified)


def trust(stamps: Mapping[str, Stamp]) -> None:
    """Trust files that another process has verified, unless they change: only one of many workers has to read them."""
    _verified.update(stamps)


def _is_intact(path: Path) -> bool:
    stamp = _stamp(path)
    if _verified.get(str(path)) == stamp:
        return True
    length = stamp[0] - _LENGTH
    if length < 0:
        return False
    with path.open("rb") as file:
        file.seek(length)
        if file.read() != file_digest(path, length).encode():
            return False
    _verified[str(path)] = stamp
    return True


def _stamp(path: Path) -> Stamp:
    status = regular(path)
    return status.st_size, status.st_ctime_ns, status.st_ino


def _files(path: Path) -> list[Path]:
    """Return the files of a folder, or the file itself."""
    return sorted(path.iterdir()) if path.is_dir() else [path]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

"""Paths that users write, and what lies there: only regular files are read and replaced, never devices or pipes."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from budgetreg.errors import ConfigError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def at_home(path: Path | str) -> Path:
    """Return a path with the home folder in place of ``~``; the name of an unknown user stays, as in a shell.

    Raises
    ------
    ConfigError
        If no file can have this name.
    """
    try:
        if "\0" in os.fspath(path):
            raise ValueError("it holds a null character")
        os.fsencode(path)
    except ValueError as error:
        raise ConfigError(f"{str(path)!r} cannot be the name of a file: {error}") from error
    return Path(os.path.expanduser(path))


def regular(path: Path) -> os.stat_result:
    """Return the status of a regular file, or of the one that links lead to.

    Raises
    ------
    OSError
        If there is none, or something else: reading a device or a pipe may never end.
    """
    status = path.stat()
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'special')}, not a regular file", str(path))
    return status


def content_of_regular(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises
    ------
    OSError
        As `regular`, or if it cannot be read.
    """
    regular(path)
    return path.read_bytes()


def replaceable(path: Path) -> Path:
    """Return the file that can be replaced by a new one: of a link, what it leads to, which need not exist.

    Raises
    ------
    OSError
        If there is something else than a regular file, or it is the file of a standard stream.
    """
    with suppress(FileNotFoundError):
        status = regular(path)
        # Such as /dev/stdout, if stdout goes to a file.
        if any(os.path.samestat(status, os.fstat(stream)) for stream in (1, 2)):
            raise OSError(errno.EINVAL, "stdout or stderr is written to it", str(path))
    return Path(os.path.realpath(path)) if path.is_symlink() else path

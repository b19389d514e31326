"""Files: written whole or not at all, checked for damage by SHA-256 digests, and removed only if they are ours.

A record carries the digest of the rest of it under the key ``sha256``. A manifest also lists the digests of the tables
beside it, and a cached file ends in its own (`budgetreg.data.cache`).

The process that owns a temporary folder holds a lock in it. The system releases the lock when the process ends, however
it ends. A process that can take the lock may therefore remove the folder.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from budgetreg.common.errors import ConfigError, DataError, UserError

KEY = "sha256"
_PIECE = 1 << 22  # bytes read at a time
_OWNER = ".owner"  # the lock in a temporary folder
_PREFIX = "budgetreg-"
_SUFFIX = ".tmp"  # distinguishes our folders from other people's


class Damaged(DataError):  # noqa: N818 - the name describes the problem
    """A file does not have the content that its digest describes."""


def digest(content: bytes) -> str:
    """Return the digest of a file's content."""
    return hashlib.sha256(content).hexdigest()


def file_digest(path: Path, length: int) -> str:
    """Return the digest of the first bytes of a file, which is not read as a whole."""
    content = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while length > 0 and (piece := file.read(min(_PIECE, length))):
            content.update(piece)
            length -= len(piece)
    return content.hexdigest()


def record_digest(record: Mapping[str, Any]) -> str:
    """Return the digest of a JSON record, whatever the order of its keys."""
    return digest(json.dumps(record, sort_keys=True).encode())


def signed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON record with the digest of all its other keys as the last key."""
    # As it will be read back: JSON turns keys into text and tuples into lists.
    content: dict[str, Any] = json.loads(json.dumps(_unsigned(record)))
    return {**content, KEY: record_digest(content)}


def content_of(record: object) -> dict[str, Any] | None:
    """Return the content of a signed record that was read back; None if the digest is missing or does not match."""
    if not isinstance(record, dict):
        return None
    content = _unsigned(record)
    return content if record.get(KEY) == record_digest(content) else None


def parsed(text: bytes) -> object:
    """Return what JSON text holds.

    Raises
    ------
    ValueError
        If it is not JSON, or nested more deeply than anything of ours.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _unsigned(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != KEY}


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


_TEMPORARY = re.compile(r"\.(.+)\.(\d+)\.[0-9a-f]+\.tmp", re.DOTALL)


@contextmanager
def os_errors_explained(action: str, kind: type[UserError] = UserError) -> Iterator[None]:
    """Turn an `OSError` of the block into one line for the user.

    Parameters
    ----------
    action : str
        What is being done, such as ``"write FILE"``.
    kind : type of UserError
        The error that is raised.

    Raises
    ------
    UserError
        ``cannot write FILE: No space left on device``.
    """
    try:
        yield
    except OSError as error:
        raise kind(f"cannot {action}: {error.strerror or error}") from error


def write_atomically(path: Path, data: bytes, *, replace: bool = True, keep_access: bool = False) -> None:
    """Write a file so that a reader sees either the old content or the new one, even after a crash.

    Parameters
    ----------
    path : Path
        The file; its folder must exist. A link is kept, and the file that it leads to is written.
    data : bytes
        The new content.
    replace : bool
        Whether it may take the place of a file.
    keep_access : bool
        Whether its permissions and owners are those of the file whose place it takes, not those of any new file.

    Raises
    ------
    UserError
        If the file cannot be written, or is a device or a pipe, or it exists and must not be replaced. Nothing
        half-written is left then.
    """
    with os_errors_explained(f"write {path}"):
        target = replaceable(path)
        with suppress(OSError):  # the folder may allow writing but not listing
            _remove_temporary(target, keep=is_alive)
        # Next to the old file, because only then a rename is atomic.
        temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(8)}.tmp")
        try:
            # Not `tempfile`: only the owner may read its files, and results are there to be shared. An exclusive
            # creation follows no link that somebody else has put there.
            with temporary.open("xb") as file:
                if keep_access:
                    _keep_access(file.fileno(), target)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                os.replace(temporary, target)
            else:
                os.link(temporary, target)  # fails if somebody else has made it meanwhile
                temporary.unlink()
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(target.parent)


def refuse_foreign(path: Path, is_ours: Callable[[bytes], bool], inputs: Iterable[Path | str] = ()) -> None:
    """Refuse a path whose file a command must not replace.

    Parameters
    ----------
    path : Path
        Where the command will write.
    is_ours : callable
        Takes the content of a file, and returns whether it is an earlier answer of the same command, as it was written.
    inputs : iterable of Path or str
        What the command reads, and places that are reserved; none of them is ever replaced.

    Raises
    ------
    ConfigError
        If the path is an input, or another file is there.
    UserError
        If what is there cannot be read, or is no regular file.
    """
    with os_errors_explained(f"write {path}"):
        target = os.path.realpath(replaceable(path))
        there = os.path.exists(target)
        for other in map(os.path.realpath, inputs):
            if other == target or (there and os.path.exists(other) and os.path.samefile(other, target)):
                raise ConfigError(f"{path} is what the command reads, and would be replaced: choose another place")
        foreign = there and not is_ours(content_of_regular(Path(target)))
    if foreign:
        raise ConfigError(f"{path} is there already, and would be replaced: choose another place, or remove it")


def _keep_access(descriptor: int, target: Path) -> None:
    """Give a new file the mode and the owners of the one whose place it takes, as far as that is allowed."""
    with suppress(FileNotFoundError):
        before = target.stat()
        for owner in (before.st_uid, -1):  # only root may give a file away
            with suppress(PermissionError):
                os.fchown(descriptor, owner, before.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def files_below(folder: Path, name: str) -> list[Path]:
    """Return the files with a name in and below a folder, sorted; files that vanish meanwhile are left out."""
    # Not `Path.rglob`: it fails if a folder is removed after it was listed and before it is entered.
    return sorted(Path(place, name) for place, _, files in os.walk(folder) if name in files)


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files that killed processes left next to a file that only this process writes now."""
    with os_errors_explained(f"clean up {path.parent}"):
        _remove_temporary(path, keep=lambda process: False)


def _remove_temporary(path: Path, keep: Callable[[int], bool]) -> None:
    """Remove the temporary files next to a file, but those of processes to keep."""
    for other in path.parent.iterdir():
        match = _TEMPORARY.fullmatch(other.name)
        if match and match[1] == path.name and not keep(int(match[2])):
            other.unlink(missing_ok=True)


def is_alive(process: int) -> bool:
    """Return whether a process with an id exists, ours or somebody else's."""
    try:
        with suppress(PermissionError):  # somebody else's
            os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    return True


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, so that they survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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

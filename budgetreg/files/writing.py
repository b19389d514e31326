"""Files that appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from budgetreg.errors import UserError


@contextmanager
def os_errors_explained(action: str) -> Iterator[None]:
    """Turn an `OSError` of the block into one line for the user.

    Parameters
    ----------
    action : str
        What is being done, such as ``"write FILE"``.

    Raises
    ------
    UserError
        ``cannot write FILE: No space left on device``.
    """
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot {action}: {error.strerror or error}") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees either the old content or the new one, even after a crash.

    Parameters
    ----------
    path : Path
        The file; its folder must exist.
    data : bytes
        The new content.

    Raises
    ------
    UserError
        If the file cannot be written. Nothing half-written is left then.
    """
    temporary = temporary_name(path)
    with os_errors_explained(f"write {path}"):
        _remove_abandoned(path)
        try:
            # Not `tempfile`: only the owner may read its files, and results are there to be shared.
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def files_below(folder: Path, name: str) -> list[Path]:
    """Return the files with a name in and below a folder, sorted; files that vanish meanwhile are left out."""
    # Not `Path.rglob`: it fails if a folder is removed after it was listed and before it is entered.
    return sorted(Path(place, name) for place, _, files in os.walk(folder) if name in files)


def temporary_name(path: Path) -> Path:
    """Return the file that collects the new content: next to the old one, because only then a rename is atomic."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files that killed processes left next to a file that only this process writes now."""
    with os_errors_explained(f"clean up {path.parent}"):
        for leftover in path.parent.glob(f".{path.name}.*.tmp"):
            leftover.unlink(missing_ok=True)


def _remove_abandoned(path: Path) -> None:
    """Remove the temporary files next to a file whose processes are gone."""
    before, after = f".{path.name}.", ".tmp"
    with suppress(OSError):  # the folder may allow writing but not listing
        for leftover in path.parent.iterdir():
            process = leftover.name.removeprefix(before).removesuffix(after)
            if leftover.name == f"{before}{process}{after}" and process.isdigit() and not is_alive(int(process)):
                leftover.unlink(missing_ok=True)


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

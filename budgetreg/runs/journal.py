"""An append-only file of signed JSON lines that survives being killed at any byte, and notices any other damage."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from budgetreg.files import content_of, content_of_regular, os_errors_explained, parsed, signed, write_atomically

Entry = dict[str, Any]

FINISHED, FAILED = "finished", "failed"
"""The values of ``status`` in an entry."""


class JournalLines(NamedTuple):
    """The lines of a journal: the entries and bytes of the undamaged ones, and the number of damaged ones.

    An incomplete line at the end counts as neither.
    """

    entries: list[Entry]
    damaged: int
    whole: bytes


def read_lines(path: Path) -> JournalLines:
    """Return the lines of a journal, which is not changed; none if there is no file."""
    with os_errors_explained(f"read {path}"):
        try:
            content = content_of_regular(path)
        except FileNotFoundError:
            content = b""
    *lines, _ = content.split(b"\n")
    whole = [line + b"\n" for line in lines]
    entries = list(map(_entry, whole))
    good = [(entry, line) for entry, line in zip(entries, whole, strict=True) if entry is not None]
    # A power cut can leave a line of the right length that holds only zeros: an incomplete write, not damage.
    damaged = sum(entry is None and any(line[:-1]) for entry, line in zip(entries, whole, strict=True))
    return JournalLines([entry for entry, _ in good], damaged, b"".join(line for _, line in good))


def read_journal(path: Path) -> list[Entry]:
    """Return the undamaged entries of a journal, oldest first; none if there is no file.

    Parameters
    ----------
    path : Path
        The journal. Reading does not change it, so that a journal can be read while it is written.
    """
    return read_lines(path).entries


class Journal:
    """The single writer of a journal.

    Opening it cuts off an incomplete line at the end of the file, which a writer leaves that is killed or finds the
    disk full, and takes out damaged lines.

    Parameters
    ----------
    path : Path
        The file; it is created if it is missing.

    Attributes
    ----------
    dropped : int
        How many lines were damaged.

    Raises
    ------
    UserError
        If the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        content = read_lines(path)
        self.dropped = content.damaged
        if content.damaged:
            write_atomically(path, content.whole)
        with os_errors_explained(f"write {path}"):
            self._file = path.open("a+b", buffering=0)
            self._file.truncate(len(content.whole))

    def append(self, entry: Entry) -> None:
        """Write one entry to the disk before returning.

        Parameters
        ----------
        entry : dict
            JSON-able, with keys ``repetition`` and ``status``.

        Raises
        ------
        UserError
            If it cannot be written. The file then stays as it was.
        """
        line = memoryview(json.dumps(signed(entry)).encode() + b"\n")
        with os_errors_explained(f"write {self.path}"):
            size = os.fstat(self._file.fileno()).st_size
            try:
                while line:
                    line = line[self._file.write(line) :]
                os.fsync(self._file.fileno())
            except OSError:
                self._file.truncate(size)
                raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _entry(line: bytes) -> Entry | None:
    """Return the entry of a line; None if the line is damaged."""
    try:
        return content_of(parsed(line))
    except ValueError:
        return None

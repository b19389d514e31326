"""An append-only file of JSON lines that survives being killed at any byte."""

import json
import os
from pathlib import Path
from typing import Any

from budgetreg.files import explained

Entry = dict[str, Any]


def read_journal(path: Path) -> list[Entry]:
    """Return the whole entries of a journal, oldest first; none if there is no file.

    Parameters
    ----------
    path : Path
        The journal. It is not changed, so that a journal which is being written can be read.
    """
    with explained(f"read {path}"):
        return _parse(path.read_bytes())[0] if path.exists() else []


class Journal:
    """The single writer of a journal.

    A line that is not whole at the end of the file (its writer was killed, the disk was full) is cut off on
    opening, so that the next entry starts on a line of its own.

    Parameters
    ----------
    path : Path
        The file; created if it is not there.

    Raises
    ------
    UserError
        If the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with explained(f"write {path}"):
            self._file = path.open("a+b", buffering=0)
            self._file.seek(0)
            self._file.truncate(_parse(self._file.read())[1])

    def append(self, entry: Entry) -> None:
        """Write one entry; when this returns it is on the disk.

        Parameters
        ----------
        entry : dict
            JSON-able, with keys ``repetition`` and ``status``.

        Raises
        ------
        UserError
            If it cannot be written; the file is then as it was before.
        """
        line = memoryview(json.dumps(entry).encode() + b"\n")
        with explained(f"write {self.path}"):
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


def _parse(content: bytes) -> tuple[list[Entry], int]:
    """Return the entries and the number of bytes up to the end of the last whole one."""
    entries: list[Entry] = []
    position = whole = 0
    for line in content.splitlines(keepends=True):
        position += len(line)
        entry = _entry(line)
        if entry is not None:
            entries.append(entry)
            whole = position
    return entries, whole


def _entry(line: bytes) -> Entry | None:
    if not line.endswith(b"\n"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and entry.keys() >= {"repetition", "status"} else None

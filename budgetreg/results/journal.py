"""An append-only file of JSON lines that survives being killed at any byte, and notices damage to any other.

Each line ends in a checksum of what stands before it in the line. Lines without one, as they were written before there
were checksums, are read as well, provided that they hold nothing but the keys of an entry: a damaged name of the
checksum is none of them.
"""

import json
import os
import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from budgetreg.files.writing import os_errors_explained, write_atomically

Entry = dict[str, Any]

_KEYS = {"repetition", "status", "seconds", "result", "message"}
_STATUSES = ("finished", "failed")
_CHECKED = re.compile(rb'(\{.*), "crc32": "([0-9a-f]{8})"\}\n', re.DOTALL)


def read_journal(path: Path) -> list[Entry]:
    """Return the whole entries of a journal, oldest first; none if there is no file.

    Parameters
    ----------
    path : Path
        The journal. It is not changed, so that a journal which is being written can be read.
    """
    return _read(path).entries


def damaged_lines(path: Path) -> int:
    """Return how many lines of a journal are damaged; one that is not whole at its end is not among them."""
    return _read(path).damaged


class Journal:
    """The single writer of a journal.

    A line that is not whole at the end of the file (its writer was killed, the disk was full) is cut off on
    opening, so that the next entry starts on a line of its own; damaged lines are taken out.

    Parameters
    ----------
    path : Path
        The file; created if it is not there.

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
        found = _read(path)
        self.dropped = found.damaged
        if found.damaged:
            write_atomically(path, found.whole)
        with os_errors_explained(f"write {path}"):
            self._file = path.open("a+b", buffering=0)
            self._file.truncate(len(found.whole))

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
        line = memoryview(_line(entry))
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


class _Content(NamedTuple):
    """What a journal holds: its entries, how many lines are damaged, and the lines that are not."""

    entries: list[Entry]
    damaged: int
    whole: bytes


def _read(path: Path) -> _Content:
    with os_errors_explained(f"read {path}"):
        content = path.read_bytes() if path.exists() else b""
    *lines, _ = content.split(b"\n")
    whole = [line + b"\n" for line in lines]
    entries = list(map(_entry, whole))
    good = [(entry, line) for entry, line in zip(entries, whole, strict=True) if entry is not None]
    # A power cut leaves the length of a line without its content: nothing but zeros, which nobody has written.
    damaged = sum(entry is None and any(line[:-1]) for entry, line in zip(entries, whole, strict=True))
    return _Content([entry for entry, _ in good], damaged, b"".join(line for _, line in good))


def _line(entry: Entry) -> bytes:
    """Return the line of an entry, its checksum the last of its keys."""
    body = json.dumps(entry).encode().removesuffix(b"}")
    return b'%s, "crc32": "%08x"}\n' % (body, zlib.crc32(body))


def _entry(line: bytes) -> Entry | None:
    """Read a line; None if it is damaged."""
    checked = _CHECKED.fullmatch(line)
    if checked is not None and int(checked[2], 16) != zlib.crc32(checked[1]):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if checked is not None:
        del entry["crc32"]
    return entry if _is_sound(entry) else None


def _is_sound(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and {"repetition", "status"} <= entry.keys() <= _KEYS
        and type(entry["repetition"]) is int
        and entry["status"] in _STATUSES
    )

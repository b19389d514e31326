"""The journal of a run, and how far it shows the run to be.

A journal is an append-only file of signed JSON lines that survives being killed at any byte, and notices any other
damage.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from budgetreg.common.files import (
    Damaged,
    content_of,
    content_of_regular,
    os_errors_explained,
    parsed,
    signed,
    write_atomically,
)
from budgetreg.config.nested import number_ranges
from budgetreg.runs.manifest import read_tables, run_manifest
from budgetreg.runs.tables import JOURNAL, LOCK, MODELS, TABLES

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


@dataclass(frozen=True)
class RunStatus:
    """The progress of a run.

    Attributes
    ----------
    folder : Path
        Its folder.
    planned : int
        Repetitions that the last call asked for.
    unfinished : dict
        The numbers of those that are not finished, in order, each with the message of its last failure; the message is
        empty if it has not failed.
    running : bool
        Whether a process works on it now.
    algo, dataset : str
        Learner and data set.
    k : int
        Attribute budget per example.
    damage : str
        The message about a damaged or missing file; empty if there is none.
    stopped : str
        The message of the error that ended the last call; empty if none did.
    """

    folder: Path
    planned: int
    unfinished: dict[int, str]
    running: bool
    algo: str
    dataset: str
    k: int | str
    damage: str = ""
    stopped: str = ""

    @property
    def finished(self) -> int:
        """Number of finished repetitions."""
        return self.planned - len(self.unfinished)

    @property
    def failed(self) -> int:
        """Number of repetitions that have only failed."""
        return sum(map(bool, self.unfinished.values()))

    @property
    def state(self) -> str:
        """The state in a word: running, damaged, complete, failed or incomplete."""
        if self.running:
            return "running"
        if self.damage:
            return "damaged"
        if self.finished == self.planned:
            return "complete"
        return "failed" if self.finished + self.failed == self.planned else "incomplete"

    def lacks(self) -> Iterator[tuple[str, str, str]]:
        """Yield which repetitions are not finished, such as ``repetition 0-3``, "missing" or "failed", and why."""
        by_message: dict[str, list[int]] = {}
        for number, message in self.unfinished.items():
            by_message.setdefault(message, []).append(number)
        never = by_message.pop("", [])
        if never:
            if self.running:
                why = "a process works on it now"
            elif self.stopped:  # the same command would stop there again
                why = f"stopped by an error: {self.stopped}"
            else:
                why = "interrupted: the same command resumes"
            yield f"repetition {number_ranges(never)}", "missing", why
        for message, numbers in by_message.items():
            yield f"repetition {number_ranges(numbers)}", "failed", message


def read_status(folder: Path) -> RunStatus:
    """Return how far the run in a folder is, without disturbing it.

    Raises
    ------
    Damaged
        If its manifest is damaged.
    DataError
        If there is no run of ours.
    """
    manifest = run_manifest(folder)
    entries, damaged, _ = read_lines(folder / JOURNAL)
    finished = {entry["repetition"] for entry in entries if entry["status"] == FINISHED}
    messages = {entry["repetition"]: str(entry.get("message", "")) for entry in entries}
    return RunStatus(
        folder=folder,
        planned=manifest["repetitions"],
        unfinished={
            number: messages.get(number, "") for number in range(manifest["repetitions"]) if number not in finished
        },
        running=is_locked(folder),
        damage=_damage(folder, damaged),
        stopped=str(manifest.get("stopped", "")),
        **{name: manifest[name] for name in ("algo", "dataset", "k")},
    )


def is_locked(folder: Path) -> bool:
    """Return whether a process works in the folder of a run now."""
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except OSError as error:  # of another kind in a folder that we may only read: no process of ours writes there
        return isinstance(error, Timeout)


def _damage(folder: Path, damaged_entries: int) -> str:
    for name, damaged in ((JOURNAL, damaged_entries), (MODELS, read_lines(folder / MODELS).damaged)):
        if damaged:
            return f"{folder / name} is damaged: the command that made it computes again what is lost"
    try:
        read_tables(folder, TABLES, all_there=True)
    except Damaged as error:
        return str(error)
    return ""

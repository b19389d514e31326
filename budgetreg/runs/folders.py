"""The folder of a run seen from outside: how far the run is, and what of it can be removed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from budgetreg.files import Damaged
from budgetreg.runs.journal import FINISHED, read_lines
from budgetreg.runs.manifest import read_tables, run_manifest
from budgetreg.runs.naming import number_ranges
from budgetreg.runs.schema import JOURNAL, LOCK, MODELS, TABLES


class Lack(NamedTuple):
    """Repetitions that a run lacks.

    Attributes
    ----------
    what : str
        Their numbers, such as ``repetition 0-3``.
    state : str
        missing or failed.
    why : str
        The reason.
    """

    what: str
    state: str
    why: str


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
        The message about a damaged file; empty if none is damaged.
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

    def lacks(self) -> Iterator[Lack]:
        """Give what is missing: repetitions that were never computed, and those that failed, by message."""
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
            yield Lack(f"repetition {number_ranges(never)}", "missing", why)
        for message, numbers in by_message.items():
            yield Lack(f"repetition {number_ranges(numbers)}", "failed", message)


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
        read_tables(folder, TABLES)
    except Damaged as error:
        return str(error)
    return ""

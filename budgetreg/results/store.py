"""One folder per run: a journal of finished repetitions, and the tables made from it by a single writer."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from filelock import FileLock, Timeout

from budgetreg.errors import ConfigError, DataError
from budgetreg.files.writing import os_errors_explained, remove_leftovers, write_atomically
from budgetreg.results.checksums import Damaged, digest, read_tables, signed, vouched
from budgetreg.results.differences import promised
from budgetreg.results.journal import Entry, Journal, damaged_lines, read_journal
from budgetreg.results.manifest import adopt_manifest, identity_of, read_manifest
from budgetreg.results.models import model_npz
from budgetreg.results.provenance import provenance
from budgetreg.results.schema import (
    CURVES,
    JOURNAL,
    LOCK,
    MANIFEST,
    MODEL,
    MODELS,
    REVEALS,
    RUNS,
    SCHEMA_VERSION,
    arrays,
    columns,
)
from budgetreg.results.tables import labels_of, tables_of

if TYPE_CHECKING:  # `status` reads folders without loading what a plan needs
    from budgetreg.protocol.plan import Plan

__all__ = ["FAILED", "FINISHED", "RunStatus", "Store", "read_status", "write_atomically"]

FINISHED, FAILED = "finished", "failed"
_MOMENT = 0.2  # seconds: longer than somebody who only looks whether the lock is held keeps it


class Store:
    """The results of one run, and the only writer of its folder while it is open.

    Open it with `Store.open`; it is a context manager. What it tells is as of then, or of the last `finish`.

    Attributes
    ----------
    folder : Path
        Where everything is written.
    notes : tuple of str
        What the user should be told about the results found in the folder.
    """

    def __init__(self, folder: Path, plan: "Plan", lock: FileLock) -> None:
        self.folder, self._plan, self._lock = folder, plan, lock
        self._identity = identity_of(plan)
        manifest = adopt_manifest(folder, self._identity)
        for name in (CURVES, RUNS, REVEALS, MODEL, MANIFEST):
            remove_leftovers(folder / name)
        self._load()
        self.notes: tuple[str, ...] = ()
        self._provenance, self._earlier = provenance(), list(manifest.get("earlier", []))
        self._inherit({key: manifest[key] for key in self._provenance if key in manifest})
        self._vouched = vouched(manifest)
        if self.missing():
            # Before there is a journal, as the manifest is what tells our folder from a foreign one.
            self._write_manifest()
        self._journal, self._models = Journal(folder / JOURNAL), Journal(folder / MODELS)
        self.notes += tuple(
            f"{one.path} is damaged: {one.dropped} of its lines are dropped, and what they held is computed again"
            for one in (self._journal, self._models)
            if one.dropped
        )

    @classmethod
    def open(cls, folder: Path, plan: "Plan") -> Self:
        """Open the folder of a run for writing; it is created if need be.

        Parameters
        ----------
        folder : Path
            The folder. Files in it that are not ours are left alone.
        plan : Plan
            What will be run.

        Raises
        ------
        ConfigError
            If another process runs in the folder, or it holds results of another configuration, or files of
            the names we use that no run of ours left.
        UserError
            If the folder cannot be created or written.
        """
        with os_errors_explained(f"create {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        with os_errors_explained(f"lock {folder}"):
            try:
                lock.acquire(timeout=_MOMENT)
            except Timeout:  # one of the OSErrors
                raise ConfigError(f"{folder} is in use by another run: wait or give another out") from None
        try:
            return cls(folder, plan, lock)
        except BaseException:
            lock.release()
            raise

    def missing(self) -> list[int]:
        """Return the repetitions that are asked for and not finished, in order."""
        return [number for number in range(self._plan.config.repetitions) if number not in self._finished]

    def finished(self) -> list[Entry]:
        """Return the journal's entries of the finished repetitions that are asked for, in order."""
        return self._asked(self._finished)

    def failed(self) -> list[Entry]:
        """Return the journal's entries of the repetitions asked for that have only failed, in order."""
        return self._asked(self._failed)

    def add(self, entry: Entry) -> None:
        """Put the outcome of one repetition on the disk.

        Parameters
        ----------
        entry : dict
            ``repetition``, ``status``, ``seconds``, and ``result`` (one of what `protocol.run_repetitions` returns)
            if it is finished or ``message`` if it failed.

        Raises
        ------
        UserError
            If it cannot be written.
        """
        result = entry.get("result", {})
        if result.get("model"):
            # First: whoever finds the entry finds the model.
            self._models.append({"repetition": entry["repetition"], "status": FINISHED, "result": result["model"]})
            entry = {**entry, "result": {**result, "model": True}}
        self._journal.append(entry)

    def finish(self) -> None:
        """Write the tables and the manifest from what the journal holds by now.

        They are made from the file alone, so that they are the same after an interruption at any point.

        Raises
        ------
        UserError
            If a file cannot be written; that file and those after it stay as they were.
        """
        self._load()
        tables = tables_of(self._plan, self.finished(), self.failed())
        learned = {entry["repetition"]: entry["result"] for entry in self._asked(self._learned)}
        if learned:
            tables[MODEL] = model_npz(learned, self._plan.names, self._plan.target)
        checksums = {name: digest(content) for name, content in tables.items()}
        if self._vouched and self._vouched != checksums:
            # Killed while the tables change, we leave none that their manifest calls damaged.
            self._vouched = {}
            self._write_manifest()
        for name, content in tables.items():
            write_atomically(self.folder / name, content)
        self._vouched = checksums
        self._write_manifest()

    def close(self) -> None:
        """Let others write to the folder."""
        self._journal.close()
        self._models.close()
        self._lock.release()

    def __enter__(self) -> Self:
        """Return the open store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()

    def _asked(self, entries: dict[int, Entry]) -> list[Entry]:
        return [entries[number] for number in range(self._plan.config.repetitions) if number in entries]

    def _load(self) -> None:
        entries = read_journal(self.folder / JOURNAL)
        learned = {entry["repetition"]: entry for entry in read_journal(self.folder / MODELS)}
        self._finished = {
            entry["repetition"]: entry
            for entry in entries
            if entry["status"] == FINISHED and (entry["repetition"] in learned or not entry["result"].get("model"))
        }
        self._failed = {
            entry["repetition"]: entry
            for entry in entries
            if entry["status"] == FAILED and entry["repetition"] not in self._finished
        }
        self._learned = {number: entry for number, entry in learned.items() if number in self._finished}

    def _inherit(self, before: dict[str, Any]) -> None:
        """Keep the provenance of the results that are there; say so if the new ones come from elsewhere."""
        if not self.missing():
            self._provenance = before
        elif self._finished and before != {key: self._provenance[key] for key in before}:
            self._earlier.append(before)
            self.notes = (
                f"{len(self._finished)} finished repetitions that other versions, sources or processors computed are "
                f"kept (see {MANIFEST}); give another out to compute all of them anew",
            )

    def _write_manifest(self) -> None:
        config, prices = self._plan.config, self._plan.prices
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "status": "incomplete" if self.missing() else "complete",
            **labels_of(self._plan),
            "seed": config.seed,
            "repetitions": config.repetitions,
            "repetitions_done": len(self.finished()),
            "repetitions_failed": len(self.failed()),
            **self._identity,
            "config": config.resolved,
            **({"prices": dict(zip(prices.names, prices.costs, strict=True))} if prices else {}),
            "notes": self._plan.notes,
            "promised": promised(config.algo),
            **self._provenance,
            "earlier": self._earlier,
            "columns": columns(not config.algo.predicts, self._plan.prices is not None),
            "arrays": arrays(of_subspaces=not config.algo.predicts),
        }
        text = json.dumps(signed(manifest, self._vouched), indent=2) + "\n"
        write_atomically(self.folder / MANIFEST, text.encode())


@dataclass(frozen=True)
class RunStatus:
    """How far a run is.

    Attributes
    ----------
    folder : Path
        Its folder.
    planned, finished, failed : int
        Repetitions asked for last, and how many of these are finished or have only failed.
    running : bool
        Whether a process works on it now.
    algo, dataset : str
        Learner and data set.
    k : int
        Attribute budget per example.
    damage : str
        Which file is damaged; empty if none is.
    """

    folder: Path
    planned: int
    finished: int
    failed: int
    running: bool
    algo: str
    dataset: str
    k: int
    damage: str = ""


def read_status(folder: Path) -> RunStatus:
    """Return how far the run in a folder is; a run that is under way is not disturbed.

    Parameters
    ----------
    folder : Path
        The folder of one run.

    Raises
    ------
    Damaged
        If its manifest is damaged.
    DataError
        If there is no run of ours.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise DataError(f"{folder} holds no run: there is no {MANIFEST} of ours in it")
    numbers: dict[str, set[int]] = {FINISHED: set(), FAILED: set()}
    for entry in read_journal(folder / JOURNAL):
        if entry["repetition"] < manifest["repetitions"]:
            numbers[entry["status"]].add(entry["repetition"])
    return RunStatus(
        folder=folder,
        planned=manifest["repetitions"],
        finished=len(numbers[FINISHED]),
        failed=len(numbers[FAILED] - numbers[FINISHED]),
        running=is_locked(folder),
        damage=_damage(folder),
        **{name: manifest[name] for name in ("algo", "dataset", "k")},
    )


def unfinished(folder: Path) -> dict[int, str]:
    """Return the repetitions of a run that were asked for last and are not finished.

    Parameters
    ----------
    folder : Path
        The folder of one run; it is not changed.

    Returns
    -------
    dict
        By number, in order: the message with which it failed last; empty if it was never computed.

    Raises
    ------
    Damaged
        If its manifest is damaged.
    DataError
        If there is no run of ours.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise DataError(f"{folder} holds no run: there is no {MANIFEST} of ours in it")
    entries = read_journal(folder / JOURNAL)
    finished = {entry["repetition"] for entry in entries if entry["status"] == FINISHED}
    failed = {entry["repetition"]: str(entry.get("message", "")) for entry in entries if entry["status"] == FAILED}
    return {number: failed.get(number, "") for number in range(manifest["repetitions"]) if number not in finished}


def _damage(folder: Path) -> str:
    for name in (JOURNAL, MODELS):
        if damaged_lines(folder / name):
            return f"{folder / name} is damaged: the command that made it computes anew what is lost"
    try:
        read_tables(folder, (CURVES, RUNS, REVEALS, MODEL))
    except Damaged as error:
        return str(error)
    return ""


def is_locked(folder: Path) -> bool:
    """Whether a process works in the folder of a run now."""
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # a folder we may only read: nobody of ours writes there
        return False

"""One folder per run: a journal of finished repetitions, and the tables that a single writer makes from it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from budgetreg.common.errors import ConfigError
from budgetreg.common.files import digest, os_errors_explained, remove_leftovers, write_atomically
from budgetreg.data.dataset import positions
from budgetreg.protocol.plan import Plan
from budgetreg.runs.journal import FAILED, FINISHED, Entry, Journal, read_journal
from budgetreg.runs.manifest import conflict, identity_of, promised, provenance, read_any_manifest, write_manifest
from budgetreg.runs.models import journaled_models, model_npz, packed
from budgetreg.runs.tables import (
    JOURNAL,
    LOCK,
    MANIFEST,
    MODEL,
    MODELS,
    REGRESSOR_ARRAYS,
    RUN_FILES,
    SCHEMA_VERSION,
    SUBSPACE_ARRAYS,
    columns_of,
    labels_of,
    tables_of,
)

_MOMENT = 0.2  # seconds: a process that only checks whether the lock is held keeps it for less


class Store:
    """The results of one run, and the only writer of its folder while it is open.

    `Store.open` opens it. `missing`, `finished` and `failed` describe the journal as it was then, or at the last
    `finish`.

    Attributes
    ----------
    folder : Path
        Where everything is written.
    notes : tuple of str
        Messages for the user about the results that were in the folder.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder, self._plan = folder, plan
        self._identity = identity_of(plan)
        manifest = self._manifest_of_earlier()
        for name in RUN_FILES:
            remove_leftovers(folder / name)
        self._load()
        self.notes: tuple[str, ...] = ()
        self._provenance: dict[str, Any] = provenance()
        self._earlier: list[Any] = manifest.get("earlier", [])
        if manifest:
            self._inherit({key: manifest[key] for key in self._provenance})
        self._digests: dict[str, str] = manifest.get("tables", {})
        self._stopped = ""
        if self.missing():
            # Before there is a journal, because the manifest distinguishes our folder from somebody else's.
            self._write_manifest()
        self._journal, self._models = Journal(folder / JOURNAL), Journal(folder / MODELS)
        self.notes += tuple(
            f"{journal.path} is damaged: {journal.dropped} of its lines are dropped, and computed again"
            for journal in (self._journal, self._models)
            if journal.dropped
        )

    @classmethod
    @contextmanager
    def open(cls, folder: Path, plan: Plan) -> Iterator[Self]:
        """Open the folder of a run for writing in the block, and create it if it is missing.

        Parameters
        ----------
        folder : Path
            The folder. Files in it that are not ours stay as they are.
        plan : Plan
            What will be run.

        Raises
        ------
        ConfigError
            If another process runs in the folder, or it holds results of another configuration, or files with our
            names that no run of ours left.
        UserError
            If the folder cannot be created or written.
        """
        with os_errors_explained(f"create {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            with os_errors_explained(f"lock {folder}"):
                try:
                    stack.enter_context(FileLock(folder / LOCK, timeout=_MOMENT))
                except Timeout:  # one of the OSErrors
                    raise ConfigError(f"{folder} is in use by another run: wait, or choose another out=DIR") from None
            store = cls(folder, plan)
            stack.callback(store._journal.close)
            stack.callback(store._models.close)
            yield store

    def missing(self) -> list[int]:
        """Return the repetitions asked for that are not finished, in order."""
        done = {entry["repetition"] for entry in self.finished()}
        return [number for number in range(self._plan.config.repetitions) if number not in done]

    def finished(self) -> list[Entry]:
        """Return the journal's entries of the repetitions asked for that are finished, in order."""
        return self._asked(FINISHED)

    def failed(self) -> list[Entry]:
        """Return the journal's entries of the repetitions asked for that have only failed, in order."""
        return self._asked(FAILED)

    def add(self, entry: Entry) -> None:
        """Write the outcome of one repetition to the disk.

        Parameters
        ----------
        entry : dict
            ``repetition``, ``status``, ``seconds``, and ``result`` (of `protocol.repetitions.run_repetitions`)
            if it is finished or ``message`` if it failed.

        Raises
        ------
        UserError
            If it cannot be written.
        """
        if entry["status"] == FINISHED:
            result = dict(entry["result"])
            # First, so that there is no entry without its model.
            model = packed(result.pop("model"))
            self._models.append({"repetition": entry["repetition"], "status": FINISHED, "result": model})
            entry = {**entry, "result": result}
        self._journal.append(entry)

    def finish(self, stopped: str = "") -> None:
        """Write the tables and the manifest from what the journal holds.

        They are made from the journal alone, so that they are the same after an interruption at any point.

        Parameters
        ----------
        stopped : str
            The message of the error that ended the run; empty if there was none, or it was interrupted.

        Raises
        ------
        UserError
            If a file cannot be written. That file and those after it stay as they were.
        """
        self._stopped = stopped
        self._load()
        tables = tables_of(self._plan, self.finished(), self.failed())
        learned = {entry["repetition"]: self._learned[entry["repetition"]] for entry in self.finished()}
        if learned:
            tables[MODEL] = model_npz(learned, self._plan.names, self._plan.target, self._plan.labels, *self._indices())
        digests = {name: digest(content) for name, content in tables.items()}
        if self._digests and self._digests != digests:
            # If we are killed while the tables change, the manifest must not call any of them damaged.
            self._digests = {}
            self._write_manifest()
        for name, content in tables.items():
            write_atomically(self.folder / name, content)
        self._digests = digests
        self._write_manifest()

    def _indices(self) -> tuple[list[int], list[int]]:
        """Return the indices of the attributes in a LIBSVM file, and of the columns that are left out, if it is one."""
        plan = self._plan
        if plan.first is None:
            return [], []
        return [plan.first + at for at in positions(plan.d, plan.dropped)], [plan.first + at for at, _ in plan.dropped]

    def _asked(self, status: str) -> list[Entry]:
        entries = map(self._entries.get, range(self._plan.config.repetitions))
        return [entry for entry in entries if entry is not None and entry["status"] == status]

    def _load(self) -> None:
        """Read the last entry of each repetition; it is finished if it ever was and its model was kept."""
        self._learned = journaled_models(self.folder)
        entries = read_journal(self.folder / JOURNAL)
        kept = [entry for entry in entries if entry["status"] == FAILED or entry["repetition"] in self._learned]
        kept.sort(key=lambda entry: entry["status"] == FINISHED)
        self._entries = {entry["repetition"]: entry for entry in kept}

    def _manifest_of_earlier(self) -> dict[str, Any]:
        """Return the manifest that an earlier call of the same run left; an empty one if the folder is new to us."""
        manifest = read_any_manifest(self.folder) or {}
        version = manifest.get("schema_version", SCHEMA_VERSION)
        if version != SCHEMA_VERSION:
            raise ConfigError(
                f"{self.folder} was written in schema {version}, and this version writes schema {SCHEMA_VERSION}: "
                "choose another out=DIR"
            )
        if "identity" not in manifest:
            foreign = [name for name in RUN_FILES if (self.folder / name).exists()]
            if foreign:
                raise ConfigError(
                    f"{self.folder} holds a {foreign[0]} that budgetreg did not write: choose another out=DIR"
                )
            return {}
        difference = conflict(manifest, self._identity)
        if difference:
            raise ConfigError(
                f"{self.folder} holds results of another configuration ({difference}): choose another out=DIR"
            )
        return manifest

    def _inherit(self, before: dict[str, Any]) -> None:
        """Keep the provenance of the results in the folder, and add a note if the new ones come from elsewhere."""
        if not self.missing():
            self._provenance = before
            return
        finished = sum(entry["status"] == FINISHED for entry in self._entries.values())
        if finished and before != self._provenance:
            self._earlier.append(before)
            self.notes = (
                f"{finished} finished repetitions that other versions, sources or processors computed are "
                f"kept (see {MANIFEST}); choose another out=DIR to compute all of them again",
            )

    def _write_manifest(self) -> None:
        config, prices = self._plan.config, self._plan.prices
        manifest = {
            "status": "incomplete" if self.missing() else "complete",
            **labels_of(self._plan),
            "seed": config.seed,
            "repetitions": config.repetitions,
            "repetitions_done": len(self.finished()),
            "repetitions_failed": len(self.failed()),
            **self._identity,
            "config": config.resolved,
            **({"prices": dict(zip(prices.names, prices.costs, strict=True))} if prices else {}),
            **({"dropped": self._plan.dropped} if self._plan.dropped else {}),
            **({"groups": self._plan.groups.heads} if self._plan.groups else {}),
            **({"stopped": self._stopped} if self._stopped else {}),
            "notes": self._plan.notes,
            "promised": promised(config.algo),
            **self._provenance,
            "earlier": self._earlier,
            "columns": columns_of(self._plan, self.finished()),
            "arrays": REGRESSOR_ARRAYS if config.algo.predicts else SUBSPACE_ARRAYS,
        }
        write_manifest(self.folder, manifest, self._digests)

"""Computing again what is there: whether the same repetitions give the same bytes, and if not, what has changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgetreg import learners
from budgetreg.execution.runner import Repetitions, computing
from budgetreg.execution.workers import termination_as_interrupt
from budgetreg.protocol.configuration import restored
from budgetreg.protocol.outcome import unpacked
from budgetreg.results.identity import changes, identity_of, whole_identity
from budgetreg.results.journal import FAILED, FINISHED, Entry, read_journal
from budgetreg.results.manifest import cells_of, read_tables, run_manifest
from budgetreg.results.models import read_models
from budgetreg.results.provenance import apart, provenance
from budgetreg.results.reproducibility import NOT_PORTABLE, Difference, Models, Rows, largest_difference
from budgetreg.results.schema import CURVES, JOURNAL, RUNS
from budgetreg.results.tables import rows_of, tables_of
from budgetreg.streams import generator

if TYPE_CHECKING:
    from budgetreg.protocol.plan import Plan


@dataclass(frozen=True)
class Sample:
    """Which of the finished repetitions are computed again.

    Attributes
    ----------
    size : int or None
        How many at most; None: all.
    seed : int
        Another seed, another choice; the same results and seed give the same.
    """

    size: int | None = 2
    seed: int = 0

    def of(self, held: Sequence[int], digest: str) -> list[int]:
        """Choose from the repetitions that the results of a configuration, told by its digest, hold; sorted."""
        if self.size is None or self.size >= len(held):
            return sorted(held)
        return sorted(generator("verify", self.seed, digest).choice(held, self.size, replace=False).tolist())


@dataclass(frozen=True)
class RecordedResults:
    """What is there of one configuration.

    Attributes
    ----------
    tables : mapping of str to sequence of mapping
        The rows of ``curves.csv`` and ``runs.csv``, as text.
    identity : mapping
        What decided them: configuration and data, as far as was recorded.
    sources : sequence of mapping
        Provenance of what computed them.
    models : mapping
        What repetitions have learned, as far as it was kept.
    """

    tables: Mapping[str, Rows]
    identity: Mapping[str, Any]
    sources: Sequence[Mapping[str, Any]]
    models: Models = field(default_factory=dict)

    def held(self) -> list[int]:
        """Return the repetitions that are finished."""
        return sorted({int(row["repetition"]) for row in self.tables[CURVES]})


@dataclass(frozen=True)
class Recomputed:
    """What was computed again.

    Attributes
    ----------
    tables : mapping of str to sequence of mapping
        The rows of both tables.
    finished : sequence of int
        The repetitions.
    failed : sequence of str
        A message for each repetition that failed.
    identity : mapping
        What decides the results now.
    models : mapping
        What they have learned.
    """

    tables: Mapping[str, Rows]
    finished: Sequence[int]
    failed: Sequence[str]
    identity: Mapping[str, Any]
    models: Models


@dataclass(frozen=True)
class Comparison:
    """What came of computing again.

    Attributes
    ----------
    held, checked : int
        Repetitions that are there, and those of them that were computed again.
    difference : Difference or None
        Where they differ most; None if they are the same.
    causes : tuple of str
        What is not as it was recorded: keys, data, versions, the processor; and whether more than the last digits may
        come of that.
    failed : str
        The message of a repetition that failed this time.
    """

    held: int
    checked: int
    difference: Difference | None
    causes: tuple[str, ...] = ()
    failed: str = ""

    @property
    def same(self) -> bool:
        """Whether all that was computed again has the same bytes."""
        return self.difference is None and not self.failed


def verify_run(folder: Path, sample: Sample, given: Mapping[str, Any] | None = None) -> Comparison:
    """Compute again finished repetitions of a run, as its manifest says; nothing in its folder is changed.

    Parameters
    ----------
    folder : Path
        The folder of the run.
    sample : Sample
        Which repetitions.
    given : mapping, optional
        Keys that change no result: ``n_jobs``, ``dataset.root``.

    Raises
    ------
    ConfigError
        If this version cannot run its configuration.
    DataError
        If there is no run, a file is damaged, or its data are not there.
    WorkerDied
        If a worker process died.
    KeyboardInterrupt
        On Ctrl-C or SIGTERM.
    """
    from budgetreg.protocol.plan import make_plan  # here, as a folder that cannot be read need not wait for it

    manifest = run_manifest(folder)
    (cell,) = cells_of(manifest)
    config = restored(cell.config, given)
    here = replace(config.backend, name="loky", address=None)  # whatever computed it, perhaps elsewhere
    plan = make_plan(replace(config, out=str(folder), backend=here))
    record = RecordedResults(_tables(folder, plan), whole_identity(manifest), cell.sources, read_models(folder))
    return compare(record, recompute(plan, sample.of(record.held(), cell.digest)))


def recompute(plan: "Plan", repetitions: Sequence[int], function: Repetitions | None = None) -> Recomputed:
    """Compute repetitions of a plan; its folder is not looked at.

    Parameters
    ----------
    plan : Plan
        What is run again.
    repetitions : sequence of int
        Which repetitions; none is no mistake.
    function : callable, optional
        As for `budgetreg.execution.runner.execute`.
    """
    done: list[Entry] = []
    if repetitions:
        with termination_as_interrupt(), computing(plan, repetitions, function) as entries:
            done = sorted(entries, key=lambda entry: entry["repetition"])
    failed = [f"repetition {entry['repetition']}: {entry['message']}" for entry in done if entry["status"] == FAILED]
    finished = [entry for entry in done if entry["status"] == FINISHED]
    return Recomputed(
        tables={name: rows_of(content) for name, content in tables_of(plan, finished).items()},
        finished=[entry["repetition"] for entry in finished],
        failed=failed,
        identity=whole_identity(identity_of(plan)),
        models={entry["repetition"]: unpacked(entry["result"]["model"]) for entry in finished},
    )


def compare(there: RecordedResults, here: Recomputed) -> Comparison:
    """Compare what is there with the same repetitions computed again; what has changed is told if they differ."""
    difference = largest_difference(there.tables, here.tables, here.finished, (there.models, here.models))
    verdict = Comparison(
        held=len(there.held()),
        checked=len(here.finished) + len(here.failed),
        difference=difference,
        failed="; ".join(here.failed[:1]),
    )
    if verdict.same:
        return verdict
    elsewhere = apart(there.sources, provenance())
    learner = learners.read(here.identity["algo"])
    grown = [NOT_PORTABLE] if elsewhere and learner and not learner.bitwise_portable else []
    return replace(verdict, causes=(*changes(there.identity, here.identity), *elsewhere, *grown))


def _tables(folder: Path, plan: "Plan") -> dict[str, Rows]:
    """Return the rows of a run's tables; those that its journal gives if it was killed before it wrote any."""
    found = read_tables(folder, (CURVES, RUNS))
    if len(found) < 2:
        entries = {one["repetition"]: one for one in read_journal(folder / JOURNAL) if one["status"] == FINISHED}
        found = tables_of(plan, list(entries.values()))
    return {name: rows_of(content) for name, content in found.items()}

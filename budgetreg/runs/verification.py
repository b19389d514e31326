"""Verifying results: whether the same repetitions give the same bytes again, and if not, what has changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.algorithms import registry
from budgetreg.common.streams import generator
from budgetreg.protocol.configuration import restored
from budgetreg.protocol.plan import Plan, make_plan
from budgetreg.runs.journal import FAILED, FINISHED, read_journal
from budgetreg.runs.manifest import (
    NOT_PORTABLE,
    PROMISED,
    apart,
    cells_of,
    changes,
    identity_of,
    provenance,
    read_tables,
    run_manifest,
    whole_identity,
)
from budgetreg.runs.models import read_models
from budgetreg.runs.runner import Repetitions, computing
from budgetreg.runs.tables import CELL, CURVES, JOURNAL, RUNS, rows_of, tables_of
from budgetreg.runs.workers import termination_as_interrupt

Rows = Sequence[Mapping[str, str]]
Tables = Mapping[str, Rows]
Models = Mapping[int, Mapping[str, np.ndarray]]
"""What repetitions have learned, by their number: arrays by name."""
_MODEL, _NOTHING = "model.", np.empty(0)
_NO_RESULTS = {"seconds", CELL}


@dataclass(frozen=True)
class Difference:
    """The place where two results differ most.

    Attributes
    ----------
    column : str
        The column; ``examples`` if a checkpoint is missing, ``status`` if a repetition is missing, and ``model.w`` for
        the array w of what was learned.
    repetition : int
    examples : int or None
        The checkpoint; None in ``runs.csv``, which has none.
    relative : float
        The difference divided by the larger value; for arrays the largest difference divided by the largest entry. It
        is 0 if only the bytes differ, and infinite if a value is not a number.
    """

    column: str
    repetition: int
    examples: int | None
    relative: float

    @property
    def in_model(self) -> bool:
        """Whether it is in what was learned."""
        return self.column.startswith(_MODEL)

    @property
    def within_promise(self) -> bool:
        """Whether another processor may cause it."""
        return self.relative <= PROMISED


@dataclass(frozen=True)
class Sample:
    """The selection of finished repetitions that are computed again.

    Attributes
    ----------
    size : int or None
        The largest number of them; None for all.
    seed : int
        The seed of the choice; the same results and seed give the same choice.
    """

    size: int | None = 2
    seed: int = 0

    def of(self, repetitions: Sequence[int], digest: str) -> list[int]:
        """Return a choice of the repetitions of a configuration with a digest, sorted."""
        if self.size is None or self.size >= len(repetitions):
            return sorted(repetitions)
        return sorted(generator("verify", self.seed, digest).choice(repetitions, self.size, replace=False).tolist())


@dataclass(frozen=True)
class Computation:
    """Finished repetitions of one configuration, as recorded or as computed again.

    Attributes
    ----------
    tables : mapping of str to sequence of mapping
        The rows of ``curves.csv`` and ``runs.csv``, as text.
    identity : mapping
        The configuration and the data that decide them.
    sources : sequence of mapping
        The recorded `provenance` of what computed them; empty for what this process computed.
    models : mapping
        What they have learned, by repetition; a repetition is missing if its model was not kept.
    failed : sequence of str
        A message for each repetition that failed.
    """

    tables: Mapping[str, Rows]
    identity: Mapping[str, Any]
    sources: Sequence[Mapping[str, Any]]
    models: Models = field(default_factory=dict)
    failed: Sequence[str] = ()

    def repetitions(self) -> list[int]:
        """Return the numbers of the finished repetitions, sorted."""
        return sorted({int(row["repetition"]) for row in self.tables[CURVES]})


@dataclass(frozen=True)
class Comparison:
    """The comparison of results computed again with recorded ones.

    Attributes
    ----------
    held, checked : int
        The number of recorded repetitions, and of those that were computed again.
    difference : Difference or None
        Where they differ most; None if they are the same.
    causes : tuple of str
        What has changed since: keys, data, versions, the processor; and whether that may change more than last digits.
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
    """Compute finished repetitions of a run again, by its manifest, without changing its folder.

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
        If there is no run, a file is damaged, or its data are missing.
    WorkerDied
        If a worker process died.
    KeyboardInterrupt
        On Ctrl-C or SIGTERM.
    """
    manifest = run_manifest(folder)
    (cell,) = cells_of(manifest)
    config = restored(cell.config, given)
    here = replace(config.backend, name="loky", address=None)  # whatever computed it, perhaps elsewhere
    plan = make_plan(replace(config, out=str(folder), backend=here))
    recorded = Computation(_tables(folder, plan), whole_identity(manifest), cell.sources, read_models(folder))
    return compare(recorded, recompute(plan, sample.of(recorded.repetitions(), cell.digest)))


def recompute(plan: Plan, repetitions: Sequence[int], function: Repetitions | None = None) -> Computation:
    """Compute repetitions of a plan again, without reading or writing its folder.

    Parameters
    ----------
    plan : Plan
        What is run again.
    repetitions : sequence of int
        Which repetitions; there may be none.
    function : callable, optional
        As for `budgetreg.runs.runner.execute`.
    """
    with termination_as_interrupt(), computing(plan, repetitions, function) as arriving:
        entries = sorted(arriving, key=lambda entry: entry["repetition"])
    finished = [entry for entry in entries if entry["status"] == FINISHED]
    return Computation(
        tables={name: rows_of(content) for name, content in tables_of(plan, finished).items()},
        identity=whole_identity(identity_of(plan)),
        sources=(),
        models={entry["repetition"]: entry["result"]["model"] for entry in finished},
        failed=[
            f"repetition {entry['repetition']}: {entry['message']}" for entry in entries if entry["status"] == FAILED
        ],
    )


def compare(recorded: Computation, again: Computation) -> Comparison:
    """Compare recorded repetitions with those of them that were computed again; if they differ, list what changed."""
    finished = again.repetitions()
    comparison = Comparison(
        held=len(recorded.repetitions()),
        checked=len(finished) + len(again.failed),
        difference=largest_difference(recorded.tables, again.tables, finished, (recorded.models, again.models)),
        failed="; ".join(again.failed[:1]),
    )
    if comparison.same:
        return comparison
    elsewhere = apart(recorded.sources, provenance())
    learner = registry.read(again.identity["algo"])
    grown = [NOT_PORTABLE] if elsewhere and learner and not learner.bitwise_portable else []
    return replace(comparison, causes=(*changes(recorded.identity, again.identity), *elsewhere, *grown))


def _tables(folder: Path, plan: Plan) -> dict[str, Rows]:
    """Return the rows of a run's tables, or those that its journal gives if it was killed before it wrote them."""
    contents = read_tables(folder, (CURVES, RUNS))
    if len(contents) < 2:
        finished = [entry for entry in read_journal(folder / JOURNAL) if entry["status"] == FINISHED]
        contents = tables_of(plan, {entry["repetition"]: entry for entry in finished}.values())
    return {name: rows_of(content) for name, content in contents.items()}


def largest_difference(
    there: Tables, here: Tables, repetitions: Sequence[int], models: tuple[Models, Models] = ({}, {})
) -> Difference | None:
    """Compare some repetitions byte by byte, in both tables and in what they have learned.

    Parameters
    ----------
    there, here : mapping of str to sequence of mapping
        The rows of ``curves.csv`` and ``runs.csv``, as text. Columns that are not in the tables there are not compared.
    repetitions : sequence of int
        Which of them are compared.
    models : tuple of mapping
        What they have learned, there, where it may not have been kept, and here.

    Returns
    -------
    Difference or None
        None if nothing differs. The largest difference otherwise, but first one beyond `PROMISED`, and of these first
        one in the tables, because it has a checkpoint.
    """
    chosen = set(repetitions)
    differences = chain(_in_tables(there, here, chosen), _in_models(*models, chosen))
    return max(differences, key=lambda each: (not each.within_promise, not each.in_model, each.relative), default=None)


def _in_tables(there: Tables, here: Tables, repetitions: set[int]) -> Iterator[Difference]:
    for name, missing in ((CURVES, "examples"), (RUNS, "status")):
        was, now = (_by_place(tables[name], repetitions) for tables in (there, here))
        for place in sorted(was.keys() | now.keys(), key=lambda place: (place[0], place[1] or 0)):
            if place not in was or place not in now:
                yield Difference(missing, *place, inf)
                continue
            for column, value in was[place].items():
                again = now[place].get(column, "")
                if value != again and column not in _NO_RESULTS:
                    yield Difference(column, *place, _relative(_number(value), _number(again)))


def _in_models(there: Models, here: Models, repetitions: set[int]) -> Iterator[Difference]:
    for repetition in sorted(there.keys() & here.keys() & repetitions):
        was, now = there[repetition], here[repetition]
        for name in sorted(was.keys() | now.keys()):
            arrays = was.get(name, _NOTHING), now.get(name, _NOTHING)
            if arrays[0].shape != arrays[1].shape or arrays[0].tobytes() != arrays[1].tobytes():
                yield Difference(f"{_MODEL}{name}", repetition, None, _relative(*arrays))


def _by_place(rows: Rows, repetitions: set[int]) -> dict[tuple[int, int | None], Mapping[str, str]]:
    return {
        (int(row["repetition"]), int(row["examples"]) if "examples" in row else None): row
        for row in rows
        if int(row["repetition"]) in repetitions
    }


def _number(text: str) -> np.ndarray:
    try:
        return np.array([float(text)])
    except ValueError:
        return np.array([np.nan])


def _relative(was: np.ndarray, now: np.ndarray) -> float:
    """Return the largest difference of two arrays divided by their largest entry."""
    if was.shape != now.shape or not (np.isfinite(was).all() and np.isfinite(now).all()):
        return inf
    apart = float(np.abs(was - now).max(initial=0.0))
    return apart / float(max(np.abs(was).max(initial=0.0), np.abs(now).max(initial=0.0))) if apart else 0.0

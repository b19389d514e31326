"""Verifying results: which cells are not those of their recipe any more, and whether computing again gives the same."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from budgetreg.algorithms import registry
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.common.streams import generator
from budgetreg.config.nested import diff, merge, number_ranges
from budgetreg.protocol.configuration import restored
from budgetreg.protocol.plan import Plan, make_plan
from budgetreg.reproduce.recipes import Cell, Recipe, names, read_recipe
from budgetreg.reproduce.reproduction import lacking, read_rows
from budgetreg.runs.journal import FAILED, FINISHED, read_journal
from budgetreg.runs.manifest import (
    NOT_PORTABLE,
    PROMISED,
    RecordedCell,
    apart,
    cells_of,
    changes,
    identity_of,
    provenance,
    read_manifest,
    read_merged_manifest,
    read_tables,
    results_manifest,
    run_manifest,
    whole_identity,
)
from budgetreg.runs.models import read_models
from budgetreg.runs.runner import Repetitions, computing
from budgetreg.runs.tables import CELL, CURVES, JOURNAL, RUNS, TABLES, rows_of, tables_of
from budgetreg.runs.workers import termination_as_interrupt

Rows = Sequence[Mapping[str, str]]
Tables = Mapping[str, Rows]
"""The rows of ``curves.csv`` and ``runs.csv``, as text."""
Models = Mapping[int, Mapping[str, np.ndarray]]
"""What repetitions have learned, by their number: arrays by name."""
Report = Callable[[str], object]
"""Is called with a line on what is computed next."""

_MODEL, _NOTHING = "model.", np.empty(0)
_NO_RESULTS = {"seconds", CELL}


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
    def within_promise(self) -> bool:
        """Whether another processor may cause it."""
        return self.relative <= PROMISED


@dataclass(frozen=True)
class Computation:
    """Finished repetitions of one configuration, as recorded or as computed again.

    Attributes
    ----------
    tables : mapping of str to sequence of mapping
        See `Tables`.
    identity : mapping
        The configuration and the data that decide them.
    sources : sequence of mapping
        The recorded `provenance` of what computed them; empty for what this process computed.
    models : mapping
        What they have learned, by repetition; a repetition is missing if its model was not kept.
    failed : sequence of str
        A message for each repetition that failed.
    """

    tables: Tables
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


@dataclass(frozen=True)
class CellVerdict:
    """The outcome of computing a cell again.

    Attributes
    ----------
    folder : Path
        Where its results are.
    recorded : RecordedCell
        Its entry in the manifest there.
    verdict : Comparison or None
        None for a stale cell, for which the recipe would compute something else now.
    stale : tuple of str
        What differs then.
    """

    folder: Path
    recorded: RecordedCell
    verdict: Comparison | None
    stale: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether everything that was computed again has the same bytes."""
        return self.verdict is not None and self.verdict.same


def verify_folder(folder: Path, sample: Sample, given: Mapping[str, Any], report: Report) -> Iterator[CellVerdict]:
    """Compute finished repetitions of each cell in a folder again; nothing in the folder is changed.

    Parameters
    ----------
    folder : Path
        A run or merged results; anything else has no cells.
    sample : Sample
        Which repetitions of each cell.
    given : mapping
        Keys that change no result: ``n_jobs``, ``dataset.root``.
    report : callable
        Called with each cell before it is computed.

    Raises
    ------
    ConfigError
        If this version cannot run a configuration, or the recipe does not exist any more.
    DataError
        If a file is damaged or missing, or data are missing.
    WorkerDied
        If a worker process died.
    KeyboardInterrupt
        On Ctrl-C or SIGTERM.
    """
    merged = read_merged_manifest(folder)
    if merged is not None:
        yield from verify_merged(folder, read_recipe(merged["recipe"], given), sample, report)
        return
    run = read_manifest(folder)
    if run is not None:
        report(str(folder))
        (recorded,) = cells_of(run)
        yield CellVerdict(folder, recorded, verify_run(folder, sample, given))


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
        If there is no run, a file is damaged or missing, or its data are missing.
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


def verify_merged(
    folder: Path, recipe: Recipe, sample: Sample, report: Report = lambda line: None
) -> Iterator[CellVerdict]:
    """Compute the cells of merged results again that a recipe has; see `verify_folder`."""
    rows = read_rows(folder)
    current = {cell.digest: cell for cell in recipe.cells}
    by_name = {cell.name: cell for cell in recipe.cells}
    again: dict[str, Computation] = {}  # by digest, as cells of several presets may have the same configuration
    recorded_cells = cells_of(results_manifest(folder))
    for number, recorded in enumerate(recorded_cells, 1):
        name, digest = recorded.name, recorded.digest
        if not rows.get(name, {}).get(CURVES):
            raise DataError(f"{folder}: its tables have no row of the cell {name}: remove the folder and reproduce it")
        if digest not in current:
            why = changed(recorded, by_name[name]) if name in by_name else [_NO_CELL]
            yield CellVerdict(folder, recorded, None, tuple(why))
            continue
        report(f"{recipe.name}: {name} ({number} of {len(recorded_cells)})")
        config = current[digest].config
        computed = Computation(rows[name], {**config.identity(), "data": recorded.data}, recorded.sources)
        if digest not in again:
            plan = make_plan(replace(config, out=str(folder)))
            again[digest] = recompute(plan, sample.of(computed.repetitions(), digest))
        yield CellVerdict(folder, recorded, compare(computed, again[digest]))


def _tables(folder: Path, plan: Plan) -> dict[str, Rows]:
    """Return the rows of a run's tables, or those that its journal gives if it was killed before it wrote them."""
    contents = read_tables(folder, TABLES, all_there=True)
    if not {CURVES, RUNS} <= contents.keys():
        finished = [entry for entry in read_journal(folder / JOURNAL) if entry["status"] == FINISHED]
        contents = tables_of(plan, {entry["repetition"]: entry for entry in finished}.values())
    return {name: rows_of(contents[name]) for name in (CURVES, RUNS)}


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

    def rank(each: Difference) -> tuple[bool, bool, float]:
        return not each.within_promise, not each.column.startswith(_MODEL), each.relative

    return max(differences, key=rank, default=None)


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


STALE, MISSING, SHORT, NEEDLESS = "stale", "missing", "fewer", "no longer"
_NO_CELL = "the recipe has no such cell"
_OF_A_CELL = re.compile(r"(.+=.+)-[0-9a-f]{8}")  # as a reproduction names the folder of a run
read_once = cache(read_recipe)
"""Many runs belong to one recipe."""


class CellProblem(NamedTuple):
    """Why a cell is not what its recipe asks for.

    Attributes
    ----------
    cell : str
        Its name.
    state : str
        `STALE`: its configuration has another digest now; `MISSING`: it was never merged; `SHORT`: it has fewer
        repetitions than the recipe asks for; `NEEDLESS`: the recipe has no such cell any more.
    why : str
        Which keys differ, or which repetitions are missing.
    """

    cell: str
    state: str
    why: str


def cell_problems(folder: Path, recipe: Recipe) -> list[CellProblem]:
    """Compare merged results with their recipe as it is now.

    Raises
    ------
    DataError
        If one of their files is missing or damaged.
    """
    rows, held = read_rows(folder), cells_of(results_manifest(folder))
    by_digest = {recorded.digest: recorded for recorded in held}
    by_name = {recorded.name: recorded for recorded in held}
    problems = []
    for cell in recipe.cells:
        if cell.digest in by_digest:
            asked = cell.config.repetitions
            absent = lacking(rows.get(by_digest[cell.digest].name, {CURVES: [], RUNS: []}), asked)
            if absent:
                why = f"repetitions {number_ranges(absent)} of {asked} are missing"
                problems.append(CellProblem(cell.name, SHORT, why))
        elif cell.name in by_name:
            problems.append(CellProblem(cell.name, STALE, ", ".join(changed(by_name[cell.name], cell))))
        else:
            problems.append(CellProblem(cell.name, MISSING, "the results hold no such cell"))
    wanted = {word for cell in recipe.cells for word in (cell.name, cell.digest)}
    needless = [recorded.name for recorded in held if not wanted & {recorded.name, recorded.digest}]
    return problems + [CellProblem(name, NEEDLESS, _NO_CELL) for name in needless]


def changed(recorded: RecordedCell, cell: Cell) -> list[str]:
    """Return why recorded results are not those of a cell of the recipe: what differs, then and now."""
    try:
        # Keys that change no result are not recorded: they are taken from the recipe.
        then = restored(merge(diff(cell.config.resolved, cell.config.recorded()), recorded.config))
    except ConfigError as error:
        return changes(recorded.config, cell.config.recorded()) or [str(error)]
    differences = changes(then.identity(), cell.config.identity())
    latest = then.identity()["algo"]["version"]
    if recorded.version != latest:
        differences.append(f"algo.version {recorded.version} -> {latest}: the numbers of {then.algo.name} have changed")
    return differences or ["its digest is not that of the configuration recorded with it"]


def why_stale(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Return why the recipe of a run has no such cell any more; empty if it has, or if no reproduction made the run.

    A reproduction makes runs directly below a folder with the recipe's name. Other runs of a recipe, such as those with
    another k, are the user's own.

    Parameters
    ----------
    folder : Path
        The run's folder.
    manifest : mapping
        Its manifest.

    Raises
    ------
    ConfigError
        If the recipe has a mistake.
    """
    name, cell = str(manifest.get("experiment")), _OF_A_CELL.fullmatch(folder.name)
    if cell is None or name not in names() or not folder.absolute().parent.as_posix().endswith(f"/{name}"):
        return ""
    recipe = read_once(name)
    if manifest["identity_digest"] in {other.digest for other in recipe.cells}:
        return ""
    now = next((other.config.identity() for other in recipe.cells if other.name == cell[1]), None)
    if now is None:
        return _NO_CELL
    return ", ".join(changes(manifest["identity"], now)) or "its digest has changed"

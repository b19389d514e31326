"""Whether results are what their recipe asks for: which cells are stale, and what computing them again gives."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from budgetreg.common.errors import ConfigError, DataError
from budgetreg.config.nested import diff, merge, number_ranges
from budgetreg.protocol.configuration import restored
from budgetreg.protocol.plan import make_plan
from budgetreg.reproduce.merged import lacking, read_rows
from budgetreg.reproduce.recipes import Cell, Recipe, names, read_recipe
from budgetreg.runs.manifest import (
    RecordedCell,
    cells_of,
    changes,
    read_manifest,
    read_merged_manifest,
    results_manifest,
)
from budgetreg.runs.tables import CURVES, RUNS
from budgetreg.runs.verification import Comparison, Computation, Sample, compare, recompute, verify_run

STALE, MISSING, SHORT, NEEDLESS = "stale", "missing", "fewer", "no longer"
_NO_CELL = "the recipe has no such cell"
_OF_A_CELL = re.compile(r"(.+=.+)-[0-9a-f]{8}")  # as a reproduction names the folder of a run


@dataclass(frozen=True)
class CellProblem:
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
    manifest = read_merged_manifest(folder)
    if manifest is None:
        return []
    rows = read_rows(folder)
    by_digest = {recorded.digest: recorded for recorded in cells_of(manifest)}
    by_name = {recorded.name: recorded for recorded in cells_of(manifest)}
    problems = []
    for cell in recipe.cells:
        current = by_digest.get(cell.digest)
        if current is None and cell.name in by_name:
            problems.append(CellProblem(cell.name, STALE, ", ".join(changed(by_name[cell.name], cell))))
        elif current is None:
            problems.append(CellProblem(cell.name, MISSING, "the results hold no such cell"))
        else:
            asked = cell.config.repetitions
            absent = lacking(rows.get(current.name, {CURVES: [], RUNS: []}), asked)
            if absent:
                why = f"repetitions {number_ranges(absent)} of {asked} are missing"
                problems.append(CellProblem(cell.name, SHORT, why))
    asked_names, digests = {cell.name for cell in recipe.cells}, {cell.digest for cell in recipe.cells}
    return problems + [
        CellProblem(name, NEEDLESS, _NO_CELL)
        for name, recorded in by_name.items()
        if name not in asked_names and recorded.digest not in digests
    ]


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


read_once = cache(read_recipe)
"""Many runs belong to one recipe."""


Report = Callable[[str], object]
"""Is called with a line on what is computed next."""


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
        If a file is damaged, or data are missing.
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
            why = changed(recorded, by_name[name]) if name in by_name else ["the recipe has no such cell"]
            yield CellVerdict(folder, recorded, None, tuple(why))
            continue
        report(f"{recipe.name}: {name} ({number} of {len(recorded_cells)})")
        config = current[digest].config
        computed = Computation(rows[name], {**config.identity(), "data": recorded.data}, recorded.sources)
        if digest not in again:
            plan = make_plan(replace(config, out=str(folder)))
            again[digest] = recompute(plan, sample.of(computed.repetitions(), digest))
        yield CellVerdict(folder, recorded, compare(computed, again[digest]))

"""Computing a folder of results again: a run, or merged results, of which a run is a single cell."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from budgetreg.errors import DataError
from budgetreg.protocol.plan import make_plan
from budgetreg.reproduce.merged import read_rows
from budgetreg.reproduce.recipes import Recipe, read_recipe
from budgetreg.reproduce.staleness import changed
from budgetreg.runs.manifest import RecordedCell, cells_of, read_manifest, read_merged_manifest, results_manifest
from budgetreg.runs.schema import CURVES
from budgetreg.runs.verification import Comparison, Computation, Sample, compare, recompute, verify_run

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

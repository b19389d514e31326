"""Computing again what merged results hold, cell by cell, as their recipe says."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from budgetreg.errors import DataError
from budgetreg.execution.verification import Comparison, Computation, Sample, compare, recompute
from budgetreg.reproduce.merged import read_rows
from budgetreg.reproduce.recipes import Cell, Recipe
from budgetreg.reproduce.staleness import changed
from budgetreg.results.manifest import RecordedCell, cells_of, read_merged_manifest
from budgetreg.results.schema import CURVES


@dataclass(frozen=True)
class CellVerdict:
    """What came of computing a cell again.

    Attributes
    ----------
    cell : str
        Its name.
    algo, dataset : str
        Learner and data set.
    k : int
    verdict : Comparison or None
        None of a cell that is stale: the recipe would compute something else now.
    stale : tuple of str
        What differs then.
    """

    cell: str
    algo: str
    dataset: str
    k: int
    verdict: Comparison | None
    stale: tuple[str, ...] = ()


def verify_merged(
    folder: Path, recipe: Recipe, sample: Sample, tell: Callable[[str], object] = lambda line: None
) -> Iterator[CellVerdict]:
    """Compute again finished repetitions of each cell of merged results; nothing in their folder is changed.

    Parameters
    ----------
    folder : Path
        Where they are.
    recipe : Recipe
        As it is now; what it asks for besides is not computed.
    sample : Sample
        Which repetitions of each cell.
    tell : callable, optional
        Told the cell that is computed next.

    Raises
    ------
    DataError
        If a file is damaged, or data are not there.
    WorkerDied
        If a worker process died.
    KeyboardInterrupt
        On Ctrl-C or SIGTERM.
    """
    from budgetreg.protocol.plan import make_plan  # here, as tables that are damaged need not wait for it

    manifest = read_merged_manifest(folder)
    if manifest is None:
        raise DataError(f"{folder} holds no merged results")
    rows = read_rows(folder)
    by_digest = {cell.digest: cell for cell in recipe.cells}
    by_name = {cell.name: cell for cell in recipe.cells}
    again: dict[str, Computation] = {}  # by digest: presets that leave a learner as it is share what is computed
    recorded_cells = cells_of(manifest)
    for number, recorded in enumerate(recorded_cells, 1):
        name, digest = recorded.name, recorded.digest
        cell = by_digest.get(digest)
        labels = _labels(rows[name][CURVES][0]) if rows.get(name, {}).get(CURVES) else None
        if labels is None:
            raise DataError(f"{folder}: its tables hold no row of the cell {name}")
        if cell is None:
            yield CellVerdict(name, **labels, verdict=None, stale=_why_stale(recorded, by_name.get(name)))
            continue
        tell(f"{recipe.name}: {name} ({number} of {len(recorded_cells)})")
        identity = {**cell.config.identity(), "data": recorded.data}
        record = Computation(rows[name], identity, recorded.sources)
        if digest not in again:
            plan = make_plan(replace(cell.config, out=str(folder)))
            again[digest] = recompute(plan, sample.of(record.repetitions(), digest))
        yield CellVerdict(name, **labels, verdict=compare(record, again[digest]))


def _labels(row: Mapping[str, str]) -> dict[str, Any]:
    return {"algo": row["algo"], "dataset": row["dataset"], "k": int(row["k"])}


def _why_stale(recorded: RecordedCell, cell: Cell | None) -> tuple[str, ...]:
    return ("the recipe has no such cell",) if cell is None else tuple(changed(recorded, cell))

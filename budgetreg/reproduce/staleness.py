"""What merged results lack of what their recipe asks for now: which cells, and why."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from budgetreg.config.nested import Tree, diff, merge
from budgetreg.errors import ConfigError
from budgetreg.protocol.configuration import restored
from budgetreg.reproduce.merged import lacking, read_rows
from budgetreg.reproduce.recipes import Cell, Recipe
from budgetreg.results.identity import changes
from budgetreg.results.manifest import RecordedCell, cells_of, read_merged_manifest
from budgetreg.results.schema import CURVES, RUNS

STALE, MISSING, SHORT, NEEDLESS = "stale", "missing", "fewer", "no longer"


@dataclass(frozen=True)
class StaleCell:
    """What is the matter with a cell.

    Attributes
    ----------
    cell : str
        Its name.
    state : str
        `STALE`: its configuration has another digest now; `MISSING`: it was never merged; `SHORT`: it holds fewer
        repetitions than are asked for; `NEEDLESS`: the recipe does not have it any more.
    why : str
        Which keys differ, or which repetitions are not there.
    """

    cell: str
    state: str
    why: str


def stale_cells(folder: Path, recipe: Recipe) -> list[StaleCell]:
    """Compare merged results with their recipe as it is now; none of a picture, which has no curves.

    Raises
    ------
    DataError
        If a file of theirs is missing or damaged.
    """
    manifest = read_merged_manifest(folder)
    if manifest is None or recipe.drawing.kind == "pictures":
        return []
    return list(_stale_cells(manifest, read_rows(folder), recipe))


def changed(recorded: RecordedCell, cell: Cell) -> list[str]:
    """Return why recorded results are not those of a cell of the recipe: what differs, then and now."""
    try:
        # What changes no result was not recorded, and is as the recipe has it.
        then = restored(merge(diff(cell.config.resolved, cell.config.recorded()), recorded.config))
    except ConfigError as error:
        return changes(recorded.config, cell.config.recorded()) or [str(error)]
    found = changes(then.identity(), cell.config.identity())
    latest = then.identity()["algo"]["version"]
    if recorded.version != latest:
        found.append(f"algo.version {recorded.version} -> {latest}: the numbers of {then.algo.name} have changed")
    return found or ["its digest is not that of the configuration recorded with it"]


def _stale_cells(
    manifest: Tree, rows: Mapping[str, Mapping[str, Sequence[Mapping[str, str]]]], recipe: Recipe
) -> Iterator[StaleCell]:
    by_digest = {recorded.digest: recorded for recorded in cells_of(manifest)}
    by_name = {recorded.name: recorded for recorded in cells_of(manifest)}
    for cell in recipe.cells:
        current = by_digest.get(cell.digest)
        if current is None and cell.name in by_name:
            yield StaleCell(cell.name, STALE, ", ".join(changed(by_name[cell.name], cell)))
        elif current is None:
            yield StaleCell(cell.name, MISSING, "the results hold no such cell")
        else:
            own = rows.get(current.name, {CURVES: [], RUNS: []})
            absent = lacking(own[CURVES], own[RUNS], cell.config.repetitions)
            if absent:
                yield StaleCell(
                    cell.name, SHORT, f"repetitions {ranges(absent)} of {cell.config.repetitions} are not there"
                )
    names, digests = {cell.name for cell in recipe.cells}, {cell.digest for cell in recipe.cells}
    for name, recorded in by_name.items():
        if name not in names and recorded.digest not in digests:
            yield StaleCell(name, NEEDLESS, "the recipe has no such cell")


def ranges(numbers: Sequence[int]) -> str:
    """Write increasing numbers by the ends of their runs.

    Examples
    --------
    >>> ranges([0, 3, 4, 5, 9])
    '0, 3-5, 9'
    """
    starts = [number for number in numbers if number - 1 not in set(numbers)]
    ends = [number for number in numbers if number + 1 not in set(numbers)]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))

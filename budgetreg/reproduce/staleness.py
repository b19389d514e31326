"""The cells of merged results that are not what their recipe asks for now, and why."""

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
    """Compare merged results with their recipe as it is now. A picture has no cells that could be stale.

    Raises
    ------
    DataError
        If one of their files is missing or damaged.
    """
    manifest = read_merged_manifest(folder)
    if manifest is None or recipe.drawing.kind == "pictures":
        return []
    return list(_problems(manifest, read_rows(folder), recipe))


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


def _problems(
    manifest: Tree, rows: Mapping[str, Mapping[str, Sequence[Mapping[str, str]]]], recipe: Recipe
) -> Iterator[CellProblem]:
    by_digest = {recorded.digest: recorded for recorded in cells_of(manifest)}
    by_name = {recorded.name: recorded for recorded in cells_of(manifest)}
    for cell in recipe.cells:
        current = by_digest.get(cell.digest)
        if current is None and cell.name in by_name:
            yield CellProblem(cell.name, STALE, ", ".join(changed(by_name[cell.name], cell)))
        elif current is None:
            yield CellProblem(cell.name, MISSING, "the results hold no such cell")
        else:
            tables = rows.get(current.name, {CURVES: [], RUNS: []})
            absent = lacking(tables[CURVES], tables[RUNS], cell.config.repetitions)
            if absent:
                yield CellProblem(
                    cell.name, SHORT, f"repetitions {number_ranges(absent)} of {cell.config.repetitions} are missing"
                )
    names, digests = {cell.name for cell in recipe.cells}, {cell.digest for cell in recipe.cells}
    for name, recorded in by_name.items():
        if name not in names and recorded.digest not in digests:
            yield CellProblem(name, NEEDLESS, "the recipe has no such cell")


def number_ranges(numbers: Sequence[int]) -> str:
    """Return increasing numbers as text, with consecutive ones as a range.

    Examples
    --------
    >>> number_ranges([0, 3, 4, 5, 9])
    '0, 3-5, 9'
    """
    starts = [number for number in numbers if number - 1 not in set(numbers)]
    ends = [number for number in numbers if number + 1 not in set(numbers)]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))

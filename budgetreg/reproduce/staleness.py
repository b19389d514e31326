"""What recipes do not ask for now, and why: cells of merged results, and runs that no merged results refer to."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from budgetreg.config.nested import diff, merge
from budgetreg.errors import ConfigError, DataError, UserError
from budgetreg.files.garbage import Garbage
from budgetreg.files.writing import files_below
from budgetreg.notices import say
from budgetreg.protocol.configuration import restored
from budgetreg.reproduce.merged import lacking, read_rows
from budgetreg.reproduce.recipes import Cell, Recipe, names, read_recipe
from budgetreg.results.folders import run_folder
from budgetreg.results.manifest import RecordedCell, cells_of, read_manifest, read_merged_manifest
from budgetreg.results.provenance import changes
from budgetreg.results.schema import CURVES, JOURNAL, MANIFEST, RUNS

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
    """Compare merged results with their recipe as it is now. A picture has no cells that could be stale.

    Raises
    ------
    DataError
        If one of their files is missing or damaged.
    """
    manifest = read_merged_manifest(folder)
    if manifest is None or recipe.drawing.kind == "pictures":
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
            tables, asked = rows.get(current.name, {CURVES: [], RUNS: []}), cell.config.repetitions
            absent = lacking(tables[CURVES], tables[RUNS], asked)
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


def stale_runs(folder: Path, results: Sequence[Path]) -> Iterator[Garbage]:
    """Give the folders of stale runs in and below a folder.

    Only runs that a reproduction made are considered: they lie directly below the folder of their recipe. Other runs of
    a recipe, such as those with another k, are the user's own.

    Parameters
    ----------
    folder : Path
        A folder of runs; links are not followed.
    results : sequence of Path
        Folders with merged results in or below them; the runs that they refer to are kept.
    """
    kept = {digest for place in results if place.is_dir() for digest in _referred(place)}
    recipe_of = cache(_recipe)  # many runs belong to one recipe
    for path in files_below(folder, MANIFEST):
        place = path.parent
        try:
            manifest = read_manifest(place)
        except UserError:  # damaged, so it is unknown whose it is
            continue
        if manifest is None or manifest["identity_digest"] in kept:
            continue
        name, match = str(manifest.get("experiment")), _OF_A_CELL.fullmatch(place.name)
        if match is None or not _is_below(place, name):
            continue
        recipe = recipe_of(name)
        if recipe is not None and manifest["identity_digest"] not in {cell.digest for cell in recipe.cells}:
            yield run_folder(place, _why(manifest, match[1], recipe))


def _is_below(place: Path, name: str) -> bool:
    """Whether a folder lies directly below the folder of a recipe."""
    parts = tuple(name.split("/"))
    return place.absolute().parent.parts[-len(parts) :] == parts


def _referred(place: Path) -> Iterator[str]:
    for path in files_below(place, MANIFEST):
        try:
            record = read_merged_manifest(path.parent)
        except DataError as error:
            if (path.parent / JOURNAL).exists():  # a run, which refers to no other
                continue
            # It might refer to any run.
            raise DataError(f"{error}; nothing is removed until that is repaired") from error
        for entry in record["cells"] if record else ():
            yield entry["identity_digest"]


def _recipe(name: str) -> Recipe | None:
    if name not in names():
        return None
    try:
        return read_recipe(name)
    except UserError as error:
        say(f"{error}; its runs are kept")
        return None


def _why(manifest: Mapping[str, Any], cell: str, recipe: Recipe) -> str:
    now = next((other.config.identity() for other in recipe.cells if other.name == cell), None)
    if now is None:
        return f"stale: {recipe.name} has no such cell"
    return f"stale: {', '.join(changes(manifest['identity'], now)) or 'its digest has changed'}"

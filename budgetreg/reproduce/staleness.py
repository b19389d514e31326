"""What merged results lack of what their recipe asks for now: which cells, and why."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from budgetreg.errors import ConfigError
from budgetreg.protocol.configuration import restored
from budgetreg.reproduce.merged import lacking, read_record, read_rows
from budgetreg.reproduce.recipes import Cell, Recipe
from budgetreg.results.manifest import changes, version_then
from budgetreg.results.nested import Tree, diff, merge
from budgetreg.results.schema import CELL, CURVES, RUNS

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
    manifest = read_record(folder)
    if manifest is None or recipe.drawing.kind == "pictures":
        return []
    return list(_stale_cells(manifest, read_rows(folder), recipe))


def changed(manifest: Tree, entry: Tree, cell: Cell) -> list[str]:
    """Return why the results of an entry of merged results are not those of a cell: what differs, then and now.

    Parameters
    ----------
    manifest : dict
        Of the merged results.
    entry : dict
        Of one of its cells.
    cell : Cell
        Of the recipe as it is now.
    """
    recorded = merge(manifest["config"], entry.get("config", {}))
    try:
        # What changes no result was not recorded, and is as the recipe has it.
        then = restored(merge(diff(cell.config.resolved, cell.config.recorded()), recorded))
    except ConfigError as error:
        return changes(recorded, cell.config.recorded()) or [str(error)]
    found = changes(then.identity(), cell.config.identity())
    version, latest = version_then(then, entry["identity_digest"]), then.identity()["algo"]["version"]
    if version is not None and version != latest:
        found.append(f"algo.version {version} -> {latest}: the numbers of {then.algo.name} have changed")
    return found or ["its digest is not that of the configuration recorded with it"]


def _stale_cells(
    manifest: Tree, rows: Mapping[str, Mapping[str, Sequence[Mapping[str, str]]]], recipe: Recipe
) -> Iterator[StaleCell]:
    by_digest = {entry["identity_digest"]: entry for entry in manifest["cells"]}
    by_name = {entry[CELL]: entry for entry in manifest["cells"]}
    for cell in recipe.cells:
        entry: dict[str, Any] | None = by_digest.get(cell.digest)
        if entry is None and cell.name in by_name:
            yield StaleCell(cell.name, STALE, ", ".join(changed(manifest, by_name[cell.name], cell)))
        elif entry is None:
            yield StaleCell(cell.name, MISSING, "the results hold no such cell")
        else:
            own = rows.get(entry[CELL], {CURVES: [], RUNS: []})
            absent = lacking(own[CURVES], own[RUNS], cell.config.repetitions)
            if absent:
                yield StaleCell(
                    cell.name, SHORT, f"repetitions {ranges(absent)} of {cell.config.repetitions} are not there"
                )
    names, digests = {cell.name for cell in recipe.cells}, {cell.digest for cell in recipe.cells}
    for entry in manifest["cells"]:
        if entry[CELL] not in names and entry["identity_digest"] not in digests:
            yield StaleCell(entry[CELL], NEEDLESS, "the recipe has no such cell")


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

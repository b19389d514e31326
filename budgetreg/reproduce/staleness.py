"""Find stale results: cells, figures and runs."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.config.nested import diff, merge
from budgetreg.errors import ConfigError
from budgetreg.figures.registry import Receipt
from budgetreg.files import digest
from budgetreg.protocol.configuration import restored
from budgetreg.reproduce.merged import lacking, read_rows
from budgetreg.reproduce.recipes import Cell, Recipe, names, read_recipe
from budgetreg.runs.manifest import RecordedCell, cells_of, read_merged_manifest
from budgetreg.runs.naming import number_ranges
from budgetreg.runs.provenance import changes
from budgetreg.runs.schema import CURVES, RUNS

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


def receipt_of(recipe: Recipe, results: Path) -> Receipt:
    """Return the receipt of a recipe's verdicts and figures.

    Parameters
    ----------
    recipe : Recipe
    results : Path
        The folder with a folder of merged results for each recipe.
    """
    referred = {*recipe.drawing.beside, *(name for claim in recipe.claims for name in claim.options["also"])}
    others = sorted((name, results / name / CURVES) for name in referred)
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        ingredients = [
            *(recipe.name, recipe.title, recipe.protocols, recipe.differs, repr(recipe.claims), repr(recipe.drawing)),
            [(cell.name, cell.digest, cell.config.repetitions, cell.config.recorded()) for cell in recipe.cells],
            [(name, digest(table.read_bytes())) for name, table in others if table.is_file()],
        ]
    return Receipt(results / recipe.name, ingredients)


def results_in(folder: Path) -> list[str]:
    """Return the names of the files that a folder of merged results holds; none if there is no such folder."""
    return [path.name for path in folder.glob("*") if path.is_file() and not path.name.startswith(".")]

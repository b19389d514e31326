"""Stale runs: the recipe does not ask for them any more, and no merged results refer to them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from budgetreg.errors import DataError, UserError
from budgetreg.files.garbage import Garbage
from budgetreg.files.writing import files_below
from budgetreg.notices import say
from budgetreg.reproduce.recipes import Recipe, names, read_recipe
from budgetreg.results.folders import run_folder
from budgetreg.results.identity import changes
from budgetreg.results.manifest import read_manifest, read_merged_manifest
from budgetreg.results.schema import JOURNAL, MANIFEST

_OF_A_CELL = re.compile(r"(.+=.+)-[0-9a-f]{8}")  # as a reproduction names the folder of a run


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

"""Runs of recipes that their recipe does not ask for any more, and that no merged results came from."""

import re
from collections.abc import Iterator, Mapping, Sequence
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

    Only those that a reproduction made are looked at, directly below the folder of their recipe: what somebody ran
    otherwise, perhaps with another k, was never meant to be the recipe's.

    Parameters
    ----------
    folder : Path
        Where runs are; links are not followed.
    results : sequence of Path
        Folders in and below which there may be merged results: a run that they refer to stays.
    """
    kept = {digest for place in results if place.is_dir() for digest in _referred(place)}
    recipes: dict[str, Recipe | None] = {}
    for path in files_below(folder, MANIFEST):
        place = path.parent
        try:
            manifest = read_manifest(place)
        except UserError:  # damaged: whose it is, nobody can tell
            continue
        if manifest is None or manifest["identity_digest"] in kept:
            continue
        name, match = str(manifest.get("experiment")), _OF_A_CELL.fullmatch(place.name)
        if match is None or not _is_below(place, name):
            continue
        if name not in recipes:
            recipes[name] = _recipe(name)
        recipe = recipes[name]
        if recipe is not None and manifest["identity_digest"] not in {cell.digest for cell in recipe.cells}:
            yield run_folder(place, _why(manifest, match[1], recipe))


def _is_below(place: Path, name: str) -> bool:
    """Whether a folder lies directly below that of a recipe."""
    parts = tuple(name.split("/"))
    return place.absolute().parent.parts[-len(parts) :] == parts


def _referred(place: Path) -> Iterator[str]:
    for path in files_below(place, MANIFEST):
        try:
            record = read_merged_manifest(path.parent)
        except DataError as error:
            if (path.parent / JOURNAL).exists():  # a run, which refers to nothing
                continue
            # What it refers to is not known, and might be anything.
            raise DataError(f"{error}; nothing is removed before that is put right") from error
        for entry in record["cells"] if record else ():
            yield entry["identity_digest"]


def _recipe(name: str) -> Recipe | None:
    if name not in names():
        return None
    try:
        return read_recipe(name)
    except UserError as error:
        say(f"{error}; its runs are left alone")
        return None


def _why(manifest: Mapping[str, Any], cell: str, recipe: Recipe) -> str:
    now = next((one.config.identity() for one in recipe.cells if one.name == cell), None)
    if now is None:
        return f"stale: {recipe.name} has no such cell"
    return f"stale: {', '.join(changes(manifest['identity'], now)) or 'its digest is another now'}"

"""Find stale results: cells, figures, and runs that no merged results refer to.

Verdicts and figures have a receipt in the cache, so that current ones are not made again. A receipt belongs to the
digest of everything that goes in: the recipe, the results of other recipes that its claims refer to, the source of this
package and the versions of the libraries. It lists the digests of the files that came out. While they are what lies in
the folder, the results are intact and current.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.config import catalogue
from budgetreg.config.nested import diff, merge
from budgetreg.data.cache import cache_root
from budgetreg.errors import ConfigError, DataError, UserError
from budgetreg.files.garbage import Garbage
from budgetreg.files.integrity import digest
from budgetreg.files.paths import content_of_regular
from budgetreg.files.writing import files_below, write_atomically
from budgetreg.notices import say
from budgetreg.protocol.configuration import restored
from budgetreg.reproduce.merged import lacking, read_rows
from budgetreg.reproduce.recipes import Cell, Recipe, names, read_recipe
from budgetreg.results.folders import run_folder
from budgetreg.results.manifest import RecordedCell, cells_of, read_manifest, read_merged_manifest
from budgetreg.results.naming import number_ranges
from budgetreg.results.provenance import changes
from budgetreg.results.schema import CURVES, JOURNAL, MANIFEST, RUNS

STALE, MISSING, SHORT, NEEDLESS = "stale", "missing", "fewer", "no longer"
_NO_CELL = "the recipe has no such cell"
_RECEIPTS = "reports"
_LIBRARIES = ("matplotlib", "numpy", "pandas", "scipy")
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
        if match is None or not place.absolute().parent.as_posix().endswith(f"/{name}"):
            continue
        recipe = recipe_of(name)
        if recipe is not None and manifest["identity_digest"] not in {cell.digest for cell in recipe.cells}:
            yield run_folder(place, _why(manifest, match[1], recipe))


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


class Receipt:
    """The receipt of one recipe's results.

    Parameters
    ----------
    recipe : Recipe
    results : Path
        The folder with a folder of merged results for each recipe.
    """

    def __init__(self, recipe: Recipe, results: Path) -> None:
        self._folder = results / recipe.name
        self._path = cache_root() / _RECEIPTS / f"{_ingredients(recipe, results)}.json"

    def holds(self) -> bool:
        """Whether the files in the folder are those that were made from the same."""
        try:
            return bool(_read(self._path).get("files") == self._files())
        except OSError:  # the folder is gone
            return False

    def write(self) -> None:
        """Note the files that are in the folder now; a cache that cannot be written costs only time."""
        content = json.dumps({"source": _source(), "files": self._files()}, indent=1)
        with suppress(OSError, UserError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, content.encode())

    def _files(self) -> dict[str, str]:
        files = sorted(path for path in self._folder.iterdir() if path.is_file() and not path.name.startswith("."))
        return {path.name: digest(path.read_bytes()) for path in files}


def outdated_receipts() -> Iterator[Garbage]:
    """Give the receipts that another version of this package wrote, which no command will read."""
    for path in sorted((cache_root() / _RECEIPTS).glob("*.json")):
        if _read(path).get("source") != _source():
            yield Garbage(path, "what another version of budgetreg noted of figures")


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a receipt; nothing if there is none, or it is damaged."""
    try:
        content = json.loads(content_of_regular(path))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _ingredients(recipe: Recipe, results: Path) -> str:
    """Return the digest of everything that verdicts and figures depend on, except the tables beside them."""
    referred = {*recipe.drawing.beside, *(name for claim in recipe.claims for name in claim.options["also"])}
    others = sorted((name, results / name / CURVES) for name in referred)
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        ingredients = [
            *(recipe.name, recipe.title, recipe.protocols, recipe.differs, repr(recipe.claims), repr(recipe.drawing)),
            [(cell.name, cell.digest, cell.config.repetitions, cell.config.recorded()) for cell in recipe.cells],
            [(name, digest(table.read_bytes())) for name, table in others if table.is_file()],
            [(name, metadata.version(name)) for name in _LIBRARIES],
            _source(),
        ]
    return digest(json.dumps(ingredients, sort_keys=True).encode())


@cache
def _source() -> str:
    """Return the digest of the package's source, and of the learners' files, which say how they are drawn."""
    package = Path(__file__).resolve().parents[1]
    texts = [path.read_bytes() for path in sorted(package.rglob("*.py"))]
    texts += [catalogue.text("algo", name).encode() for name in catalogue.options("algo")]
    return digest(b"\0".join(texts))

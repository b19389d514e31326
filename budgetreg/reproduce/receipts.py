"""Receipts: what verdicts and figures were made from, kept in the cache, so that current ones are not made again.

A receipt belongs to the digest of everything that goes in: the recipe, the results of other recipes that its claims
refer to, the source of this package and the versions of the libraries. It lists the digests of the files that came
out. While they are what lies in the folder, the results are intact and current.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.config import catalogue
from budgetreg.data.cache import cache_root
from budgetreg.errors import UserError
from budgetreg.files.garbage import Garbage
from budgetreg.files.integrity import digest
from budgetreg.files.writing import write_atomically
from budgetreg.reproduce.recipes import Recipe
from budgetreg.results.schema import CURVES

_FOLDER = "reports"
_LIBRARIES = ("matplotlib", "numpy", "pandas", "scipy")


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
        self._path = cache_root() / _FOLDER / f"{_ingredients(recipe, results)}.json"

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
    for path in sorted((cache_root() / _FOLDER).glob("*.json")):
        if _read(path).get("source") != _source():
            yield Garbage(path, "what another version of budgetreg noted of figures")


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a receipt; nothing if there is none, or it is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _ingredients(recipe: Recipe, results: Path) -> str:
    """Return the digest of everything that verdicts and figures depend on, except the tables beside them."""
    others = sorted({(name, results / name / CURVES) for claim in recipe.claims for name in claim.options["also"]})
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

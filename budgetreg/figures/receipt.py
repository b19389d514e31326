"""Receipts: what figures and verdicts were made from, so that current ones are not made again.

A receipt lies beside the files. It has the digest of everything that went in: what the caller names, the source that
judges and draws, and the versions of the libraries. And it lists the digests of the files that came out.
"""

import json
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from budgetreg.config import catalogue
from budgetreg.files import content_of_regular, digest, write_atomically

RECEIPT = ".receipt.json"
_SOURCE = ("analysis", "figures", "reproduce", "runs")
_LIBRARIES = ("matplotlib", "numpy", "pandas", "scipy")


class Receipt:
    """The receipt of the files in a folder.

    Parameters
    ----------
    folder : Path
    ingredients : object
        All that the files depend on besides source and libraries, as JSON takes it.
    """

    def __init__(self, folder: Path, ingredients: object) -> None:
        self._path = folder / RECEIPT
        versions = [(name, metadata.version(name)) for name in _LIBRARIES]
        self._made_from = digest(json.dumps([ingredients, versions, _source()], sort_keys=True).encode())

    def holds(self, names: Iterable[str]) -> bool:
        """Whether the files of these names are those that were made from the same."""
        try:
            return bool(json.loads(content_of_regular(self._path)) == self._content(names))
        except (OSError, ValueError):  # a file is missing, or the receipt is damaged
            return False

    def write(self, names: Iterable[str]) -> None:
        """Note the files of these names as they are now; without one of them, the others never are current.

        Raises
        ------
        UserError
            If it cannot be written.
        """
        there = [name for name in names if (self._path.parent / name).is_file()]
        write_atomically(self._path, f"{json.dumps(self._content(there), indent=1)}\n".encode())

    def _content(self, names: Iterable[str]) -> dict[str, object]:
        files = {name: digest((self._path.parent / name).read_bytes()) for name in sorted(names)}
        return {"made_from": self._made_from, "files": files}


@cache
def _source() -> str:
    """Return the digest of the source that judges and draws, and of the learners' files, which say how they look."""
    package = Path(__file__).resolve().parents[1]
    texts = [path.read_bytes() for part in _SOURCE for path in sorted((package / part).rglob("*.py"))]
    texts += [catalogue.text("algo", name).encode() for name in catalogue.options("algo")]
    return digest(b"\0".join(texts))

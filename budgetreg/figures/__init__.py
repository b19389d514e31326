"""The kinds of figures, and receipts of what was drawn.

Each kind has a function in its module: series and a specification in, a figure and the paragraphs of its caption out.
Modules are loaded when they draw, as matplotlib is slow to load.

A receipt lies beside the files that were made, so that current ones are not made again. It has the digest of everything
that went in: what the caller names, the source that judges and draws, and the versions of the libraries. And it lists
the digests of the files that came out.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module, metadata
from itertools import chain
from pathlib import Path
from typing import Any

from budgetreg.common.files import content_of_regular, digest, write_atomically
from budgetreg.common.notices import in_one_line
from budgetreg.config import catalogue
from budgetreg.figures.specification import PLAIN, Drawing
from budgetreg.runs.series import Series, labelled, read_folder

_MODULES = {
    "curves": "curves",
    "paired": "paired",
    **dict.fromkeys(("dots", "scaling", "ratios", "relative", "bills"), "points"),
    "advice": "advice",
    "study": "study",
}
"""The module of each kind of figure; its function is called ``draw_<kind>``."""
RECEIPT = ".receipt.json"
_SOURCE = ("analysis/*.py", "figures/*.py", "reproduce/*.py", "runs/manifest.py", "runs/series.py", "runs/tables.py")
"""What reads tables, judges and draws; what the other modules of ``runs`` compute lies in these tables."""
_LIBRARIES = ("matplotlib", "numpy", "pandas", "scipy")


def plot(subject: Any, target: Path, name: str, drawing: Drawing | None = None) -> list[Path]:
    """Draw a figure, and write it with its caption.

    Parameters
    ----------
    subject : sequence of Series
        As `budgetreg.runs.series.labelled` returns them, panel by panel; at least one. The kind ``advice`` draws
        candidates with their total, and ``study`` a study.
    target : Path
        Folder of the files; made if it does not exist.
    name : str
        Name of the files, without ending.
    drawing : Drawing, optional
        The kind of figure, and what a recipe asks for; without it, curves with a panel for each data set, and for each
        budget at prediction if there are several.

    Returns
    -------
    list of Path
        ``<name>.png``, ``<name>.pdf``, and ``<name>.txt``, the caption.
    """
    if drawing is None:
        subject, drawing = _without_recipe(subject)
    draw = getattr(import_module(f"budgetreg.figures.{_MODULES[drawing.kind]}"), f"draw_{drawing.kind}")
    from budgetreg.figures.canvas import own_settings, write_figure
    from budgetreg.figures.looks import called

    with own_settings():
        shown = list(map(called, subject)) if drawing.kind not in ("advice", "study") else subject
        figure, title, paragraphs = draw(shown, drawing)
        caption = "\n\n".join([in_one_line(f"{name}: {title}"), *paragraphs])
        return write_figure(figure, f"{caption}\n", target, name)


def _without_recipe(series: Sequence[Series]) -> tuple[Sequence[Series], Drawing]:
    """Return the drawing of series that no recipe describes, and the series with labels for its panels."""
    if len({curve.config.get("predict_k") for curve in series}) == 1:
        return series, PLAIN
    drawing = Drawing(panels=("dataset", "predict_k"))
    panels = {name: labelled(curves) for name, curves in drawing.split(series).items()}
    titles = {
        name: f"{PLAIN.title(curves)}, predicted from {curves[0].config.get('predict_k') or 'all'}"
        for name, curves in panels.items()
    }
    return list(chain(*panels.values())), replace(drawing, titles=titles)


def plot_run(folder: Path) -> list[Path]:
    """Draw the curve of the run in a folder into that folder; runs in folders below it are left out.

    Returns
    -------
    list of Path
        ``curve.png``, ``curve.pdf``, and ``curve.txt``, the caption.

    Raises
    ------
    DataError
        As for `budgetreg.runs.series.read_folder`.
    """
    return plot(labelled(read_folder(folder)), folder, "curve")


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
        """Whether the files of these names are as they were written, and made from what they depend on now."""
        try:
            return bool(json.loads(content_of_regular(self._path)) == self._content(names))
        except (OSError, ValueError):  # a file is missing, or the receipt is damaged
            return False

    def write(self, names: Iterable[str]) -> None:
        """Record the digests of the files of these names; without one of them, the others are never current.

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
    texts = [path.read_bytes() for part in _SOURCE for path in sorted(package.glob(part))]
    texts += [catalogue.text("algo", name).encode() for name in catalogue.options("algo")]
    return digest(b"\0".join(texts))

"""What all figures share: settings, panels, grids and legends, and files that are the same bytes each time."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from budgetreg.figures.library import Artist, Axes, Figure, Line2D, matplotlib
from budgetreg.files.writing import os_errors_explained, write_atomically
from budgetreg.notices import printable

_DOTS_PER_INCH = 150
# Without these, files would hold the date and the version of the drawing library.
_NO_METADATA = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Creator": None, "Producer": None}}


@contextmanager
def own_settings() -> Iterator[None]:
    """Draw with matplotlib's defaults and our fonts, then restore the user's settings."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"font.family": "DejaVu Sans", "pdf.fonttype": 42, "font.size": 9.5})
        yield


def write_figure(figure: Figure, text: str, target: Path, name: str) -> list[Path]:
    """Write a figure and its caption; call it within `own_settings`, where the figure was made.

    Parameters
    ----------
    figure : Figure
        Written as ``<name>.png`` and ``<name>.pdf``: the same bytes for the same figure.
    text : str
        Content of ``<name>.txt``.
    target : Path
        Folder of the files; made if it does not exist.
    name : str
        Name of the files, without ending.

    Returns
    -------
    list of Path
        The three files.
    """
    contents = {"png": _render(figure, "png")}
    figure.set_layout_engine("none")  # the layout is known by now
    contents |= {"pdf": _render(figure, "pdf"), "txt": printable(text).encode(errors="backslashreplace")}
    with os_errors_explained(f"create {target}"):
        target.mkdir(parents=True, exist_ok=True)
    paths = [target / f"{name}.{ending}" for ending in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        write_atomically(path, content)
    return paths


def _render(figure: Figure, ending: str) -> bytes:
    buffer = BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the picture shows a box
        figure.savefig(buffer, format=ending, dpi=_DOTS_PER_INCH, metadata=_NO_METADATA[ending])
    return buffer.getvalue()


def grid(ax: Axes, **options: Any) -> None:
    """Draw a light grid below the curves."""
    ax.grid(True, color="#E6E6E6", linewidth=0.6, **options)
    ax.set_axisbelow(True)


def legend(figure: Figure, entries: Mapping[str, Artist], columns: int, note: str = "") -> None:
    """Put a legend below a figure: samples by their text, and a note without a sample."""
    if note:
        entries = {**entries, note: Line2D([], [], linestyle="none")}
    figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=columns, fontsize=8.5, frameon=False
    )

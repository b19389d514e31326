"""What all figures share: settings, panels, grids and legends, and files that are the same bytes each time."""

import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from math import ceil, lcm
from pathlib import Path
from typing import Any

from budgetreg.figures.library import Artist, Axes, Figure, Line2D, Text, matplotlib
from budgetreg.files import os_errors_explained, refuse_foreign, write_atomically
from budgetreg.notices import printable

_DOTS_PER_INCH = 150
_PANELS = {1: (6.6, 4.0), 2: (5.6, 3.6), 3: (4.6, 3.2)}  # inches, by the number in a row
_LEGEND_ROW, _TITLE_ROW = 0.21, 0.24  # inches
_LETTERS_PER_INCH = 10.6  # of a title
_LETTERS, _LETTERS_OF_TICK = 70, 35  # in a line of a title, and of the name of a tick
# Without these, files would hold the date and the version of the drawing library.
_NO_METADATA = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Creator": None, "Producer": None}}


@contextmanager
def own_settings() -> Iterator[None]:
    """Draw with matplotlib's defaults and our fonts, then restore the user's settings.

    Names of data sets, attributes and units can be any text, and are drawn as they are: ``$`` begins no formula, a
    letter that the font lacks becomes a box without a warning, and what controls a terminal or cannot be encoded is
    escaped.
    """
    set_text = Text.set_text
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"font.family": "DejaVu Sans", "pdf.fonttype": 42, "font.size": 9.5})
        matplotlib.rcParams["text.parse_math"] = False
        # All texts of a figure pass here, also those of ticks and legends.
        Text.set_text = lambda self, s: set_text(self, drawable(s))  # type: ignore[method-assign]
        try:
            yield
        finally:
            Text.set_text = set_text  # type: ignore[method-assign]


def drawable(text: object) -> str:
    r"""Return text that a font can be asked for.

    Examples
    --------
    >>> drawable("a\x1b\udce9"), drawable(None)
    ('a\\x1b\\udce9', '')
    """
    return "" if text is None else printable(str(text)).encode(errors="backslashreplace").decode()


def folded(text: str, letters: int = _LETTERS) -> str:
    """Return a name with line breaks if it is long, so that titles and names of ticks leave space for the axes."""
    return "\n".join(text[at : at + letters] for at in range(0, len(text), letters))


def folded_ticks(labels: Iterable[str]) -> list[str]:
    """Return the names of ticks, each with line breaks if it is long."""
    return [folded(label, _LETTERS_OF_TICK) for label in labels]


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

    Raises
    ------
    ConfigError
        If files of somebody else are there.
    """
    contents = {"png": _render(figure, "png")}
    figure.set_layout_engine("none")  # the layout is known by now
    contents |= {"pdf": _render(figure, "pdf"), "txt": printable(text).encode(errors="backslashreplace")}
    with os_errors_explained(f"create {target}"):
        target.mkdir(parents=True, exist_ok=True)
    paths = {ending: target / f"{name}.{ending}" for ending in contents}
    with os_errors_explained(f"read {paths['pdf']}"):
        drawn = paths["pdf"].is_file() and _is_ours(paths["pdf"].read_bytes())
    for ending, content in contents.items():
        refuse_foreign(paths[ending], (lambda _: True) if drawn else content.__eq__)
    for ending in ("pdf", "png", "txt"):  # the first one shows that the others are ours, even after a kill
        write_atomically(paths[ending], contents[ending])
    return list(paths.values())


def _is_ours(pdf: bytes) -> bool:
    """Return whether a PDF file is without the name of a program, as others rarely are."""
    return pdf.startswith(b"%PDF-") and b"/Producer" not in pdf


def _render(figure: Figure, ending: str) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format=ending, dpi=_DOTS_PER_INCH, metadata=_NO_METADATA[ending])
    return buffer.getvalue()


@dataclass(frozen=True)
class Panel:
    """A panel of a figure.

    Attributes
    ----------
    ax : Axes
    first : bool
        Whether it is the first of its row.
    lowest : bool
        Whether it lies in the last row.
    """

    ax: Axes
    first: bool
    lowest: bool


@dataclass(frozen=True)
class Panels:
    """A figure whose panels fill all its rows.

    Attributes
    ----------
    figure : Figure
    places : list of Panel
        Row by row.
    panel : tuple of float
        Width and height of a panel in inches, with its margins.
    """

    figure: Figure
    places: list[Panel]
    panel: tuple[float, float]

    def finish(self, finding: str, legend_rows: int) -> None:
        """Write the finding above the panels, and set the size with space for the legend."""
        rows = sum(place.first for place in self.places)
        width = ceil(len(self.places) / rows) * self.panel[0]
        self.figure.set_figwidth(width)
        lines = write_finding(self.figure, finding)
        height = rows * self.panel[1] + legend_rows * _LEGEND_ROW + lines * _TITLE_ROW
        self.figure.set_size_inches(width, height)


def sheet(*counts: int, share_y: bool = False) -> Panels:
    """Return a new figure with groups of panels below each other, without an empty slot.

    Examples
    --------
    >>> [len([place for place in sheet(5).places if place.lowest]), len(sheet(8, 2).places)]
    [2, 10]
    """
    figure = Figure(layout="constrained")
    rows = [panels for count in counts for panels in _in_rows(count)]
    columns = lcm(*rows)
    slots = figure.add_gridspec(len(rows), columns)
    places: list[Panel] = []
    for row, panels in enumerate(rows):
        width = columns // panels
        for column in range(panels):
            first = places[0].ax if share_y and places else None
            ax = figure.add_subplot(slots[row, column * width : (column + 1) * width], sharey=first)
            places.append(Panel(ax, column == 0, row == len(rows) - 1))
    return Panels(figure, places, _PANELS[max(rows)])


def _in_rows(count: int) -> list[int]:
    """Return how many panels each row has: two or three, if that leaves no slot empty."""
    columns = 2 if count == 4 else next((columns for columns in (3, 2) if count % columns == 0), min(count, 3))
    rows = -(-count // columns)
    return [count // rows + (row < count % rows) for row in range(rows)]


def write_finding(figure: Figure, finding: str) -> int:
    """Write what a figure shows above it; return the number of lines. The width of the figure has to be set."""
    text = finding.encode(errors="backslashreplace").decode()  # names of files need not be text
    lines = textwrap.wrap(text, int(figure.get_figwidth() * _LETTERS_PER_INCH))
    if lines:
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    return len(lines)


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

"""What all figures share: matplotlib, panels, ticks, labels at the ends of lines, and files of the same bytes.

Matplotlib is imported so that the user's settings for it cannot fail a run or print anything. We draw into files and
with settings of our own. So settings that matplotlib refuses (``MPLBACKEND``, a ``matplotlibrc`` that cannot be read)
are left out, and its complaints about others, or about its cache, are silenced.
"""

import logging
import os
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from io import BytesIO
from math import ceil, floor, inf, log10
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from budgetreg.common.files import os_errors_explained, refuse_foreign, write_atomically
from budgetreg.common.notices import printable

_SETTINGS = {"MPLBACKEND": "agg", "MATPLOTLIBRC": os.devnull}


@contextmanager
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _without_settings() -> Iterator[None]:
    """Hide the user's settings in the block, and forget a first import that they have made fail."""
    for module in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        del sys.modules[module]
    before = dict(os.environ)
    os.environ.update(_SETTINGS)
    try:
        with chdir(Path(__file__).parent):  # a matplotlibrc in the current folder comes before any other
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


with _quiet():
    try:
        import matplotlib
    except Exception:
        with _without_settings():
            import matplotlib
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.colors import to_hex, to_rgb
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch  # noqa: F401 - for the modules that draw
    from matplotlib.patheffects import withStroke  # noqa: F401 - the same
    from matplotlib.text import Text
    from matplotlib.ticker import Formatter, FuncFormatter, Locator, MaxNLocator, NullFormatter


_DOTS_PER_INCH = 150
_PANELS = {1: (6.6, 4.0), 2: (4.65, 3.3)}  # inches, by the number in a row
_ROW = (9.3, 3.0)  # inches, of panels that all stand in one row
_LEGEND_ROW, _TITLE_ROW = 0.21, 0.24  # inches
_SAMPLE, _LETTERS_OF_LEGEND = 0.6, 15.5  # inches of a line and its margins; letters per inch
_LETTERS_PER_INCH = 10.6  # of a title
_LETTERS, _LETTERS_OF_TICK = 70, 35  # in a line of a title, and of the name of a tick
_LETTERS_BESIDE = 32  # in a line beside the y axis
GREY = "#555555"
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


class Drawn(NamedTuple):
    """A figure, the title of its caption, and the paragraphs below it."""

    figure: Figure
    title: str
    paragraphs: Sequence[str]


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
        Whether none lies below it.
    """

    ax: Axes
    first: bool
    lowest: bool

    def name_y(self, text: str, *, shared: bool) -> None:
        """Write what the y axis is beside the first panel of a row; others that share it have no numbers."""
        if self.first:
            self.ax.set_ylabel(textwrap.fill(text, _LETTERS_BESIDE))
        elif shared:
            self.ax.tick_params(labelleft=False)


@dataclass(frozen=True)
class Panels:
    """A figure with a table of panels.

    Attributes
    ----------
    figure : Figure
    places : list of Panel
        Row by row.
    panel : tuple of float
        Width and height of a panel in inches, with its margins.
    rows, columns : int
        The size of the table.
    """

    figure: Figure
    places: list[Panel]
    panel: tuple[float, float]
    rows: int
    columns: int

    def finish(self, finding: str, entries: Mapping[str, Artist], note: str = "", columns: int | None = None) -> None:
        """Write the finding above the panels and a legend below, in one row by default; set the size of the figure."""
        count = len(entries) + bool(note)
        self.figure.set_figwidth(self.width)
        lines = write_finding(self.figure, finding)
        height = self.rows * self.panel[1] + ceil(count / (columns or count or 1)) * _LEGEND_ROW + lines * _TITLE_ROW
        self.figure.set_size_inches(self.width, height)
        if count:
            legend(self.figure, entries, columns or count, note)

    @property
    def width(self) -> float:
        """The width of the figure in inches."""
        return self.columns * self.panel[0]

    def below(self, text: str) -> str:
        """Return a text below an axis, with line breaks if it is wider than a panel."""
        return textwrap.fill(text, int(self.panel[0] * _LETTERS_PER_INCH))

    def legend_columns(self, texts: Iterable[str]) -> int:
        """Return how many columns a legend of some texts has space for."""
        return max(1, int(self.width // (_SAMPLE + max(map(len, texts), default=0) / _LETTERS_OF_LEGEND)))


def sheet(count: int, share_y: bool = False, row: bool = False) -> Panels:
    """Return a new figure with some panels, two or all in a row; an odd last one is as wide as the others.

    Examples
    --------
    >>> [place.lowest for place in sheet(5).places]
    [False, False, False, True, True]
    """
    figure = Figure(layout="constrained")
    columns = count if row else min(count, max(_PANELS))
    rows = ceil(count / columns)
    slots = figure.add_gridspec(rows, columns)
    places: list[Panel] = []
    for at in range(count):
        ax = figure.add_subplot(slots[divmod(at, columns)], sharey=places[0].ax if share_y and places else None)
        places.append(Panel(ax, at % columns == 0, at + columns >= count))
    return Panels(figure, places, (_ROW[0] / count, _ROW[1]) if row else _PANELS[columns], rows, columns)


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


def across(ax: Axes, value: float | None, colour: str = GREY) -> None:
    """Draw a thin line across a panel, such as at the error without attributes; nothing if that is unknown."""
    if value is not None:
        ax.axhline(value, color=colour, linewidth=0.8, zorder=1)


def beside(count: int, octaves: float) -> np.ndarray:
    """Return factors of x that put some learners beside each other on a logarithmic axis, so that all bars are seen."""
    return 2 ** (octaves * (np.linspace(-0.5, 0.5, count) if count > 1 else np.zeros(1)))


def legend(figure: Figure, entries: Mapping[str, Artist], columns: int, note: str = "") -> None:
    """Put a legend below a figure: samples by their text, and a note without a sample."""
    if note:
        entries = {**entries, note: Line2D([], [], linestyle="none")}
    figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=columns, fontsize=8.5, frameon=False
    )


def mixed(colour: str, share: float, other: str) -> str:
    """Return a colour mixed with a share of another one, such as ``white``."""
    parts = zip(to_rgb(colour), to_rgb(other), strict=True)
    red, green, blue = ((1 - share) * part + share * added for part, added in parts)
    return to_hex((red, green, blue))


_SIZES = ((1e9, "B"), (1e6, "M"), (1e3, "k"))
_MOST = 7  # ticks of an axis
_STEPS = [1, 2, 2.5, 5, 10]  # between them, times a power of ten
_LETTER, _POINTS = 6.0, 72  # points: of a letter of a tick, and per inch
_WITHIN_A_DECADE = ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def compact(value: float) -> str:
    """Return a number as a tick shows it.

    Examples
    --------
    >>> [compact(value) for value in (0.05, 300, 2000, 1.5e6, 1e-6, 3e-5)]
    ['0.05', '300', '2k', '1.5M', '10⁻⁶', '3·10⁻⁵']
    """
    for size, letter in _SIZES:
        if inf > abs(value) >= size * (1 - 1e-9):
            return f"{value / size:.4g}{letter}"
    if value == 0 or not abs(value) < 0.99e-3:  # also if it is no number
        return f"{value:.4g}"
    digits, exponent = f"{value:.3e}".split("e")
    power = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    return power if float(digits) == 1 else f"{float(digits):g}·{power}"


class LogTicks(Locator):
    """Ticks of a logarithmic axis: as many round numbers per decade as there is space for."""

    def __call__(self) -> Any:
        """Return the ticks of the axis as it is now."""
        return self.tick_values(*self.axis.get_view_interval())  # type: ignore[union-attr]

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the ticks of a range."""
        low, high = sorted((vmin, vmax))
        if not low > 0:
            return []
        decades = 10.0 ** np.arange(floor(log10(low)), floor(log10(high)) + 1)
        for steps in _WITHIN_A_DECADE:
            ticks = np.outer(decades, steps).ravel()
            ticks = ticks[(low <= ticks * (1 + 1e-9)) & (ticks <= high * (1 + 1e-9))]
            if len(ticks) <= _MOST and self._are_apart(ticks, log10(high / low)):
                break
        else:
            ticks = ticks[:: -(-len(ticks) // _MOST)]
        if len(ticks) > 1:
            return ticks.tolist()
        return [tick for tick in MaxNLocator(5, steps=_STEPS).tick_values(low, high) if low <= tick <= high]

    def _are_apart(self, ticks: np.ndarray, decades: float) -> bool:
        """Return whether the texts below an x axis have space between them; those beside a y axis have."""
        if getattr(self.axis, "axis_name", "") != "x":
            return True
        ax: Any = self.axis.axes  # type: ignore[union-attr]
        length = ax.bbox.width * _POINTS / ax.figure.dpi
        widths = np.array([len(compact(tick)) for tick in ticks]) * _LETTER
        between = np.diff(np.log10(ticks)) * length / decades - (widths[1:] + widths[:-1]) / 2
        return bool((between >= _LETTER).all())


class Compact(Formatter):
    """Numbers of a linear axis: all with as many decimals as one of them needs."""

    _decimals = 0

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the text of a tick."""
        return compact(x) if self._decimals == 0 else f"{x:.{self._decimals}f}"

    def set_locs(self, locs: Any) -> None:
        """Choose the number of decimals."""
        small = all(abs(tick) < _SIZES[-1][0] for tick in locs)
        self._decimals = max((len(f"{tick:.4g}".partition(".")[2]) for tick in locs if small), default=0)


def set_scales(ax: Axes, *, x_log: bool, y_log: bool) -> None:
    """Make axes of a panel logarithmic; what they cannot show interrupts a line."""
    if x_log:
        ax.set_xscale("log", nonpositive="mask")
    if y_log:
        ax.set_yscale("log", nonpositive="mask")


def set_ticks(ax: Axes, *, y: bool = True, most: int = _MOST) -> None:
    """Give the axes of a panel compact ticks, at most so many on linear axes; call it when the scales are set."""
    for axis in (ax.xaxis, ax.yaxis) if y else (ax.xaxis,):
        if axis.get_scale() == "log":
            axis.set_major_locator(LogTicks())
            axis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))
            axis.set_minor_formatter(NullFormatter())
        else:
            axis.set_major_locator(MaxNLocator(most - 1, steps=_STEPS))
            axis.set_major_formatter(Compact())


_SIZE, _LINE = 8.0, 10.0  # points: of the letters, and between the middles of two labels
_LONGEST = 34  # letters
_BESIDE = 1.035  # where labels begin, in widths of the axes
_TEXT = 0.3  # share of black in the colour of labels, as light ones are hard to read


@dataclass(frozen=True)
class End:
    """The end of a line and its label.

    Attributes
    ----------
    text : str
    x, y : float
        Last point of the line, in data coordinates. A label of a point outside the axes shows its value.
    colour : str
    heavy : bool
        Whether the label is bold.
    """

    text: str
    x: float
    y: float
    colour: str
    heavy: bool = False


def fit(ends: Sequence[End], height: float) -> bool:
    """Return whether labels fit beside axes of a height in inches."""
    return len(ends) * _LINE <= height * _POINTS and max((len(end.text) for end in ends), default=0) <= _LONGEST


def label_ends(figure: Figure, ends: Mapping[Axes, Sequence[End]]) -> None:
    """Write labels beside the panels of a figure; call it when all else is drawn, and the limits are set."""
    texts = {ax: [_text(ax, end) for end in of_panel] for ax, of_panel in ends.items()}
    figure.draw_without_rendering()  # the labels have their space now, so that the height of the axes is known
    for ax, of_panel in texts.items():
        gap = _LINE / (ax.get_window_extent().height * _POINTS / figure.dpi)
        for text, place in zip(of_panel, spread([_fraction(ax, end) for end in ends[ax]], gap), strict=True):
            text.set_position((_BESIDE, place))


def spread(places: Sequence[float], gap: float) -> np.ndarray:
    """Return places in [0, 1] that lie a gap apart, in the same order and as close as possible to the given ones.

    Examples
    --------
    >>> spread([0.5, 0.9, 0.5], 0.1).round(2).tolist()
    [0.45, 0.9, 0.55]
    """
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(order))
    apart = np.clip(isotonic_regression(np.asarray(places)[order] - steps).x, 0.0, max(0.0, 1 - steps[-1:].sum()))
    moved = np.empty(len(order))
    moved[order] = apart + steps
    return moved


def _fraction(ax: Axes, end: End) -> float:
    """Return how far up in the axes a point lies."""
    _, place = ax.transAxes.inverted().transform(ax.transData.transform(_shown(ax, end)))
    return float(place)


def _shown(ax: Axes, end: End) -> tuple[float, float]:
    """Return a point, or the point of the axes that is closest to it: a log axis has no 0, and may end below a value.

    A coordinate that is undefined is at the upper end of its axis.
    """
    ranges = zip((end.x, end.y), (ax.get_xlim(), ax.get_ylim()), strict=True)
    x, y = (float(np.clip(np.nan_to_num(value, nan=np.inf), *limits)) for value, limits in ranges)
    return x, y


def _text(ax: Axes, end: End) -> Any:
    leader: dict[str, Any] = {"arrowstyle": "-", "color": end.colour, "linewidth": 0.6, "alpha": 0.7}
    away = end.y != _shown(ax, end)[1]
    return ax.annotate(
        f"{end.text} ({compact(float(f'{end.y:.2g}'))})" if away else end.text,
        _shown(ax, end),
        xytext=(_BESIDE, _fraction(ax, end)),
        textcoords="axes fraction",
        arrowprops={**leader, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5), "patchA": None},
        annotation_clip=False,
        ha="left",
        va="center",
        fontsize=_SIZE,
        fontweight="bold" if end.heavy else "normal",
        color=mixed(end.colour, _TEXT, "black"),
    )

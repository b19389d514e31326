"""Figures: test error against attributes or examples, the same bytes whenever the same curves are drawn."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from budgetreg.figures.axes import Axis, axes_of, resolve_drawing, within_total
from budgetreg.figures.bounds import Bounds, bounds
from budgetreg.figures.captions import caption
from budgetreg.figures.drawing import BANDS, Drawing
from budgetreg.figures.limits import Range, y_range
from budgetreg.figures.palette import VARIANTS, style
from budgetreg.files.writing import os_errors_explained, write_atomically
from budgetreg.results.axis_variables import along, can_be_had
from budgetreg.results.series import Series, mean_curve, read_own, read_series

_PANEL = (6.4, 4.4)  # inches
_DOTS_PER_INCH = 150
_LEGEND_ROW = 0.21  # inches
_LONGEST_IN_TWO_COLUMNS = 42  # letters
_MOST_MARKERS = 15
_GREY = "#555555"
# Variants of one learner share its colour and marker, and differ in these; after them markers are hollow.
_DASHES = ("-", "--", ":", "-.")
_BOUND: dict[str, Any] = {"linestyle": (0, (1, 2)), "linewidth": 0.9}
_PUBLISHED: dict[str, Any] = {"linestyle": (0, (5, 2)), "linewidth": 0.9}
# Without these, files would hold the date and the version of the drawing library.
_NO_METADATA = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def plot_folders(folders: Iterable[Path], out: Path | None = None, name: str = "curves") -> list[Path]:
    """Draw the curves of all runs at or below some folders in one figure, one panel per data set.

    Parameters
    ----------
    folders
        Folders that hold a ``curves.csv``, or folders above them.
    out
        Where to write; by default the folder itself if one is given, and the working directory for several.
    name
        Name of the files, without ending.

    Returns
    -------
    list of Path
        ``<name>.png``, ``<name>.pdf``, and ``<name>.txt``, which says how the figure was made.

    Raises
    ------
    DataError
        If there is nothing to draw, or a file is damaged (see `budgetreg.results.series.read_series`).
    """
    folders = [Path(folder) for folder in folders]
    series = read_series(folders)
    return plot_series(series, out or (folders[0] if len(folders) == 1 else Path()), name)


def plot_run(folder: Path) -> list[Path]:
    """Draw the curve of the run in a folder, whatever runs lie below it, into that folder.

    Returns
    -------
    list of Path
        ``curve.png``, ``curve.pdf`` and ``curve.txt``, as `plot_folders` writes them.

    Raises
    ------
    DataError
        As `plot_folders`.
    """
    return plot_series(read_own(folder), folder, "curve")


def plot_series(series: Sequence[Series], target: Path, name: str, drawing: Drawing | None = None) -> list[Path]:
    """Draw series in one figure.

    Parameters
    ----------
    series
        As `budgetreg.results.series.labelled` returns them, panel by panel; at least one.
    target
        Folder of the files; made if need be.
    name
        Name of the files, without ending.
    drawing
        How they are drawn, if not as usual.

    Returns
    -------
    list of Path
        As `plot_folders` does.
    """
    with own_settings():
        figure, remarks = draw(series, drawing)
        x, y = axes_of(series, drawing)
        title = f"{name}: {y.name} against {x.name}"
        return write_figure(figure, caption(title, series, remarks, drawing), target, name)


def write_figure(figure: Figure, text: str, target: Path, name: str) -> list[Path]:
    """Write a figure, made under `own_settings` and still within them, and the text that says what it shows.

    Parameters
    ----------
    figure
        What is written as ``<name>.png`` and ``<name>.pdf``: the same bytes for the same figure.
    text
        Content of ``<name>.txt``.
    target
        Folder of the files; made if need be.
    name
        Name of the files, without ending.

    Returns
    -------
    list of Path
        The three files.
    """
    contents = {"png": _render(figure, "png")}
    figure.set_layout_engine("none")  # what has just been laid out need not be again
    contents |= {"pdf": _render(figure, "pdf"), "txt": text.encode()}
    with os_errors_explained(f"create {target}"):
        target.mkdir(parents=True, exist_ok=True)
    paths = [target / f"{name}.{ending}" for ending in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        write_atomically(path, content)
    return paths


def draw(series: Sequence[Series], drawing: Drawing | None = None) -> tuple[Figure, list[str]]:
    """Draw series into a new figure.

    Parameters
    ----------
    series
        As `budgetreg.results.series.read_series` returns them; at least one.
    drawing
        How they are drawn, if not as usual.

    Returns
    -------
    figure : Figure
    remarks : list of str
        What a reader of the figure has to know about the axes.
    """
    drawing = resolve_drawing(series, drawing)
    _, y = axes_of(series, drawing)
    names = dict.fromkeys(map(drawing.panel, series))
    panels = [(panel, [one for one in series if drawing.panel(one) == panel]) for panel in names]
    looks = _looks(series)
    below = {panel: axes_of(own, drawing)[0] for panel, own in panels}
    curves = {panel: [_mean_curve(one, below[panel]) for one in own] for panel, own in panels}
    theory = {panel: _bounds(own, curves[panel], y) for panel, own in panels}
    there = {one.label for panel, own in panels for one, _ in _with_points(own, curves[panel])}
    legend = _legend(series, looks, there, any(own.lines for own in theory.values()), drawing)
    columns = min(len(panels), 2)
    rows = ceil(len(panels) / columns)
    legend_columns = columns * (2 if max(map(len, legend)) <= _LONGEST_IN_TWO_COLUMNS else 1)
    legend_height = _LEGEND_ROW * ceil(len(legend) / legend_columns)
    figure = Figure((columns * _PANEL[0], rows * (_PANEL[1] - 0.6) + 0.2 + legend_height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    remarks = []
    for ax, (panel, own) in zip(axes.flat, panels, strict=False):
        title = drawing.title(own)
        drawn = _panel(ax, own, curves[panel], theory[panel].lines, looks, below[panel], y, drawing)
        ax.set_title(title, loc="left", fontsize=10)
        if drawn.clipped:
            text = f"{_number_of(drawn.clipped)} above {drawn.high:.3g} not shown"
            ax.set_title(text, loc="right", fontsize=8, color=_GREY)
            remarks.append(f"{title}: {text} (largest {drawn.largest:.3g}).")
        if drawn.below:
            text = f"{_number_of(drawn.below)} of 0, or as small as rounding, not shown"
            ax.set_title(text, loc="right", fontsize=8, color=_GREY)
            remarks.append(f"{title}: {text}.")
        if drawn.log and not y.log:
            remarks.append(f"{title}: the y axis is logarithmic.")
        absent = [one.label for one, curve in zip(own, curves[panel], strict=True) if curve.empty]
        if absent:
            remarks.append(f"{title}: no point of {', '.join(absent)}, as what tuning pays for passes the total.")
        if theory[panel].remark:
            remarks.append(f"{title}: {theory[panel].remark}")
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    figure.legend(
        legend.values(),
        legend.keys(),
        loc="outside lower center",
        ncols=legend_columns,
        fontsize=8.5,
        frameon=False,
    )
    return figure, remarks


def _mean_curve(series: Series, x: Axis) -> pd.DataFrame:
    curve = mean_curve(series.points)
    at = along(x.column, series, curve)
    return within_total(series, curve.assign(**{x.column: at})[can_be_had(at)], x)


def _with_points(series: Sequence[Series], curves: Sequence[pd.DataFrame]) -> list[tuple[Series, pd.DataFrame]]:
    return [(one, curve) for one, curve in zip(series, curves, strict=True) if len(curve)]


def _bounds(series: Sequence[Series], curves: Sequence[pd.DataFrame], y: Axis) -> Bounds:
    there = _with_points(series, curves)
    return bounds([one for one, _ in there], [curve for _, curve in there], y.column) if there else Bounds({}, "")


def _panel(
    ax: Axes,
    series: Sequence[Series],
    curves: Sequence[pd.DataFrame],
    lines: Mapping[str, np.ndarray],
    looks: Mapping[str, Mapping[str, Any]],
    x: Axis,
    y: Axis,
    drawing: Drawing,
) -> Range:
    published = {algo: points for (algo, variable), points in drawing.published.items() if variable == x.column}
    known = [value for one in series if one.algo in published for value in published[one.algo][1]]
    shown = y_range(curves, y, drawing.y_scale == "auto", known)
    if x.log:
        ax.set_xscale("log", nonpositive="mask")
        ax.tick_params(axis="x", which="minor", labelsize=6.5)  # within a decade or two they are many, and wide
    if shown.log:
        ax.set_yscale("log", nonpositive="mask")
    ax.set_ylim(shown.low, shown.high)
    if y.zero is not None:
        _without_attributes(ax, y.zero, y.constant)
    for one, curve in _with_points(series, curves):
        look = looks[one.label]
        at, mean = (curve[column].to_numpy() for column in (x.column, y.column))
        ax.plot(at, mean, markevery=ceil(len(at) / _MOST_MARKERS), **look)
        if one.repetitions > 1:
            points = one.points[one.points["examples"].isin(curve["examples"])]
            lower, upper = drawing.edges(points, y.column)
            # A log axis has no place for a band's negative end: it ends at the axis instead.
            lower = np.maximum(lower, shown.low) if shown.log else lower
            band, width = (ax.fill_between, 0) if len(at) > 1 else (ax.vlines, 6)  # a single point has no breadth
            band(at, lower, upper, color=look["color"], alpha=0.15, linewidth=width, zorder=2)
        if one.algo in published:
            ax.plot(*published[one.algo], color=look["color"], zorder=2, **_PUBLISHED)
        if one.label in lines:
            ax.plot(at, lines[one.label], color=look["color"], zorder=2, **_BOUND)
    ax.autoscale_view(scaley=False)
    ax.set_xlabel(x.text)
    ax.set_ylabel(y.text)
    ax.grid(True, color="#E6E6E6", linewidth=0.6)
    ax.set_axisbelow(True)
    return shown


def _without_attributes(ax: Axes, height: float, constant: str) -> None:
    ax.axhline(height, color=_GREY, linewidth=0.8, zorder=1)
    # Beside the axes, where no curve can run over it.
    ax.annotate(
        f"{constant}\npredictor",
        (1, height),
        xytext=(3, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=7.5,
        color=_GREY,
    )


def _looks(series: Sequence[Series]) -> dict[str, dict[str, Any]]:
    """Choose how each label's line looks: the learner's colour and marker, another dash for each budget or variant."""
    looks: dict[str, dict[str, Any]] = {}
    variants: Counter[str] = Counter()
    budgets = sorted({one.k for one in series})
    labels = {one.label for one in series}
    of_choices = len({one.algo for one in series}) == 1 and len(labels) > len(_DASHES)
    by_budget = len({(one.algo, one.k) for one in series}) == len(labels)
    for one in series:
        if one.label in looks:
            continue
        colour, marker = VARIANTS[len(looks) % len(VARIANTS)] if of_choices else style(one.algo)
        # A dash is the same budget for all learners, unless it has to tell more apart.
        hollow, dash = divmod(budgets.index(one.k) if by_budget else variants[one.algo], len(_DASHES))
        variants[one.algo] += 1
        looks[one.label] = {
            "color": colour,
            "linestyle": _DASHES[dash],
            "linewidth": 1.6,
            "marker": marker,
            "markersize": 5.5,
            "markerfacecolor": "white" if hollow else colour,
            "zorder": 3,
        }
    return looks


def _legend(
    series: Sequence[Series],
    looks: Mapping[str, Mapping[str, Any]],
    there: Collection[str],
    bounded: bool,
    drawing: Drawing,
) -> dict[str, Artist]:
    """Map the texts of the legend to their samples: each label once, and the meaning of band and dotted line."""
    counts = {one.repetitions for one in series}
    entries: dict[str, Artist] = {}
    for one in series:
        text = one.label if len(counts) == 1 else f"{one.label} ({_times(one.repetitions)})"
        if one.label not in there:
            text += ": no point, as tuning passes the total"
        entries[text] = Line2D([], [], **looks[one.label])
    if max(counts) > 1:
        number = _times(max(counts)) if len(counts) == 1 else "repetitions"
        entries["band: " + BANDS[drawing.band].format(times=number)] = Patch(color="black", alpha=0.15, linewidth=0)
    else:
        entries["1 repetition: no band"] = Line2D([], [], linestyle="none")
    if bounded:
        entries["bound of the theorem"] = Line2D([], [], color="black", **_BOUND)
    if {one.algo for one in series} & {algo for algo, _ in drawing.published}:
        entries["as published"] = Line2D([], [], color="black", **_PUBLISHED)
    if drawing.note:
        entries[drawing.note] = Line2D([], [], linestyle="none")
    return entries


def _number_of(means: int) -> str:
    return f"{means} mean value{'s' if means > 1 else ''}"


def _times(number: int) -> str:
    return f"{number} repetition{'s' if number > 1 else ''}"


def _render(figure: Figure, ending: str) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format=ending, dpi=_DOTS_PER_INCH, metadata=_NO_METADATA[ending])
    return buffer.getvalue()


@contextmanager
def own_settings() -> Iterator[None]:
    """Draw with the library's defaults and our fonts, whatever the user's settings, and restore those."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"font.family": "DejaVu Sans", "pdf.fonttype": 42, "font.size": 9.5})
        yield

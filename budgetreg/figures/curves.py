"""Draw curves: test error against attributes, money or examples."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from budgetreg.figures.axes import Axis, axes_of, resolve_drawing, within_total
from budgetreg.figures.bounds import Bounds, bounds
from budgetreg.figures.canvas import grid, legend, own_settings, write_figure
from budgetreg.figures.captions import caption
from budgetreg.figures.drawing import BANDS, Drawing
from budgetreg.figures.limits import Range, y_range
from budgetreg.figures.palette import VARIANTS, style
from budgetreg.results.axis_variables import along, attainable
from budgetreg.results.series import Series, labelled, mean_curve, read_folder

_PANEL = (6.4, 4.4)  # inches
_LEGEND_ROW = 0.21  # inches
_LONGEST_IN_TWO_COLUMNS = 42  # letters
_MOST_MARKERS = 15
_GREY = "#555555"
# Variants of one learner share its colour and marker, and differ in the dash; after four, markers are hollow.
_DASHES = ("-", "--", ":", "-.")
_BOUND: dict[str, Any] = {"linestyle": (0, (1, 2)), "linewidth": 0.9}
_PUBLISHED: dict[str, Any] = {"linestyle": (0, (5, 2)), "linewidth": 0.9}


def plot_run(folder: Path) -> list[Path]:
    """Draw the curve of the run in a folder into that folder; runs in folders below it are left out.

    Returns
    -------
    list of Path
        ``curve.png``, ``curve.pdf``, and ``curve.txt``, the caption.

    Raises
    ------
    DataError
        As for `budgetreg.results.series.read_folder`.
    """
    return plot_series(labelled(read_folder(folder)), folder, "curve")


def plot_series(series: Sequence[Series], target: Path, name: str, drawing: Drawing | None = None) -> list[Path]:
    """Draw series in one figure.

    Parameters
    ----------
    series : sequence of Series
        As `budgetreg.results.series.labelled` returns them, panel by panel; at least one.
    target : Path
        Folder of the files; made if it does not exist.
    name : str
        Name of the files, without ending.
    drawing : Drawing, optional
        What a recipe asks for.

    Returns
    -------
    list of Path
        ``<name>.png``, ``<name>.pdf``, and ``<name>.txt``, the caption.
    """
    with own_settings():
        figure, remarks = draw(series, drawing)
        x, y = axes_of(series, drawing)
        title = f"{name}: {y.name} against {x.name}"
        return write_figure(figure, caption(title, series, remarks, drawing), target, name)


def draw(series: Sequence[Series], drawing: Drawing | None = None) -> tuple[Figure, list[str]]:
    """Draw series into a new figure.

    Parameters
    ----------
    series : sequence of Series
        As `budgetreg.results.series.read_series` returns them; at least one.
    drawing : Drawing, optional
        What a recipe asks for.

    Returns
    -------
    figure : Figure
    remarks : list of str
        Sentences for the caption, such as which points are not shown.
    """
    drawing = resolve_drawing(series, drawing)
    _, y = axes_of(series, drawing)
    looks = _looks(series)
    panels = [_Panel.of(in_panel, drawing, y) for in_panel in drawing.split(series).values()]
    drawn_labels = {curve.label for panel in panels for curve, _ in panel.with_points}
    entries = _legend_entries(series, looks, drawn_labels, any(panel.theory.lines for panel in panels), drawing)
    columns = min(len(panels), 2)
    rows = ceil(len(panels) / columns)
    legend_columns = columns * (2 if max(map(len, [*entries, drawing.note])) <= _LONGEST_IN_TWO_COLUMNS else 1)
    legend_height = _LEGEND_ROW * ceil((len(entries) + bool(drawing.note)) / legend_columns)
    figure = Figure((columns * _PANEL[0], rows * (_PANEL[1] - 0.6) + 0.2 + legend_height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    remarks = []
    for ax, panel in zip(axes.flat, panels, strict=False):
        title = drawing.title(panel.series)
        drawn = _draw_panel(ax, panel, looks, y, drawing)
        ax.set_title(title, loc="left", fontsize=10)
        for hidden, where, more in (
            (drawn.clipped, f"above {drawn.high:.3g}", f" (largest {drawn.largest:.3g})"),
            (drawn.below, "of 0, or as small as rounding,", ""),
        ):
            if hidden:
                text = f"{hidden} mean value{'s' if hidden > 1 else ''} {where} not shown"
                ax.set_title(text, loc="right", fontsize=8, color=_GREY)
                remarks.append(f"{title}: {text}{more}.")
        if drawn.log and not y.log:
            remarks.append(f"{title}: the y axis is logarithmic.")
        absent = [learner.label for learner, curve in zip(panel.series, panel.curves, strict=True) if curve.empty]
        if absent:
            remarks.append(f"{title}: no point of {', '.join(absent)}, as what tuning pays for passes the total.")
        if panel.theory.remark:
            remarks.append(f"{title}: {panel.theory.remark}")
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    legend(figure, entries, legend_columns, drawing.note)
    return figure, remarks


@dataclass(frozen=True)
class _Panel:
    """The curves of one panel.

    Attributes
    ----------
    series : list of Series
    x : Axis
    curves : list of DataFrame
        Mean curves of the series within the total; one may be empty.
    theory : Bounds
    """

    series: list[Series]
    x: Axis
    curves: list[pd.DataFrame]
    theory: Bounds

    @classmethod
    def of(cls, series: list[Series], drawing: Drawing, y: Axis) -> Self:
        """Compute the mean curves of a panel and their bounds."""
        x, _ = axes_of(series, drawing)
        panel = cls(series, x, [_mean_curve(learner, x) for learner in series], Bounds({}, ""))
        if not panel.with_points:
            return panel
        drawn, curves = zip(*panel.with_points, strict=True)
        return replace(panel, theory=bounds(drawn, curves, y.column))

    @property
    def with_points(self) -> list[tuple[Series, pd.DataFrame]]:
        """Return the series that have points, with their mean curves."""
        return [(learner, curve) for learner, curve in zip(self.series, self.curves, strict=True) if len(curve)]


def _mean_curve(series: Series, x: Axis) -> pd.DataFrame:
    curve = mean_curve(series.points)
    at = along(x.column, series, curve)
    return within_total(series, curve.assign(**{x.column: at})[attainable(at)], x)


def _draw_panel(ax: Axes, panel: _Panel, looks: Mapping[str, Mapping[str, Any]], y: Axis, drawing: Drawing) -> Range:
    """Draw the curves of a panel; return the range of its y axis."""
    x = panel.x
    published = {algo: points for (algo, variable), points in drawing.published.items() if variable == x.column}
    known = [value for series in panel.series if series.algo in published for value in published[series.algo][1]]
    shown = y_range(panel.curves, y, drawing.y_scale == "auto", known)
    if x.log:
        ax.set_xscale("log", nonpositive="mask")
        ax.tick_params(axis="x", which="minor", labelsize=6.5)  # within a decade or two they are many, and wide
    if shown.log:
        ax.set_yscale("log", nonpositive="mask")
    ax.set_ylim(shown.low, shown.high)
    if y.zero is not None:
        _without_attributes(ax, y.zero, y.constant)
    for series, curve in panel.with_points:
        look = looks[series.label]
        at, mean = (curve[column].to_numpy() for column in (x.column, y.column))
        ax.plot(at, mean, markevery=ceil(len(at) / _MOST_MARKERS), **look)
        if series.repetitions > 1:
            points = series.points[series.points["examples"].isin(curve["examples"])]
            lower, upper = drawing.edges(points, y.column)
            # A log axis has no place for a band's negative end: it ends at the axis instead.
            lower = np.maximum(lower, shown.low) if shown.log else lower
            band, width = (ax.fill_between, 0) if len(at) > 1 else (ax.vlines, 6)  # a single point has no width
            band(at, lower, upper, color=look["color"], alpha=0.15, linewidth=width, zorder=2)
        if series.algo in published:
            ax.plot(*published[series.algo], color=look["color"], zorder=2, **_PUBLISHED)
        if series.label in panel.theory.lines:
            ax.plot(at, panel.theory.lines[series.label], color=look["color"], zorder=2, **_BOUND)
    ax.autoscale_view(scaley=False)
    ax.set_xlabel(x.text)
    ax.set_ylabel(y.text)
    grid(ax)
    return shown


def _without_attributes(ax: Axes, height: float, constant: str) -> None:
    ax.axhline(height, color=_GREY, linewidth=0.8, zorder=1)
    # The text stands outside the axes, so that no curve covers it.
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
    """Return each label's line style: the learner's colour and marker, and a dash for the budget or variant."""
    looks: dict[str, dict[str, Any]] = {}
    variants: Counter[str] = Counter()
    budgets = sorted({curve.k for curve in series})
    labels = {curve.label for curve in series}
    one_learner = len({curve.algo for curve in series}) == 1 and len(labels) > len(_DASHES)
    by_budget = len({(curve.algo, curve.k) for curve in series}) == len(labels)
    for curve in series:
        if curve.label in looks:
            continue
        colour, marker = VARIANTS[len(looks) % len(VARIANTS)] if one_learner else style(curve.algo)
        # A dash stands for the same budget of all learners, unless learners have several variants.
        hollow, dash = divmod(budgets.index(curve.k) if by_budget else variants[curve.algo], len(_DASHES))
        variants[curve.algo] += 1
        looks[curve.label] = {
            "color": colour,
            "linestyle": _DASHES[dash],
            "linewidth": 1.6,
            "marker": marker,
            "markersize": 5.5,
            "markerfacecolor": "white" if hollow else colour,
            "zorder": 3,
        }
    return looks


def _legend_entries(
    series: Sequence[Series],
    looks: Mapping[str, Mapping[str, Any]],
    drawn_labels: Collection[str],
    bounded: bool,
    drawing: Drawing,
) -> dict[str, Artist]:
    """Return the samples of the legend by their texts: each label once, then the band and the other lines."""
    counts = {curve.repetitions for curve in series}
    entries: dict[str, Artist] = {}
    for curve in series:
        text = curve.label if len(counts) == 1 else f"{curve.label} ({_times(curve.repetitions)})"
        if curve.label not in drawn_labels:
            text += ": no point, as tuning passes the total"
        entries[text] = Line2D([], [], **looks[curve.label])
    if max(counts) > 1:
        number = _times(max(counts)) if len(counts) == 1 else "repetitions"
        entries["band: " + BANDS[drawing.band].format(times=number)] = Patch(color="black", alpha=0.15, linewidth=0)
    else:
        entries["1 repetition: no band"] = Line2D([], [], linestyle="none")
    if bounded:
        entries["bound of the theorem"] = Line2D([], [], color="black", **_BOUND)
    if {curve.algo for curve in series} & {algo for algo, _ in drawing.published}:
        entries["as published"] = Line2D([], [], color="black", **_PUBLISHED)
    return entries


def _times(number: int) -> str:
    return f"{number} repetition{'s' if number > 1 else ''}"

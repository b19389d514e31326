"""Draw curves: test error against attributes, money or examples."""

from collections import Counter
from collections.abc import Collection, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from budgetreg.figures.axes import Axis, Range, axes_of, within_total, y_range
from budgetreg.figures.bounds import bounds
from budgetreg.figures.canvas import grid, legend, own_settings, write_figure
from budgetreg.figures.captions import caption, repetitions_of
from budgetreg.figures.drawing import BANDS, PLAIN, Drawing
from budgetreg.figures.library import Artist, Axes, Figure, Line2D, Patch
from budgetreg.figures.palette import VARIANTS, style
from budgetreg.results.axis_variables import along, attainable
from budgetreg.results.series import Series, budgets_of, by_checkpoint, labelled, read_folder

_Looks = dict[str, dict[str, Any]]
_PANEL = (6.4, 4.4)  # inches
_LEGEND_ROW = 0.21  # inches
_LONGEST_IN_TWO_COLUMNS = 42  # letters
_MOST_MARKERS = 15
_GREY = "#555555"
# Variants of one learner share its colour and marker, and differ in the dash; after four, markers are hollow.
_DASHES = ("-", "--", ":", "-.")
_BOUND: dict[str, Any] = {"linestyle": (0, (1, 2)), "linewidth": 0.9}
_BOUND_LABEL = "bound of the theorem"
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


def plot_series(series: Sequence[Series], target: Path, name: str, drawing: Drawing = PLAIN) -> list[Path]:
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


def draw(series: Sequence[Series], drawing: Drawing = PLAIN) -> tuple[Figure, list[str]]:
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
    _, y = axes_of(series, drawing)
    looks = _looks(series)
    panels = drawing.split(series).values()
    columns = min(len(panels), 2)
    rows = ceil(len(panels) / columns)
    figure = Figure(layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    remarks: list[str] = []
    for ax, in_panel in zip(axes, panels, strict=False):
        title = drawing.title(in_panel)
        ax.set_title(title, loc="left", fontsize=10)
        remarks += [f"{title}: {remark}" for remark in _draw_panel(ax, in_panel, looks, y, drawing)]
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    entries = _legend_entries(series, looks, {line.get_label() for ax in axes for line in ax.lines}, y, drawing)
    legend_columns = columns * (2 if max(map(len, [*entries, drawing.note])) <= _LONGEST_IN_TWO_COLUMNS else 1)
    legend_height = _LEGEND_ROW * ceil((len(entries) + bool(drawing.note)) / legend_columns)
    figure.set_size_inches(columns * _PANEL[0], rows * (_PANEL[1] - 0.6) + 0.2 + legend_height)
    legend(figure, entries, legend_columns, drawing.note)
    return figure, remarks


def _draw_panel(ax: Axes, series: Sequence[Series], looks: _Looks, y: Axis, drawing: Drawing) -> list[str]:
    """Draw the curves of a panel; return sentences for the caption."""
    x, _ = axes_of(series, drawing)
    curves = [(learner, _mean_curve(learner, x)) for learner in series]
    with_points = [(learner, curve) for learner, curve in curves if len(curve)]
    lines, theory = bounds(with_points, y.column)
    published = {algo: points for (algo, variable), points in drawing.published.items() if variable == x.column}
    known = [value for learner in series if learner.algo in published for value in published[learner.algo][1]]
    shown = y_range([curve for _, curve in curves], y, drawing.y_scale == "auto", known)
    _prepare(ax, x, y, shown)
    for learner, curve in with_points:
        look = looks[learner.label]
        at, mean = (curve[column].to_numpy() for column in (x.column, y.column))
        ax.plot(at, mean, markevery=ceil(len(at) / _MOST_MARKERS), label=learner.label, **look)
        if learner.repetitions > 1:
            points = by_checkpoint(learner.points)
            points = points[points["examples"].isin(curve["examples"])]
            lower, upper = drawing.edges(points, y.column)
            # A log axis has no place for a band's negative end: it ends at the axis instead.
            lower = np.maximum(lower, shown.low) if shown.log else lower
            band, width = (ax.fill_between, 0) if len(at) > 1 else (ax.vlines, 6)  # a single point has no width
            band(at, lower, upper, color=look["color"], alpha=0.15, linewidth=width, zorder=2)
        if learner.algo in published:
            ax.plot(*published[learner.algo], color=look["color"], zorder=2, **_PUBLISHED)
        if learner.label in lines:
            ax.plot(at, lines[learner.label], color=look["color"], label=_BOUND_LABEL, zorder=2, **_BOUND)
    ax.autoscale_view(scaley=False)
    remarks = []
    for hidden, where, more in (
        (shown.clipped, f"above {shown.high:.3g}", f" (largest {shown.largest:.3g})"),
        (shown.below, "of 0, or as small as rounding,", ""),
    ):
        if hidden:
            text = f"{hidden} mean value{'s' if hidden > 1 else ''} {where} not shown"
            ax.set_title(text, loc="right", fontsize=8, color=_GREY)
            remarks.append(f"{text}{more}.")
    if shown.log and not y.log:
        remarks.append("the y axis is logarithmic.")
    absent = [learner.label for learner, curve in curves if curve.empty]
    if absent:
        remarks.append(f"no point of {', '.join(absent)}, as what tuning pays for passes the total.")
    return [*remarks, theory] if theory else remarks


def _mean_curve(series: Series, x: Axis) -> pd.DataFrame:
    curve = series.mean
    at = along(x.column, series, curve)
    return within_total(series, curve.assign(**{x.column: at})[attainable(at)], x)


def _prepare(ax: Axes, x: Axis, y: Axis, shown: Range) -> None:
    """Set the scales, the range and the labels of a panel, and draw the error of the predictor without attributes."""
    if x.log:
        ax.set_xscale("log", nonpositive="mask")
        ax.tick_params(axis="x", which="minor", labelsize=6.5)  # within a decade or two they are many, and wide
    if shown.log:
        ax.set_yscale("log", nonpositive="mask")
    ax.set_ylim(shown.low, shown.high)
    ax.set_xlabel(x.text)
    ax.set_ylabel(y.text)
    grid(ax)
    if y.zero is None:
        return
    ax.axhline(y.zero, color=_GREY, linewidth=0.8, zorder=1)
    # The text stands outside the axes, so that no curve covers it.
    ax.annotate(
        f"{y.constant}\npredictor",
        (1, y.zero),
        xytext=(3, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=7.5,
        color=_GREY,
    )


def _looks(series: Sequence[Series]) -> _Looks:
    """Return each label's line style: the learner's colour and marker, and a dash for the budget or variant."""
    looks: _Looks = {}
    variants: Counter[str] = Counter()
    budgets = budgets_of(series)
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
    series: Sequence[Series], looks: _Looks, drawn: Collection[object], y: Axis, drawing: Drawing
) -> dict[str, Artist]:
    """Return the samples of the legend by their texts: each label once, then the band and the other lines.

    Parameters
    ----------
    drawn : collection of str
        The labels of all lines in the figure.
    """
    counts = {curve.repetitions for curve in series}
    entries: dict[str, Artist] = {}
    for curve in series:
        text = curve.label if len(counts) == 1 else f"{curve.label} ({repetitions_of([curve])})"
        if curve.label not in drawn:
            text += ": no point, as tuning passes the total"
        entries[text] = Line2D([], [], **looks[curve.label])
    if max(counts) > 1:
        number = repetitions_of(series) if len(counts) == 1 else "repetitions"
        band = BANDS[drawing.band_of(y.column)].format(times=number)
        entries[f"band: {band}"] = Patch(color="black", alpha=0.15, linewidth=0)
    else:
        entries["1 repetition: no band"] = Line2D([], [], linestyle="none")
    if _BOUND_LABEL in drawn:
        entries[_BOUND_LABEL] = Line2D([], [], color="black", **_BOUND)
    if {curve.algo for curve in series} & {algo for algo, _ in drawing.published}:
        entries["as published"] = Line2D([], [], color="black", **_PUBLISHED)
    return entries

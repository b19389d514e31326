"""Draw points: one for each data set, or one for each value of a variable such as k or d."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.analysis.comparisons import ResampledCurves
from budgetreg.analysis.intervals import Estimate, basic, percentile
from budgetreg.figures.axes import Axis, axes_of
from budgetreg.figures.canvas import (
    Panel,
    Panels,
    folded,
    folded_ticks,
    grid,
    legend,
    own_settings,
    sheet,
    write_figure,
)
from budgetreg.figures.captions import flowing, repetitions_of, short_caption
from budgetreg.figures.drawing import Drawing
from budgetreg.figures.labels import End, label_ends
from budgetreg.figures.library import Axes, Line2D
from budgetreg.figures.looks import is_heavy, look_of
from budgetreg.figures.palette import style
from budgetreg.figures.ticks import compact, set_ticks
from budgetreg.runs.axis_variables import of
from budgetreg.runs.series import Series

Scalings = Mapping[tuple[str, str], Mapping[float, Estimate]]
"""By learner and variant, then by value of the variable, ascending: the last error, or what a level needs.

What a level needs is infinite if the curve does not fall to it, and 0 if the curve begins below it.
"""

_HALF_WIDTH = 0.28  # of a column of dots, in learners
_MEDIAN: dict[str, Any] = {"color": "black", "linewidth": 2.0}
_PUBLISHED: dict[str, Any] = {"color": "black", "linewidth": 1.1, "linestyle": (0, (5, 2))}
_NAMES = {
    "k": "attributes seen of each example, k",
    "d": "attributes of an example, d",
    "d/k": "attributes of an example / attributes seen of it, d/k",
    "algo.n_components": "dimensions of the subspace, n",
}
_GUIDES = (1, 2)  # exponents
_GUIDE: dict[str, Any] = {"color": "#B0B0B0", "linewidth": 0.9, "zorder": 1}


def plot_dots(series: Sequence[Series], target: Path, name: str, drawing: Drawing) -> list[Path]:
    """Draw the last points of many curves as columns of dots: a column for each learner, with its median.

    Parameters
    ----------
    series, target, name, drawing
        As for `budgetreg.figures.curves.plot_series`.

    Returns
    -------
    list of Path
        ``<name>.png``, ``<name>.pdf`` and ``<name>.txt``.
    """
    _, y = axes_of(series, drawing)
    text = (
        f"For each learner, {len({curve.dataset for curve in series})} data sets from the least error to the largest: "
        f"the mean over {repetitions_of(series)} at the last checkpoint, and their median. y: {y.explanation}."
    )
    with own_settings():
        entries = {
            "a data set, mean over repetitions": Line2D([], [], linestyle="none", marker="o", color="grey"),
            "median of data sets": Line2D([], [], **_MEDIAN),
        }
        if drawing.published:
            entries["median as published"] = Line2D([], [], **_PUBLISHED)
        drawn, panels = _panels(series, drawing)
        for place, in_panel in panels:
            _draw_columns(place.ax, in_panel, y, drawing)
            _share(place, y.text, drawing)
        drawn.finish(drawing.finding, 1)
        legend(drawn.figure, entries, len(entries) + 1, drawing.note)
        caption = short_caption(f"{name}: {y.name} over data sets", [flowing(text)], series)
        return write_figure(drawn.figure, caption, target, name)


def plot_scaling(series: Sequence[Series], target: Path, name: str, drawing: Drawing) -> list[Path]:
    """Draw a point for each value of the variable ``drawing.over``, and a line through each learner's points.

    Parameters
    ----------
    series, target, name, drawing
        As for `budgetreg.figures.curves.plot_series`. Without ``drawing.level``, points are the means at the last
        checkpoint.

    Returns
    -------
    list of Path
        ``<name>.png``, ``<name>.pdf`` and ``<name>.txt``.
    """
    x, y = axes_of(series, drawing)
    over = _NAMES.get(str(drawing.over), str(drawing.over))
    wanted = y.label if drawing.level is None else f"{x.label} until the {y.name} is {drawing.level:g}"
    ends: dict[Axes, list[End]] = {}
    missing: list[str] = []
    bar = {"bar: 90 % interval of the mean": Line2D([], [], linestyle="none", marker="|", markersize=11, color="black")}
    with own_settings():
        drawn, panels = _panels(series, drawing)
        for place, in_panel in panels:
            scalings = scalings_of(in_panel, drawing, y, x)
            ends[place.ax] = _draw_scalings(place.ax, scalings, drawing, logarithmic=y.log)
            place.ax.set_xlabel(over)
            _share(place, wanted, drawing)
            missing += [
                f"{_label(learner)} at {at:g}"
                for learner, points in scalings.items()
                for at in points
                if at not in _drawable(points)
            ]
        drawn.finish(drawing.finding, 1)
        legend(drawn.figure, bar, 2, drawing.note)
        label_ends(drawn.figure, ends)
        counts = repetitions_of(series)
        sentences = [f"x: {over}; log scale. y: {wanted}, from means over {counts}; {y.name}: {y.meaning}."]
        if drawing.level is not None:
            sentences.append("Between checkpoints, means are interpolated linearly in the logarithm of x; log scale.")
        sentences.append(
            "Bars: 90 % interval from 2000 bootstrap resamples of the repetitions, if there are 5 or more."
        )
        if missing:
            left_out = ", ".join(missing)
            sentences.append(f"Not shown, as the level is not reached, or before the first checkpoint: {left_out}.")
        caption = short_caption(f"{name}: {wanted} against {over}", [flowing(" ".join(sentences))], series)
        return write_figure(drawn.figure, caption, target, name)


def scalings_of(series: Sequence[Series], drawing: Drawing, y: Axis, x: Axis) -> Scalings:
    """Return the points of each learner, and of each variant of its settings, in a panel.

    Parameters
    ----------
    series : sequence of Series
        The panel's series, as `budgetreg.runs.series.labelled` returns them.
    drawing : Drawing
        Names the variable.
    y, x : Axis
        The axes of the curves behind the points.
    """
    scalings: dict[tuple[str, str], dict[float, Estimate]] = {}
    for curve in series:
        value = of(str(drawing.over), curve)
        assert isinstance(value, int | float)
        comparison = ResampledCurves([curve], y.column, x.column)
        means = comparison.means(curve)
        scalings.setdefault((curve.algo, curve.variant), {})[float(value)] = (
            basic(means.end, comparison.repetitions)
            if drawing.level is None
            else percentile(means.crossing(drawing.level), comparison.repetitions)
        )
    return {learner: dict(sorted(points.items())) for learner, points in scalings.items()}


def _label(learner: tuple[str, str]) -> str:
    return " ".join(learner).strip()


def _drawable(points: Mapping[float, Estimate]) -> dict[float, Estimate]:
    """Return the points that logarithmic axes can show."""
    return {at: point for at, point in points.items() if np.isfinite(point.value) and point.value > 0}


def _panels(series: Sequence[Series], drawing: Drawing) -> tuple[Panels, list[tuple[Panel, list[Series]]]]:
    """Return a figure with a panel for each part of the series, and its title."""
    parts = list(drawing.split(series).values())
    drawn = sheet(len(parts), share_y=drawing.share_y)
    for place, part in zip(drawn.places, parts, strict=True):
        place.ax.set_title(folded(drawing.title(part)), loc="left", fontsize=10)
    return drawn, list(zip(drawn.places, parts, strict=True))


def _share(place: Panel, y_label: str, drawing: Drawing) -> None:
    """Write what the y axis is, once for panels that share it."""
    if place.first:
        place.ax.set_ylabel(y_label)
    elif drawing.share_y:
        place.ax.tick_params(labelleft=False)


def _draw_columns(ax: Axes, series: Sequence[Series], y: Axis, drawing: Drawing) -> None:
    learners = dict.fromkeys(curve.algo for curve in series)
    for place, algo in enumerate(learners):
        last = sorted(float(curve.mean[y.column].iloc[-1]) for curve in series if curve.algo == algo)
        colour, marker, _ = style(algo)
        # Dots are in order from left to right: their places are the same in every run, and close dots do not overlap.
        at = place + _HALF_WIDTH * np.linspace(-1, 1, len(last)) if len(last) > 1 else np.array([place])
        ax.plot(at, last, linestyle="none", marker=marker, markersize=4, color=colour, alpha=0.7)
        ends = [place - _HALF_WIDTH, place + _HALF_WIDTH]
        ax.plot(ends, [np.median(last)] * 2, **_MEDIAN)
        for _, values in (points for (learner, _), points in drawing.published.items() if learner == algo):
            ax.plot(ends, [values[-1]] * 2, **_PUBLISHED)
    if y.zero is not None:
        ax.axhline(y.zero, color="grey", linewidth=0.8, zorder=1)
    if y.log:
        ax.set_yscale("log")
    set_ticks(ax)
    ax.set_xticks(range(len(learners)), folded_ticks(learners))
    grid(ax, axis="y")


def _draw_scalings(ax: Axes, scalings: Scalings, drawing: Drawing, *, logarithmic: bool) -> list[End]:
    """Draw a panel, and return the labels of its lines."""
    ends: list[End] = []
    for learner, points in scalings.items():
        variants = [variant for algo, variant in scalings if algo == learner[0]]
        look = look_of(learner[0], variants.index(learner[1]))
        shown = _drawable(points)
        if not shown:
            continue
        values = [point.value for point in shown.values()]
        ax.plot(list(shown), values, **look)
        ends.append(End(_label(learner), max(shown), shown[max(shown)].value, look["color"], is_heavy(look)))
        if len(points) == 1:  # the learner does not depend on the variable
            ax.axhline(values[0], color=look["color"], linewidth=0.8, zorder=1)
        bars = {at: bar for at, bar in shown.items() if np.isfinite([bar.low, bar.high]).all()}
        lows, highs = ([getattr(bar, end) for bar in bars.values()] for end in ("low", "high"))
        ax.vlines(list(bars), lows, highs, color=look["color"], linewidth=1.2)
    ax.set_xscale("log")
    if drawing.level is not None or logarithmic:
        ax.set_yscale("log")
    set_ticks(ax)
    marks = sorted({at for points in scalings.values() for at in points})
    ax.set_xticks(marks, list(map(compact, marks)))
    ax.xaxis.minorticks_off()
    if drawing.level is not None:
        start = min(point.value for points in scalings.values() for point in _drawable(points).values())
        ends += _draw_guides(ax, np.array([marks[0], marks[-1]]), start)
    grid(ax)
    return ends


def _draw_guides(ax: Axes, ends: np.ndarray, start: float) -> list[End]:
    """Draw lines of whole slopes through a point, and return their labels."""
    labels = []
    for exponent in _GUIDES:
        heights = start * (ends / ends[0]) ** exponent
        ax.plot(ends, heights, **_GUIDE)
        labels.append(End(f"slope {exponent}", ends[-1], heights[-1], _GUIDE["color"]))
    return labels

"""Draw points: one for each data set, or one for each value of a variable such as k or d."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.analysis.bootstrap import Estimate, basic, percentile
from budgetreg.analysis.comparisons import ResampledCurves
from budgetreg.figures.axes import Axis, axes_of
from budgetreg.figures.canvas import grid, legend, own_settings, write_figure
from budgetreg.figures.captions import flowing, repetitions_of, short_caption
from budgetreg.figures.drawing import Drawing
from budgetreg.figures.library import Axes, Figure, Line2D
from budgetreg.figures.palette import style
from budgetreg.results.axis_variables import of
from budgetreg.results.series import Series

Scalings = Mapping[tuple[str, str], Mapping[float, Estimate]]
"""By learner and variant, then by value of the variable, ascending: the last error, or what a level needs.

What a level needs is infinite if the curve does not fall to it, and 0 if the curve begins below it.
"""

_HALF_WIDTH = 0.28  # of a column of dots, in learners
_MEDIAN: dict[str, Any] = {"color": "black", "linewidth": 2.0}
_PUBLISHED: dict[str, Any] = {"color": "black", "linewidth": 1.2, "linestyle": (0, (3, 2))}
_NAMES = {
    "k": "attributes seen of each example, k",
    "d": "attributes of an example, d",
    "d/k": "attributes of an example / attributes seen of it, d/k",
}
_GUIDES: Mapping[int, Any] = {1: (0, (1, 2)), 2: (0, (4, 3))}  # exponent -> dash


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
        figure, panels = _panels_in_a_row(series, drawing, (6.4, 4.2))
        for ax, in_panel in panels:
            _draw_columns(ax, in_panel, y, drawing)
        legend(figure, entries, 2, drawing.note)
        caption = short_caption(f"{name}: {y.name} over data sets", [flowing(text)], series)
        return write_figure(figure, caption, target, name)


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
    samples: dict[str, Line2D] = {}
    missing: list[str] = []
    with own_settings():
        figure, panels = _panels_in_a_row(series, drawing, (6.0, 4.4), sharey=True)
        for ax, in_panel in panels:
            scalings = scalings_of(in_panel, drawing, y, x)
            samples |= _draw_scalings(ax, scalings, drawing, logarithmic=y.log)
            ax.set_xlabel(over)
            missing += [
                f"{_label(learner)} at {at:g}"
                for learner, points in scalings.items()
                for at in points
                if at not in _drawable(points)
            ]
        panels[0][0].set_ylabel(wanted)
        legend(figure, samples, min(len(samples) + bool(drawing.note), 3 * len(panels)), drawing.note)
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
        return write_figure(figure, caption, target, name)


def scalings_of(series: Sequence[Series], drawing: Drawing, y: Axis, x: Axis) -> Scalings:
    """Return the points of each learner, and of each variant of its settings, in a panel.

    Parameters
    ----------
    series : sequence of Series
        The panel's series, as `budgetreg.results.series.labelled` returns them.
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


def _panels_in_a_row(
    series: Sequence[Series], drawing: Drawing, size: tuple[float, float], **options: Any
) -> tuple[Figure, list[tuple[Axes, list[Series]]]]:
    """Return a figure with panels of a size in inches side by side, each with its title and its series."""
    panels = drawing.split(series).values()
    figure = Figure((size[0] * len(panels), size[1]), layout="constrained")
    axes = list(figure.subplots(1, len(panels), squeeze=False, **options).flat)
    for ax, in_panel in zip(axes, panels, strict=True):
        ax.set_title(drawing.title(in_panel), loc="left", fontsize=10)
    return figure, list(zip(axes, panels, strict=True))


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
    ax.set_xticks(range(len(learners)), learners)
    ax.set_ylabel(y.text)
    grid(ax, axis="y")


def _draw_scalings(ax: Axes, scalings: Scalings, drawing: Drawing, *, logarithmic: bool) -> dict[str, Line2D]:
    """Draw a panel, and return the samples of its legend."""
    samples: dict[str, Line2D] = {}
    for learner, points in scalings.items():
        colour, marker, _ = style(learner[0])
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5.5, "linewidth": 1.6}
        samples[_label(learner)] = Line2D([], [], **look)
        shown = _drawable(points)
        values = [point.value for point in shown.values()]
        ax.plot(list(shown), values, zorder=3, **look)
        if len(points) == 1:  # the learner does not depend on the variable
            ax.axhline(values[0], color=colour, linewidth=0.8, zorder=1)
        bars = {at: bar for at, bar in shown.items() if np.isfinite([bar.low, bar.high]).all()}
        ax.vlines(list(bars), [bar.low for bar in bars.values()], [bar.high for bar in bars.values()], color=colour)
    ax.set_xscale("log")
    marks = sorted({at for points in scalings.values() for at in points})
    ax.set_xticks(marks, [f"{mark:g}" for mark in marks])
    ax.minorticks_off()
    if drawing.level is not None or logarithmic:
        ax.set_yscale("log")
    if drawing.level is not None:
        start = min(point.value for points in scalings.values() for point in _drawable(points).values())
        samples |= _guides(ax, np.array([marks[0], marks[-1]]), start)
    grid(ax)
    return samples


def _guides(ax: Axes, ends: np.ndarray, start: float) -> dict[str, Line2D]:
    look: dict[str, Any] = {"color": "grey", "linewidth": 0.9, "zorder": 1}
    for exponent, dash in _GUIDES.items():
        ax.plot(ends, start * (ends / ends[0]) ** exponent, linestyle=dash, **look)
    return {f"slope {exponent}": Line2D([], [], linestyle=dash, **look) for exponent, dash in _GUIDES.items()}

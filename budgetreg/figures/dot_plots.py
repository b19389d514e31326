"""Draw many data sets: for each learner a dot per data set, at the last checkpoint, and the median."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from budgetreg.figures.axes import Axis, axes_of
from budgetreg.figures.canvas import grid, legend, own_settings, panels_in_a_row, write_figure
from budgetreg.figures.captions import flowing, short_caption
from budgetreg.figures.drawing import Drawing
from budgetreg.figures.palette import style
from budgetreg.results.series import Series, mean_curve

_SIZE = (6.4, 4.2)  # inches, of a panel
_HALF_WIDTH = 0.28  # of a column of dots, in learners
_MEDIAN: dict[str, Any] = {"color": "black", "linewidth": 2.0}
_PUBLISHED: dict[str, Any] = {"color": "black", "linewidth": 1.2, "linestyle": (0, (3, 2))}


def plot_dots(series: Sequence[Series], target: Path, name: str, drawing: Drawing) -> list[Path]:
    """Draw the last points of many curves as columns of dots, one column for each learner.

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
    with own_settings():
        figure, panels = panels_in_a_row(series, drawing, _SIZE)
        for ax, in_panel in panels:
            _draw_panel(ax, in_panel, y, drawing)
        entries = {
            "a data set, mean over repetitions": Line2D([], [], linestyle="none", marker="o", color="grey"),
            "median of data sets": Line2D([], [], **_MEDIAN),
        }
        if drawing.published:
            entries["median as published"] = Line2D([], [], **_PUBLISHED)
        legend(figure, entries, 2, drawing.note)
        return write_figure(figure, _caption(name, series, y), target, name)


def _draw_panel(ax: Axes, series: Sequence[Series], y: Axis, drawing: Drawing) -> None:
    learners = dict.fromkeys(curve.algo for curve in series)
    for place, algo in enumerate(learners):
        last = sorted(float(mean_curve(curve.points)[y.column].iloc[-1]) for curve in series if curve.algo == algo)
        colour, marker = style(algo)
        # Dots are in order from left to right: their places are the same in every run, and close dots do not overlap.
        at = place + _HALF_WIDTH * np.linspace(-1, 1, len(last)) if len(last) > 1 else np.array([place])
        ax.plot(at, last, linestyle="none", marker=marker, markersize=4, color=colour, alpha=0.7)
        ends = [place - _HALF_WIDTH, place + _HALF_WIDTH]
        ax.plot(ends, [np.median(last)] * 2, **_MEDIAN)
        for _, values in (points for (of, _), points in drawing.published.items() if of == algo):
            ax.plot(ends, [values[-1]] * 2, **_PUBLISHED)
    if y.zero is not None:
        ax.axhline(y.zero, color="grey", linewidth=0.8, zorder=1)
    if y.log:
        ax.set_yscale("log")
    ax.set_xticks(range(len(learners)), learners)
    ax.set_ylabel(y.text)
    grid(ax, axis="y")


def _caption(name: str, series: Sequence[Series], y: Axis) -> str:
    datasets = {curve.dataset for curve in series}
    counts = sorted({curve.repetitions for curve in series})
    text = (
        f"For each learner, {len(datasets)} data sets from the least error to the largest: the mean over "
        f"{' to '.join(map(str, counts))} repetitions at the last checkpoint, and their median. y: {y.explanation}."
    )
    return short_caption(f"{name}: {y.name} over data sets", [flowing(text)], series)

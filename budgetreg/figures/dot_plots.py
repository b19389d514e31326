"""A figure of many data sets: for each learner a point per data set, at the last checkpoint, and their median."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from budgetreg.figures.axes import Axis, axes_of
from budgetreg.figures.captions import about_config, flowing
from budgetreg.figures.curves import own_settings, write_figure
from budgetreg.figures.drawing import Drawing
from budgetreg.figures.palette import style
from budgetreg.results.nested import common
from budgetreg.results.series import Series, mean_curve

_SIZE = (6.4, 4.2)  # inches, of a panel
_HALF_WIDTH = 0.28  # of a column of dots, in learners
_MEDIAN: dict[str, Any] = {"color": "black", "linewidth": 2.0}
_PUBLISHED: dict[str, Any] = {"color": "black", "linewidth": 1.2, "linestyle": (0, (3, 2))}


def plot_dots(series: Sequence[Series], target: Path, name: str, drawing: Drawing) -> list[Path]:
    """Draw the last points of many curves as columns of dots, one for each learner.

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
    panels = dict.fromkeys(map(drawing.panel, series))
    with own_settings():
        figure = Figure((_SIZE[0] * len(panels), _SIZE[1]), layout="constrained")
        for ax, panel in zip(figure.subplots(1, len(panels), squeeze=False).flat, panels, strict=True):
            own = [one for one in series if drawing.panel(one) == panel]
            _panel(ax, own, y, drawing)
            ax.set_title(drawing.title(own), loc="left", fontsize=10)
        entries = {
            "a data set, mean over repetitions": Line2D([], [], linestyle="none", marker="o", color="grey"),
            "median of data sets": Line2D([], [], **_MEDIAN),
        }
        if drawing.published:
            entries["median as published"] = Line2D([], [], **_PUBLISHED)
        if drawing.note:
            entries[drawing.note] = Line2D([], [], linestyle="none")
        figure.legend(entries.values(), entries, loc="outside lower center", ncols=2, fontsize=8.5, frameon=False)
        return write_figure(figure, _caption(name, series, y), target, name)


def _panel(ax: Axes, series: Sequence[Series], y: Axis, drawing: Drawing) -> None:
    learners = dict.fromkeys(one.algo for one in series)
    for place, algo in enumerate(learners):
        last = sorted(float(mean_curve(one.points)[y.column].iloc[-1]) for one in series if one.algo == algo)
        colour, marker = style(algo)
        # In order from left to right: the same places on every run, and close points lie beside each other.
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
    ax.grid(True, axis="y", color="#E6E6E6", linewidth=0.6)
    ax.set_axisbelow(True)


def _caption(name: str, series: Sequence[Series], y: Axis) -> str:
    datasets = {one.dataset for one in series}
    counts = sorted({one.repetitions for one in series})
    shared = about_config(common([one.config for one in series]))
    text = (
        f"For each learner, {len(datasets)} data sets from the least error to the largest: the mean over "
        f"{' to '.join(map(str, counts))} repetitions at the last checkpoint, and their median. y: {y.said}."
    )
    return "\n\n".join([f"{name}: {y.name} over data sets", flowing(text), "\n".join(map(flowing, shared))]) + "\n"

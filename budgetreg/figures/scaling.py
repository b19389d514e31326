"""A figure of what changes along a variable: the error at the end, or what it takes to fall to a level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from budgetreg.analysis.bootstrap import Estimate, basic, percentile
from budgetreg.analysis.comparisons import Comparison
from budgetreg.figures.axes import Axis, axes_of
from budgetreg.figures.captions import about_config, flowing
from budgetreg.figures.curves import own_settings, write_figure
from budgetreg.figures.drawing import Drawing
from budgetreg.figures.palette import style
from budgetreg.results.axis_variables import of
from budgetreg.results.nested import common
from budgetreg.results.series import Series

_SIZE = (6.0, 4.4)  # inches, of a panel
_NAMES = {
    "k": "attributes seen of each example, k",
    "d": "attributes of an example, d",
    "d/k": "attributes of an example / attributes seen of it, d/k",
}
_GUIDES: Mapping[int, Any] = {1: (0, (1, 2)), 2: (0, (4, 3))}  # exponent -> dash


@dataclass(frozen=True)
class Scaling:
    """A learner's points.

    Attributes
    ----------
    label : str
    algo : str
    x : list of float
        Values of the variable, ascending.
    y : list of Estimate
        Infinite where a curve does not fall to the level, 0 where it begins below it.
    """

    label: str
    algo: str
    x: list[float]
    y: list[Estimate]

    @property
    def shown(self) -> list[tuple[float, Estimate]]:
        """The points that have a place on the axes."""
        return [(x, y) for x, y in zip(self.x, self.y, strict=True) if np.isfinite(y.value) and y.value > 0]


def plot_scaling(series: Sequence[Series], target: Path, name: str, drawing: Drawing) -> list[Path]:
    """Draw a point for each value of the variable ``drawing.over``, with lines between those of a learner.

    Parameters
    ----------
    series, target, name, drawing
        As for `budgetreg.figures.curves.plot_series`; without ``drawing.level`` the means at the last checkpoint
        are drawn.

    Returns
    -------
    list of Path
        ``<name>.png``, ``<name>.pdf`` and ``<name>.txt``.
    """
    x, y = axes_of(series, drawing)
    panels = dict.fromkeys(map(drawing.panel, series))
    legend: dict[str, Line2D] = {}
    missing: list[str] = []
    with own_settings():
        figure = Figure((_SIZE[0] * len(panels), _SIZE[1]), layout="constrained")
        shared_axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)
        for ax, panel in zip(shared_axes.flat, panels, strict=True):
            own = [one for one in series if drawing.panel(one) == panel]
            scalings = scalings_of(own, drawing, y, x)
            legend |= _panel(ax, scalings, drawing, logarithmic=y.log)
            ax.set_title(drawing.title(own), loc="left", fontsize=10)
            ax.set_xlabel(_NAMES.get(str(drawing.over), str(drawing.over)))
            missing += [
                f"{scaling.label} at {at:g}"
                for scaling in scalings
                for at in sorted(set(scaling.x) - {at for at, _ in scaling.shown})
            ]
        wanted = y.label if drawing.level is None else f"{x.label} until the {y.name} is {drawing.level:g}"
        shared_axes[0, 0].set_ylabel(wanted)
        if drawing.note:
            legend[drawing.note] = Line2D([], [], linestyle="none")
        columns = min(len(legend), 3 * len(panels))
        figure.legend(legend.values(), legend, loc="outside lower center", ncols=columns, fontsize=8.5, frameon=False)
        return write_figure(figure, _caption(name, series, drawing, wanted, y, missing), target, name)


def scalings_of(series: Sequence[Series], drawing: Drawing, y: Axis, x: Axis) -> list[Scaling]:
    """Return the points of one panel, a scaling for each learner and for each way in which its settings differ.

    Parameters
    ----------
    series
        Those of the panel, as `budgetreg.results.series.labelled` returns them.
    drawing, y, x
        What is varied, and the axes of the curves that the points come from.
    """
    lines: dict[tuple[str, str], dict[float, Series]] = {}
    for one in series:
        value = of(str(drawing.over), one)
        assert isinstance(value, int | float)
        lines.setdefault((one.algo, one.variant), {})[float(value)] = one
    return [
        Scaling(
            label=f"{algo} {variant}".strip(),
            algo=algo,
            x=sorted(own),
            y=[_estimate(own[value], drawing, y.column, x.column) for value in sorted(own)],
        )
        for (algo, variant), own in lines.items()
    ]


def _estimate(series: Series, drawing: Drawing, measure: str, x: str) -> Estimate:
    comparison = Comparison([series], measure, x)
    means = comparison.means(series)
    if drawing.level is None:
        return basic(means.end, comparison.repetitions)
    return percentile(means.crossing(drawing.level), comparison.repetitions)


def _panel(ax: Axes, scalings: Sequence[Scaling], drawing: Drawing, *, logarithmic: bool) -> dict[str, Line2D]:
    """Draw one panel; return the samples of its legend."""
    samples: dict[str, Line2D] = {}
    for scaling in scalings:
        colour, marker = style(scaling.algo)
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5.5, "linewidth": 1.6}
        samples[scaling.label] = Line2D([], [], **look)
        x, y = [at for at, _ in scaling.shown], [estimate for _, estimate in scaling.shown]
        values = [estimate.value for estimate in y]
        ax.plot(x, values, zorder=3, **look)
        if len(scaling.x) == 1:  # it does not depend on what is varied
            ax.axhline(values[0], color=colour, linewidth=0.8, zorder=1)
        bars = [(at, own) for at, own in scaling.shown if np.isfinite([own.low, own.high]).all()]
        ax.vlines([at for at, _ in bars], [own.low for _, own in bars], [own.high for _, own in bars], color=colour)
    ax.set_xscale("log")
    marks = sorted({value for scaling in scalings for value in scaling.x})
    ax.set_xticks(marks, [f"{mark:g}" for mark in marks])
    ax.minorticks_off()
    if drawing.level is not None:
        ax.set_yscale("log")
        samples |= _guides(ax, marks, min(own.value for scaling in scalings for _, own in scaling.shown))
    elif logarithmic:
        ax.set_yscale("log")
    ax.grid(True, color="#E6E6E6", linewidth=0.6)
    ax.set_axisbelow(True)
    return samples


def _guides(ax: Axes, marks: Sequence[float], start: float) -> dict[str, Line2D]:
    ends = np.array([marks[0], marks[-1]])
    look: dict[str, Any] = {"color": "grey", "linewidth": 0.9, "zorder": 1}
    for exponent, dash in _GUIDES.items():
        ax.plot(ends, start * (ends / ends[0]) ** exponent, linestyle=dash, **look)
    return {f"slope {exponent}": Line2D([], [], linestyle=dash, **look) for exponent, dash in _GUIDES.items()}


def _caption(
    name: str, series: Sequence[Series], drawing: Drawing, wanted: str, y: Axis, missing: Sequence[str]
) -> str:
    counts = sorted({one.repetitions for one in series})
    said = [
        f"x: {_NAMES.get(str(drawing.over), drawing.over)}; log scale. y: {wanted}, from means over "
        f"{' to '.join(map(str, counts))} repetitions; {y.name}: {y.meaning}."
    ]
    if drawing.level is not None:
        said.append("Between checkpoints, means are interpolated linearly in the logarithm of x; log scale.")
    said.append("Bars: 90 % interval from 2000 bootstrap resamples of the repetitions, if there are 5 or more.")
    if missing:
        said.append(f"Not shown, as the level is not reached, or before the first checkpoint: {', '.join(missing)}.")
    shared = about_config(common([one.config for one in series]))
    title = f"{name}: {wanted} against {_NAMES.get(str(drawing.over), drawing.over)}"
    return "\n\n".join([title, flowing(" ".join(said)), "\n".join(map(flowing, shared))]) + "\n"

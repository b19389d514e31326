"""Draw the last error, or what it takes to reach an error, against a variable such as k or d."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from budgetreg.analysis.bootstrap import Estimate, basic, percentile
from budgetreg.analysis.comparisons import ResampledCurves
from budgetreg.figures.axes import Axis, axes_of
from budgetreg.figures.canvas import grid, legend, own_settings, panels_in_a_row, write_figure
from budgetreg.figures.captions import flowing, short_caption
from budgetreg.figures.drawing import Drawing
from budgetreg.figures.palette import style
from budgetreg.results.axis_variables import of
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
    """The points of a learner.

    Attributes
    ----------
    label : str
    algo : str
    x : list of float
        Values of the variable, ascending.
    y : list of Estimate
        Infinite if the curve does not fall to the level, 0 if it begins below the level.
    """

    label: str
    algo: str
    x: list[float]
    y: list[Estimate]

    @property
    def shown(self) -> list[tuple[float, Estimate]]:
        """Return the points that can be drawn on logarithmic axes."""
        return [(x, y) for x, y in zip(self.x, self.y, strict=True) if np.isfinite(y.value) and y.value > 0]


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
    samples: dict[str, Line2D] = {}
    missing: list[str] = []
    with own_settings():
        figure, panels = panels_in_a_row(series, drawing, _SIZE, sharey=True)
        for ax, in_panel in panels:
            scalings = scalings_of(in_panel, drawing, y, x)
            samples |= _draw_panel(ax, scalings, drawing, logarithmic=y.log)
            ax.set_xlabel(_NAMES.get(str(drawing.over), str(drawing.over)))
            missing += [
                f"{scaling.label} at {at:g}"
                for scaling in scalings
                for at in sorted(set(scaling.x) - {at for at, _ in scaling.shown})
            ]
        wanted = y.label if drawing.level is None else f"{x.label} until the {y.name} is {drawing.level:g}"
        panels[0][0].set_ylabel(wanted)
        legend(figure, samples, min(len(samples) + bool(drawing.note), 3 * len(panels)), drawing.note)
        return write_figure(figure, _caption(name, series, drawing, wanted, y, missing), target, name)


def scalings_of(series: Sequence[Series], drawing: Drawing, y: Axis, x: Axis) -> list[Scaling]:
    """Return a scaling for each learner, and for each variant of its settings, in a panel.

    Parameters
    ----------
    series : sequence of Series
        The panel's series, as `budgetreg.results.series.labelled` returns them.
    drawing : Drawing
        Names the variable.
    y, x : Axis
        The axes of the curves behind the points.
    """
    lines: dict[tuple[str, str], dict[float, Series]] = {}
    for curve in series:
        value = of(str(drawing.over), curve)
        assert isinstance(value, int | float)
        lines.setdefault((curve.algo, curve.variant), {})[float(value)] = curve
    return [
        Scaling(
            label=f"{algo} {variant}".strip(),
            algo=algo,
            x=sorted(curves),
            y=[_estimate(curves[value], drawing, y.column, x.column) for value in sorted(curves)],
        )
        for (algo, variant), curves in lines.items()
    ]


def _estimate(series: Series, drawing: Drawing, measure: str, x: str) -> Estimate:
    comparison = ResampledCurves([series], measure, x)
    means = comparison.means(series)
    if drawing.level is None:
        return basic(means.end, comparison.repetitions)
    return percentile(means.crossing(drawing.level), comparison.repetitions)


def _draw_panel(ax: Axes, scalings: Sequence[Scaling], drawing: Drawing, *, logarithmic: bool) -> dict[str, Line2D]:
    """Draw a panel, and return the samples of its legend."""
    samples: dict[str, Line2D] = {}
    for scaling in scalings:
        colour, marker = style(scaling.algo)
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5.5, "linewidth": 1.6}
        samples[scaling.label] = Line2D([], [], **look)
        x, y = [at for at, _ in scaling.shown], [estimate for _, estimate in scaling.shown]
        values = [estimate.value for estimate in y]
        ax.plot(x, values, zorder=3, **look)
        if len(scaling.x) == 1:  # the learner does not depend on the variable
            ax.axhline(values[0], color=colour, linewidth=0.8, zorder=1)
        bars = [(at, bar) for at, bar in scaling.shown if np.isfinite([bar.low, bar.high]).all()]
        ax.vlines([at for at, _ in bars], [bar.low for _, bar in bars], [bar.high for _, bar in bars], color=colour)
    ax.set_xscale("log")
    marks = sorted({value for scaling in scalings for value in scaling.x})
    ax.set_xticks(marks, [f"{mark:g}" for mark in marks])
    ax.minorticks_off()
    if drawing.level is not None:
        ax.set_yscale("log")
        samples |= _guides(ax, marks, min(point.value for scaling in scalings for _, point in scaling.shown))
    elif logarithmic:
        ax.set_yscale("log")
    grid(ax)
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
    counts = sorted({curve.repetitions for curve in series})
    sentences = [
        f"x: {_NAMES.get(str(drawing.over), drawing.over)}; log scale. y: {wanted}, from means over "
        f"{' to '.join(map(str, counts))} repetitions; {y.name}: {y.meaning}."
    ]
    if drawing.level is not None:
        sentences.append("Between checkpoints, means are interpolated linearly in the logarithm of x; log scale.")
    sentences.append("Bars: 90 % interval from 2000 bootstrap resamples of the repetitions, if there are 5 or more.")
    if missing:
        sentences.append(
            f"Not shown, as the level is not reached, or before the first checkpoint: {', '.join(missing)}."
        )
    title = f"{name}: {wanted} against {_NAMES.get(str(drawing.over), drawing.over)}"
    return short_caption(title, [flowing(" ".join(sentences))], series)

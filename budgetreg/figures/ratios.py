"""Draw the last errors of variants, each divided by that of one of them: a dot with its interval, by data set."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from budgetreg.analysis.comparisons import ResampledCurves, select
from budgetreg.analysis.intervals import Estimate, of_ratio
from budgetreg.figures.axes import Axis, axes_of
from budgetreg.figures.canvas import folded, folded_ticks, grid, legend, own_settings, sheet, write_figure
from budgetreg.figures.captions import flowing, repetitions_of, short_caption
from budgetreg.figures.drawing import Drawing
from budgetreg.figures.library import Axes, Figure
from budgetreg.figures.palette import Style, style
from budgetreg.figures.ticks import set_ticks
from budgetreg.runs.series import Series

_GREY = "#555555"
_SIZE = 8.0  # points: of the letters of a ratio
_MARGIN = 1.06  # factor by which the axis reaches beyond the intervals

Ratios = Mapping[str, Estimate]
"""By label: the last error divided by that of the learner that others are compared with."""


def plot_ratios(series: Sequence[Series], target: Path, name: str, drawing: Drawing) -> list[Path]:
    """Draw a row for each variant and a column for each panel; ``drawing.against`` is the line at 1.

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
        figure, against = draw(series, drawing)
        text = (
            f"Dots show the {y.name} of each variant at the last checkpoint, divided by that of {against} in the same "
            f"{repetitions_of(series)}; bars are 90 % intervals from 2000 bootstrap resamples. The {y.name} is the "
            f"{y.meaning}."
        )
        caption = short_caption(f"{name}: {y.name} of variants relative to {against}", [flowing(text)], series)
        return write_figure(figure, caption, target, name)


def draw(series: Sequence[Series], drawing: Drawing) -> tuple[Figure, str]:
    """Draw the dots into a new figure, and return it with the label of what others are compared with.

    Parameters
    ----------
    series, drawing
        As for `plot_ratios`.
    """
    _, y = axes_of(series, drawing)
    assert drawing.against is not None
    against = select(series, drawing.against)[0].label
    panels = list(drawing.split(series).values())
    ratios = [ratios_of(in_panel, drawing, y) for in_panel in panels]
    labels = _ordered(ratios)
    looks = {curve.label: style(curve.algo) for curve in series}
    ends = [end for of_panel in ratios for each in of_panel.values() for end in (each.low, each.value, each.high)]
    low, high = (end(ends, initial=1.0) for end in (np.nanmin, np.nanmax))
    drawn = sheet(len(panels), share_y=True)
    for place, in_panel, of_panel in zip(drawn.places, panels, ratios, strict=True):
        place.ax.set_title(folded(drawing.title(in_panel)), loc="left", fontsize=10)
        for row, label in enumerate(labels):
            if label in of_panel:
                _draw_ratio(place.ax, row, of_panel[label], looks[label])
        place.ax.axvline(1, color=_GREY, linewidth=1.0, zorder=1)
        place.ax.set_yticks(range(len(labels)), folded_ticks(labels))
        place.ax.set_ylim(len(labels) - 0.5, -0.5)
        place.ax.tick_params(labelleft=place.first)
        place.ax.set_xscale("log")
        place.ax.set_xlim(low / _MARGIN, high * _MARGIN)
        set_ticks(place.ax, y=False)
        grid(place.ax)
        if place.lowest:
            place.ax.set_xlabel(f"{y.name} at the end / that of {against} (log scale)")
    drawn.finish(drawing.finding, int(bool(drawing.note)))
    if drawing.note:
        legend(drawn.figure, {}, 1, drawing.note)
    return drawn.figure, against


def ratios_of(series: Sequence[Series], drawing: Drawing, y: Axis) -> Ratios:
    """Return the ratios of a panel.

    Parameters
    ----------
    series : sequence of Series
        Those of the panel.
    drawing : Drawing
        Names the learner that others are compared with.
    y : Axis
    """
    assert drawing.against is not None
    reference = select(series, drawing.against)[0]
    ratios: dict[str, Estimate] = {}
    for curve in series:
        if curve is not reference:
            pair = ResampledCurves([curve, reference], y.column, "examples")
            ratios[curve.label] = of_ratio(pair.means(curve).end / pair.means(reference).end, pair.repetitions)
    return ratios


def _ordered(ratios: Sequence[Ratios]) -> list[str]:
    """Return the labels of all panels, those with the smallest ratios first."""
    labels = dict.fromkeys(label for of_panel in ratios for label in of_panel)
    values = {label: [of_panel[label].value for of_panel in ratios if label in of_panel] for label in labels}
    return sorted(labels, key=lambda label: float(np.mean(values[label])))


def _draw_ratio(ax: Axes, row: int, ratio: Estimate, look: Style) -> None:
    ax.plot(ratio.value, row, linestyle="none", marker=look.marker, markersize=6.5, color=look.colour, zorder=3)
    if np.isfinite([ratio.low, ratio.high]).all():
        ax.hlines(row, ratio.low, ratio.high, color=look.colour, linewidth=1.8, zorder=2)
    ax.annotate(
        f"{ratio.value:.2f}",
        (ratio.value, row),
        xytext=(0, 7),
        textcoords="offset points",
        ha="center",
        fontsize=_SIZE,
    )

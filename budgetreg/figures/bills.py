"""Draw what each learner was paid as a bar, tuning included, and beside it its last error as a dot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from budgetreg.analysis.comparisons import ResampledCurves
from budgetreg.analysis.intervals import Estimate, of_ratio
from budgetreg.figures.axes import PAID, PAID_COST, Axis, axes_of
from budgetreg.figures.canvas import Panel, Panels, folded, folded_ticks, grid, legend, own_settings, write_figure
from budgetreg.figures.captions import flowing, repetitions_of, short_caption
from budgetreg.figures.drawing import Drawing
from budgetreg.figures.library import Axes, Figure, Line2D, Patch
from budgetreg.figures.looks import looks_of
from budgetreg.figures.ticks import compact, set_ticks
from budgetreg.runs.axis_variables import along
from budgetreg.runs.series import Series, common_unit

_PANEL = (2.3, 3.1)  # inches
_GREY, _TUNING = "#555555", "#D6D6D6"
_SIZE = 7.5  # points: of the letters of a bill
_LETTERS_OF_TITLE = 36
_LETTERS = 24  # of a line below an axis


@dataclass(frozen=True)
class PaidAndError:
    """What a learner was paid, and its error.

    Attributes
    ----------
    run : float
        What pilot and final run were charged, mean over repetitions.
    tuning : float
        What tuning revealed besides.
    error : Estimate
        Mean error at the last checkpoint.
    """

    run: float
    tuning: float
    error: Estimate


def plot_bills(series: Sequence[Series], target: Path, name: str, drawing: Drawing) -> list[Path]:
    """Draw a bar of what was paid and a dot of the last error for each learner, in two axes for each panel.

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
    paid = _paid(series, drawing)
    with own_settings():
        text = (
            f"Bars show {paid.meaning.split(': ')[0]} by the last checkpoint: what pilot and final run were charged, "
            "mean over repetitions, and what tuning revealed besides, a pair of an example and an attribute once, "
            f"held-out examples in full. Dots show the {y.name} there, with its 90 % interval from 2000 bootstrap "
            f"resamples of {repetitions_of(series)}. The {y.name} is the {y.meaning}."
        )
        caption = short_caption(f"{name}: {y.name} and {paid.name}", [flowing(text)], series)
        return write_figure(draw(series, drawing), caption, target, name)


def draw(series: Sequence[Series], drawing: Drawing) -> Figure:
    """Draw the bars and dots into a new figure.

    Parameters
    ----------
    series, drawing
        As for `plot_bills`.
    """
    _, y = axes_of(series, drawing)
    paid = _paid(series, drawing)
    looks = looks_of(series, replace(drawing, named=[]))  # each has a row of its own, so that none need be grey
    panels = list(drawing.split(series).values())
    bills = [{curve.label: bill_of(curve, paid, y) for curve in in_panel} for in_panel in panels]
    labels = _ordered(bills)
    drawn = _sheet(len(panels))
    pairs = list(zip(drawn.places[::2], drawn.places[1::2], strict=True))
    for (bars, dots), in_panel, of_panel in zip(pairs, panels, bills, strict=True):
        bars.ax.set_title(folded(drawing.title(in_panel), _LETTERS_OF_TITLE), loc="left", fontsize=10)
        for row, label in enumerate(labels):
            if label in of_panel:
                _draw_bill(bars.ax, row, of_panel[label], looks[label]["color"])
                _draw_error(dots.ax, row, of_panel[label].error, looks[label], drawing.top or np.inf)
        bars.ax.set_yticks(range(len(labels)), folded_ticks(labels))
        bars.ax.tick_params(labelleft=bars.first)
        bars.ax.set_ylim(len(labels) - 0.5, -0.5)
        bars.ax.margins(x=0.26)  # for the numbers
        if y.zero is not None:
            dots.ax.axvline(y.zero, color=_GREY, linewidth=0.8, zorder=1)
        if bars.lowest:
            bars.ax.set_xlabel("\n".join(wrap(paid.label, _LETTERS)))
            dots.ax.set_xlabel("\n".join(wrap(y.text, _LETTERS)))
        for place in (bars, dots):
            set_ticks(place.ax, y=False)
            grid(place.ax, axis="x")
    if drawing.top:
        pairs[0][1].ax.set_xlim(right=drawing.top)  # for all of them
    drawn.finish(drawing.finding, 1)
    entries = {
        "pilot and final run": Patch(color=_GREY),
        "tuning besides": Patch(color=_TUNING),
        "error at the end, 90 % interval": Line2D([], [], color=_GREY, marker="o", linewidth=1.8),
    }
    legend(drawn.figure, entries, len(entries) + bool(drawing.note), drawing.note)
    return drawn.figure


def bill_of(series: Series, paid: Axis, y: Axis) -> PaidAndError:
    """Return what a learner was paid by its last checkpoint, and its error there.

    Parameters
    ----------
    series : Series
    paid, y : Axis
        The variable of the bill, and the measure of the error.
    """
    charged = {PAID.column: "attributes", PAID_COST.column: "cost"}[paid.column]
    run, total = (float(along(column, series, series.mean)[-1]) for column in (charged, paid.column))
    curves = ResampledCurves([series], y.column, "examples")
    return PaidAndError(run, total - run, of_ratio(curves.means(series).end, curves.repetitions))


def _paid(series: Sequence[Series], drawing: Drawing) -> Axis:
    column = PAID.column if common_unit(series) is None else PAID_COST.column
    return axes_of(series, replace(drawing, x=column, x_scale="linear"))[0]


def _ordered(bills: Sequence[dict[str, PaidAndError]]) -> list[str]:
    """Return the labels of all panels, those with the smallest errors first."""
    labels = dict.fromkeys(label for of_panel in bills for label in of_panel)
    errors = {label: [of_panel[label].error.value for of_panel in bills if label in of_panel] for label in labels}
    return sorted(labels, key=lambda label: float(np.mean(errors[label])))


def _sheet(panels: int) -> Panels:
    """Return a figure with two axes for each panel, at most three panels in a row and no empty slot."""
    columns = 2 * next(columns for columns in (3, 2, 1) if panels % columns == 0)
    figure = Figure(layout="constrained")
    axes = figure.subplots(2 * panels // columns, columns, squeeze=False, sharey=True)
    first, *others = axes[:, 1::2].flat
    for ax in others:
        ax.sharex(first)
    places = [
        Panel(ax, column == 0, row == len(axes) - 1) for row, line in enumerate(axes) for column, ax in enumerate(line)
    ]
    return Panels(figure, places, _PANEL)


def _draw_bill(ax: Axes, row: int, bill: PaidAndError, colour: str) -> None:
    ax.barh(row, bill.run, color=colour, height=0.62, zorder=2)
    ax.barh(row, bill.tuning, left=bill.run, color=_TUNING, height=0.62, zorder=2)
    ax.annotate(
        compact(float(f"{bill.run + bill.tuning:.3g}")),
        (bill.run + bill.tuning, row),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        fontsize=_SIZE,
    )


def _draw_error(ax: Axes, row: int, error: Estimate, look: Mapping[str, Any], top: float) -> None:
    """Draw a dot with its interval; an arrow with its value if it lies beyond the end of the axis."""
    beyond = not error.value <= top
    marker = ">" if beyond else look["marker"]
    ax.plot(
        min(error.value, top),
        row,
        linestyle="none",
        marker=marker,
        markersize=6,
        color=look["color"],
        zorder=3,
        clip_on=False,
    )
    if beyond:
        ax.annotate(f"{error.value:.3g} ", (top, row), ha="right", va="center", fontsize=_SIZE)
    elif np.isfinite([error.low, error.high]).all():
        ax.hlines(row, error.low, error.high, color=look["color"], linewidth=1.8, zorder=2)

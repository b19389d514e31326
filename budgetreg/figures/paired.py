"""Draw a panel for each learner, and below it how far it lies above one of them in the same repetitions."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np

from budgetreg.analysis.comparisons import ResampledCurves, select
from budgetreg.analysis.intervals import FEWEST, Estimate, basic
from budgetreg.figures import canvas
from budgetreg.figures.canvas import Artist, Axes, Drawn, Figure, Line2D, across
from budgetreg.figures.captions import BANDS, about_curves, repetitions_of
from budgetreg.figures.looks import Looks, looks_of, published_entry, published_look
from budgetreg.figures.specification import Axis, Drawing, axes_of
from budgetreg.runs.series import Series, along

_PANEL = (1.86, 2.3)  # inches
_HEIGHTS = (3, 2)  # of a learner's curve, and of its difference
_BAND, _MARGIN = 0.18, 0.05  # opacity; share of an axis that is left free
_LETTERS, _LETTERS_BELOW = 24, 18  # of a line of text beside the y axis, and below the x axis
_MOST_TICKS = 4
_OUTSIDE: dict[str, Any] = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 12,
    "markerfacecolor": "none",
    "markeredgecolor": "black",
    "markeredgewidth": 1.3,
}


def draw_paired(series: Sequence[Series], drawing: Drawing) -> Drawn:
    """Draw a row of learners for each panel of a drawing, each with its difference from ``drawing.against`` below."""
    x, y = axes_of(series, drawing)
    rows = [_reference_first(in_row, drawing) for in_row in drawing.split(series).values()]
    drawn, lines = _sheet(len(rows), max(2, *map(len, rows)))
    looks = looks_of(series, drawing)
    outside = [
        text
        for learners, above, below in zip(rows, lines[::2], lines[1::2], strict=True)
        for text in _draw_row(above, below, learners, looks, drawing)
    ]
    drawn.finish(drawing.finding, _legend_entries(series, drawing, outside=bool(outside)), drawing.note)
    remarks = [
        f"Lower panels show the mean difference from {rows[0][0].label} over the same repetitions, with its 90 % "
        "interval from 2000 bootstrap resamples. Where checkpoints differ, means are interpolated linearly in the "
        "logarithm of x."
    ]
    if outside:
        remarks.append(f"Circles mark means outside their band, which a few repetitions decide: {'; '.join(outside)}.")
    title = f"{y.name} against {x.name}, and paired differences"
    return Drawn(drawn.figure, title, about_curves(series, remarks, drawing))


def _draw_row(
    above: Sequence[Axes], below: Sequence[Axes], learners: Sequence[Series], looks: Looks, drawing: Drawing
) -> list[str]:
    """Draw a row of learners; return in words where the mean of each lies outside its band."""
    x, y = axes_of(learners, drawing)
    below_axis = fill(x.label, _LETTERS_BELOW)
    reference, *others = learners
    title = drawing.title(learners)
    outside = {}
    for ax, learner in zip(above, learners, strict=False):
        outside[learner.label] = _draw_curve(ax, learner, looks[learner.label], x, y, drawing)
    above[0].set_ylabel(fill(y.text, _LETTERS))
    above[0].set_xlabel(below_axis)
    above[0].tick_params(labelbottom=True)
    inside = [np.zeros(1)]  # the line that a learner without a difference lies on
    for ax, learner in zip(below[1:], others, strict=False):
        points, estimates = differences(learner, reference, y, x)
        low, middle, high = np.array([(each.low, each.value, each.high) for each in estimates]).T
        away = np.isin(points, outside[learner.label])
        inside += [low[~away], middle[~away], high[~away]]
        _draw_difference(ax, points, (low, middle, high), away, looks[learner.label], x)
        ax.set_xlabel(below_axis)
    values = np.concatenate(inside)
    margin = _MARGIN * (np.ptp(values[np.isfinite(values)]) or 1.0)
    below[0].set_ylim(np.nanmin(values) - margin, np.nanmax(values) + margin)  # for all of them
    last = below[len(others)]
    last.set_ylabel(f"difference\nfrom {reference.label}")
    last.yaxis.set_label_position("right")
    last.tick_params(labelright=True)
    # The learner that others are compared with has no difference: its place is that of the row's title.
    below[0].set_axis_off()
    below[0].text(0, 0.1, title.replace(", ", "\n"), transform=below[0].transAxes, fontsize=11, fontweight="bold")
    above[0].xaxis.set_in_layout(False)
    for ax in [*above[len(learners) :], *below[len(learners) :]]:
        ax.set_axis_off()
    return [f"{label} at {at:,.0f}, {title}" for label, away in outside.items() for at in away]


def differences(learner: Series, reference: Series, y: Axis, x: Axis) -> tuple[np.ndarray, list[Estimate]]:
    """Return how far a learner's mean lies above that of another one, wherever both have a curve.

    Returns
    -------
    x : ndarray, shape (C,)
        The learner's checkpoints within the range of both curves, and the ends of that range.
    differences : list of Estimate
        Of means over the repetitions that both have.
    """
    comparison = ResampledCurves([learner, reference], y.column, x.column)
    a, b = comparison.means(learner), comparison.means(reference)
    begin, end = max(a.x[0], b.x[0]), min(a.x[-1], b.x[-1])
    points = np.unique(np.clip(a.x, begin, end)) if begin <= end else np.empty(0)
    return points, [basic(values, comparison.repetitions) for values in (a.at(points) - b.at(points)).T]


def _reference_first(series: Sequence[Series], drawing: Drawing) -> list[Series]:
    """Return the series of a row: the one that others are compared with, then the others in their order."""
    assert drawing.against is not None
    reference = select(series, drawing.against)[0]
    return [reference, *(curve for curve in series if curve is not reference)]


def _sheet(rows: int, columns: int) -> tuple[canvas.Panels, np.ndarray]:
    """Return a figure with two lines of axes for each row of learners, which share an x axis, and these lines."""
    figure = Figure(layout="constrained")
    heights = {"height_ratios": _HEIGHTS * rows}
    axes = figure.subplots(2 * rows, columns, squeeze=False, sharey="row", gridspec_kw=heights)
    for above, below in zip(axes[::2], axes[1::2], strict=True):
        for ax in [*above[1:], *below]:
            ax.sharex(above[0])
        for ax in above:
            ax.tick_params(labelbottom=False)
    return canvas.Panels(figure, [], _PANEL, 2 * rows, columns), axes


def _draw_curve(
    ax: Axes, learner: Series, look: Mapping[str, Any], x: Axis, y: Axis, drawing: Drawing
) -> Sequence[float]:
    """Draw a mean with its band and what was published; return where the mean lies outside its band."""
    at, mean = along(x.column, learner, learner.mean), learner.mean[y.column].to_numpy(dtype=float)
    low, high = drawing.edges(learner.points, y.column)
    _prepare(ax, x, log=y.log)
    ax.set_title(canvas.folded(learner.label), loc="left", fontsize=10)
    across(ax, y.zero)
    ax.plot(at, mean, **look)
    if learner.repetitions >= FEWEST:
        ax.fill_between(at, low, high, color=look["color"], alpha=_BAND, linewidth=0, zorder=2)
    if published := drawing.published.get((learner.algo, x.column)):
        ax.plot(*published, **published_look(look, drawing))
    away = (mean < low) | (mean > high)
    ax.plot(at[away], mean[away], zorder=6, **_OUTSIDE)
    return [float(place) for place in at[away]]


def _draw_difference(
    ax: Axes,
    points: np.ndarray,
    estimates: tuple[np.ndarray, np.ndarray, np.ndarray],
    away: np.ndarray,
    look: Mapping[str, Any],
    x: Axis,
) -> None:
    """Draw a difference with its interval; where the mean is out of its band, the axis may end below, with a number."""
    low, middle, high = estimates
    _prepare(ax, x, log=False)
    across(ax, 0)
    ax.plot(points, middle, **look)
    ax.fill_between(points, low, high, color=look["color"], alpha=_BAND, linewidth=0, zorder=2)
    for at, value in zip(points[away], middle[away], strict=True):
        ax.annotate(
            f"{value:+.2f}", (at, 0.95), xycoords=("data", "axes fraction"), ha="right", va="top", fontsize=8, zorder=6
        )


def _prepare(ax: Axes, x: Axis, *, log: bool) -> None:
    canvas.set_scales(ax, x_log=x.log, y_log=log)
    ax.margins(_MARGIN)
    canvas.set_ticks(ax, most=_MOST_TICKS)
    canvas.grid(ax)


def _legend_entries(series: Sequence[Series], drawing: Drawing, *, outside: bool) -> Mapping[str, Artist]:
    band = BANDS[drawing.band].format(times=repetitions_of(series))
    entries: dict[str, Artist] = {
        "mean": Line2D([], [], color="black", marker="o", markersize=5, linewidth=1.5),
        f"band: {band}; of differences, 90 % interval": canvas.Patch(color="black", alpha=_BAND, linewidth=0),
    }
    entries |= published_entry(series, drawing)
    if outside:
        entries["mean outside its band"] = Line2D([], [], **{**_OUTSIDE, "markersize": 8})
    return entries

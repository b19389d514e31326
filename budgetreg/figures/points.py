"""Draw points with intervals: last errors, alone, against a variable or what was paid, and ratios of errors."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd

from budgetreg.analysis.comparisons import ResampledCurves, select
from budgetreg.analysis.intervals import Estimate, basic, of_ratio, percentile
from budgetreg.common.errors import ConfigError
from budgetreg.figures import canvas
from budgetreg.figures.canvas import Axes, Drawn, End, Line2D, across, beside, grid, label_ends, set_ticks
from budgetreg.figures.captions import about_settings, flowing, repetitions_of
from budgetreg.figures.looks import VARIANTS, is_heavy, look_of, looks_of, shows_variants, style, within_learner
from budgetreg.figures.specification import PAID, PAID_COST, Axis, Drawing, axes_of
from budgetreg.runs.series import Series, along, budgets_of, common_unit, of

Scalings = Mapping[tuple[str, str], Mapping[float, Estimate]]
"""By learner and variant, then by value of the variable, ascending: the last error, or what a level needs.

What a level needs is infinite if the curve does not fall to it, and 0 if the curve begins below it.
"""

_HALF_WIDTH = 0.28  # of a column of dots, in learners
_MEDIAN: dict[str, Any] = {"color": "black", "linewidth": 2.0}
_PUBLISHED: dict[str, Any] = {"color": "black", "linewidth": 1.1, "linestyle": (0, (5, 2))}
_VARIABLES = {
    "k": "attributes seen of each example, k",
    "d": "attributes of an example, d",
    "d/k": "attributes / those seen of each example, d/k",
    "algo.n_components": "dimensions of the subspace, n",
}
_GUIDES = (1, 2)  # exponents
_GUIDE: dict[str, Any] = {"color": "#B0B0B0", "linewidth": 0.9, "zorder": 1}
_MARGIN = 1.06  # factor by which the axis of ratios reaches beyond the intervals
_OCTAVES = 0.2  # over which points of the same x are spread
_SPREAD = 0.15  # share of the x axis over which learners that paid the same are spread
_BAR: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 11, "color": "black"}


def draw_dots(series: Sequence[Series], drawing: Drawing) -> Drawn:
    """Draw the last points of many curves as columns of dots: a column for each learner, with its median."""
    _, y = axes_of(series, drawing)
    entries = {
        "a data set, mean over repetitions": Line2D([], [], linestyle="none", marker="o", color="grey"),
        "median of data sets": Line2D([], [], **_MEDIAN),
    }
    if drawing.published:
        entries["median as published"] = Line2D([], [], **_PUBLISHED)
    drawn, panels = _panels(series, drawing)
    for place, in_panel in panels:
        _draw_columns(place.ax, in_panel, y, drawing)
        place.name_y(y.text, shared=drawing.share_y)
    drawn.finish(drawing.finding, entries, drawing.note)
    text = (
        f"For each learner, {len({curve.dataset for curve in series})} data sets from the least error to the largest: "
        f"the mean over {repetitions_of(series)} at the last checkpoint, and their median. y: {y.explanation}."
    )
    return Drawn(drawn.figure, f"{y.name} over data sets", [flowing(text), about_settings(series)])


def draw_scaling(series: Sequence[Series], drawing: Drawing) -> Drawn:
    """Draw a point for each value of the variable ``drawing.over``, and a line through each learner's points.

    Without ``drawing.level``, points are the means at the last checkpoint.
    """
    x, y = axes_of(series, drawing)
    over = _VARIABLES.get(str(drawing.over), str(drawing.over))
    wanted = y.label if drawing.level is None else f"{x.label} until the {y.name} is {drawing.level:g}"
    ends: dict[Axes, list[End]] = {}
    missing: list[str] = []
    drawn, panels = _panels(series, drawing)
    for place, in_panel in panels:
        scalings = scalings_of(in_panel, drawing, y, x)
        joined = drawing.over == "k" or len({curve.k for curve in in_panel if not curve.of_full_rows}) == 1
        ends[place.ax] = _draw_scalings(place.ax, scalings, drawing, logarithmic=y.log, joined=joined)
        place.ax.set_xlabel(drawn.below(over))
        place.name_y(wanted, shared=drawing.share_y)
        missing += [
            f"{_label(learner)} at {at:g}{f' ({drawing.title(in_panel)})' if panels[1:] else ''}"
            for learner, points in scalings.items()
            for at in points
            if at not in _drawable(points)
        ]
    drawn.finish(drawing.finding, {"bar: 90 % interval of the mean": Line2D([], [], **_BAR)}, drawing.note)
    label_ends(drawn.figure, ends)
    sentences = [f"x: {over}; log scale. y: {wanted}, from means over {repetitions_of(series)}; {y.name}: {y.meaning}."]
    if drawing.level is not None:
        sentences.append("Between checkpoints, means are interpolated linearly in the logarithm of x; log scale.")
    else:
        sentences.append("Learners with the same x stand side by side.")
    sentences.append("Bars: 90 % interval from 2000 bootstrap resamples of the repetitions, if there are 5 or more.")
    if missing:
        left_out = ", ".join(missing)
        sentences.append(f"Not shown, as the level is not reached, or before the first checkpoint: {left_out}.")
    return Drawn(drawn.figure, f"{wanted} against {over}", [flowing(" ".join(sentences)), about_settings(series)])


def draw_ratios(series: Sequence[Series], drawing: Drawing) -> Drawn:
    """Draw a row for each variant, its last error divided by that of ``drawing.against``, and a column for each panel.

    A dot with its interval stands for each ratio, and a line for 1.
    """
    _, y = axes_of(series, drawing)
    assert drawing.against is not None
    if shows_variants(series, drawing):
        series = [replace(curve, label=within_learner(curve)) for curve in series]
    against = select(series, drawing.against)[0].label
    drawn, panels = _panels(series, replace(drawing, share_y=True))
    ratios = [ratios_of(in_panel, drawing, y) for _, in_panel in panels]
    values = pd.DataFrame([{label: ratio.value for label, ratio in of_panel.items()} for of_panel in ratios])
    labels = list(values.mean().sort_values(kind="stable").index)
    looks = {curve.label: style(curve.algo) for curve in series}
    ends = [end for of_panel in ratios for each in of_panel.values() for end in (each.low, each.value, each.high)]
    low, high = (end(ends, initial=1.0) for end in (np.nanmin, np.nanmax))
    for (place, _), of_panel in zip(panels, ratios, strict=True):
        for row, label in enumerate(labels):
            if label in of_panel:
                _draw_ratio(place.ax, row, of_panel[label], looks[label].colour, looks[label].marker)
        place.ax.axvline(1, color=canvas.GREY, linewidth=1.0, zorder=1)
        place.ax.set_yticks(range(len(labels)), canvas.folded_ticks(labels))
        place.ax.set_ylim(len(labels) - 0.5, -0.5)  # the first one is at the top
        place.ax.tick_params(labelleft=place.first)
        place.ax.set_xscale("log")
        place.ax.set_xlim(low / _MARGIN, high * _MARGIN)
        set_ticks(place.ax, y=False)
        grid(place.ax)
        if place.lowest:
            place.ax.set_xlabel(drawn.below(f"{y.name} at the end / that of {against} (log scale)"))
    drawn.finish(drawing.finding, {}, drawing.note)
    text = (
        f"Dots show the {y.name} of each variant at the last checkpoint, divided by that of {against} in the same "
        f"{repetitions_of(series)}; bars are 90 % intervals from 2000 bootstrap resamples. The {y.name} is the "
        f"{y.meaning}."
    )
    title = f"{y.name} of variants relative to {against}"
    return Drawn(drawn.figure, title, [flowing(text), about_settings(series)])


def draw_relative(series: Sequence[Series], drawing: Drawing) -> Drawn:
    """Draw the error of ``drawing.of`` along x, divided by the least of ``drawing.against``: a line for each panel.

    The lines share a panel, or there is one for each value of ``drawing.columns``.
    """
    x, y = axes_of(series, drawing)
    ours, others = map(_who, _compared(series, drawing))
    wanted = f"{y.name} of {ours} / that of {others}"
    columns: dict[str, list[list[Series]]] = {}
    for curves in drawing.split(series).values():
        columns.setdefault(str(of(drawing.columns, curves[0])) if drawing.columns else "", []).append(curves)
    drawn = canvas.sheet(len(columns), share_y=drawing.share_y)
    ends: dict[Axes, list[End]] = {}
    for place, (value, groups) in zip(drawn.places, columns.items(), strict=True):
        place.ax.set_title(drawing.titles.get(value, value), loc="left", fontsize=10)
        factors = beside(len(groups), _OCTAVES)
        for curves, factor, (colour, marker, *_) in zip(groups, factors, cycle(VARIANTS), strict=False):
            at, ratios = relative_to_best(curves, drawing, x, y)
            line = {"color": colour, "marker": marker, "markersize": 5.0, "linewidth": 0.8}
            _draw_points(place.ax, at * factor, ratios, line)
            ends.setdefault(place.ax, []).append(End(drawing.title(curves), at[-1] * factor, ratios[-1].value, colour))
        across(place.ax, 1)
        _make_logarithmic(drawn, place, x, f"{wanted} (log scale)", drawing)
    drawn.finish(drawing.finding, {"bar: 90 % interval": Line2D([], [], **_BAR)}, drawing.note)
    label_ends(drawn.figure, ends)
    text = (
        f"x: {x.explanation}; points that would hide each other stand side by side. y: {wanted} in the same "
        f"{repetitions_of(series)}; log scale; the thin line at 1 marks equal errors. At each point, mean errors "
        "decide which is the best. They are interpolated linearly in the logarithm of x, and a curve that has ended "
        "keeps its last error. Bars are 90 % intervals from 2000 bootstrap resamples."
    )
    return Drawn(drawn.figure, f"{wanted} against {x.name}", [flowing(text), about_settings(series)])


def draw_bills(series: Sequence[Series], drawing: Drawing) -> Drawn:
    """Draw the last error of each learner against what was paid for it, with a marker for each k."""
    column = PAID.column if common_unit(series) is None else PAID_COST.column
    x, y = axes_of(series, replace(drawing, x=column, x_scale="log", y_scale="log"))
    looks = looks_of(series)
    budgets = list(dict.fromkeys(curve.config["k"] for curve in series))
    sizes = {k: {"markersize": 3 + 1.2 * at} if budgets[1:] else {} for at, k in enumerate(budgets)}
    drawn, panels = _panels(series, drawing)
    for place, in_panel in panels:
        paid = np.array([float(along(x.column, curve, curve.mean)[-1]) for curve in in_panel])
        step = _SPREAD * np.log2(paid.max() / paid.min()) / len(looks)
        for at, curve in zip(_side_by_side(paid, [curve.label for curve in in_panel], step), in_panel, strict=True):
            comparison = ResampledCurves([curve], y.column, "examples")
            error = of_ratio(comparison.means(curve).end, comparison.repetitions)
            look = {**looks[curve.label], **sizes[curve.config["k"]]}
            _draw_points(place.ax, [at], [error], look)
        across(place.ax, y.zero)
        _make_logarithmic(drawn, place, x, y.text, drawing)
    entries = {label: Line2D([], [], **look) for label, look in looks.items()}
    entries["90 % interval"] = Line2D([], [], **_BAR)
    drawn.finish(drawing.finding, entries, drawing.note, drawn.legend_columns([*entries, drawing.note]))
    text = (
        "A marker is a learner with one k at its last checkpoint, the larger the larger k is. Learners that paid about "
        f"the same stand side by side. x: {x.explanation}. y: {y.explanation}. Bars are 90 % intervals from 2000 "
        f"bootstrap resamples of {repetitions_of(series)}."
    )
    return Drawn(drawn.figure, f"{y.name} against {x.name}", [flowing(text), about_settings(series)])


def _side_by_side(x: np.ndarray, labels: Sequence[str], step: float) -> np.ndarray:
    """Return places (n,) on a logarithmic axis at which learners that would hide each other stand beside each other.

    Markers within a step, in octaves, of their neighbours share a place: their learners stand around its middle, a step
    apart.
    """
    order = np.argsort(x, kind="stable")
    groups = np.split(order, 1 + np.flatnonzero(np.diff(np.log2(x[order])) >= step))
    places = np.empty(len(x))
    for group in groups:
        slots = {label: slot for slot, label in enumerate(dict.fromkeys(labels[i] for i in group))}
        factors = beside(len(slots), step * (len(slots) - 1))
        places[group] = np.exp(np.log(x[group]).mean()) * factors[[slots[labels[i]] for i in group]]
    return places


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
        if not isinstance(value, int | float):
            raise ConfigError(f"figure.over: {drawing.over}: {value} is not a number")
        comparison = ResampledCurves([curve], y.column, x.column)
        means = comparison.means(curve)
        scalings.setdefault((curve.algo, curve.variant), {})[float(value)] = (
            basic(means.end, comparison.repetitions)
            if drawing.level is None
            else percentile(means.crossing(drawing.level), comparison.repetitions)
        )
    return {learner: dict(sorted(points.items())) for learner, points in scalings.items()}


def ratios_of(series: Sequence[Series], drawing: Drawing, y: Axis) -> dict[str, Estimate]:
    """Return the last error of each series of a panel, divided by that of ``drawing.against``, by label."""
    assert drawing.against is not None
    reference = select(series, drawing.against)[0]
    ratios: dict[str, Estimate] = {}
    for curve in series:
        if curve is not reference:
            pair = ResampledCurves([curve, reference], y.column, "examples")
            ratios[curve.label] = of_ratio(pair.means(curve).end / pair.means(reference).end, pair.repetitions)
    return ratios


def relative_to_best(series: Sequence[Series], drawing: Drawing, x: Axis, y: Axis) -> tuple[np.ndarray, list[Estimate]]:
    """Return the checkpoints of ``drawing.of``, and its error there, divided by the least of ``drawing.against``.

    The least is that of the means over all repetitions.
    """
    ours, others = _compared(series, drawing)
    if len(ours) > 1 or not others:
        raise ConfigError(
            f"figure.of, figure.against: a panel has {len(ours)} curves of {drawing.of} and {len(others)} others of "
            f"{drawing.against}, where one and at least one are compared"
        )
    comparison = ResampledCurves([*ours, *others], y.column, x.column)
    means = comparison.means(ours[0])
    errors = np.stack([comparison.means(other).at(means.x) for other in others])
    least = errors[errors[:, 0].argmin(axis=0), :, range(means.x.size)].T
    return means.x, [of_ratio(ratios, comparison.repetitions) for ratios in (means.values / least).T]


def _compared(series: Sequence[Series], drawing: Drawing) -> tuple[list[Series], list[Series]]:
    """Return the series that meet ``drawing.of``, and those others that meet ``drawing.against``."""
    assert drawing.of is not None
    assert drawing.against is not None
    ours = select(series, drawing.of)
    return ours, [curve for curve in select(series, drawing.against) if not any(curve is each for each in ours)]


def _panels(
    series: Sequence[Series], drawing: Drawing
) -> tuple[canvas.Panels, list[tuple[canvas.Panel, list[Series]]]]:
    """Return a figure with a panel for each part of the series, and its title."""
    parts = list(drawing.split(series).values())
    drawn = canvas.sheet(len(parts), share_y=drawing.share_y)
    for place, part in zip(drawn.places, parts, strict=True):
        place.ax.set_title(canvas.folded(drawing.title(part)), loc="left", fontsize=10)
    return drawn, list(zip(drawn.places, parts, strict=True))


def _make_logarithmic(drawn: canvas.Panels, place: canvas.Panel, x: Axis, wanted: str, drawing: Drawing) -> None:
    """Give a panel two logarithmic axes, and say what they are."""
    place.ax.set(xscale="log", yscale="log")
    set_ticks(place.ax)
    grid(place.ax)
    if place.lowest:
        place.ax.set_xlabel(drawn.below(x.text))
    place.name_y(wanted, shared=drawing.share_y)


def _label(learner: tuple[str, str]) -> str:
    return f"{style(learner[0]).name} {learner[1]}".strip()


def _who(curves: Sequence[Series]) -> str:
    """Return in words whose errors are compared."""
    name, budgets = style(curves[0].algo).name, budgets_of(curves)
    if isinstance(budgets[0], str):
        return f"{name} with k={budgets[0]}"
    return f"{name} with the best k" if budgets[1:] else name


def _drawable(points: Mapping[float, Estimate]) -> dict[float, Estimate]:
    """Return the points that logarithmic axes can show."""
    return {at: point for at, point in points.items() if np.isfinite(point.value) and point.value > 0}


def _draw_columns(ax: Axes, series: Sequence[Series], y: Axis, drawing: Drawing) -> None:
    learners = dict.fromkeys(curve.algo for curve in series)
    for place, algo in enumerate(learners):
        last = sorted(float(curve.mean[y.column].iloc[-1]) for curve in series if curve.algo == algo)
        colour, marker, *_ = style(algo)
        # Dots are in order from left to right: their places are the same in every run, and close dots do not overlap.
        at = place + _HALF_WIDTH * np.linspace(-1, 1, len(last)) if len(last) > 1 else np.array([place])
        ax.plot(at, last, linestyle="none", marker=marker, markersize=4, color=colour, alpha=0.7)
        ends = [place - _HALF_WIDTH, place + _HALF_WIDTH]
        ax.plot(ends, [np.median(last)] * 2, **_MEDIAN)
        for _, values in (points for (learner, _), points in drawing.published.items() if learner == algo):
            ax.plot(ends, [values[-1]] * 2, **_PUBLISHED)
    across(ax, y.zero, "grey")
    if y.log:
        ax.set_yscale("log")
    set_ticks(ax)
    ax.set_xticks(range(len(learners)), canvas.folded_ticks(style(algo).name for algo in learners))
    grid(ax, axis="y")


def _draw_points(ax: Axes, at: Sequence[float], points: Sequence[Estimate], look: Mapping[str, Any]) -> None:
    """Draw a line through points, with their intervals."""
    ax.plot(at, [point.value for point in points], **look)
    bars = [(x, bar.low, bar.high) for x, bar in zip(at, points, strict=True) if np.isfinite([bar.low, bar.high]).all()]
    ax.vlines(*np.reshape(bars, (-1, 3)).T, color=look["color"], linewidth=1.2)


def _draw_scalings(ax: Axes, scalings: Scalings, drawing: Drawing, *, logarithmic: bool, joined: bool) -> list[End]:
    """Draw a panel, and return the labels of its lines."""
    ends: list[End] = []
    # Learners that are compared with slopes keep their places.
    factors = beside(len(scalings), 0.0 if drawing.level is not None else _OCTAVES)
    for (learner, points), factor in zip(scalings.items(), factors, strict=True):
        variants = [variant for algo, variant in scalings if algo == learner[0]]
        look = look_of(learner[0], variants.index(learner[1]))
        shown = _drawable(points)
        if not shown:
            continue
        at, last = [value * factor for value in shown], shown[max(shown)].value
        _draw_points(ax, at, list(shown.values()), look if joined else {**look, "linestyle": "none"})
        ends.append(End(_label(learner), at[-1], last, look["color"], is_heavy(look)))
        if len(points) == 1:  # the learner does not depend on the variable
            ax.axhline(last, color=look["color"], linewidth=0.8, linestyle=":", zorder=1)
    ax.set_xscale("log")
    if drawing.level is not None or logarithmic:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    set_ticks(ax)
    marks = sorted({at for points in scalings.values() for at in points})
    ax.set_xticks(marks, list(map(canvas.compact, marks)))
    ax.xaxis.minorticks_off()
    if drawing.level is not None:
        ends += _draw_guides(ax, list(filter(None, map(_drawable, scalings.values()))))
    grid(ax)
    return ends


def _draw_guides(ax: Axes, lines: Sequence[Mapping[float, Estimate]]) -> list[End]:
    """Draw lines of whole slopes, each from the first point of the learner that is closest to it; return their labels.

    Parameters
    ----------
    lines : sequence of mapping
        The points of each learner.
    """
    labels = []
    for exponent in _GUIDES if lines else ():
        points = min(lines, key=lambda points: abs(_slope(points) - exponent))
        ends = np.array([min(points), max(points)])
        heights = points[ends[0]].value * (ends / ends[0]) ** exponent
        ax.plot(ends, heights, **_GUIDE)
        labels.append(End(f"slope {exponent}", ends[-1], heights[-1], _GUIDE["color"]))
    return labels


def _slope(points: Mapping[float, Estimate]) -> float:
    """Return the slope from the first to the last point of a learner on logarithmic axes; infinite for one point."""
    first, last = min(points), max(points)
    return float(np.log(points[last].value / points[first].value) / np.log(last / first)) if last > first else np.inf


def _draw_ratio(ax: Axes, row: int, ratio: Estimate, colour: str, marker: str) -> None:
    ax.plot(ratio.value, row, linestyle="none", marker=marker, markersize=6.5, color=colour, zorder=3)
    if np.isfinite([ratio.low, ratio.high]).all():
        ax.hlines(row, ratio.low, ratio.high, color=colour, linewidth=1.8, zorder=2)
    offset: dict[str, Any] = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
    offset["bbox"] = {"facecolor": "white", "linewidth": 0, "pad": 0.5}  # the line at 1 does not strike it through
    ax.annotate(f"{ratio.value:.2f}", (ratio.value, row), fontsize=8.0, **offset)

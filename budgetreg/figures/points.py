"""Draw one number of each curve: its last error, alone, against a variable, as a ratio, or beside what was paid."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import numpy as np

from budgetreg.analysis.comparisons import ResampledCurves, select
from budgetreg.analysis.intervals import Estimate, basic, of_ratio, percentile
from budgetreg.figures.canvas import (
    Axes,
    Drawn,
    End,
    Figure,
    Line2D,
    Panel,
    Panels,
    Patch,
    compact,
    folded,
    folded_ticks,
    grid,
    label_ends,
    legend,
    set_ticks,
    sheet,
)
from budgetreg.figures.captions import about_settings, flowing, repetitions_of
from budgetreg.figures.looks import is_heavy, look_of, looks_of, style
from budgetreg.figures.specification import PAID, PAID_COST, Axis, Drawing, axes_of
from budgetreg.runs.series import Series, along, common_unit, of

Scalings = Mapping[tuple[str, str], Mapping[float, Estimate]]
"""By learner and variant, then by value of the variable, ascending: the last error, or what a level needs.

What a level needs is infinite if the curve does not fall to it, and 0 if the curve begins below it.
"""

_GREY, _TUNING = "#555555", "#D6D6D6"
_HALF_WIDTH = 0.28  # of a column of dots, in learners
_MEDIAN: dict[str, Any] = {"color": "black", "linewidth": 2.0}
_PUBLISHED: dict[str, Any] = {"color": "black", "linewidth": 1.1, "linestyle": (0, (5, 2))}
_VARIABLES = {
    "k": "attributes seen of each example, k",
    "d": "attributes of an example, d",
    "d/k": "attributes of an example / attributes seen of it, d/k",
    "algo.n_components": "dimensions of the subspace, n",
}
_GUIDES = (1, 2)  # exponents
_GUIDE: dict[str, Any] = {"color": "#B0B0B0", "linewidth": 0.9, "zorder": 1}
_MARGIN = 1.06  # factor by which the axis of ratios reaches beyond the intervals
_BILL = (2.3, 3.1)  # inches: of one of the two axes of a panel of bills
_LETTERS_OF_TITLE, _LETTERS = 36, 24  # of a line above and below the axes of a bill


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
        _share(place, y.text, drawing)
    drawn.finish(drawing.finding, 1)
    legend(drawn.figure, entries, len(entries) + 1, drawing.note)
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
    bar = {"bar: 90 % interval of the mean": Line2D([], [], linestyle="none", marker="|", markersize=11, color="black")}
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
    sentences = [f"x: {over}; log scale. y: {wanted}, from means over {repetitions_of(series)}; {y.name}: {y.meaning}."]
    if drawing.level is not None:
        sentences.append("Between checkpoints, means are interpolated linearly in the logarithm of x; log scale.")
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
    against = select(series, drawing.against)[0].label
    drawn, panels = _panels(series, replace(drawing, share_y=True))
    ratios = [ratios_of(in_panel, drawing, y) for _, in_panel in panels]
    labels = _ordered({label: ratio.value for label, ratio in of_panel.items()} for of_panel in ratios)
    looks = {curve.label: style(curve.algo) for curve in series}
    ends = [end for of_panel in ratios for each in of_panel.values() for end in (each.low, each.value, each.high)]
    low, high = (end(ends, initial=1.0) for end in (np.nanmin, np.nanmax))
    for (place, _), of_panel in zip(panels, ratios, strict=True):
        for row, label in enumerate(labels):
            if label in of_panel:
                _draw_ratio(place.ax, row, of_panel[label], looks[label].colour, looks[label].marker)
        place.ax.axvline(1, color=_GREY, linewidth=1.0, zorder=1)
        _name_rows(place, labels)
        place.ax.set_xscale("log")
        place.ax.set_xlim(low / _MARGIN, high * _MARGIN)
        set_ticks(place.ax, y=False)
        grid(place.ax)
        if place.lowest:
            place.ax.set_xlabel(f"{y.name} at the end / that of {against} (log scale)")
    drawn.finish(drawing.finding, int(bool(drawing.note)))
    if drawing.note:
        legend(drawn.figure, {}, 1, drawing.note)
    text = (
        f"Dots show the {y.name} of each variant at the last checkpoint, divided by that of {against} in the same "
        f"{repetitions_of(series)}; bars are 90 % intervals from 2000 bootstrap resamples. The {y.name} is the "
        f"{y.meaning}."
    )
    title = f"{y.name} of variants relative to {against}"
    return Drawn(drawn.figure, title, [flowing(text), about_settings(series)])


def draw_bills(series: Sequence[Series], drawing: Drawing) -> Drawn:
    """Draw a bar of what was paid and a dot of the last error for each learner, in two axes for each panel."""
    _, y = axes_of(series, drawing)
    column = PAID.column if common_unit(series) is None else PAID_COST.column
    paid = axes_of(series, replace(drawing, x=column, x_scale="linear"))[0]
    looks = looks_of(series, replace(drawing, named=[]))  # each has a row of its own, so that none need be grey
    panels = list(drawing.split(series).values())
    bills = [{curve.label: bill_of(curve, paid, y) for curve in in_panel} for in_panel in panels]
    labels = _ordered({label: bill.error.value for label, bill in of_panel.items()} for of_panel in bills)
    drawn = _pairs_of_axes(len(panels))
    pairs = list(zip(drawn.places[::2], drawn.places[1::2], strict=True))
    for (bars, dots), in_panel, of_panel in zip(pairs, panels, bills, strict=True):
        bars.ax.set_title(folded(drawing.title(in_panel), _LETTERS_OF_TITLE), loc="left", fontsize=10)
        for row, label in enumerate(labels):
            if label in of_panel:
                _draw_bill(bars.ax, row, of_panel[label], looks[label]["color"])
                _draw_error(dots.ax, row, of_panel[label].error, looks[label], drawing.top or np.inf)
        _name_rows(bars, labels)
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
    entries = {
        "pilot and final run": Patch(color=_GREY),
        "tuning besides": Patch(color=_TUNING),
        "error at the end, 90 % interval": Line2D([], [], color=_GREY, marker="o", linewidth=1.8),
    }
    texts = [*entries, *filter(None, [drawing.note])]
    columns = min(len(texts), drawn.legend_columns(texts))
    drawn.finish(drawing.finding, -(-len(texts) // columns))
    legend(drawn.figure, entries, columns, drawing.note)
    text = (
        f"Bars show {paid.meaning.split(': ')[0]} by the last checkpoint: what pilot and final run were charged, "
        "mean over repetitions, and what tuning revealed besides, a pair of an example and an attribute once, "
        f"held-out examples in full. Dots show the {y.name} there, with its 90 % interval from 2000 bootstrap "
        f"resamples of {repetitions_of(series)}. The {y.name} is the {y.meaning}."
    )
    return Drawn(drawn.figure, f"{y.name} and {paid.name}", [flowing(text), about_settings(series)])


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


def _panels(series: Sequence[Series], drawing: Drawing) -> tuple[Panels, list[tuple[Panel, list[Series]]]]:
    """Return a figure with a panel for each part of the series, and its title."""
    parts = list(drawing.split(series).values())
    drawn = sheet(len(parts), share_y=drawing.share_y)
    for place, part in zip(drawn.places, parts, strict=True):
        place.ax.set_title(folded(drawing.title(part)), loc="left", fontsize=10)
    return drawn, list(zip(drawn.places, parts, strict=True))


def _pairs_of_axes(panels: int) -> Panels:
    """Return a figure with two axes for each panel, at most two panels in a row and no empty slot."""
    columns = 2 * (1 + (panels % 2 == 0))
    figure = Figure(layout="constrained")
    axes = figure.subplots(2 * panels // columns, columns, squeeze=False, sharey=True)
    first, *others = axes[:, 1::2].flat
    for ax in others:
        ax.sharex(first)
    return Panels.of(figure, axes, _BILL)


def _share(place: Panel, y_label: str, drawing: Drawing) -> None:
    """Write what the y axis is, once for panels that share it."""
    if place.first:
        place.ax.set_ylabel(y_label)
    elif drawing.share_y:
        place.ax.tick_params(labelleft=False)


def _ordered(panels: Iterable[Mapping[str, float]]) -> list[str]:
    """Return the labels of all panels, those with the smallest mean of their values first."""
    values: dict[str, list[float]] = {}
    for of_panel in panels:
        for label, value in of_panel.items():
            values.setdefault(label, []).append(value)
    return sorted(values, key=lambda label: float(np.mean(values[label])))


def _name_rows(place: Panel, labels: Sequence[str]) -> None:
    """Write the labels beside the rows, the first one at the top, once for panels that share them."""
    place.ax.set_yticks(range(len(labels)), folded_ticks(labels))
    place.ax.set_ylim(len(labels) - 0.5, -0.5)
    place.ax.tick_params(labelleft=place.first)


def _label(learner: tuple[str, str]) -> str:
    return " ".join(learner).strip()


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


def _draw_interval(ax: Axes, row: int, estimate: Estimate, colour: str) -> None:
    if np.isfinite([estimate.low, estimate.high]).all():
        ax.hlines(row, estimate.low, estimate.high, color=colour, linewidth=1.8, zorder=2)


def _draw_ratio(ax: Axes, row: int, ratio: Estimate, colour: str, marker: str) -> None:
    ax.plot(ratio.value, row, linestyle="none", marker=marker, markersize=6.5, color=colour, zorder=3)
    _draw_interval(ax, row, ratio, colour)
    offset: dict[str, Any] = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
    ax.annotate(f"{ratio.value:.2f}", (ratio.value, row), fontsize=8.0, **offset)


def _draw_bill(ax: Axes, row: int, bill: PaidAndError, colour: str) -> None:
    paid = bill.run + bill.tuning
    ax.barh(row, bill.run, color=colour, height=0.62, zorder=2)
    ax.barh(row, bill.tuning, left=bill.run, color=_TUNING, height=0.62, zorder=2)
    offset: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
    ax.annotate(compact(float(f"{paid:.3g}")), (paid, row), fontsize=7.5, **offset)


def _draw_error(ax: Axes, row: int, error: Estimate, look: Mapping[str, Any], top: float) -> None:
    """Draw a dot with its interval; an arrow with its value if it lies beyond the end of the axis."""
    beyond = not error.value <= top
    marker = ">" if beyond else look["marker"]
    dot: dict[str, Any] = {"linestyle": "none", "marker": marker, "markersize": 6, "color": look["color"]}
    ax.plot(min(error.value, top), row, zorder=3, clip_on=False, **dot)
    if beyond:
        ax.annotate(f"{error.value:.3g} ", (top, row), ha="right", va="center", fontsize=7.5)
    else:
        _draw_interval(ax, row, error, look["color"])

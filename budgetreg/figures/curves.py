"""Draw curves: test error against attributes, money or examples, with the bounds of theorems on the same axes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log10
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from budgetreg.algorithms import registry
from budgetreg.algorithms.learner import Theorem
from budgetreg.analysis.intervals import FEWEST
from budgetreg.analysis.theory import noise_and_bound
from budgetreg.data.registry import kinds
from budgetreg.figures import canvas
from budgetreg.figures.canvas import Artist, Axes, Drawn, End, Line2D, across, grid, mixed, set_ticks
from budgetreg.figures.captions import BANDS, about_curves, repetitions_of
from budgetreg.figures.looks import (
    Looks,
    is_heavy,
    looks_of,
    published_entry,
    published_look,
    shows_variants,
    style,
    within_learner,
)
from budgetreg.figures.specification import RELATIVE, Axis, Drawing, axes_of, within_total
from budgetreg.runs.series import Series, along, attainable

_MOST_MARKERS = 15
_BOUND: dict[str, Any] = {"linestyle": (0, (1, 2)), "linewidth": 0.9}
_UNDER: dict[str, Any] = {"linestyle": "none", "marker": "v", "markersize": 8, "zorder": 6}
_UNDER |= {"clip_on": False, "in_layout": False}  # on the frame of the panel
_UNDER_LABEL = "mean below the axis"
_REMARK: dict[str, Any] = {"xycoords": "axes fraction", "ha": "right", "va": "top", "fontsize": 7.5, "zorder": 7}
_REMARK |= {"color": canvas.GREY, "bbox": {"facecolor": "white", "alpha": 0.6, "linewidth": 0, "pad": 1}}
_BOUND_LABEL = "bound of the theorem"
_LEAST: dict[str, Any] = {"color": "black", "linestyle": (0, (4, 2)), "linewidth": 0.9}
_LEAST_LABEL = "bound"
_COLUMNS = 4  # of the legend below a row of panels


_OF_SUBSPACES = (
    "Thin dotted lines: what the learner's theorem allows after as many examples, in expectation and for the worst "
    "distribution (Gonen et al. 2016, Corollary 3 and Theorem 7)."
)
_OF_REGRESSORS = (
    "Thin dotted lines: the least mean error here, in place of the unknown risk of the best regressor in the "
    "ball, plus what the learner's theorem allows above it in expectation after as many examples, with the "
    "radius B that was chosen and the step size that the theorem has for them (a run has one step size for all "
    "its checkpoints, and need not keep to the line before the last)."
)
_OF_NORMAL_DATA = (
    "Dashed line, bound: the least error that a regular estimator can have in expectation, for large numbers of "
    "examples that show uniform subsets of {k} attributes of normal data. A learner that plans what it sees, or has a "
    "prior, may be below it."
)
LOW, HIGH = "low", "high"
"""Columns of a mean curve: the edges of its band, NaN where it has none."""
_ROUNDING = 1e-12  # relative to the largest value of a logarithmic axis


@dataclass(frozen=True)
class Range:
    """The range of a y axis.

    Attributes
    ----------
    low, high : float
        Limits of the axis.
    log : bool
        Whether the axis is logarithmic.
    rounding : float
        Values of an axis that is always logarithmic are shown if they are larger than this.
    """

    low: float
    high: float
    log: bool
    rounding: float = 0.0

    def above(self, curves: Sequence[pd.DataFrame], y: Axis) -> tuple[int, float]:
        """Return how many mean values lie above the axis, and the largest of them."""
        means = _means(curves, y)
        away = means[means > self.high]
        return away.size, float(away.max(initial=-np.inf))

    def below(self, curves: Sequence[pd.DataFrame], y: Axis) -> int:
        """Return how many mean values an axis that is always logarithmic cannot show, as they are rounding or 0."""
        return int((_means(curves, y) <= self.rounding).sum()) if y.log else 0


class _Part(NamedTuple):
    """What a panel shows: its title and x axis, and its series with their mean curves and the bands of these."""

    title: str
    x: Axis
    curves: Sequence[tuple[Series, pd.DataFrame]]


def draw_curves(series: Sequence[Series], drawing: Drawing) -> Drawn:
    """Draw a line with its band for each series, panel by panel."""
    x, y = axes_of(series, drawing)
    looks = looks_of(series, drawing)
    split = drawing.split(series)
    names = [name for name in dict.fromkeys([*drawing.titles, *split]) if name in split]
    parts = [_part(split[name], y, drawing) for name in names]
    drawn = canvas.sheet(len(parts), drawing.share_y, drawing.row)
    remarks: list[tuple[str, str]] = []
    for place, part, shown in zip(drawn.places, parts, _ranges(parts, y, drawing), strict=True):
        title = drawn.below(part.title) if drawing.row else canvas.folded(part.title)
        place.ax.set_title(title, loc="left", fontsize=10)
        remarks += [(part.title, remark) for remark in _draw_panel(place.ax, part, looks, y, shown, drawing)]
    _label_axes(drawn, parts, y, drawing)
    ends = {place.ax: _ends(place.ax, part, looks, y, drawing) for place, part in zip(drawn.places, parts, strict=True)}
    labels_fit = not drawing.row and all(canvas.fit(of_panel, drawn.panel[1] - 1) for of_panel in ends.values())
    lines = {line.get_label() for place in drawn.places for line in place.ax.lines}
    entries = _legend_entries(series, {} if labels_fit else looks, lines, drawing)
    columns = _COLUMNS if drawing.row else drawn.legend_columns([*entries, drawing.note])
    drawn.finish(drawing.finding, entries, drawing.note, columns)
    if labels_fit:
        canvas.label_ends(drawn.figure, ends)
    until = [f"Checkpoints beyond {drawing.until:,.0f} on the x axis are not shown."] if drawing.until else []
    said = [*until, *_once(remarks, {part.title for part in parts})]
    return Drawn(drawn.figure, f"{y.name} against {x.name}", about_curves(series, said, drawing))


def _once(remarks: Sequence[tuple[str, str]], all_titles: Collection[str]) -> list[str]:
    """Return each remark once, after the titles of its panels, or after "all panels"."""
    titles: dict[str, dict[str, None]] = {}  # ordered sets
    for title, remark in remarks:
        titles.setdefault(remark, {})[title] = None
    return [
        f"{'all panels' if 1 < len(of) == len(all_titles) else '; '.join(of)}: {remark}"
        for remark, of in titles.items()
    ]


def _part(series: Sequence[Series], y: Axis, drawing: Drawing) -> _Part:
    x, _ = axes_of(series, drawing)
    return _Part(drawing.title(series), x, [(learner, _mean_curve(learner, x, y, drawing)) for learner in series])


def _mean_curve(series: Series, x: Axis, y: Axis, drawing: Drawing) -> pd.DataFrame:
    low, high = drawing.edges(series.points, y.column)
    at = along(x.column, series, series.mean)
    curve = series.mean.assign(**{x.column: at, LOW: low, HIGH: high})
    shown = attainable(at) & (at <= (drawing.until or np.inf))
    return within_total(series, curve[shown], x)


def _ranges(parts: Sequence[_Part], y: Axis, drawing: Drawing) -> list[Range]:
    """Return the range of each panel: that of all curves, unless panels have their own axes."""
    ranges = []
    for group in [parts] if drawing.share_y else [[part] for part in parts]:
        curves = [curve for part in group for _, curve in part.curves]
        points = [drawing.published.get((learner.algo, part.x.column)) for part in group for learner, _ in part.curves]
        published = [value for pair in points if pair is not None for value in pair[1]]
        ranges.append(y_range(curves, y, drawing.y_scale == "auto", published, drawing.top, drawing.bottom))
    return ranges * len(parts) if drawing.share_y else ranges


def _draw_panel(ax: Axes, part: _Part, looks: Looks, y: Axis, shown: Range, drawing: Drawing) -> list[str]:
    """Draw the curves of a panel; return sentences for the caption."""
    x = part.x
    with_points = [(learner, curve) for learner, curve in part.curves if len(curve)]
    lines, theory = bounds(with_points, y.column)
    canvas.set_scales(ax, x_log=x.log, y_log=shown.log)
    set_ticks(ax)
    ax.set_ylim(shown.low, shown.high)
    grid(ax)
    across(ax, y.zero)
    for learner, curve in with_points:
        look = looks[learner.label]
        at, mean, low, high = (curve[column].to_numpy(dtype=float) for column in (x.column, y.column, LOW, HIGH))
        if drawing.bottom:
            under = mean < shown.low
            mean = np.maximum(mean, shown.low)
            ax.plot(at[under], mean[under], color=look["color"], label=_UNDER_LABEL if under.any() else None, **_UNDER)
        ax.plot(at, mean, markevery=ceil(len(at) / _MOST_MARKERS), label=learner.label, **look)
        if learner.repetitions >= FEWEST and drawing.is_named(learner.algo):
            # A log axis has no place for a band's negative end: it ends at the axis instead.
            low, high = (np.maximum(edge, shown.low) if shown.log else edge for edge in (low, high))
            band, width = (ax.fill_between, 0) if len(at) > 1 else (ax.vlines, 6)  # a single point has no width
            band(at, low, high, color=look["color"], alpha=0.15, linewidth=width, zorder=2)
        if published := drawing.published.get((learner.algo, x.column)):
            _draw_published(ax, learner.algo, published, at[-1], look, drawing)
        if learner.label in lines:
            ax.plot(at, lines[learner.label], color=look["color"], label=_BOUND_LABEL, zorder=2, **_BOUND)
    remarks = _draw_least(ax, with_points, x, y) if drawing.bound and with_points else []
    ax.autoscale_view(scaley=False)
    return [*_not_shown(ax, part.curves, x, y, shown, drawing), *([theory] if theory else []), *remarks]


def _draw_least(ax: Axes, curves: Sequence[tuple[Series, pd.DataFrame]], x: Axis, y: Axis) -> list[str]:
    """Draw the least error that is possible for normal data of which k attributes are seen; return the sentence."""
    series = curves[0][0]
    least = noise_and_bound(series, int(series.k)) if y.column == "test_relative" else None
    if least is None or x.column not in ("attributes", "examples"):
        return []
    ends = [curve[x.column] for _, curve in curves]
    at = np.geomspace(min(end.min() for end in ends), max(end.max() for end in ends), 50)
    n = at / int(series.k) if x.column == "attributes" else at
    ax.plot(at, least[0] + least[1] / n, label=_LEAST_LABEL, zorder=2, **_LEAST)
    return [_OF_NORMAL_DATA.format(k=series.k)]


def _draw_published(
    ax: Axes, algo: str, points: tuple[np.ndarray, np.ndarray], end: float, look: Mapping[str, Any], drawing: Drawing
) -> None:
    """Draw published points; single numbers get the learner's name, as no line joins them to the label at its end."""
    ax.plot(*points, **published_look(look, drawing))
    if drawing.published_as == "points":
        side = "right" if points[0][0] > end / 2 else "left"
        offset = (-6 if side == "right" else 6, 3)
        named: dict[str, Any] = {"fontsize": 7, "color": mixed(look["color"], 0.3, "black"), "ha": side, "zorder": 6}
        named["path_effects"] = [canvas.withStroke(linewidth=2, foreground="white")]  # as lines may pass below
        ax.annotate(style(algo).name, (points[0][0], points[1][0]), xytext=offset, textcoords="offset points", **named)


def _not_shown(
    ax: Axes, curves: Sequence[tuple[Series, pd.DataFrame]], x: Axis, y: Axis, shown: Range, drawing: Drawing
) -> list[str]:
    """Write in the panel how many values it does not show; return sentences about it for the caption."""
    tables = [curve for _, curve in curves]
    clipped, largest = shown.above(tables, y)
    below = 0 if drawing.bottom else shown.below(tables, y)
    under = drawing.bottom and any((curve[y.column] < shown.low).any() for curve in tables)
    remarks = [f"triangles stand for means below {drawing.bottom:.3g}."] if under else []
    undefined = int(np.isnan(_means(tables, y)).sum())
    for hidden, where, more in (
        (clipped, f"above {shown.high:.3g} not shown", f" (largest {largest:.3g})"),
        (undefined, "undefined", ""),
        (below, "of 0, or as small as rounding, not shown", ""),
    ):
        if hidden:
            text = f"{hidden} mean value{'s' if hidden > 1 else ''} {where}"
            ax.annotate(text, (0.99, 0.985), **_REMARK)
            remarks.append(f"{text}{more}.")
    if shown.log and not y.log:
        remarks.append("the y axis is logarithmic.")
    absent: dict[str, list[str]] = {}
    for learner, curve in curves:
        if curve.empty:
            beyond = _lies_beyond(learner, x, drawing)
            why = "all lie beyond the x axis" if beyond else "what tuning pays for passes the total"
            absent.setdefault(why, []).append(learner.label)
    for why, labels in absent.items():
        remarks.append(f"{', '.join(labels)} {'have' if labels[1:] else 'has'} no point, as {why}.")
    return remarks


def _lies_beyond(series: Series, x: Axis, drawing: Drawing) -> bool:
    """Return whether all checkpoints of a series lie beyond the end of the x axis."""
    return drawing.until is not None and bool(along(x.column, series, series.mean).min() > drawing.until)


def _label_axes(drawn: canvas.Panels, parts: Sequence[_Part], y: Axis, drawing: Drawing) -> None:
    """Write what the axes are, once for panels that share them."""
    below = [part.x.text for part in parts]
    middle = drawn.places[len(parts) // 2]
    for place, text in zip(drawn.places, below, strict=True):
        if drawing.row and place is middle:
            place.ax.set_xlabel(text)
        elif not drawing.row and (place.lowest or len(set(below)) > 1):
            place.ax.set_xlabel(drawn.below(text))
        scale = place.ax.get_yscale()
        first = place.first or scale != drawn.places[0].ax.get_yscale()  # another scale has a text of its own
        replace(place, first=first).name_y(replace(y, log=scale == "log").text, shared=drawing.share_y)


def _ends(ax: Axes, part: _Part, looks: Looks, y: Axis, drawing: Drawing) -> list[End]:
    """Return the labels at the ends of the lines of a panel, and that of the predictor without attributes."""
    series = [learner for learner, _ in part.curves]
    short = "algo" in drawing.panels and shows_variants(series, drawing)  # the title has the learner
    alike = len({curve.repetitions for curve in series}) == 1
    ends = []
    for learner, curve in part.curves:
        if curve.empty:
            continue
        look, last = looks[learner.label], curve.iloc[-1]
        text = within_learner(learner) if short else learner.label
        text = text if alike else f"{text} ({repetitions_of([learner])})"
        ends.append(End(text, last[part.x.column], last[y.column], look["color"], is_heavy(look)))
    if y.zero is not None and y.zero <= ax.get_ylim()[1]:
        ends.append(End(f"{y.constant} predictor", ax.get_xlim()[1], y.zero, canvas.GREY))
    return ends


def _legend_entries(
    series: Sequence[Series], looks: Looks, drawn: Collection[object], drawing: Drawing
) -> Mapping[str, Artist]:
    """Return the samples of the legend by their texts: labels without a place beside their lines, bands, other lines.

    Parameters
    ----------
    looks : mapping
        The looks of the labels that the legend explains.
    drawn : collection of str
        The labels of all lines in the figure.
    """
    nothing = Line2D([], [], linestyle="none")
    counts = {curve.repetitions for curve in series}
    entries: dict[str, Artist] = {}
    for curve in sorted(series, key=lambda each: not drawing.is_named(each.algo)):
        text = curve.label if len(counts) == 1 else f"{curve.label} ({repetitions_of([curve])})"
        if curve.label not in drawn:
            beyond = _lies_beyond(curve, axes_of(series, drawing)[0], drawing)
            entries[f"{text}: no point{'' if beyond else ', as tuning passes the total'}"] = nothing
        elif curve.label in looks:
            entries[text] = Line2D([], [], **looks[curve.label])
    if max(counts) >= FEWEST:
        number = repetitions_of(series) if len(counts) == 1 else "repetitions"
        band = BANDS[drawing.band].format(times=number)
        entries[f"band: {band}"] = canvas.Patch(color="black", alpha=0.15, linewidth=0)
    else:
        entries[f"{repetitions_of(series)}: too few for a band"] = nothing
    if _UNDER_LABEL in drawn:
        entries[_UNDER_LABEL] = Line2D([], [], **{**_UNDER, "color": "black", "markersize": 6})
    if _BOUND_LABEL in drawn:
        entries[_BOUND_LABEL] = Line2D([], [], color="black", **_BOUND)
    if _LEAST_LABEL in drawn:
        entries[_LEAST_LABEL] = Line2D([], [], **_LEAST)
    return entries | published_entry(series, drawing)


def y_range(
    curves: Sequence[pd.DataFrame],
    y: Axis = RELATIVE,
    may_be_log: bool = True,
    published: Sequence[float] = (),
    top: float | None = None,
    bottom: float | None = None,
) -> Range:
    """Return the range of the y axis for some mean curves.

    On their first examples, online learners can be far worse than the predictor that sees no attribute. The axis ends
    at twice the worst value of the later half of the checkpoints, or of that predictor, so that the rest of the curves
    stays readable. It is logarithmic if its values span more than a decade and a half. An axis that is always
    logarithmic shows all values that are more than rounding.

    Parameters
    ----------
    curves : sequence of DataFrame
        Mean curves, see `budgetreg.runs.series.Series.mean`, with the columns `LOW` and `HIGH`.
    y : Axis
    may_be_log : bool
        Whether the values may make the axis logarithmic.
    published : sequence of float
        Values of published curves; an axis that is not always logarithmic shows those that do not pass its end.
    top : float, optional
        Where the axis ends; None: as described above.
    bottom : float, optional
        Where a logarithmic axis begins, and the least that another one shows; None: below all values.

    Returns
    -------
    Range
    """
    means = _means(curves, y)
    zero = [] if y.zero is None else [y.zero]
    if y.log:
        known = means[np.isfinite(means)]
        rounding = _ROUNDING * known.max(initial=0)
        shown = np.concatenate([known[known > rounding], zero, published])
        low, high = (shown.min(), shown.max()) if shown.size else (1.0, 1.0)
        return Range(bottom or low / 1.3, top or high * 1.3, True, rounding)
    late = np.concatenate([*(curve[y.column].to_numpy()[len(curve) // 2 :] for curve in curves), zero])
    cap = top or max(2 * late[np.isfinite(late)].max(initial=0), y.most) or 1.0
    shown = means[means <= cap]
    inside = np.concatenate([shown, zero, [value for value in published if value <= cap]])
    inside = inside if inside.size else np.array([0.0, 1.0])
    low, high = inside.min(), inside.max()
    ends_at_cap = top is not None or shown.size < means.size
    least = max(low, bottom or 0.0)
    if may_be_log and least > 0 and log10(high / least) > 1.5:
        return Range(bottom or low / 1.3, cap if ends_at_cap else high * 1.3, True)
    edges = np.concatenate([curve[[LOW, HIGH]].to_numpy(dtype=float)[curve[y.column] <= cap] for curve in curves])
    low = max(0.0, np.nanmin(edges, initial=low))
    high = min(cap, np.nanmax(edges, initial=high))
    margin = 0.06 * max(high - low, 0.1 * (y.zero or high))
    least = bottom or min(0.0, inside.min() - margin)  # markers at 0 are whole
    return Range(max(least, low - 1.5 * margin), cap if ends_at_cap else high + 1.5 * margin, False)


def _means(curves: Sequence[pd.DataFrame], y: Axis) -> np.ndarray:
    return np.concatenate([curve[y.column].to_numpy(dtype=float) for curve in curves])


def bounds(curves: Sequence[tuple[Series, pd.DataFrame]], column: str) -> tuple[dict[str, np.ndarray], str]:
    """Return the bounds on the curves of a panel.

    Theorems bound the excess loss of POPCA, PCA and MBEG on examples in the unit ball; MBEG's bound starts where it
    holds. They bound the relative error of learners that output the average of all iterates: a bound is the least mean
    error of all curves plus the excess that the theorem allows after as many examples, with the chosen radius (mean
    over repetitions). A bound is left out if the data may violate the theorem's assumptions, or if it never falls
    below the zero predictor's error, or below the excess loss of any subspace.

    Parameters
    ----------
    curves : sequence of Series and DataFrame
        The series of one data set that have points, with their mean curves, as
        `budgetreg.runs.series.Series.mean` has them.
    column : str
        The measure. Theorems bound ``test_relative`` and ``excess_loss``.

    Returns
    -------
    lines : dict of str to ndarray of shape (C,)
        Bounds at the checkpoints, by the label of the series; only those worth drawing.
    remark : str
        The caption's sentence about them; empty if no learner has a theorem.
    """
    of_subspaces = column == "excess_loss"
    if not curves or not (of_subspaces or column == "test_relative"):
        return {}, ""
    least = 0.0 if of_subspaces else min(curve[column].min() for _, curve in curves)
    lines: dict[str, np.ndarray] = {}
    vacuous, outside = [], []
    for learner, curve in curves:
        theorem = _theorem(learner)
        if theorem is None:
            continue
        radii: list[float | None] = [None] if of_subspaces else list(learner.runs.get("p_B", ()))
        if not (_meets(learner, theorem) and radii and all(B is None or B >= 1 for B in radii)):
            outside.append(learner.label)
            continue
        zero = 1.0 if of_subspaces else (learner.points["test_mse"] / learner.points["test_relative"]).median()
        k = int(learner.k)  # a learner that chooses k has no theorem
        excess = [np.mean([theorem.excess(B, learner.d, m, k) for B in radii]) for m in curve["examples"]]
        line = least + np.array(excess) / zero
        if (line < 1).any():
            lines[learner.label] = line
        else:
            vacuous.append(learner.label)
    if of_subspaces:
        return lines, _OF_SUBSPACES if lines else ""
    left_out = [
        f"{why} ({', '.join(labels)})"
        for labels, why in (
            (vacuous, "they lie above the zero predictor's error"),
            (outside, "the data may violate the assumptions, attributes in the unit range and |y| <= B"),
        )
        if labels
    ]
    parts = [_OF_REGRESSORS] if lines else []
    if left_out:
        parts.append(f"{'Other theoretical' if lines else 'Theoretical'} bounds are omitted: {'; '.join(left_out)}.")
    return lines, " ".join(parts)


def _theorem(series: Series) -> Theorem | None:
    """Return a learner's theorem; None if the origin is learned from the data, as theorems take it as given."""
    learner = registry.read(series.config.get("algo", {}))
    moved = series.config.get("dataset", {}).get("center") == "revealed" or series.config.get("intercept") == "mean"
    return None if learner is None or moved else learner.theorem


def _meets(series: Series, theorem: Theorem) -> bool:
    """Return whether the data certainly satisfy the theorem's assumptions."""
    dataset = series.config["dataset"]
    kind = kinds().get(dataset.get("kind", ""))
    return kind is not None and dataset.get("center", "none") == "none" and kind.lies_in(theorem.domain)

"""The figure of a study: its estimated error against the money spent, and how much of each attribute was bought."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from budgetreg.common.notices import in_one_line
from budgetreg.figures import canvas
from budgetreg.figures.canvas import Artist, Axes, Drawn, Figure, Patch, grid, set_ticks
from budgetreg.figures.captions import flowing
from budgetreg.figures.looks import COLOURS
from budgetreg.figures.specification import Drawing
from budgetreg.figures.tables import exact_money
from budgetreg.study import Study
from budgetreg.study.error import LARGEST, Estimates
from budgetreg.study.state import StudyBill

_SIZE, _ROW, _LEAST = (9.0, 3.2), 0.2, 1.4  # inches: of the figure, its height for each attribute, and besides
_MOST = 30  # attributes that have a bar
_ASIDE = 0.03  # of what was spent, between two intervals that would hide each other
_PARTS = {
    "beforehand": ("known beforehand", "grey"),
    "paid": ("paid for", "indigo"),
    "on_order": ("on order", "orange"),
    "unavailable": ("unavailable", "vermillion"),
}


def draw_study(study: Study, drawing: Drawing) -> Drawn:
    """Draw the estimates of a study so far, the forecast of the last one, and what was bought."""
    n, bill, history = len(study.state().examples), study.bill(), study.history()
    name, known = study.path.resolve().stem, bill.by_attribute[["beforehand", "paid"]].sum(axis=1)
    shown = bill.by_attribute.loc[known.sort_values(ascending=False, kind="stable").index[:_MOST]]
    figure = Figure((_SIZE[0], max(_SIZE[1], _LEAST + _ROW * len(shown))), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    entries = _draw_error(left, bill, history)
    entries |= _draw_attributes(right, n, shown)
    canvas.write_finding(figure, in_one_line(_finding(name, bill, history)))
    canvas.legend(figure, entries, 4)
    spent, on_order = exact_money(bill.total), exact_money(bill.on_order)
    title = f"{n} examples, {len(bill.by_attribute)} attributes; {spent} {bill.unit} spent, {on_order} on order."
    return Drawn(figure, title, _paragraphs(bill, history, len(shown)))


def _finding(name: str, bill: StudyBill, history: Sequence[Estimates]) -> str:
    """Return what the figure shows: the error so far and, if there is a forecast, the one after the last step of it."""
    if not history:
        return f"{name}: no error is estimated yet"
    last = history[-1]
    found = (
        f"{name}: an estimated error of {last.error.complete.estimate:.3f} after {exact_money(last.spent)} {bill.unit}"
    )
    if last.further:
        spending, error = last.further[-1]
        found += f"; after {exact_money(spending)} {bill.unit} more, {error.estimate:.3f} is expected"
    return found


def _draw_error(ax: Axes, bill: StudyBill, history: Sequence[Estimates]) -> dict[str, Any]:
    """Draw the errors so far, the forecast, and what is on order; return the entries of the legend."""
    entries: dict[str, Any] = {}
    if history:
        spent, last = np.array([each.spent for each in history]), history[-1]
        complete, bought = ([getattr(each.error, name) for each in history] for name in ("complete", "as_bought"))
        ours: dict[str, Any] = {"color": COLOURS["indigo"], "marker": "o", "linewidth": 2.6, "elinewidth": 1.5}
        entries["estimated error, 90 % interval"] = _draw_intervals(ax, spent, complete, **ours)
        aside = spent + _ASIDE * spent[-1]
        entries["with as many attributes as were bought"] = _draw_intervals(
            ax, aside, bought, color=COLOURS["slate"], marker="s", linewidth=1.5, elinewidth=1.0, markersize=5
        )
        if last.further:
            ahead: dict[str, Any] = {"color": COLOURS["lilac"], "linewidth": 1.5}
            spending, errors = zip(*last.further, strict=True)
            x = spent[-1] + np.array(spending)
            ax.plot([spent[-1], x[0]], [complete[-1].estimate, errors[0].estimate], zorder=1, **ahead)
            look = {**ahead, "marker": "D", "elinewidth": 1.5, "mfc": "white"}
            entries["forecast, 90 % interval"] = _draw_intervals(ax, x, errors, **look)
    if bill.on_order:
        entries[f"on order: {exact_money(bill.on_order)} {in_one_line(bill.unit)}"] = ax.axvspan(
            bill.total, bill.total + bill.on_order, color=COLOURS["orange"], alpha=0.3, linewidth=0
        )
    canvas.across(ax, 1.0, "grey")
    ax.set_xlim(left=0)
    ax.set_ylim(0, None)
    ax.set_xlabel(in_one_line(f"spent ({bill.unit})"))
    ax.set_ylabel("error relative to the mean target")
    set_ticks(ax)
    grid(ax)
    return entries


def _draw_intervals(ax: Axes, x: np.ndarray, intervals: Sequence[Any], **look: Any) -> Any:
    """Draw a line through estimates, with their intervals."""
    estimate, low, high = np.array([(each.estimate, each.low, each.high) for each in intervals]).T
    return ax.errorbar(x, estimate, np.maximum([estimate - low, high - estimate], 0), **look)


def _draw_attributes(ax: Axes, n: int, attributes: Any) -> dict[str, Artist]:
    """Draw a bar for each attribute: the shares of the examples by what is known; return the entries of the legend."""
    rows, begin = np.arange(len(attributes)), np.zeros(len(attributes))
    entries: dict[str, Artist] = {}
    for column, (label, colour) in _PARTS.items():
        share = attributes[column].to_numpy() / max(n, 1)
        if share.any():
            ax.barh(rows, share, left=begin, color=COLOURS[colour], height=0.7)
            entries[label] = Patch(color=COLOURS[colour])
        begin = begin + share
    ax.set_yticks(rows, [in_one_line(str(name))[:24] for name in attributes["attribute"]], fontsize=8)
    ax.invert_yaxis()
    ax.set_xlim(0, min(1.0, 1.05 * begin.max() or 1.0))
    ax.set_xlabel("share of the examples")
    set_ticks(ax, y=False)
    grid(ax, axis="x")
    return entries


def _paragraphs(bill: StudyBill, history: Sequence[Estimates], shown: int) -> list[str]:
    """Return how the figure was made, and its numbers."""
    d = len(bill.by_attribute)
    meaning = (
        "Left: the mean squared error relative to that of the mean target, for a new example of which all attributes "
        "are measured, estimated by cross-fitting without any complete row; and for one of which as many are measured "
        f"as were bought on average. No estimate and no interval exceeds {LARGEST}. The forecast is for further orders "
        "at random. Right: what is known of each attribute, "
        f"{f'the {shown} with most values' if shown < d else 'those with most values first'}."
    )
    lines = [
        f"{exact_money(each.spent)} {bill.unit}: error {_text(each.error.complete)}, "
        f"as bought {_text(each.error.as_bought)}"
        for each in history
    ]
    if history:
        last = history[-1]
        lines += [
            f"forecast for {exact_money(spending)} {bill.unit} more: {_text(interval)}"
            for spending, interval in last.further
        ]
    return [flowing(in_one_line(meaning)), "\n".join(map(in_one_line, lines))]


def _text(interval: Any) -> str:
    return f"{interval.estimate:.3f} (90 % interval {interval.low:.3f} to {interval.high:.3f})"

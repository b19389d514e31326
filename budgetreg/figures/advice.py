"""Show which k and learner are best for a total of attributes or money: a table, a figure and a verdict."""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
from rich.table import Column, Table

from budgetreg.analysis.comparisons import Candidate, shared_repetitions
from budgetreg.analysis.intervals import FEWEST
from budgetreg.common.notices import plural
from budgetreg.figures import canvas
from budgetreg.figures.canvas import Drawn, Figure, across
from budgetreg.figures.captions import about_config, amount, flowing, in_full, rounded, with_interval
from budgetreg.figures.looks import style
from budgetreg.figures.specification import Axis, Drawing, axes_of
from budgetreg.figures.tables import OF_LABELS, new_table
from budgetreg.runs.series import common_unit

NAME = "advice"
_SIZE = (6.4, 4.6)  # inches
_OCTAVES = 0.24  # over which learners with the same k are spread
_APART = 1 / 13  # of the axis, between two learners that see full rows
_RING: dict[str, Any] = {"marker": "o", "markersize": 15, "markerfacecolor": "none", "markeredgecolor": "black"}
_BARS: dict[str, Any] = {"linewidth": 1.6, "elinewidth": 1.0, "capsize": 2.5}
_UNPAID: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "white", "zorder": 3}
_TOP = 1.2
"""Where the axis ends if something lies beyond, in units of the error without attributes."""
_LOW, _MANY = 0.25, 2
"""Full rows are said to win for low noise if their error is at most the first, of that without attributes, and there
are at least the second times d of them."""
_OUTSIDE = (
    "What tuning looks at is not in the total: its folds see other attributes of the same examples, and those held out "
    "in full. If that is beyond the total, the learner is not among those compared. Repetitions are random splits of "
    "one data set: intervals are about these splits."
)


def advice_table(candidates: Sequence[Candidate], total: int) -> Table:
    """Return a table of the candidates.

    Parameters
    ----------
    candidates, total
        As for `answer`.

    Returns
    -------
    Table
        A row for each: budget, learner, examples, attributes and their cost, error and its difference from the best
        with 90 % intervals, the share of resampled means in which it is the best, and with labels error rate and AUC.
    """
    _, y = axes_of([candidate.series for candidate in candidates])
    unit = _unit(candidates)
    measures = _measures(candidates)
    billed = ["billed"] if any(each.beyond for each in candidates) else []
    heads = ["k", "learner", "examples", "attributes", *([unit] if unit else []), "error", "worse by", "best in"]
    heads += [*billed, *measures.values()]
    of_tuning = "; boosting: scikit-learn's, outside this tool" if any(each.outside for each in candidates) else ""
    of_tuning += "; billed: with what tuning looked at, beyond the total" if billed else ""
    spent = f"{unit}: what was spent; " if unit else ""
    table = new_table(
        f"{candidates[0].series.dataset}, {_amount(candidates, total)}",
        [
            f"{spent}error: {y.label}, with its 90 % interval{_without(candidates)}; worse by: above the best, clearly "
            f"worse if the interval lies above 0; best in: share of resampled means{of_tuning}"
        ],
        *(
            # On a narrow terminal, intervals stand below their numbers.
            Column(head, justify="left" if head == "learner" else "right", no_wrap=head not in ("error", "worse by"))
            for head in heads
        ),
    )
    for candidate in candidates:
        bill = [amount(candidate.billed) if candidate.beyond else ""] if billed else []
        table.add_row(*_cells(candidate, unit), *bill, *_of_labels(candidate, measures))
    return table


def answer(candidates: Sequence[Candidate], total: int) -> list[str]:
    """Return the verdict, which candidate is best, and a list of how the others compare.

    A learner that is no better than the predictor without attributes is useless, whatever its interval is.

    Parameters
    ----------
    candidates : sequence of Candidate
        As `budgetreg.analysis.comparisons.ranked` returns them.
    total : int
        Most attributes that a candidate may see, or most money if they have prices.
    """
    _, y = axes_of([candidate.series for candidate in candidates])
    best, *others = [each for each in candidates if not each.outside]
    beyond = [] if best.beyond else [other for other in others if other.beyond]
    others = [other for other in others if other not in beyond]
    ahead = [
        f"outside this tool, scikit-learn's gradient boosting is clearly better: {_who(each)}, error "
        f"{in_full(each.error)}"
        for each in candidates
        if each.outside and each.behind.high < 0
    ]
    for_total = f"With {_amount(candidates, total)},"
    if _is_useless(best, y):
        least = f"The lowest error, {in_full(best.error)}, is that of {_who(best)}."
        verdict = f"{for_total} no learner is better than the {y.constant} predictor: do not buy. {least}"
        return [verdict, *ahead, *_not_paid(beyond)]
    useless = [other for other in others if _is_useless(other, y)]
    useful = [other for other in others if not _is_useless(other, y)]
    worse = [other for other in useful if other.is_worse]
    level = [other for other in useful if not other.is_worse]
    if level:
        verdict = f"{for_total} {_who(best)} has the lowest error, {in_full(best.error)}. "
        verdict += f"After {_repetitions(candidates)} it is open whether that is the best."
    elif others or beyond:
        verdict = f"{for_total} {_who(best)} is best: error {in_full(best.error)}."
    else:
        verdict = f"{for_total} {_who(best)} has the error {in_full(best.error)}; nothing else was compared with it."
    if best.beyond:
        verdict += f" This total does not pay for what tuning looks at: {_name(best)} is billed {amount(best.billed)}."
    if isnan(best.best_in):  # without intervals
        items = [f"{FEWEST} repetitions or more would show which others are clearly worse"] if level else []
    else:
        items = [f"not clearly worse: {_names(level)}"] if level else []
        items += [f"clearly worse: {'all others' if level or worse[1:] else _names(worse)}"] if worse else []
        items.append(_other_kind(best, others, useful, beyond))
    if useless:
        items.append(f"useless, no better than the {y.constant} predictor: {_names(useless)}")
    items += _not_paid(beyond)
    return list(filter(None, [verdict, *ahead, *items, about_full_rows([best, *others])]))


def _repetitions(candidates: Sequence[Candidate]) -> str:
    """Return in words how many repetitions all candidates have, which are compared; what is outside has none."""
    ours = [each.series for each in candidates if not each.outside]
    return plural(len(shared_repetitions(ours)), "repetition")


def _not_paid(beyond: Sequence[Candidate]) -> list[str]:
    """Return what the total does not pay for, with its bill; nothing if it pays for all."""
    bills = [f"{_name(each)}, error {rounded(each.error)[0]}, billed {amount(each.billed)}" for each in beyond]
    return [f"not paid for by this total, as tuning looks at more: {'; '.join(bills)}"] if bills else []


def is_useful(candidates: Sequence[Candidate]) -> bool:
    """Return whether the best candidate is better than the predictor without attributes."""
    return not _is_useless(candidates[0], axes_of([candidate.series for candidate in candidates])[1])


def advice_rows(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Return the rows of ``advice.csv``: the columns of the table with the ends of intervals; no value is NaN."""
    unit, rows = _unit(candidates), []
    for each in candidates:
        row: dict[str, Any] = {
            "k": "all" if each.series.of_all_attributes else int(each.series.k),
            "learner": each.series.algo,
            "examples": each.examples,
            "attributes": each.attributes,
            **({"cost": each.cost} if unit else {}),
        }
        for name, estimate in {"error": each.error, "worse_by": each.behind}.items():
            row |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        row |= {"best_in": each.best_in, "billed": each.billed, "beyond_total": each.beyond, **each.measures}
        rows.append({name: None if isinstance(value, float) and isnan(value) else value for name, value in row.items()})
    return rows


def _other_kind(
    best: Candidate, others: Sequence[Candidate], useful: Sequence[Candidate], beyond: Sequence[Candidate]
) -> str:
    """Return how full rows compare with the best on a budget, or a budget with the best on full rows."""
    kind = "k attributes of each example" if best.series.of_all_attributes else "full rows"
    tried, compared, unpaid = (
        [other for other in some if other.series.of_all_attributes != best.series.of_all_attributes]
        for some in (others, useful, beyond)
    )
    if not compared:
        if tried:
            return f"{kind}: no learner errs less than the mean"
        return f"{kind}: {'none that this total pays for' if unpaid else 'not tried'}"
    closest = next((other for other in compared if not other.is_worse), compared[0])
    clearly = "clearly" if closest.is_worse else "not clearly"
    return f"nearest with {kind}: {_who(closest)}, {clearly} worse, by {in_full(closest.behind)}"


def about_full_rows(candidates: Sequence[Candidate]) -> str:
    """Return a remark if many full rows with a low error were bought and nothing is clearly better; else nothing."""
    full = next((each for each in candidates if each.series.of_full_rows and not each.is_worse), None)
    if full is None:
        return ""
    d = full.series.d
    _, y = axes_of([candidate.series for candidate in candidates])
    if y.zero is None or full.error.value > _LOW * y.zero or full.examples < _MANY * d:
        return ""
    same = "The same money pays for" if _unit(candidates) else "The same attributes pay for"
    return (
        f"{same} {full.examples} full rows, {full.examples / d:.3g} times d; once that is about {_MANY} or more "
        "and the noise is low, full rows win: see docs/explanation/aemr.md"
    )


def _is_useless(candidate: Candidate, y: Axis) -> bool:
    """Return whether a candidate is no better than the predictor without attributes."""
    return y.zero is not None and candidate.error.value >= y.zero


def draw_advice(advised: tuple[Sequence[Candidate], int], drawing: Drawing) -> Drawn:
    """Draw error against k: a line for each learner on a budget, and a place of its own for each that sees full rows.

    The axis ends little above the error without attributes. Arrows at its end stand for what lies beyond. Markers are
    hollow if the total does not pay for what tuning looks at.

    Parameters
    ----------
    advised : tuple
        Candidates and total, as for `answer`.
    drawing : Drawing
        Names the kind alone.
    """
    every, total = advised
    candidates = [candidate for candidate in every if not candidate.outside]
    _, y = axes_of([candidate.series for candidate in candidates])
    top = _TOP * y.zero if y.zero else np.inf
    figure = Figure(_SIZE, layout="constrained")
    ax = figure.subplots()
    by_budget = sorted(candidates, key=lambda candidate: candidate.series.k)
    budgets = sorted({int(each.series.k) for each in candidates if not each.series.of_full_rows})
    some, full = (
        list(dict.fromkeys(each.series.algo for each in candidates if each.series.of_full_rows == of_full_rows))
        for of_full_rows in (False, True)
    )
    first, last = (budgets[0], budgets[-1]) if budgets else (1, 1)
    step = (2 * last / first) ** (_APART / (1 - _APART * min(len(full), 9)))
    places = dict(zip(some, canvas.beside(len(some), _OCTAVES), strict=False))
    places |= {algo: last * step ** (at + 1.5) for at, algo in enumerate(full)}
    for algo in [*some, *full]:
        points = [candidate for candidate in by_budget if candidate.series.algo == algo]
        colour, marker, *_ = style(algo)
        error, low, high = np.array([(p.error.value, p.error.low, p.error.high) for p in points]).T
        x = np.array([_x(point, places) for point in points])
        beyond = np.array([point.beyond for point in points])
        bars = np.nan_to_num([error - low, high - error])  # none if the interval is unknown
        name = None if algo in full else algo
        ax.errorbar(x, error, bars, label=name, color=colour, marker=marker, **_BARS)
        ax.plot(x[beyond], error[beyond], color=colour, marker=marker, **_UNPAID)
        _arrows(ax, x, error, high, top, colour)
    ax.set_xscale("log", base=2)
    ax.set_xticks([*budgets, *(places[algo] for algo in full)], [*map(str, budgets), *canvas.folded_ticks(full)])
    ax.minorticks_off()
    for tick in ax.get_xticklabels()[len(budgets) :]:
        tick.set(rotation=30, ha="right", rotation_mode="anchor")
    above = ax.get_ylim()[1]
    cut = any(np.fmax(each.error.value, each.error.high) > top for each in candidates)
    across(ax, y.zero, "grey")
    ax.set_ylim(0, top if cut else above)  # the line need not be in sight
    best = candidates[0]
    apart = not best.beyond and any(each.beyond for each in candidates)
    least = "least error within the total" if apart else "least error"
    ax.plot(_x(best, places), best.error.value, linestyle="none", label=least, zorder=4, **_RING)
    if any(each.beyond for each in candidates):
        ax.plot([], [], color="black", marker="o", label="hollow: tuning looks beyond the total", **_UNPAID)
    or_learner = ", or learner that sees full rows" if full else ""
    ax.set_xlabel(f"attributes seen of each example, k{or_learner}\n({_amount(candidates, total)} in all)")
    ax.set_ylabel(y.text)
    ax.set_title(canvas.folded(candidates[0].series.dataset), loc="left", fontsize=10)
    canvas.grid(ax)
    samples, texts = ax.get_legend_handles_labels()
    canvas.legend(figure, dict(zip(texts, samples, strict=True)), 3)
    canvas.write_finding(figure, answer(every, total)[0].rstrip("."))
    return Drawn(figure, f"{y.name} against k", _paragraphs(every, total, y))


def _x(candidate: Candidate, places: Mapping[str, float]) -> float:
    """Return where a point is: at the place of its learner, which is a factor of k unless that sees full rows."""
    series = candidate.series
    return places[series.algo] if series.of_full_rows else int(series.k) * places[series.algo]


def _arrows(ax: Any, x: np.ndarray, error: np.ndarray, high: np.ndarray, top: float, colour: str) -> None:
    """Draw an arrow at the top for each error or interval that lies beyond it, with the number if the error does."""
    beyond = np.fmax(error, high) > top
    for at, value in zip(x[beyond], error[beyond], strict=True):
        ax.annotate(
            f"{value:.3g}" if value > top else "",
            (at, top),
            (0, -14),
            textcoords="offset points",
            rotation="vertical",  # as neighbours are close
            ha="center",
            va="top",
            fontsize=8,
            color=colour,
            arrowprops={"arrowstyle": "->", "color": colour, "shrinkA": 0, "shrinkB": 0},
        )


def _paragraphs(candidates: Sequence[Candidate], total: int, y: Axis) -> list[str]:
    unit = _unit(candidates)
    series = [candidate.series for candidate in candidates if not candidate.outside]
    ended = (
        f"had spent {total:,} {unit}, but for less than an example, or earlier if it had seen all examples"
        if unit
        else f"ended at {total:,} attributes, or earlier if it had seen all examples"
    )
    beyond = "" if y.zero is None else f" The axis ends at {_TOP * y.zero:g} if arrows show what lies beyond."
    measures = _measures(candidates)
    text = (
        f"Each point is a learner that {ended}: the mean over {_repetitions(candidates)} with its 90 % "
        f"interval{_without(candidates)}. Those that see full rows stand side by side. y: {y.explanation}.{beyond} "
        f"{_OUTSIDE}"
    )
    if any(each.outside for each in candidates):
        text += " boosting is scikit-learn's gradient boosting, outside this tool, and is listed below alone."
    lines = []
    for each in candidates:
        k, algo, examples, paid, *cost, error, behind, share = _cells(each, unit)
        parts = [f"k = {k}, {algo}: {examples} examples", f"{paid} attributes", *(f"{money} {unit}" for money in cost)]
        parts += [f"error {error}", f"worse by {behind}", *([] if share == "-" else [f"best in {share}"])]
        parts += [f"billed {amount(each.billed)}"] if each.beyond else []
        parts += [f"{head} {value}" for head, value in zip(measures.values(), _of_labels(each, measures), strict=True)]
        lines.append(", ".join(parts))
    verdict, *items = answer(candidates, total)
    said = "\n".join([flowing(verdict), *(flowing(f"- {item}", "  ") for item in items)])
    settings = about_config(*(each.config for each in series))
    return [flowing(text), said, "\n".join(flowing(line, "  ") for line in lines), "\n".join(map(flowing, settings))]


def _without(candidates: Iterable[Candidate]) -> str:
    """Return that few repetitions have no interval, if some candidate has none."""
    return f" (fewer than {FEWEST} repetitions have none)" if any(isnan(each.error.low) for each in candidates) else ""


def _unit(candidates: Sequence[Candidate]) -> str | None:
    """Return the unit of the total, if that is money."""
    return common_unit(candidate.series for candidate in candidates)


def _amount(candidates: Sequence[Candidate], total: int) -> str:
    return f"{total:,} {_unit(candidates) or 'attributes'}"


def _measures(candidates: Sequence[Candidate]) -> dict[str, str]:
    """Return the measures of labels that some candidate has, with their names."""
    return {name: head for name, head in OF_LABELS.items() if any(name in each.measures for each in candidates)}


def _of_labels(candidate: Candidate, measures: Iterable[str]) -> list[str]:
    return [f"{candidate.measures[name]:.3g}" if name in candidate.measures else "-" for name in measures]


def _cells(candidate: Candidate, unit: str | None) -> tuple[str, ...]:
    return (
        "all" if candidate.series.of_all_attributes else str(candidate.series.k),
        candidate.series.algo,
        f"{candidate.examples:,}",
        f"{candidate.attributes:,.0f}",
        *([amount(candidate.cost)] if unit else []),
        with_interval(candidate.error),
        with_interval(candidate.behind) if candidate.behind.value else "0",
        "-" if isnan(candidate.best_in) else f"{100 * candidate.best_in:.0f} %",
    )


def _who(candidate: Candidate) -> str:
    if candidate.series.of_full_rows:
        return f"{candidate.series.algo} on {candidate.examples:,} full rows"
    if candidate.series.of_all_attributes:
        return f"{candidate.series.algo} with all attributes of {candidate.examples:,} examples"
    return f"{candidate.series.algo} with k = {candidate.series.k} on {plural(candidate.examples, 'example')}"


def _name(candidate: Candidate) -> str:
    series = candidate.series
    if series.of_full_rows:
        return f"{series.algo} (full rows)"
    return f"{series.algo} with {'all attributes' if series.of_all_attributes else f'k = {series.k}'}"


def _names(candidates: Iterable[Candidate]) -> str:
    return ", ".join(map(_name, candidates))

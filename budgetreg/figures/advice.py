"""Show which k and learner are best for a total of attributes or money: a table, a figure and one sentence."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path

import numpy as np
from rich.table import Column, Table

from budgetreg.analysis.bootstrap import FEWEST, Estimate
from budgetreg.analysis.comparisons import Candidate
from budgetreg.figures.axes import Axis, axes_of
from budgetreg.figures.canvas import grid, legend, own_settings, write_figure
from budgetreg.figures.captions import flowing, money, repetitions_of, short_caption, with_interval
from budgetreg.figures.library import Figure
from budgetreg.figures.palette import style
from budgetreg.figures.summary import new_table
from budgetreg.results.series import common_unit

NAME = "advice"
_SIZE = (6.4, 4.6)  # inches
_HALF_WIDTH = 0.12  # octaves: learners with the same k lie beside each other, as their intervals would hide others
_OUTSIDE = (
    "What tuning looks at is not in the total: its folds see other attributes of the same examples, and those held out "
    "in full. Repetitions are random splits of one data set: intervals are about these splits."
)


def advice_table(candidates: Sequence[Candidate], total: int) -> Table:
    """Return a table of the candidates.

    Parameters
    ----------
    candidates, total
        As for `sentence`.

    Returns
    -------
    Table
        A row for each: budget, learner, examples, attributes and their cost, error and its difference from the best
        with 90 % intervals, and the share of resampled means in which it is the best.
    """
    _, y = axes_of([candidate.series for candidate in candidates])
    unit = _unit(candidates)
    heads = ("k", "learner", "examples", "attributes", *([unit] if unit else []), "error", "behind", "best in")
    spent = f"{unit}: what was spent, the total if draws came to more; " if unit else ""
    table = new_table(
        f"{candidates[0].series.dataset}, {_amount(candidates, total)}",
        [f"{spent}error: {y.label}, with its 90 % interval; behind: above the best; best in: share of resampled means"],
        *(
            # On a narrow terminal, intervals stand below their numbers.
            Column(head, justify="left" if head == "learner" else "right", no_wrap=head not in ("error", "behind"))
            for head in heads
        ),
    )
    for candidate in candidates:
        table.add_row(*_cells(candidate, unit))
    return table


def sentence(candidates: Sequence[Candidate], total: int) -> str:
    """Return a sentence: which candidate is best, which may be as good, and how full rows compare.

    Parameters
    ----------
    candidates : sequence of Candidate
        As `budgetreg.analysis.comparisons.ranked` returns them.
    total : int
        Most attributes that a candidate may see, or most money if they have prices.
    """
    best, *others = candidates
    clauses = [f"With {_amount(candidates, total)} the best is {_who(best)}, error {_estimate(best.error)}"]
    if isnan(best.best_in):
        return f"{clauses[0]}; which others cannot be told from it, {FEWEST} repetitions or more would say."
    as_good = [other for other in others if not other.is_worse]
    other_kind = [other for other in others if other.series.of_full_rows != best.series.of_full_rows]
    if as_good:
        clauses.append(f"{_listed(list(map(_name, as_good)))} cannot be told from it")
    elif others:
        clauses.append("all others are worse")
    kind = "k attributes of each example" if best.series.of_full_rows else "full rows"
    if other_kind:
        verdict = "do worse" if other_kind[0].is_worse else "may do as well"
        clauses.append(f"{kind} {verdict}: {_who(other_kind[0])}, {_estimate(other_kind[0].behind)} behind")
    else:
        clauses.append(f"{kind} were not tried")
    return "; ".join(clauses) + "."


def plot_advice(candidates: Sequence[Candidate], total: int, target: Path) -> list[Path]:
    """Draw error against k: a line for each learner on a budget, and a point at k = d for full rows.

    Parameters
    ----------
    candidates, total
        As for `sentence`.
    target : Path
        Folder of the files.

    Returns
    -------
    list of Path
        ``advice.png``, ``advice.pdf`` and ``advice.txt``.
    """
    _, y = axes_of([candidate.series for candidate in candidates])
    with own_settings():
        figure = Figure(_SIZE, layout="constrained")
        ax = figure.subplots()
        budgets = sorted({candidate.series.k for candidate in candidates})
        learners = sorted({candidate.series.algo for candidate in candidates})
        by_budget = sorted(candidates, key=lambda candidate: candidate.series.k)
        for beside, algo in zip(2 ** np.linspace(-_HALF_WIDTH, _HALF_WIDTH, len(learners)), learners, strict=True):
            points = [candidate for candidate in by_budget if candidate.series.algo == algo]
            colour, marker = style(algo)
            full = points[0].series.of_full_rows
            error, low, high = np.array([(p.error.value, p.error.low, p.error.high) for p in points]).T
            ax.errorbar(
                [point.series.k * beside for point in points],
                error,
                np.nan_to_num([error - low, high - error]),  # no bar if the interval is unknown
                label=f"{algo} (full rows)" if full else algo,
                color=colour,
                marker=marker,
                markerfacecolor="white" if full else colour,
                linestyle="none" if full else "-",
                linewidth=1.6,
                elinewidth=1.0,
                capsize=2.5,
            )
        ax.set_xscale("log", base=2)
        ax.set_xticks(budgets, list(map(str, budgets)))
        ax.minorticks_off()
        ax.set_xlabel(f"k, attributes seen of each example, for {_amount(candidates, total)} in all")
        ax.set_ylabel(y.text)
        ax.set_title(candidates[0].series.dataset, loc="left", fontsize=10)
        grid(ax)
        samples, texts = ax.get_legend_handles_labels()
        legend(figure, dict(zip(texts, samples, strict=True)), 3)
        return write_figure(figure, _caption(candidates, total, y), target, NAME)


def _caption(candidates: Sequence[Candidate], total: int, y: Axis) -> str:
    unit = _unit(candidates)
    series = [candidate.series for candidate in candidates]
    ended = (
        f"had spent {total} {unit}, or less if it had seen all examples or its draws were cheap"
        if unit
        else f"ended at {total} attributes, or earlier if it had seen all examples"
    )
    text = (
        f"Each point is a learner that {ended}: the mean over {repetitions_of(series)} with its 90 % "
        f"interval. Those that see full rows lie at k = d. y: {y.explanation}. {_OUTSIDE}"
    )
    lines = [
        f"k = {k}, {algo}: {examples} examples, {paid} attributes{''.join(f', {amount} {unit}' for amount in cost)}, "
        f"error {error}, behind {behind}, best in {share}"
        for k, algo, examples, paid, *cost, error, behind, share in (
            _cells(candidate, unit) for candidate in candidates
        )
    ]
    paragraphs = [flowing(sentence(candidates, total)), flowing(text), "\n".join(map(flowing, lines))]
    return short_caption(f"{NAME}: {y.name} against k", paragraphs, series)


def _unit(candidates: Sequence[Candidate]) -> str | None:
    """Return the unit of the total, if that is money."""
    return common_unit(candidate.series for candidate in candidates)


def _amount(candidates: Sequence[Candidate], total: int) -> str:
    return f"{total} {_unit(candidates) or 'attributes'}"


def _cells(candidate: Candidate, unit: str | None) -> tuple[str, ...]:
    return (
        "all" if candidate.series.of_full_rows else str(candidate.series.k),
        candidate.series.algo,
        str(candidate.examples),
        f"{candidate.attributes:.0f}",
        *([money(candidate.cost)] if unit else []),
        with_interval(candidate.error),
        with_interval(candidate.behind) if candidate.behind.value else "0",
        "-" if isnan(candidate.best_in) else f"{100 * candidate.best_in:.0f} %",
    )


def _who(candidate: Candidate) -> str:
    if candidate.series.of_full_rows:
        return f"{candidate.series.algo} on {candidate.examples} full rows"
    return f"{candidate.series.algo} with k = {candidate.series.k} on {candidate.examples} examples"


def _name(candidate: Candidate) -> str:
    series = candidate.series
    return f"{series.algo} (full rows)" if series.of_full_rows else f"{series.algo} with k = {series.k}"


def _listed(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _estimate(estimate: Estimate) -> str:
    return with_interval(estimate).replace("(", "(90 % interval ")

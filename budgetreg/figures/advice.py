"""What a total of attributes, or of money, buys: error against k as a table, a figure and one sentence."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from budgetreg.analysis.advice import Candidate
from budgetreg.analysis.bootstrap import FEWEST, Estimate
from budgetreg.figures.axes import Axis, axes_of
from budgetreg.figures.captions import about_config, flowing, money, with_interval
from budgetreg.figures.curves import own_settings, write_figure
from budgetreg.figures.palette import style
from budgetreg.results.nested import common
from budgetreg.results.series import common_unit

NAME = "advice"
_SIZE = (6.4, 4.6)  # inches
_HALF_WIDTH = 0.12  # octaves: learners with the same k lie beside each other, as their intervals would hide others
_OUTSIDE = (
    "What tuning looks at is not in the total: its folds see other attributes of the same examples, and those held out "
    "in full. Repetitions are random splits of one data set: intervals are about these splits."
)


def advice_table(candidates: Sequence[Candidate], total: int) -> Table:
    """Tabulate candidates.

    Parameters
    ----------
    candidates, total
        As for `sentence`.

    Returns
    -------
    Table
        A row for each: budget, learner, examples, attributes and what they cost, error and its distance from the best
        with 90 % intervals, and in which share of resampled means it is the best.
    """
    _, y = axes_of([one.series for one in candidates])
    unit = _unit(candidates)
    table = Table(
        title=f"{candidates[0].series.dataset}, {_amount(candidates, total)}",
        caption=f"{f'{unit}: what was spent, the total if draws came to more; ' if unit else ''}"
        f"error: {y.label}, with its 90 % interval; "
        "behind: above the best; best in: share of resampled means",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for head in ("k", "learner", "examples", "attributes", *([unit] if unit else []), "error", "behind", "best in"):
        # On a narrow terminal intervals stand below their numbers.
        folds = head in ("error", "behind")
        table.add_column(head, justify="left" if head == "learner" else "right", no_wrap=not folds)
    for one in candidates:
        table.add_row(*_cells(one, unit))
    return table


def sentence(candidates: Sequence[Candidate], total: int) -> str:
    """Say which candidate is best, which cannot be told from it, and what full rows would do.

    Parameters
    ----------
    candidates : sequence of Candidate
        As `budgetreg.analysis.advice.ranked` returns them.
    total : int
        Attributes that all may have seen, or what all may have spent if they have prices.
    """
    best, *others = candidates
    said = [f"With {_amount(candidates, total)} the best is {_who(best)}, error {_estimate(best.error)}"]
    if isnan(best.best_in):
        return f"{said[0]}; which others cannot be told from it, {FEWEST} repetitions or more would say."
    same = [one for one in others if not one.is_worse]
    others_kind = [one for one in others if one.series.of_full_rows != best.series.of_full_rows]
    if same:
        said.append(f"{_listed(list(map(_name, same)))} cannot be told from it")
    elif others:
        said.append("all others are worse")
    other = "k attributes of each example" if best.series.of_full_rows else "full rows"
    if others_kind:
        verdict = "do worse" if others_kind[0].is_worse else "may do as well"
        said.append(f"{other} {verdict}: {_who(others_kind[0])}, {_estimate(others_kind[0].behind)} behind")
    else:
        said.append(f"{other} were not tried")
    return "; ".join(said) + "."


def plot_advice(candidates: Sequence[Candidate], total: int, target: Path) -> list[Path]:
    """Draw error against k: a line for each learner on a budget, a point at k = d for each that sees full rows.

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
    _, y = axes_of([one.series for one in candidates])
    with own_settings():
        figure = Figure(_SIZE, layout="constrained")
        ax = figure.subplots()
        budgets = sorted({one.series.k for one in candidates})
        learners = sorted({one.series.algo for one in candidates})
        for beside, algo in zip(2 ** np.linspace(-_HALF_WIDTH, _HALF_WIDTH, len(learners)), learners, strict=True):
            own = sorted((one for one in candidates if one.series.algo == algo), key=lambda one: one.series.k)
            colour, marker = style(algo)
            full = own[0].series.of_full_rows
            error, low, high = np.array([(one.error.value, one.error.low, one.error.high) for one in own]).T
            ax.errorbar(
                [one.series.k * beside for one in own],
                error,
                np.nan_to_num([error - low, high - error]),  # no bar where the interval is not known
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
        ax.grid(True, color="#E6E6E6", linewidth=0.6)
        ax.set_axisbelow(True)
        figure.legend(loc="outside lower center", ncols=3, fontsize=8.5, frameon=False)
        return write_figure(figure, _caption(candidates, total, y), target, NAME)


def _caption(candidates: Sequence[Candidate], total: int, y: Axis) -> str:
    unit = _unit(candidates)
    counts = " to ".join(map(str, sorted({one.series.repetitions for one in candidates})))
    ended = (
        f"had spent {total} {unit}, or less if it had seen all examples or its draws were cheap"
        if unit
        else f"ended at {total} attributes, or earlier if it had seen all examples"
    )
    text = (
        f"Each point is a learner that {ended}: the mean over {counts} repetitions with its 90 % interval. Those that "
        f"see full rows lie at k = d. y: {y.said}. {_OUTSIDE}"
    )
    lines = [
        f"k = {k}, {algo}: {examples} examples, {paid} attributes{''.join(f', {one} {unit}' for one in cost)}, "
        f"error {error}, behind {behind}, best in {share}"
        for k, algo, examples, paid, *cost, error, behind, share in (_cells(one, unit) for one in candidates)
    ]
    shared = about_config(common([one.series.config for one in candidates]))
    blocks = [f"{NAME}: {y.name} against k", flowing(sentence(candidates, total)), flowing(text)]
    return "\n\n".join([*blocks, "\n".join(map(flowing, lines)), "\n".join(map(flowing, shared))]) + "\n"


def _unit(candidates: Sequence[Candidate]) -> str | None:
    """Return what the total is in where that is money."""
    return common_unit(one.series for one in candidates)


def _amount(candidates: Sequence[Candidate], total: int) -> str:
    return f"{total} {_unit(candidates) or 'attributes'}"


def _cells(one: Candidate, unit: str | None) -> tuple[str, ...]:
    return (
        "all" if one.series.of_full_rows else str(one.series.k),
        one.series.algo,
        str(one.examples),
        f"{one.attributes:.0f}",
        *([money(one.cost)] if unit else []),
        with_interval(one.error),
        with_interval(one.behind) if one.behind.value else "0",
        "-" if isnan(one.best_in) else f"{100 * one.best_in:.0f} %",
    )


def _who(one: Candidate) -> str:
    if one.series.of_full_rows:
        return f"{one.series.algo} on {one.examples} full rows"
    return f"{one.series.algo} with k = {one.series.k} on {one.examples} examples"


def _name(one: Candidate) -> str:
    return f"{one.series.algo} (full rows)" if one.series.of_full_rows else f"{one.series.algo} with k = {one.series.k}"


def _listed(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _estimate(estimate: Estimate) -> str:
    return with_interval(estimate).replace("(", "(90 % interval ")

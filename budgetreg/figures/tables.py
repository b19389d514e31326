"""Tables that commands print and reports show: those of runs, of savings and of studies."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import floor, isnan, log10
from pathlib import Path

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from budgetreg.analysis.comparisons import Incomparable, ResampledCurves, Saving, ranked, savings
from budgetreg.analysis.intervals import FEWEST, Estimate
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.common.notices import in_one_line, plural, right, table
from budgetreg.config.options import AUTO
from budgetreg.figures.captions import (
    amount,
    charged_per_example,
    chosen_parameters,
    repetitions_of,
    rounded,
    with_interval,
)
from budgetreg.figures.specification import axes_of
from budgetreg.revealed.purchases import Alternative, Draws
from budgetreg.runs.series import Series, common_unit, labelled, read_folder
from budgetreg.runs.tables import AUC
from budgetreg.study.error import ENOUGH, Estimates
from budgetreg.study.state import UNORDERED, State, StudyBill

_MOST_ROWS = 20
_NARROW = 7  # letters of a column with deviations or intervals
_READABLE = 100  # letters of a line
_ROUNDING = 1e-12
OF_LABELS = {"test_error_rate": "error rate", AUC: "AUC"}
"""Names of the measures of targets with two values."""
_OF_REGRESSORS = {"test_relative": "relative error", "test_mse": "test mse", **OF_LABELS, "test_svr_loss": "SVR loss"}
_OF_SUBSPACES = {"excess_loss": "excess loss", "relative_error": "relative error", "principal_angle": "angle"}
_ONLY_ALONG_A_RUN = ("test_mse", "test_svr_loss")
_WORSE_BY = "worse by"
_ABOUT_WORSE_BY = f"{_WORSE_BY}: error minus that of the best that sees k attributes, or of the best on full rows"
_INTERVAL = ", with its 90 % interval over shared repetitions"
_MEANING = "mean ± s.d. over repetitions; relative error: mse / that without attributes"
_SUBSPACE_MEANING = (
    "mean ± s.d. over repetitions; excess loss: above that of the best subspace; relative error: share of squared "
    "length outside the subspace; angle: largest to the best subspace, in degrees"
)


def run_table(folder: Path) -> Table:
    """Return a table of a run: a row per checkpoint, at most 20 of them, the last one always included.

    Parameters
    ----------
    folder : Path
        The folder of the run, or of merged results. Runs in folders below it are left out.

    Returns
    -------
    Table
        Examples, attributes (mean over repetitions) and test errors (mean ± standard deviation over
        repetitions); below it repetitions, attributes charged per example and chosen parameters.

    Raises
    ------
    DataError
        As for `budgetreg.runs.series.read_series`.
    """
    series = labelled(read_folder(folder))
    several = len(series) > 1
    shared = sorted({f"{curve.dataset}, k = {curve.k}" for curve in series})
    bills = [f"{curve.label}: {_bill(curve)}" if several else _bill(curve) for curve in series]
    means = [curve.mean for curve in series]
    measures = _measures(series, pd.concat(means))
    if all("test_mse" in mean and mean["test_mse"].equals(mean["test_relative"]) for mean in means):
        measures.pop("test_mse", None)  # equal for labels of -1 and +1
    units = _units(series)
    table = new_table(
        "; ".join(shared if several else [f"{series[0].label} on {shared[0]}"]),
        [_SUBSPACE_MEANING if series[0].of_subspaces else _MEANING, *bills],
        *(["learner"] if several else []),
        *(Column(head, justify="right", no_wrap=True) for head in _heads(units, measures)),
    )
    for curve, mean in zip(series, means, strict=True):
        kept = np.linspace(0, len(mean) - 1, min(len(mean), _MOST_ROWS)).round().astype(int)
        for _, row in mean.iloc[kept].iterrows():
            table.add_row(*([curve.label] if several else []), *_cells(curve, row, units, mean[list(measures)].max()))
        table.add_section()
    return table


def comparison_tables(series: Sequence[Series]) -> list[Table]:
    """Return a table for each data set of how several runs end: those on a budget, then on full rows, the best first.

    Parameters
    ----------
    series : sequence of Series
        As `budgetreg.runs.series.read_series` returns them.

    Returns
    -------
    list of Table
        One row per series, with its difference from the best of its group: full rows or a budget.
    """
    return [_comparison(list(group)) for _, group in groupby(series, key=lambda curve: curve.dataset)]


def _comparison(series: Sequence[Series]) -> Table:
    """Return the table of the runs on one data set."""
    of_subspaces = series[0].of_subspaces
    by = "relative_error" if of_subspaces else "test_relative"
    ranks = [
        [(curve, curve.mean.iloc[-1], behind) for curve, behind in _ranks(group, by)]
        for group in ([curve for curve in series if curve.of_full_rows == full] for full in (False, True))
        if group
    ]
    last = pd.DataFrame([row for group in ranks for _, row, _ in group])
    measures = {key: head for key, head in _measures(series, last).items() if key not in _ONLY_ALONG_A_RUN}
    largest = last[list(measures)].max()
    units, meaning = _units(series), _SUBSPACE_MEANING if of_subspaces else _MEANING
    interval = _INTERVAL if any(curve.repetitions >= FEWEST for curve in series) else ""
    table = new_table(
        f"{series[0].dataset}, at the last checkpoint",
        [f"{meaning}; {_ABOUT_WORSE_BY}{interval}"],
        *(Column(head, overflow="fold") for head in ("learner", "sees")),
        # On a narrow terminal, deviations and intervals stand below their numbers.
        *(
            Column(head, justify="right", overflow="fold", min_width=_NARROW)
            if head in (_WORSE_BY, *measures.values())
            else Column(head, justify="right", no_wrap=True, min_width=len(head))
            for head in ("k", *_heads(units, measures), _WORSE_BY, "reps")
        ),
    )
    for group in ranks:
        for curve, row, behind in group:
            table.add_row(
                f"{curve.algo} {curve.variant}".strip(),
                "all" if curve.of_full_rows else "k",
                str(curve.k),
                *_cells(curve, row, units, largest),
                behind,
                str(curve.repetitions),
            )
        table.add_section()
    return table


def _ranks(series: Sequence[Series], by: str) -> list[tuple[Series, str]]:
    """Return the series, the best first, with the difference of each from the best."""
    try:
        candidates = ranked(series, by)
    except Incomparable:  # no repetition in common
        return [(curve, "-") for curve in sorted(series, key=lambda curve: curve.mean[by].iloc[-1])]
    best, *others = [(candidate.series, candidate.behind) for candidate in candidates]
    return [(best[0], "-"), *((curve, with_interval(behind)) for curve, behind in others)]


class _Notes(Text):
    """Lines below a table that are as wide as the terminal, or as 100 letters, even if the table is narrower."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        width = min(console.width, max(_READABLE, options.max_width))
        yield from super().__rich_console__(console, options.update(width=width, justify="default"))


def new_table(title: str, caption: Iterable[str], *columns: str | Column) -> Table:
    """Return an empty table in the style of all results, with the lines of its caption."""
    return Table(
        *columns,
        title=title,
        caption=_Notes("\n".join(map(in_one_line, caption)), "table.caption"),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )


def _measures(series: Sequence[Series], means: pd.DataFrame) -> dict[str, str]:
    """Return the measures that are known of some series, with their names."""
    heads = _OF_SUBSPACES if series[0].of_subspaces else _OF_REGRESSORS
    return {measure: head for measure, head in heads.items() if measure in means and means[measure].notna().any()}


def _units(series: Sequence[Series]) -> list[str]:
    """Return the units of money; each has a column."""
    return sorted({curve.unit for curve in series if curve.unit})


def _heads(units: Sequence[str], measures: Mapping[str, str]) -> list[str]:
    return ["examples", "attributes", *units, *measures.values()]


def _cells(series: Series, row: pd.Series, units: Sequence[str], largest: pd.Series) -> list[str]:
    """Return a checkpoint's numbers, one for each of `_heads`, with the largest value of each measure."""
    paid = [amount(row["cost"]) if series.unit == unit else "-" for unit in units]
    errors = [_mean_sd(row, str(measure), value) for measure, value in largest.items()]
    examples = "-" if series.k == AUTO else f"{row['examples']:,.0f}"  # with k=auto, the column has what was spent
    return [examples, f"{row['attributes']:,.0f}", *paid, *errors]


def _mean_sd(row: pd.Series, measure: str, largest: float) -> str:
    """Return a mean and its deviation; what is rounding beside the column's largest value counts as 0."""
    mean, sd = (0.0 if abs(value) < _ROUNDING * largest else value for value in (row[measure], row[f"{measure}_sd"]))
    if pd.isna(mean):
        return "-"
    if pd.isna(sd):
        return f"{mean:.4g}"
    if not 1e-4 <= sd < 1e6:
        return f"{mean:.4g} ± {sd:.2g}"
    decimals = max(0, 1 - floor(log10(sd)))  # two digits of the deviation, and no more of the mean
    return f"{mean:.{decimals}f} ± {sd:.{decimals}f}"


def _bill(series: Series) -> str:
    bill = charged_per_example(series.runs)
    parts = [
        repetitions_of([series]),
        f"attributes per example: {bill}" if bill else "",
        chosen_parameters(series.runs),
    ]
    return "; ".join(filter(None, parts))


SAVED = ("attributes", "cost")
"""What can be compared."""


def savings_table(
    series: Sequence[Series], first: Path | None = None, level: float | None = None, axis: str | None = None
) -> tuple[Table, str]:
    """Return a table of what the runs on one data set need to reach an error, and a line about it.

    Parameters
    ----------
    series : sequence of Series
        The runs, as `budgetreg.runs.series.read_series` returns them.
    first : Path, optional
        The folder whose best run the others are compared with if none sees full rows; by default the best of all.
    level : float, optional
        The error to reach; by default all round levels that some curve falls to.
    axis : str, optional
        A key of `SAVED`; money by default if all runs have prices in one unit, else attributes.

    Raises
    ------
    ConfigError
        If money is compared without prices in one unit.
    DataError
        If the runs have no repetition in common, or no curve falls to a level.
    """
    unit = common_unit(series)
    axis = axis or ("cost" if unit else "attributes")
    if axis == "cost" and unit is None:
        units = ", ".join(f"{run.label} {f'in {run.unit}' if run.unit else 'without'}" for run in series)
        raise ConfigError(f"axis=cost: {series[0].dataset}: all runs need prices in one unit: {units}")
    _, y = axes_of(series)
    reference = _reference(series, first, y.column)
    try:
        needs = savings(series, y.column, level, reference=reference, x=axis)
        measures = {head: _at_levels(series, needs, name, axis) for name, head in OF_LABELS.items()}
    except Incomparable as error:
        raise DataError(f"{series[0].dataset}: {error}") from error
    if not needs:
        flat = "no curve falls to a round level; give one"
        if all(len(run.mean) == 1 for run in series):
            flat = "the runs have one checkpoint each: run them with checkpoints=10, or give an error to reach"
        raise DataError(f"{series[0].dataset}: {flat}, such as error=0.5")
    known = {head: values for head, values in measures.items() if values}
    paid = unit if unit and axis == "cost" else axis
    numbers = right(paid, "90 % interval", *known, "ratio", "90 % interval")
    heads = [*right("error"), "learner", *numbers, "reference"]
    full = any(run.of_full_rows and not run.of_subspaces for run in series)
    best = "the best of these runs" if first is None else f"the best run in {first}"
    named = (
        f"the full-row learner that needs the {'least' if paid == unit else 'fewest'}"
        if full
        else f"{reference}, {best}"
    )
    about = [
        f"reference: {named}; ratio: what it needs / what the learner needs",
        *([f"{' and '.join(known)}: where the error is reached"] if known else []),
    ]
    rows = _rows(needs, list(zip(*known.values(), strict=True)) or [()] * len(needs))
    return table(heads, rows, title=f"{series[0].dataset}: {y.label}"), "; ".join(about)


def _reference(series: Sequence[Series], first: Path | None, measure: str) -> str:
    """Return the label of the run with the least error at its end, among those in and below a folder, or all."""
    below = [run for run in series if first is None or run.folder.resolve().is_relative_to(first.resolve())]
    return min(below, key=lambda run: run.mean[measure].iloc[-1]).label if below else ""


def _at_levels(series: Sequence[Series], needs: Sequence[Saving], measure: str, axis: str) -> list[str]:
    """Return the mean of a measure where each run needs what it needs; nothing if some curve lacks the measure."""
    if not all(measure in run.points and run.points[measure].notna().all() for run in series):
        return []
    comparison = ResampledCurves(series, measure, axis)
    curves = {run.label: comparison.means(run) for run in series}
    values = (float(curves[need.label].at(np.array([need.needed.value]))[0, 0]) for need in needs)
    return ["-" if isnan(value) else f"{value:.3g}" for value in values]


def _rows(needs: Sequence[Saving], measures: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    before = None
    for need, at_level in zip(needs, measures, strict=True):
        factor = ["", "", ""]
        if need.reference not in ("", need.label):
            factor = [*_with_bound(need.factor, need.factor_is), need.reference]
        level = "" if need.error == before else f"{need.error:g}"
        yield [level, need.label, *_with_bound(need.needed, need.needed_is), *at_level, *factor]
        before = need.error


def _with_bound(estimate: Estimate, read: str) -> tuple[str, str]:
    """Return a number, behind ``at least`` or the like if it is a bound, and its interval."""
    number, low, high = rounded(estimate)
    known = not (isnan(estimate.low) and isnan(estimate.high))
    return read if isnan(estimate.value) else f"{read} {number}".lstrip(), f"{low} to {high}" if known else "-"


ABOUT_ESTIMATES = "error relative to that of the mean target, estimated without complete rows, with 90 % intervals:"


def size_of(state: State) -> str:
    """Return how many examples, targets, attributes and values a study has."""
    n, d = state.values.shape
    excluded = int(state.excluded.sum())
    return (
        f"{plural(n, 'example')}, {int(state.known_targets.sum()):,} of them with the target {state.facts['target']}; "
        f"{plural(d, 'attribute')}; {int(state.known.sum()):,} of {plural(n * d, 'value')} known"
        f"{f', {excluded:,} excluded' if excluded else ''}"
    )


def paid_in_all(bill: StudyBill) -> str:
    """Return what a study has paid, and what its pending values will cost."""
    pending = f", and {exact_money(bill.on_order)} {bill.unit} for what is on order" if bill.on_order else ""
    return f"paid: {exact_money(bill.total)} {bill.unit}{pending}"


def estimates_table(estimates: Estimates, unit: str) -> Table:
    """Return a table of the estimated errors and the forecast."""
    rows = [
        ("all attributes of a new example are measured", estimates.error.complete),
        ("as many are measured as were bought on average", estimates.error.as_bought),
        *((f"all are measured, after {exact_money(more)} {unit} more", error) for more, error in estimates.further),
    ]
    cells = ((what, f"{each.estimate:.3f}", f"{each.low:.3f} to {each.high:.3f}") for what, each in rows)
    judged = estimates.error.judged
    few = f"Only {judged} examples could be judged. An error that is estimated from fewer than {ENOUGH} says little."
    caption = _Notes(few) if judged < ENOUGH else None
    return table(("if", *right("error", "interval")), cells, caption=caption, caption_justify="left")


def alternatives_table(alternatives: Iterable[Alternative]) -> Table:
    """Return a table of what a purchase was compared with."""
    heads = ("attributes of each example", "examples", *(draws.value for draws in Draws))
    rows = (
        (depth, f"{examples:,}", *(f"{errors[draws]:.3f}" for draws in Draws))
        for depth, examples, errors in alternatives
    )
    caption = "The expected error, by how the attributes of an example are chosen."
    return table(right(*heads), rows, caption=_Notes(caption), caption_justify="left")


def bill_tables(bill: StudyBill) -> Iterator[Table]:
    """Give the bill by attribute and, if there are orders, by order."""
    heads = ("attribute", *right("price", "free", "paid", "on order", "unavailable", bill.unit))
    rows = (
        (f"{name} (excluded)" if excluded else name, exact_money(price), *counts, exact_money(cost))
        for name, price, *counts, cost, excluded in bill.by_attribute.itertuples(index=False)
    )
    yield table(heads, rows)
    if bill.by_order.empty:
        return
    filled = table(("order", *right("asked", "paid", "on order", "unavailable", bill.unit), ""), ())
    for number, asked, *counts, cost, cancelled in bill.by_order.itertuples(index=False):
        order = ("none", "") if number == UNORDERED else (str(number), exact_money(asked))
        filled.add_row(*order, *map(str, counts), exact_money(cost), "cancelled" if cancelled else "")
    yield filled


def exact_money(value: float) -> str:
    """Return a sum of money as text, with up to 14 digits: more would show the rounding of sums of floats."""
    return f"{value:,.14g}"

"""What was found by runs: sentences, figures and tables, as other commands print and draw them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from budgetreg.analysis.comparisons import Candidate, Incomparable, ranked
from budgetreg.errors import DataError
from budgetreg.figures import advice
from budgetreg.figures.captions import repetitions_of, with_interval
from budgetreg.figures.registry import plot
from budgetreg.figures.specification import Drawing, axes_of
from budgetreg.figures.tables import comparison_table, run_table, savings_table
from budgetreg.report.images import drawn
from budgetreg.report.page import PagePart, PageTable, Section
from budgetreg.report.tables import page_table
from budgetreg.runs.series import Series, common_unit


def about_runs(series: Sequence[Series], folders: Sequence[Path]) -> Section:
    """Return what one run, or several side by side, found.

    Parameters
    ----------
    series : sequence of Series
        The curves, as `budgetreg.runs.series.labelled` returns them.
    folders : sequence of Path
        Where they were read.
    """
    picture = drawn(lambda folder: plot(series, folder, "curves" if series[1:] else "curve"))
    tables = [run_table(folder) for folder in folders] if not series[1:] else [comparison_table(series)]
    parts = [
        PagePart("Test error", pictures=[picture]),
        PagePart("Results", tables=[page_table(table) for table in tables]),
    ]
    if series[1:]:
        parts.append(_savings(series))
        title = f"{len(series)} runs on {_listed(curve.dataset for curve in series)}"
        return Section(title, "sweep", list(_best(series)), parts=parts)
    (curve,) = series
    return Section(f"{curve.label} on {curve.dataset}, k = {curve.k}", "run", list(_best(series)), parts=parts)


def about_advice(series: Sequence[Series], total: int) -> Section:
    """Return what an advice for a total recommends.

    Raises
    ------
    DataError
        If its runs have no repetition in common.
    """
    try:
        candidates = ranked(series, axes_of(series)[1].column)
    except Incomparable as error:
        raise DataError(f"{series[0].folder.parent}: {error}") from error
    picture = drawn(lambda folder: plot((candidates, total), folder, advice.NAME, Drawing(kind="advice")))
    lines = [advice.sentence(candidates, total), advice.about_full_rows(candidates)]
    title = f"Advice for a total of {total:,} {common_unit(series) or 'attributes'} on {series[0].dataset}"
    parts = [
        PagePart("Test error against k", pictures=[picture]),
        PagePart("Candidates", tables=[page_table(advice.advice_table(candidates, total))]),
    ]
    return Section(title, "advice", [line for line in lines if line], parts=parts)


def about_fits(series: Sequence[Series]) -> Section:
    """Return what models are that were learned from all rows; without a test part, nothing is known of their errors."""
    learned = [
        f"{curve.label}, k = {curve.k}, learned from {curve.points['examples'].max():,} of the {curve.n_train:,} rows "
        f"of {curve.dataset}."
        for curve in series
    ]
    title = f"Model of {_listed(curve.dataset for curve in series)}, learned from all rows"
    return Section(title, "model", [*learned, "No row was kept for a test, so that no error was estimated."])


def _best(series: Sequence[Series]) -> Iterator[str]:
    """Give a sentence for each data set: the least error at the end, of learners on a budget and on full rows."""
    for dataset, group in groupby(series, key=lambda curve: curve.dataset):
        curves = list(group)
        _, y = axes_of(curves)
        try:
            candidates = ranked(curves, y.column)
        except Incomparable:  # the tables show each run by itself
            continue
        if not curves[1:]:
            yield f"{_ending(candidates[0])}, mean over {repetitions_of(curves)}. Error: {y.label}."
            continue
        limited, full = (
            next((each for each in candidates if each.series.of_full_rows == rows), None) for rows in (False, True)
        )
        clauses = [
            f"{words}{_ending(each)}"
            for each, words in ((limited, ""), (full, "of the learners on full rows, " if limited else ""))
            if each is not None
        ]
        yield (
            f"On {dataset}, the least error at the last checkpoint, mean over {repetitions_of(curves)}: "
            f"{'; '.join(clauses)}. Error: {y.label}."
        )


def _ending(candidate: Candidate) -> str:
    error = with_interval(candidate.error).replace("(", "(90 % interval ")
    seen = f"{candidate.attributes:,.0f} attributes of {candidate.examples:,} examples"
    return f"{candidate.series.label} ends at an error of {error}, after {seen}"


def _savings(series: Sequence[Series]) -> PagePart:
    """Return how many attributes, or how much money, runs need to reach an error, for each data set."""
    tables: list[PageTable] = []
    lacks: list[str] = []
    for _, group in groupby(series, key=lambda curve: curve.dataset):
        try:
            table, about = savings_table(list(group))
        except DataError as error:
            lacks.append(f"{error}.")
            continue
        tables.append(page_table(table, notes=[about]))
    return PagePart("What it takes to reach an error", lacks, tables=tables)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))

"""The sections of a report: runs, advice, models, studies and reproduced figures, as other commands show them."""

import csv
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from budgetreg import __version__
from budgetreg.analysis.comparisons import Candidate, Incomparable, ranked
from budgetreg.analysis.outside import recorded
from budgetreg.common.errors import DataError
from budgetreg.common.files import content_of_regular, files_below, refuse_foreign, write_atomically
from budgetreg.data.registry import ALL
from budgetreg.data.tables import damage_reported
from budgetreg.figures import advice
from budgetreg.figures.captions import in_full, repetitions_of, rounded_texts
from budgetreg.figures.page import GENERATOR, PagePart, PageTable, Section, drawn, html, image_of, listing, page_table
from budgetreg.figures.provenance import bill, provenance
from budgetreg.figures.specification import Drawing, axes_of
from budgetreg.figures.tables import (
    ABOUT_ESTIMATES,
    bill_tables,
    comparison_tables,
    estimates_table,
    paid_in_all,
    right,
    run_table,
    savings_table,
    size_of,
)
from budgetreg.runs.journal import RunStatus, read_status
from budgetreg.runs.manifest import cells_of, read_manifest, read_merged_manifest, results_manifest, run_manifest
from budgetreg.runs.series import Series, common_unit, labelled, read_folder
from budgetreg.runs.tables import CLAIMS, CURVES, MANIFEST, MODEL, REPORT, SAVINGS, rows_of
from budgetreg.study import Study
from budgetreg.study.state import State

_NAMED = 3  # places in the heading of the page
_ENDS = "Errors at the last checkpoint"


def write_report(places: Sequence[Path], out: Path | None = None) -> Path:
    """Write one page about some results.

    Parameters
    ----------
    places : sequence of Path
        Folders of runs, of advice or of reproduced figures, or above such, and files of studies; at least one.
    out : Path, optional
        The file. By default ``report.html`` in the folder, for one study its name with the ending ``.html`` beside it,
        and for several places ``report.html`` in the current folder.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ConfigError
        If another file is there.
    DataError
        If a place holds no results, or nothing is finished there, or a file is damaged.
    """
    target = out or _default(places)
    if os.path.lexists(target):  # which accepts names of any length
        refuse_foreign(target, lambda content: GENERATOR.encode() in content, places)
    sections = [section for place in places for section in _sections(place)]
    title = f"Report: {_names(places)}" if sections[1:] else sections[0].title
    write_atomically(target, html(title, __version__, sections))
    return target


def _default(places: Sequence[Path]) -> Path:
    if len(places) > 1:
        return Path(REPORT)
    (place,) = places
    return place / REPORT if os.path.isdir(place) else place.with_suffix(".html")


def _names(places: Sequence[Path]) -> str:
    names = [place.resolve().name for place in places]
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _sections(place: Path) -> Iterator[Section]:
    """Give the sections about a folder, with all results in and below it, or about a study."""
    if not os.path.isdir(place):
        if not os.path.exists(place):  # which accepts names of any length
            raise DataError(f"{place}: no such folder or study")
        yield section_of_study(place)
        return
    runs: list[RunStatus] = []
    figures: list[Path] = []
    for path in files_below(place, MANIFEST):
        if read_merged_manifest(path.parent) is not None:
            figures.append(path.parent)
        elif read_manifest(path.parent) is not None:
            runs.append(read_status(path.parent))
    if not runs and not figures:
        raise DataError(f"{place} holds no run and no reproduced figure (a run leaves a {MANIFEST})")
    if runs:
        yield from sections_of_runs(place, runs)
    yield from map(section_of_figure, figures)


def about_runs(series: Sequence[Series], folders: Sequence[Path]) -> Section:
    """Return what one run, or several side by side, found.

    Parameters
    ----------
    series : sequence of Series
        The curves, as `budgetreg.runs.series.labelled` returns them.
    folders : sequence of Path
        Where they were read.
    """
    test_error = PagePart("Test error", pictures=[drawn(series, "curves" if series[1:] else "curve")])
    if series[1:]:
        title = f"Comparison of {len(series)} runs on {_listed(curve.dataset for curve in series)}"
        ends = PagePart(_ENDS, tables=list(map(page_table, comparison_tables(series))))
        return Section(title, "sweep", list(_best(series)), parts=[test_error, ends, _savings(series)])
    (curve,) = series
    title = f"Test error of {curve.label} on {curve.dataset}, k = {curve.k}"
    along = PagePart("Errors at the checkpoints", tables=list(map(page_table, map(run_table, folders))))
    return Section(title, "run", list(_best(series)), parts=[test_error, along])


def about_advice(series: Sequence[Series], total: int, folder: Path) -> Section:
    """Return what is recommended for a total, with what `budgetreg advise` compared beside the runs in its folder.

    Raises
    ------
    DataError
        If its runs have no repetition in common, or the table of the recommendation is damaged.
    """
    try:
        candidates = ranked(series, axes_of(series)[1].column, total)
    except Incomparable as error:
        raise DataError(f"{folder}: {error}") from error
    table = folder / f"{advice.NAME}.csv"
    with damage_reported(table, ValueError, KeyError, TypeError, csv.Error):
        candidates += recorded(_rows(table), candidates)
    picture = drawn((candidates, total), advice.NAME, Drawing(kind="advice"))
    verdict, *others = advice.answer(candidates, total)
    title = f"Recommended learner and k for {total:,} {common_unit(series) or 'attributes'} of {series[0].dataset}"
    parts = [
        *([PagePart("How the others compare", points=others)] if others else []),
        PagePart("Test error against k", pictures=[picture]),
        PagePart("Candidates", tables=[page_table(advice.advice_table(candidates, total))]),
    ]
    return Section(title, "recommendation", [verdict], parts=parts)


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
        about = f"Mean over {repetitions_of(curves)}; error: {y.label}."
        if not curves[1:]:
            yield f"{candidates[0].series.label} ends at an error of {_ending(candidates[0])}. {about}"
            continue
        kinds = {False: "learners that see k attributes of an example", True: "learners on full rows"}
        best = {each.series.of_full_rows: each for each in reversed(candidates)}
        lowest = (
            f"{best[full].series.label} has the lowest error of {words}: {_ending(best[full])}."
            for full, words in kinds.items()
            if full in best
        )
        yield f"On {dataset}, {' '.join(lowest)} {about}"


def _ending(candidate: Candidate) -> str:
    after = f"after {candidate.attributes:,.0f} attributes of {candidate.examples:,} examples"
    return f"{in_full(candidate.error)}, {after}"


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


_DIGESTED = (CURVES, MODEL)
"""Files that have the same bytes whenever the same run is computed; others hold seconds."""


class _Kind(NamedTuple):
    """What the runs of a section share.

    Attributes
    ----------
    fitted : bool
        Whether they were learned from all rows, without a test.
    of_subspaces : bool
        Whether their learners learn subspaces.
    advice : (int, Path) or None
        The total and the folder of the advice that they belong to.
    """

    fitted: bool
    of_subspaces: bool
    advice: tuple[int, Path] | None


def sections_of_runs(place: Path, runs: Sequence[RunStatus]) -> Iterator[Section]:
    """Give the sections about the runs in and below a folder.

    Learners of regressors and of subspaces, and models without a test, have a section each, as do different
    recommendations.

    Parameters
    ----------
    place : Path
        The folder.
    runs : sequence of RunStatus
        The runs in and below it.

    Raises
    ------
    DataError
        If no repetition of any is finished, or a file is damaged.
    """
    by_kind: dict[_Kind, list[Path]] = {}
    shown = {run.folder: 0 if run.damage else _repetitions(run.folder) for run in runs}
    for run in runs:
        if shown[run.folder]:
            by_kind.setdefault(_kind(run.folder), []).append(run.folder)
    counts = f"{sum(run.finished for run in runs)} of {sum(run.planned for run in runs)} repetitions"
    if not by_kind:
        for run in runs:
            if run.damage:
                raise DataError(f"{place}: nothing can be shown: {run.damage}")
        raise DataError(f"{place}: nothing is finished yet ({counts}, and no table); the command that made it resumes")
    warnings, states = _unfinished(place, runs, f"{counts} are finished. This page shows {sum(shown.values())}.")
    sections = [_section(place, kind, folders) for kind, folders in by_kind.items()]
    if states and sections[1:]:
        yield Section("Runs that are not complete", "unfinished", (), warnings, states)
        warnings, states = [], []
    for section in sections:
        yield replace(section, warnings=warnings, parts=[*states, *section.parts])


def _kind(folder: Path) -> _Kind:
    first, *_ = read_folder(folder)
    total = first.config.get("total") or 0
    advised = total > 0 and (folder.parent / f"{advice.NAME}.txt").is_file()
    fitted = first.config.get("dataset", {}).get("split") == ALL
    return _Kind(fitted, first.of_subspaces, (total, folder.parent) if advised else None)


def _section(place: Path, kind: _Kind, folders: Sequence[Path]) -> Section:
    series = labelled(curve for folder in folders for curve in read_folder(folder))
    if kind.fitted:
        section = about_fits(series)
    elif kind.advice:
        section = about_advice(series, *kind.advice)
    else:
        section = about_runs(series, folders)
    manifests = {folder: run_manifest(folder) for folder in folders}
    notes = list(dict.fromkeys(note for manifest in manifests.values() for note in manifest.get("notes", ())))
    cells, files = [], {}
    for folder, manifest in manifests.items():
        name, (cell,) = _name(place, folder), cells_of(manifest)
        cells.append(replace(cell, name=name))
        files[name] = {file: manifest["tables"].get(file, "-") for file in _DIGESTED}
    promised = [(manifest["algo"], manifest["promised"]) for manifest in manifests.values() if "promised" in manifest]
    source = provenance(cells, promised, files)
    parts = [*section.parts, bill(series), *([PagePart("Remarks on the runs", points=notes)] if notes else []), source]
    return replace(section, parts=parts)


def _repetitions(folder: Path) -> int:
    """Return how many repetitions the tables of a run hold; a process writes them when it ends or is interrupted."""
    return len({row["repetition"] for row in _rows(folder / CURVES)})


def _unfinished(place: Path, runs: Sequence[RunStatus], counts: str) -> tuple[list[str], list[PagePart]]:
    """Return a warning that ends with counts, and a part, about runs that are not complete; nothing if all are."""
    lacking = [run for run in runs if run.state != "complete"]
    if not lacking:
        return [], []
    which = f"{len(lacking)} of {len(runs)} runs are not complete" if runs[1:] else f"the run is {runs[0].state}"
    heads = ("run", "state", *right("planned", "finished", "failed"), "what it lacks")
    rows = [
        (_name(place, run.folder), run.state, run.planned, run.finished, run.failed, _lacks(run)) for run in lacking
    ]
    return (
        [f"{which}: {counts}"],
        [PagePart("What is missing in these runs", tables=[listing("Runs that are not complete", heads, rows)])],
    )


def _lacks(run: RunStatus) -> str:
    return "; ".join([*([run.damage] if run.damage else []), *(f"{what}: {why}" for what, _, why in run.lacks())])


def _name(place: Path, folder: Path) -> str:
    """Return what the page calls a run: its path below the folder that was asked for."""
    below = folder.resolve().relative_to(place.resolve())
    return str(below) if below.parts else place.resolve().name


_BILLS = ("By attribute", "By order")
_FACTS = {
    "algo": "learner",
    "seed": "seed of all draws",
    "target": "column to predict",
    "id": "column of the examples' names",
    "unit": "unit of the prices",
}


def section_of_study(path: Path) -> Section:
    """Return the section about a study; its estimates are kept in the file, as ``budgetreg study show`` does.

    Raises
    ------
    DataError
        If the file is no study, or damaged.
    """
    with Study(path) as study:
        state, bill = study.state(), study.bill()
        warnings, estimated, findings = [], [], [f"{_sentence(paid_in_all(bill))}. {size_of(state)}."]
        try:
            estimates = study.estimates()
        except DataError as error:
            warnings.append(f"There is no estimate of the error: {error}")
        else:
            now = estimates.error.complete
            findings.insert(
                0,
                f"The estimated error for a new example is {now.estimate:.3f} of that of the mean target (90 % interval"
                f" {now.low:.3f} to {now.high:.3f}), if all attributes of it are measured.",
            )
            estimated.append(
                page_table(estimates_table(estimates, bill.unit), _sentence(ABOUT_ESTIMATES.removesuffix(":")))
            )
        name = path.resolve().stem
        picture = drawn(study, name, Drawing(kind="study"))
        events = Counter(study.log()["event"])
    bills = [page_table(table, caption) for table, caption in zip(bill_tables(bill), _BILLS, strict=False)]
    parts = [
        PagePart("Estimated error, and what is known", pictures=[picture], tables=estimated),
        PagePart("What was paid", tables=bills),
        PagePart("Settings and events", tables=list(_provenance(state, events)), folded=True),
    ]
    return Section(f"Study {name}: estimated error and bill", "study", findings, warnings, parts)


def _sentence(text: str) -> str:
    """Return text with a capital letter at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def _provenance(state: State, events: Mapping[str, int]) -> Iterator[PageTable]:
    facts = [(what, state.facts[key]) for key, what in _FACTS.items() if key in state.facts]
    yield listing("How the study was created", ("what", "value"), facts)
    yield listing("Recorded events", ("event", *right("times")), sorted(events.items()))


_Row = Mapping[str, str]
_VERDICTS = {"holds": "hold", "fails": "fail", "undecided": "undecided"}
_MEANING = (
    "A claim holds if the 90 % interval of its statistic lies where the claim wants it, fails if the interval lies "
    "outside, and is undecided otherwise."
)


def section_of_figure(folder: Path) -> Section:
    """Return the section about the merged results of a recipe.

    Raises
    ------
    DataError
        If there are none, or a file is damaged.
    """
    manifest = results_manifest(folder)
    series = labelled(read_folder(folder))
    pictures = [image_of(path) for path in sorted(folder.glob("curves*.png"))]
    claims, savings = _rows(folder / CLAIMS), _rows(folder / SAVINGS)
    parts = [
        PagePart("Figure", pictures=pictures),
        PagePart("Claims and verdicts", tables=[_claims(claims)] if claims else []),
        PagePart(_ENDS, tables=list(map(page_table, comparison_tables(series)))),
        PagePart(
            "What it takes to reach an error", tables=[_recorded_savings(savings)] if savings else [], folded=True
        ),
        PagePart("How this differs from the paper", points=manifest["differs"]),
        bill(series),
        provenance(cells_of(manifest), manifest["promised"].items()),
    ]
    findings = [manifest["title"], *([_tally(claims)] if claims else [])]
    shown = [part for part in parts if part.pictures or part.tables or part.points]
    return Section(f"Reproduction of {manifest['recipe']}", "reproduced figure", findings, parts=shown)


def _tally(rows: Sequence[_Row]) -> str:
    counts = Counter(row["verdict"] for row in rows)
    tally = ", ".join(f"{counts[verdict]} {words}" for verdict, words in _VERDICTS.items() if counts[verdict])
    return f"Claims: {tally}{', counted for each preset' if any(row['protocol'] for row in rows) else ''}."


def _claims(rows: Sequence[_Row]) -> PageTable:
    heads = ("claim", "preset", "verdict", *right("estimate", "90 % interval"), "wanted", *right("repetitions"))
    cells = [
        (
            f"{row['says']} ({row['claim']})",
            row["protocol"] or "-",
            ": ".join(filter(None, [row["verdict"], row["note"]])),
            *(text or "-" for text in _rounded(row, "estimate", "interval")),
            row["wanted"],
            row["repetitions"],
        )
        for row in rows
    ]
    return listing("Claims, with the statistic that decides each", heads, cells, [_MEANING])


def _recorded_savings(rows: Sequence[_Row]) -> PageTable:
    heads = ("panel", *right("error"), "learner", *right("attributes", "90 % interval", "ratio"), "reference")
    cells = []
    for row in rows:
        needed, interval = _rounded(row, "attributes")
        needed, factor = f"{row['attributes_are']} {needed}", f"{row['factor_is']} {_rounded(row, 'factor')[0]}"
        reference = row["reference"] if row["reference"] != row["learner"] else ""
        cells.append(
            (row["panel"], row["error"], row["learner"], needed.strip(), interval, factor.strip() or "-", reference)
        )
    return listing("Attributes seen in training until the mean error has fallen to a level", heads, cells)


def _rounded(row: _Row, name: str, ends: str = "") -> tuple[str, str]:
    """Return a number of a table and its interval, both as text in the digits that the interval supports."""
    number, low, high = rounded_texts(row[name], row[f"{ends or name}_low"], row[f"{ends or name}_high"])
    return number, f"{low or '?'} to {high or '?'}" if low or high else "-"


def _rows(path: Path) -> Sequence[_Row]:
    """Return the rows of a table; none if there is no file."""
    return rows_of(content_of_regular(path)) if path.is_file() else []

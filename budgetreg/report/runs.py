"""Sections about runs: one, several side by side, an advice, or a model that was learned from all rows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from budgetreg.data.registry import ALL
from budgetreg.errors import DataError
from budgetreg.figures import advice
from budgetreg.figures.tables import right
from budgetreg.files import content_of_regular
from budgetreg.report.bill import bill
from budgetreg.report.findings import about_advice, about_fits, about_runs
from budgetreg.report.page import PagePart, Section
from budgetreg.report.provenance import Computed, provenance
from budgetreg.report.tables import listing
from budgetreg.runs.journal import RunStatus
from budgetreg.runs.manifest import cells_of, run_manifest
from budgetreg.runs.series import labelled, read_folder
from budgetreg.runs.tables import CURVES, MODEL, rows_of

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
    advised : Path or None
        The folder of the advice that they belong to.
    total : int
        The total of that advice; 0 without one.
    """

    fitted: bool
    of_subspaces: bool
    advised: Path | None
    total: int


def sections_of_runs(place: Path, runs: Sequence[RunStatus]) -> Iterator[Section]:
    """Give the sections about the runs in and below a folder.

    Learners of regressors and of subspaces, and models without a test, have a section each, as do different advices.

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
    by_kind: dict[_Kind, list[RunStatus]] = {}
    shown = {run.folder: 0 if run.damage else _repetitions(run.folder) for run in runs}
    for run in runs:
        if shown[run.folder]:
            by_kind.setdefault(_kind(run.folder), []).append(run)
    if not by_kind:
        why = next((run.damage for run in runs if run.damage), "the command that made it resumes")
        finished, planned = (sum(getattr(run, name) for run in runs) for name in ("finished", "planned"))
        counts = f"{finished} of {planned} repetitions, and no table"
        raise DataError(f"{place}: nothing is finished yet ({counts}); {why}")
    warnings, states = _unfinished(place, runs, sum(shown.values()))
    sections = [_section(place, kind, [run.folder for run in some]) for kind, some in by_kind.items()]
    if states and sections[1:]:
        yield Section("Runs that are not complete", "unfinished", (), warnings, states)
        warnings, states = [], []
    for section in sections:
        yield replace(section, warnings=warnings, parts=[*states, *section.parts])


def _kind(folder: Path) -> _Kind:
    first, *_ = read_folder(folder)
    total = first.config.get("total")
    advised = folder.parent if (folder.parent / f"{advice.NAME}.txt").is_file() and isinstance(total, int) else None
    return _Kind(
        fitted=first.config.get("dataset", {}).get("split") == ALL,
        of_subspaces=first.of_subspaces,
        advised=advised,
        total=total if advised and isinstance(total, int) else 0,
    )


def _section(place: Path, kind: _Kind, folders: Sequence[Path]) -> Section:
    series = labelled(curve for folder in folders for curve in read_folder(folder))
    if kind.fitted:
        section = about_fits(series)
    elif kind.advised:
        section = about_advice(series, kind.total)
    else:
        section = about_runs(series, folders)
    manifests = {folder: run_manifest(folder) for folder in folders}
    notes = list(dict.fromkeys(note for manifest in manifests.values() for note in manifest.get("notes", ())))
    computed = [
        Computed(_name(place, folder), cell, {name: manifest["tables"].get(name, "-") for name in _DIGESTED})
        for folder, manifest in manifests.items()
        for cell in cells_of(manifest)
    ]
    promised = [(manifest["algo"], manifest["promised"]) for manifest in manifests.values() if "promised" in manifest]
    source = provenance(computed, promised)
    parts = [*section.parts, bill(series), *([PagePart("Remarks", points=notes)] if notes else []), source]
    return Section(section.title, section.kind, section.findings, parts=parts)


def _repetitions(folder: Path) -> int:
    """Return how many repetitions the tables of a run hold; a process writes them when it ends or is interrupted."""
    path = folder / CURVES
    return len({row["repetition"] for row in rows_of(content_of_regular(path))}) if path.is_file() else 0


def _unfinished(place: Path, runs: Sequence[RunStatus], shown: int) -> tuple[list[str], list[PagePart]]:
    """Return a warning and a part about runs that are not complete; nothing if all are."""
    lacking = [run for run in runs if run.state != "complete"]
    if not lacking:
        return [], []
    finished, planned = (sum(getattr(run, name) for run in runs) for name in ("finished", "planned"))
    which = f"{len(lacking)} of {len(runs)} runs are not complete" if runs[1:] else f"the run is {runs[0].state}"
    heads = ("run", "state", *right("planned", "finished", "failed"), "what it lacks")
    rows = [
        (_name(place, run.folder), run.state, run.planned, run.finished, run.failed, _lacks(run)) for run in lacking
    ]
    return (
        [f"{which}: {finished} of {planned} repetitions are finished. This page shows {shown}."],
        [PagePart("What is missing", tables=[listing("Runs that are not complete", heads, rows)])],
    )


def _lacks(run: RunStatus) -> str:
    return "; ".join([*([run.damage] if run.damage else []), *(f"{what}: {why}" for what, _, why in run.lacks())])


def _name(place: Path, folder: Path) -> str:
    """Return what the page calls a run: its path below the folder that was asked for."""
    below = folder.resolve().relative_to(place.resolve())
    return str(below) if below.parts else place.resolve().name

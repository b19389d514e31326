"""Finding what a report is about, and writing its page."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from budgetreg import __version__
from budgetreg.errors import DataError
from budgetreg.files import files_below, refuse_foreign, write_atomically
from budgetreg.report.page import GENERATOR, Section, html
from budgetreg.report.reproduced import section_of_figure
from budgetreg.report.runs import sections_of_runs
from budgetreg.report.studies import section_of_study
from budgetreg.runs.journal import RunStatus, read_status
from budgetreg.runs.manifest import read_manifest, read_merged_manifest
from budgetreg.runs.tables import MANIFEST, REPORT

_NAMED = 3  # places in the heading of the page


def write_report(places: Sequence[Path], out: Path | None = None) -> Path:
    """Write one page about some results.

    Parameters
    ----------
    places : sequence of Path
        Folders of runs, advices or reproduced figures, or folders above such, and files of studies; at least one.
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
    write_atomically(target, html(f"Report: {_names(places)}", __version__, sections))
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

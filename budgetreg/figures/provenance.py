"""What results cost and where they come from: the bill, configurations, data, and what computed them, as tables."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from budgetreg.common.notices import right
from budgetreg.config.nested import common, deciding_options, flatten, option_text, show
from budgetreg.figures.captions import amount
from budgetreg.figures.page import PagePart, PageTable, listing
from budgetreg.runs.manifest import RecordedCell, read_manifest
from budgetreg.runs.series import Series, series_paid

_ABOUT = (
    "What a repetition pays for, on average over repetitions. The pilot, full rows that are bought first, is part of "
    "learning. Tuning can use again what learning has bought: it is charged for the other cells that its folds reveal, "
    "and for the rows that it sees in full because they are held out. The pilot's rows are among these. Cells and "
    "full rows overlap, so that the amount paid in all is at least the larger of the two."
)
_TEST = "test (not charged)"
_ABOUT_TEST = (
    "Tests look at all attributes of the test examples{few}. No bill includes them: they only measure the error."
)
_FEW = ", with predict_k only at those that the last regressor uses"
_PARTS = ("learning", "pilot in it", "tuning: other cells", "tuning: full rows", "in all, at least")
_IN_MONEY = tuple(part for part in _PARTS if part != "pilot in it")


def bill(series: Sequence[Series]) -> PagePart:
    """Return the part of a section with the bill of its runs; runs that recorded none have dashes."""
    units = list(dict.fromkeys(curve.unit for curve in series if curve.unit))
    in_money = [f"{unit}: {what}" for unit in units for what in _IN_MONEY]
    several = len({curve.dataset for curve in series}) > 1
    heads = [*(["data set"] if several else []), "learner", *right("repetitions", *_PARTS, *in_money, _TEST)]
    rows = [[*([curve.dataset] if several else []), *_row(curve, units)] for curve in series]
    about_test = _ABOUT_TEST.format(few=_FEW if any(curve.config.get("predict_k") for curve in series) else "")
    caption = f"Paid by a repetition, in {' and '.join(['attributes', *units])}"
    return PagePart("What was paid", [_ABOUT, about_test], tables=[listing(caption, heads, rows)])


def _row(series: Series, units: Sequence[str]) -> Iterator[str]:
    attributes, paid = series_paid(series)
    times = max(series.repetitions, 1)
    yield series.label or series.algo
    yield str(series.repetitions)
    if attributes is None:  # of results that did not record the cells of tuning
        learning = series.runs.get("attributes_total")
        yield from ("-" if learning is None else f"{learning.mean():,.0f}", _pilot(series), "-", "-", "-")
    else:
        learned, *others = (f"{value / times:,.0f}" for value in attributes)
        yield from (learned, _pilot(series), *others)
    for unit in units:
        known = paid if unit == series.unit else None
        yield from ("-" * len(_IN_MONEY) if known is None else (amount(value / times) for value in known))
    looked = series.runs["predicted_from"].mean() if series.config.get("predict_k") else series.d
    yield "-" if series.n_test is None else f"{series.n_test * looked:,.0f}"


def _pilot(series: Series) -> str:
    rows = series.config.get("pilot")
    if rows == "auto" and (manifest := read_manifest(series.folder)) is not None:  # its notes have the number
        paid = re.search(r"a pilot of \d+ full rows is bought first, ([\d,]+) of ", " ".join(manifest.get("notes", ())))
        return paid[1] if paid else "0"
    return f"{rows * (series.full_row or series.d):,}" if isinstance(rows, int) else str(rows or "-")


_DIGITS = 12  # of a digest
_Source = tuple[tuple[str, str], ...]
"""Versions, commit and processor as texts."""
_YES_NO: Mapping[Any, str] = {True: "yes", False: "no"}


def provenance(
    cells: Sequence[RecordedCell], promised: Iterable[tuple[str, str]], files: Mapping[str, Mapping[str, str]] = {}
) -> PagePart:
    """Return the part of a section on where its results come from.

    Parameters
    ----------
    cells : sequence of RecordedCell
        Cells of merged results, or runs with the names that the page gives them; at least one.
    promised : iterable of (str, str)
        Learners, and how closely their numbers are the same when they are computed again.
    files : mapping of str to mapping, optional
        SHA-256 of the files of each run, by the name of the run and of the file.
    """
    learners: dict[str, list[str]] = {}
    for learner, promise in dict.fromkeys(promised):
        learners.setdefault(promise, []).append(learner)
    text = [f"Computing the results of {', '.join(names)} again gives {line}." for line, names in learners.items()]
    sources = list(dict.fromkeys(source for cell in cells for source in map(_described, cell.sources)))
    tables = [*_configurations(cells), _digests(cells, files, sources), _data(cells)]
    for number, source in enumerate(sources, 1):
        caption = f"What computed them, source {number}" if sources[1:] else "What computed them"
        tables.append(listing(caption, ("what", "value"), source))
    return PagePart("Settings and provenance", text, tables=tables, folded=True)


def _configurations(cells: Sequence[RecordedCell]) -> Iterator[PageTable]:
    """Give what all configurations share, and what each has besides."""
    configs = [
        {key: value for key, value in deciding_options(cell.config).items() if value not in (None, "")}
        for cell in cells
    ]
    shared = common(configs)
    several = len(configs) > 1
    rows = [(key, option_text(key, shared[key], in_full=True)) for key in sorted(shared)]
    caption = "Configuration that all share" if several else "Configuration"
    note = "Keys without a value, keys that change no result, and the folders of files are left out."
    yield listing(caption, ("key", "value"), rows, [note])
    if several:
        others = [
            (cell.name, ", ".join(f"{key}={option_text(key, config[key], in_full=True)}" for key in rest))
            for cell, config in zip(cells, configs, strict=True)
            for rest in [sorted(config.keys() - shared.keys())]
        ]
        yield listing("Configuration of each, besides", ("run", "keys and values"), others)


def _digests(
    cells: Sequence[RecordedCell], files: Mapping[str, Mapping[str, str]], sources: Sequence[_Source]
) -> PageTable:
    """Return the digests of configurations and files, and the numbers of what computed each."""
    names = list(dict.fromkeys(name for of_run in files.values() for name in of_run))
    heads = ("run", *right("repetitions asked for"), "configuration", *names, *(["source"] if sources[1:] else []))
    rows = []
    for cell in cells:
        numbers = [str(sources.index(source) + 1) for source in dict.fromkeys(map(_described, cell.sources))]
        digests = [cell.digest, *(files[cell.name][name] for name in names)]
        row = [cell.name, cell.repetitions, *(digest[:_DIGITS] for digest in digests)]
        rows.append([*row, *([", ".join(numbers)] if sources[1:] else [])])
    return listing(f"SHA-256, first {_DIGITS} digits", heads, rows)


def _data(cells: Sequence[RecordedCell]) -> PageTable:
    described = {str(cell.data["fingerprint"]): cell.data for cell in cells}
    rows = (
        (data["name"], f"{data['n_train']:,}", f"{data['n_test']:,}", f"{data['d']:,}", fingerprint)
        for fingerprint, data in described.items()
    )
    heads = ("data set", *right("training examples", "test examples", "attributes"), "digest of the content")
    return listing("Data", heads, rows)


def _described(source: Mapping[str, Any]) -> _Source:
    """Return the versions, the commit and the processor of what computed a run, as text."""
    git = source.get("git") or {}
    known = {
        **(source.get("versions") or {}),
        "commit": git.get("commit"),
        "source changed since the commit": _YES_NO.get(git.get("dirty")),
        **(source.get("processor") or {"processor": None}),
    }
    return tuple((key, "not recorded" if value is None else show(value)) for key, value in flatten(known).items())

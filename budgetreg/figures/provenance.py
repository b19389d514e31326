"""What results cost and where they come from: the bill, configurations, data, and what computed them, as tables."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from budgetreg.common.notices import right
from budgetreg.config.nested import common, deciding_options, flatten, option_text, show
from budgetreg.figures.captions import amount
from budgetreg.figures.page import PagePart, PageTable, listing
from budgetreg.runs.manifest import RecordedCell, read_manifest
from budgetreg.runs.series import Series, series_paid

_ABOUT = (
    "What a repetition pays for, on average over repetitions. The pilot, full rows that are bought first, is part of "
    "learning. Tuning can use again what learning has bought: it is charged for the other cells that its folds reveal, "
    "and for the rows that it sees in full because they are held out. Cells and full rows overlap, so that the amount "
    "paid in all is at least the larger of the two."
)
_TEST = "test (not charged)"
_ABOUT_TEST = "Tests look at all attributes of the test examples. No bill includes them: they only measure the error."
_PARTS = ("learning", "pilot in it", "tuning: other cells", "tuning: full rows", "in all, at least")
_IN_MONEY = ("learning", "tuning: other cells", "tuning: full rows", "in all, at least")


def bill(series: Sequence[Series]) -> PagePart:
    """Return the part of a section with the bill of its runs; runs that recorded none have dashes."""
    units = list(dict.fromkeys(curve.unit for curve in series if curve.unit))
    in_money = [f"{unit}: {what}" for unit in units for what in _IN_MONEY]
    several = len({curve.dataset for curve in series}) > 1
    heads = [*(["data set"] if several else []), "learner", *right("repetitions", *_PARTS, *in_money, _TEST)]
    rows = [[*([curve.dataset] if several else []), *_row(curve, units)] for curve in series]
    caption = f"Paid by a repetition, in {' and '.join(['attributes', *units])}"
    return PagePart("What was paid", [_ABOUT, _ABOUT_TEST], tables=[listing(caption, heads, rows)])


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
    yield "-" if series.n_test is None else f"{series.n_test * series.d:,}"


def _pilot(series: Series) -> str:
    rows = series.config.get("pilot")
    if rows == "auto" and (manifest := read_manifest(series.folder)) is not None:  # its notes have the number
        paid = re.search(r"a pilot of \d+ full rows is bought first, ([\d,]+) of ", " ".join(manifest.get("notes", ())))
        return paid[1] if paid else "0"
    return f"{rows * (series.full_row or series.d):,}" if isinstance(rows, int) else str(rows or "-")


_DIGITS = 12  # of a digest
_UNKNOWN = "not recorded"
_Source = tuple[tuple[str, str], ...]
"""Versions, commit and processor as texts."""
_YES_NO: Mapping[Any, str] = {True: "yes", False: "no"}


class Computed(NamedTuple):
    """A run, or a cell of merged results.

    Attributes
    ----------
    name : str
        What the page calls it.
    cell : RecordedCell
        Its configuration, its data and what computed it.
    files : mapping of str to str
        SHA-256 of its files, by name; empty if they hold other cells, too.
    """

    name: str
    cell: RecordedCell
    files: Mapping[str, str] = {}


def provenance(computed: Sequence[Computed], promised: Iterable[tuple[str, str]]) -> PagePart:
    """Return the part of a section on where its results come from.

    Parameters
    ----------
    computed : sequence of Computed
        At least one.
    promised : iterable of (str, str)
        Learners, and how closely their numbers are the same when they are computed again.
    """
    learners: dict[str, list[str]] = {}
    for learner, promise in dict.fromkeys(promised):
        learners.setdefault(promise, []).append(learner)
    text = [f"Computing the results of {', '.join(names)} again gives {line}." for line, names in learners.items()]
    sources = list(dict.fromkeys(source for each in computed for source in _sources(each)))
    tables = [*_configurations(computed), _digests(computed, sources), _data(computed)]
    for number, source in enumerate(sources, 1):
        caption = f"What computed them, source {number}" if sources[1:] else "What computed them"
        tables.append(listing(caption, ("what", "value"), source))
    return PagePart("Settings and provenance", text, tables=tables, folded=True)


def _configurations(computed: Sequence[Computed]) -> Iterator[PageTable]:
    """Give what all configurations share, and what each has besides."""
    configs = [
        {key: value for key, value in deciding_options(each.cell.config).items() if value not in (None, "")}
        for each in computed
    ]
    shared = common(configs)
    several = len(configs) > 1
    rows = [(key, option_text(key, shared[key], in_full=True)) for key in sorted(shared)]
    caption = "Configuration that all share" if several else "Configuration"
    note = "Keys without a value, keys that change no result, and the folders of files are left out."
    yield listing(caption, ("key", "value"), rows, [note])
    if several:
        others = [
            (each.name, ", ".join(f"{key}={option_text(key, config[key], in_full=True)}" for key in rest))
            for each, config in zip(computed, configs, strict=True)
            for rest in [sorted(config.keys() - shared.keys())]
        ]
        yield listing("Configuration of each, besides", ("run", "keys and values"), others)


def _digests(computed: Sequence[Computed], sources: Sequence[_Source]) -> PageTable:
    """Return the digests of configurations and files, and the numbers of what computed each."""
    files = list(dict.fromkeys(name for each in computed for name in each.files))
    heads = ("run", *right("repetitions asked for"), "configuration", *files, *(["source"] if sources[1:] else []))
    rows = []
    for each in computed:
        numbers = [str(sources.index(source) + 1) for source in dict.fromkeys(_sources(each))]
        digests = [each.cell.digest, *(each.files.get(name, "-") for name in files)]
        row = [each.name, each.cell.repetitions, *(digest[:_DIGITS] for digest in digests)]
        rows.append([*row, *([", ".join(numbers)] if sources[1:] else [])])
    return listing(f"SHA-256, first {_DIGITS} digits", heads, rows)


def _data(computed: Sequence[Computed]) -> PageTable:
    described = {str(each.cell.data["fingerprint"]): each.cell.data for each in computed}
    rows = (
        (data["name"], f"{data['n_train']:,}", f"{data['n_test']:,}", f"{data['d']:,}", fingerprint)
        for fingerprint, data in described.items()
    )
    heads = ("data set", *right("training examples", "test examples", "attributes"), "digest of the content")
    return listing("Data", heads, rows)


def _sources(computed: Computed) -> Iterator[_Source]:
    """Give what computed a run, in its last call and earlier ones."""
    yield from (tuple(_described(source)) for source in computed.cell.sources)


def _described(source: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the versions, the commit and the processor of a source, as text."""
    git = source.get("git") or {}
    known = {
        **(source.get("versions") or {}),
        "commit": git.get("commit"),
        "source changed since the commit": _YES_NO.get(git.get("dirty")),
        **(source.get("processor") or {"processor": None}),
    }
    yield from ((key, _UNKNOWN if value is None else show(value)) for key, value in flatten(known).items())

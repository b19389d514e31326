"""Where results come from: configuration, data, and what computed them, as tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from budgetreg.config.nested import common, deciding_options, flatten, option_text, show
from budgetreg.figures.tables import right
from budgetreg.report.page import PagePart, PageTable
from budgetreg.report.tables import listing
from budgetreg.runs.manifest import RecordedCell

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
    text = [f"Numbers of {', '.join(names)}, computed again: {line}." for line, names in learners.items()]
    sources = list(dict.fromkeys(source for each in computed for source in _sources(each)))
    tables = [*_configurations(computed), _digests(computed, sources), _data(computed)]
    for number, source in enumerate(sources, 1):
        caption = f"What computed them, source {number}" if sources[1:] else "What computed them"
        tables.append(listing(caption, ("what", "value"), source))
    return PagePart("Provenance", text, tables=tables, folded=True)


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

"""Where results come from: configuration, data, and what computed them, as tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from budgetreg.config.nested import common, flatten
from budgetreg.figures.tables import right
from budgetreg.report.page import PagePart, PageTable
from budgetreg.report.tables import listing
from budgetreg.results.manifest import RecordedCell
from budgetreg.results.naming import deciding_options, option_text, show

_DIGITS = 12  # of a digest
_UNKNOWN = "not recorded"
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
    return PagePart(
        "Provenance", text, tables=[*_configurations(computed), _data(computed), *_sources(computed)], folded=True
    )


def _configurations(computed: Sequence[Computed]) -> Iterator[PageTable]:
    """Give what all configurations share, what each has besides, and digests of what was computed with it."""
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
    files = list(dict.fromkeys(name for each in computed for name in each.files))
    heads = ("run", *right("repetitions asked for"), "configuration", *files)
    digests = (
        (
            each.name,
            each.cell.repetitions,
            each.cell.digest[:_DIGITS],
            *(each.files.get(name, "-")[:_DIGITS] for name in files),
        )
        for each in computed
    )
    yield listing(f"SHA-256, first {_DIGITS} digits", heads, digests)


def _data(computed: Sequence[Computed]) -> PageTable:
    described = {str(each.cell.data["fingerprint"]): each.cell.data for each in computed}
    rows = (
        (data["name"], f"{data['n_train']:,}", f"{data['n_test']:,}", f"{data['d']:,}", fingerprint)
        for fingerprint, data in described.items()
    )
    heads = ("data set", *right("training examples", "test examples", "attributes"), "digest of the content")
    return listing("Data", heads, rows)


def _sources(computed: Sequence[Computed]) -> Iterator[PageTable]:
    """Give what computed the results, each combination of versions, commit and processor once."""
    by_source: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for each in computed:
        for source in each.cell.sources:
            by_source.setdefault(tuple(_described(source)), []).append(each.name)
    for rows, names in by_source.items():
        whole = len(by_source) == 1
        caption = "What computed them" if whole else f"What computed {', '.join(dict.fromkeys(names))}"
        yield listing(caption, ("what", "value"), rows)


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

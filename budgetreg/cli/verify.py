"""``budgetreg verify``: compute finished repetitions again, and tell whether they give the same bytes."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgetreg.cli.common import Parser, console, whole_number
from budgetreg.errors import ConfigError, DataError, UserError, nearest
from budgetreg.execution.workers import pin_blas_threads
from budgetreg.files.writing import files_below

if TYPE_CHECKING:
    from rich.table import Table

    from budgetreg.execution.verification import Comparison, Sample

_ABOUT = """Compute some finished repetitions again, of a run, of the runs below a folder or of merged results, and
compare bytes: those of curves.csv, of runs.csv but for the seconds, and of what a run has learned, model.npz. Nothing
there is changed. What differs is told with the column, the largest relative difference, and which key, version or
processor is not as it was recorded; up to 1e-9 is promised on another processor. Exit code 1 if any byte differs."""
_KEYS = {"n_jobs": "repetitions worked on at the same time", "dataset.root": "folder that holds MNIST/raw"}
_MANIFEST = "manifest.json"
_RUNS = ""  # the title of the table of runs


@dataclass(frozen=True)
class _Row:
    """A run or a cell: the title of its table, labels, and what came of it; no verdict if it is stale."""

    group: str
    name: str
    algo: str
    dataset: str
    k: int
    verdict: "Comparison | None"
    stale: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        return self.verdict is not None and self.verdict.same


def main(argv: list[str]) -> int:
    """Verify the runs and merged results in and below a folder.

    Parameters
    ----------
    argv : list of str
        What follows ``verify`` on the command line.

    Returns
    -------
    int
        0 if all is the same; 1 if something differs, or is stale; 2 or 3 if something cannot be computed again.

    Raises
    ------
    ConfigError
        If an option cannot be.
    DataError
        If the folder is missing, or holds nothing to verify.
    """
    parser = Parser("verify", _ABOUT)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run, merged results, or a folder above some")
    keys = "; ".join(f"{key}: {what}" for key, what in _KEYS.items())
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE", help=keys)
    parser.add_argument("--all", action="store_true", help="all finished repetitions")
    parser.add_argument("--sample", metavar="N", default="2", help="so many of each run, 2 by default")
    parser.add_argument("--seed", metavar="N", default="0", help="another seed, another choice; 0 by default")
    arguments = parser.parse_intermixed_args(argv)
    given = dict(map(_setting, arguments.words))
    size, seed = whole_number("--sample", arguments.sample, 1), whole_number("--seed", arguments.seed, 0)
    folder = arguments.folder
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    places = [path.parent for path in files_below(folder, _MANIFEST)]
    pin_blas_threads()
    from budgetreg.execution.verification import Sample  # here, because numpy is slow to load and --help is not

    rows: list[_Row] = []
    codes: list[int] = []
    verdicts = _Verdicts(Sample(None if arguments.all else size, seed), given)
    for place in places:
        try:
            for row in verdicts.of(place):
                rows.append(row)
                codes.append(0 if row.same else 1)
        except UserError as error:
            print(f"budgetreg: {' '.join(str(error).split())} (in {place})", file=sys.stderr)
            codes.append(error.exit_code)
    if not codes:
        raise DataError(f"{folder} holds neither a run nor merged results to compute again")
    for group in dict.fromkeys(row.group for row in rows):
        own = [row for row in rows if row.group == group]
        console().print(_table(group, own))
        for line in _reasons(own):
            console().print(line)
    return max(codes)


class _Verdicts:
    """Verifies one folder after the other."""

    def __init__(self, sample: "Sample", given: Mapping[str, Any]) -> None:
        self._sample, self._given = sample, given

    def of(self, place: Path) -> Iterator[_Row]:
        """Give a row of the table for each run or cell in a folder."""
        from budgetreg.execution.verification import verify_run
        from budgetreg.results.manifest import read_manifest, read_merged_manifest

        merged = read_merged_manifest(place)
        if merged is not None:
            yield from self._cells(place, merged["recipe"])
            return
        manifest = read_manifest(place)
        if manifest is not None:
            _say(str(place))
            verdict = verify_run(place, self._sample, self._given)
            yield _Row(_RUNS, str(place), manifest["algo"], manifest["dataset"], manifest["k"], verdict)

    def _cells(self, place: Path, name: str) -> Iterator[_Row]:
        from budgetreg.reproduce.recipes import read_recipe
        from budgetreg.reproduce.verification import verify_merged

        recipe = read_recipe(name, self._given)
        if recipe.drawing.kind == "pictures":  # has no curves
            return
        for cell in verify_merged(place, recipe, self._sample, _say):
            yield _Row(str(place), cell.cell, cell.algo, cell.dataset, cell.k, cell.verdict, cell.stale)


def _table(group: str, rows: Sequence[_Row]) -> "Table":
    from rich.table import Table

    title = None if group == _RUNS else group
    table = Table("folder" if group == _RUNS else "cell", "algo", "dataset", title=title, box=None, pad_edge=False)
    table.title_justify = "left"
    for column in ("k", "repetitions"):
        table.add_column(column, justify="right")
    for column in ("verdict", "column", "by", "where"):
        table.add_column(column)
    for row in rows:
        table.add_row(row.name, row.algo, row.dataset, str(row.k), *_told(row.verdict))
    return table


def _told(verdict: "Comparison | None") -> tuple[str, ...]:
    """Return how many were checked, the verdict, and the column, size and place of the largest difference."""
    if verdict is None:
        return "", "stale", "", "", ""
    checked, one = f"{verdict.checked} of {verdict.held}", verdict.difference
    if verdict.failed:
        return checked, "failed", "", "", ""
    if one is None:
        return checked, "same" if verdict.checked else "nothing is finished", "", "", ""
    place = f"repetition {one.repetition}" + (f", {one.examples} examples" if one.examples is not None else "")
    by = f"{one.relative:.1e}" if isfinite(one.relative) else "no number"
    return checked, "differs, same to 1e-9" if one.within_promise else "differs", one.column, by, place


def _reasons(rows: Sequence[_Row]) -> list[str]:
    """Return why rows are not the same, each reason once with the runs or cells that have it."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.verdict is None:
            found.setdefault(f"stale: {', '.join(row.stale)}", []).append(row.name)
        elif not row.verdict.same:
            failed = f"failed when computed again, {row.verdict.failed}; " if row.verdict.failed else ""
            since = ", ".join(row.verdict.causes) or "nothing that was recorded has changed"
            found.setdefault(f"{failed}since then: {since}", []).append(row.name)
    told = [f"{reason} ({_some(names)})" for reason, names in found.items()]
    if any(row.verdict and row.verdict.difference and row.verdict.difference.within_promise for row in rows):
        told.append("same to 1e-9: as promised for another processor")
    return told


def _some(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _setting(word: str) -> tuple[str, object]:
    key, equals, text = word.partition("=")
    if key not in _KEYS or not equals:
        raise ConfigError(
            f"{word}: results are computed again as they were{nearest(key, _KEYS)}; keys that change none: "
            + ", ".join(_KEYS)
        )
    if not text:
        raise ConfigError(f"{word}: a value is needed: {key}=VALUE")
    return key, whole_number(key, text, 1) if key == "n_jobs" else text


def _say(message: str) -> None:
    if sys.stderr.isatty():
        print(f"budgetreg: {message}", file=sys.stderr)

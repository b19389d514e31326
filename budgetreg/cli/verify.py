"""``budgetreg verify``: compute finished repetitions again, and report whether the bytes are the same."""

from collections.abc import Sequence
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Column, Table

from budgetreg.cli.common import Parser, console, harmless, report_error, whole_number
from budgetreg.errors import DataError, UserError
from budgetreg.execution.workers import pin_blas_threads
from budgetreg.files.writing import files_below
from budgetreg.notices import say_on_terminal

if TYPE_CHECKING:
    from budgetreg.execution.verification import Comparison
    from budgetreg.reproduce.verification import CellVerdict

_ABOUT = """Compute some finished repetitions again, of a run, of the runs below a folder or of merged results, and
compare bytes: those of curves.csv, of runs.csv except the seconds, and of what a run has learned, model.npz. Nothing
there is changed. For each difference, the table shows the column and the largest relative difference, and a line below
names the key, version or processor that is not as recorded. On another processor, results may differ by up to 1e-9.
Exit code 1 if any byte differs."""
_KEYS = {"n_jobs": "repetitions computed at the same time", "dataset.root": "folder that holds MNIST/raw"}
_MANIFEST = "manifest.json"


def main(argv: list[str]) -> int:
    """Verify the runs and merged results in and below a folder.

    Parameters
    ----------
    argv : list of str
        What follows ``verify`` on the command line.

    Returns
    -------
    int
        0 if everything is the same; 1 if something differs, or is stale; 2 or 3 if something cannot be computed again.

    Raises
    ------
    ConfigError
        If an option is invalid.
    DataError
        If the folder is missing, or holds nothing to verify.
    """
    parser = Parser("verify", _ABOUT)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run, merged results, or a folder above some")
    keys = "; ".join(f"{key}: {what}" for key, what in _KEYS.items())
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE", help=keys)
    parser.add_argument("--all", action="store_true", help="all finished repetitions")
    parser.add_argument("--sample", metavar="N", default="2", help="at most N of each run, 2 by default")
    parser.add_argument("--seed", metavar="N", default="0", help="another seed makes another choice; 0 by default")
    arguments = parser.parse_intermixed_args(argv)
    given = harmless(arguments.words, _KEYS, "verify computes results as they were")
    size, seed = whole_number("--sample", arguments.sample, 1), whole_number("--seed", arguments.seed, 0)
    folder = arguments.folder
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    places = [path.parent for path in files_below(folder, _MANIFEST)]
    pin_blas_threads()
    from budgetreg.execution.verification import Sample  # here, as numpy is slow to load and --help is not
    from budgetreg.reproduce.verification import verify_folder

    sample = Sample(None if arguments.all else size, seed)
    verdicts: list[CellVerdict] = []
    codes: list[int] = []
    for place in places:
        try:
            for verdict in verify_folder(place, sample, given, say_on_terminal):
                verdicts.append(verdict)  # one by one, so that those before an error count
        except UserError as error:
            report_error(error, f"in {place}")
            codes.append(error.exit_code)
    codes += [0 if verdict.same else 1 for verdict in verdicts]
    if not codes:
        raise DataError(f"{folder} holds neither a run nor merged results to compute again")
    for title, group in groupby(verdicts, key=lambda verdict: str(verdict.folder) if verdict.cell else ""):
        cells = list(group)
        console().print(_table(title, cells), *_reasons(cells), sep="\n")
    return max(codes)


def _table(title: str, verdicts: Sequence["CellVerdict"]) -> Table:
    """Tabulate the cells of merged results, titled with their folder, or runs, which have no title."""
    heads: list[str | Column] = ["cell" if title else "folder", "algo", "dataset"]
    heads += [Column(head, justify="right") for head in ("k", "repetitions")]
    heads += ["verdict", "column", "by", "where"]
    table = Table(*heads, title=title or None, title_justify="left", box=None, pad_edge=False)
    for cell in verdicts:
        table.add_row(_name(cell), cell.algo, cell.dataset, str(cell.k), *_outcome(cell.verdict))
    return table


def _name(cell: "CellVerdict") -> str:
    return cell.cell or str(cell.folder)


def _outcome(verdict: "Comparison | None") -> tuple[str, ...]:
    """Return how many were checked, the verdict, and the column, size and place of the largest difference."""
    if verdict is None:
        return "", "stale", "", "", ""
    checked, difference = f"{verdict.checked} of {verdict.held}", verdict.difference
    if verdict.failed:
        return checked, "failed", "", "", ""
    if difference is None:
        return checked, "same" if verdict.checked else "nothing is finished", "", "", ""
    place = f"repetition {difference.repetition}"
    if difference.examples is not None:
        place += f", {difference.examples} examples"
    size = f"{difference.relative:.1e}" if isfinite(difference.relative) else "no number"
    within = difference.within_promise
    return checked, "differs, same to 1e-9" if within else "differs", difference.column, size, place


def _reasons(verdicts: Sequence["CellVerdict"]) -> list[str]:
    """Return why cells are not the same, each reason once with the cells that have it."""
    by_reason: dict[str, list[str]] = {}
    for cell in verdicts:
        if cell.verdict is None:
            by_reason.setdefault(f"stale: {', '.join(cell.stale)}", []).append(_name(cell))
        elif not cell.same:
            failed = f"failed when computed again, {cell.verdict.failed}; " if cell.verdict.failed else ""
            since = ", ".join(cell.verdict.causes) or "nothing that was recorded has changed"
            by_reason.setdefault(f"{failed}since then: {since}", []).append(_name(cell))
    lines = [f"{reason} ({_some(names)})" for reason, names in by_reason.items()]
    differences = [cell.verdict.difference for cell in verdicts if cell.verdict and cell.verdict.difference]
    if any(difference.within_promise for difference in differences):
        lines.append("same to 1e-9: as promised for another processor")
    return lines


def _some(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")

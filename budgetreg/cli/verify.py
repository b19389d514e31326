"""``budgetreg verify``: compute finished repetitions again, and report whether the bytes are the same."""

from argparse import Namespace
from collections.abc import Sequence
from itertools import groupby
from math import isfinite

from budgetreg.cli.arguments import VERIFY_KEYS, harmless
from budgetreg.cli.common import console
from budgetreg.errors import DataError, UserError
from budgetreg.files import files_below
from budgetreg.notices import right, say, say_on_terminal, table
from budgetreg.reproduce.verification import CellVerdict, verify_folder
from budgetreg.runs.manifest import RecordedCell
from budgetreg.runs.verification import Comparison, Sample


def main(arguments: Namespace) -> int:
    """Verify the runs and merged results in and below a folder.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Returns
    -------
    int
        0 if everything is the same; 1 if something differs, or is stale; 2 or 3 if something cannot be computed again.

    Raises
    ------
    ConfigError
        If a key is invalid.
    DataError
        If the folder holds nothing to verify.
    """
    given = harmless(arguments.words, VERIFY_KEYS, "verify computes results as they were")
    sample = Sample(None if arguments.all else arguments.sample, arguments.seed)
    verdicts: list[CellVerdict] = []
    codes: list[int] = []
    for manifest in files_below(arguments.folder, "manifest.json"):
        try:
            for verdict in verify_folder(manifest.parent, sample, given, say_on_terminal):
                verdicts.append(verdict)  # one by one, so that those before an error count
        except UserError as error:
            say(f"{error} (in {manifest.parent})")
            codes.append(error.exit_code)
    codes += [0 if verdict.same else 1 for verdict in verdicts]
    if not codes:
        raise DataError(f"{arguments.folder} holds neither a run nor merged results to compute again")
    for title, group in groupby(verdicts, key=lambda verdict: str(verdict.folder) if verdict.recorded.name else ""):
        cells = list(group)
        heads = ["cell" if title else "folder", "algo", "dataset", *right("k", "repetitions")]
        rows = ((_name(cell), *_labels(cell.recorded), *_outcome(cell.verdict)) for cell in cells)
        verified = table([*heads, "verdict", "column", "by", "where"], rows, title=title or None)
        console().print(verified, *_reasons(cells), sep="\n")
    return max(codes)


def _name(cell: CellVerdict) -> str:
    return cell.recorded.name or str(cell.folder)


def _labels(cell: RecordedCell) -> tuple[str, str, int | str]:
    return cell.config["algo"]["name"], cell.data["name"], cell.config["k"]


def _outcome(verdict: Comparison | None) -> tuple[str, ...]:
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


def _reasons(verdicts: Sequence[CellVerdict]) -> list[str]:
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

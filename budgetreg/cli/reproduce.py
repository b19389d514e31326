"""``budgetreg reproduce`` and ``verify``: compute the figures of the papers, and finished results once more."""

from argparse import Namespace
from collections.abc import Sequence
from itertools import groupby
from math import isfinite
from pathlib import Path

from rich.table import Table

from budgetreg.cli.arguments import REPRODUCE_KEYS, VERIFY_KEYS, harmless
from budgetreg.cli.console import console, refuse_root
from budgetreg.common.errors import DataError, UserError
from budgetreg.common.files import at_home, files_below
from budgetreg.common.notices import in_one_line, right, say, say_on_terminal, table
from budgetreg.figures.captions import rounded_texts
from budgetreg.reproduce import recipes
from budgetreg.reproduce.gallery import refuse_foreign, write_gallery
from budgetreg.reproduce.reproduction import ClaimRow, reproduce, reproduce_quickly
from budgetreg.reproduce.verification import CellVerdict, Sample, verify_folder

_QUICK = Path("runs", "quick")


def main(arguments: Namespace) -> int:
    """Reproduce some recipes, or all.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Returns
    -------
    int
        0; if recipes could not be finished, the highest exit code of their mistakes: 1, 2, or 3 if data are missing.
        A claim that fails is a finding, not a mistake.

    Raises
    ------
    ConfigError
        If there is no such recipe, or a key that would change results is given.
    KeyboardInterrupt
        The same command resumes.
    """
    asked = [word for word in arguments.words if "=" not in word]
    words = [word for word in arguments.words if "=" in word]
    given = harmless(words, REPRODUCE_KEYS, "reproduce follows the recipe (or: budgetreg run experiment=NAME)")
    out = at_home(str(given.pop("out", _QUICK / "results" if arguments.quick else "results")))
    refuse_root(out)
    runs = _QUICK if arguments.quick else Path("runs")
    chosen = [recipes.read_recipe(name, given) for name in asked or recipes.names()]
    refuse_foreign(out, [recipe.name.partition("/")[0] for recipe in chosen])
    codes = [0]
    for recipe in chosen:
        try:
            claims = (reproduce_quickly if arguments.quick else reproduce)(recipe, runs, out)
        except UserError as error:
            say(f"{error} (in {recipe.name})")
            codes.append(error.exit_code)
            continue
        except KeyboardInterrupt as error:
            say(f"interrupted in {recipe.name}; the same command resumes")
            return getattr(error, "exit_code", 130)
        if claims:
            console().print(_claims_table(recipe.name, claims))
        print(in_one_line(f"results: {out / recipe.name}"))
    if out.is_dir():
        write_gallery(out)
    return max(codes)


def _claims_table(name: str, rows: Sequence[ClaimRow]) -> Table:
    presets = any(row["protocol"] for row in rows)
    heads = ("claim", *(["preset"] if presets else []), "verdict", "estimate", "interval", "wanted", "what")
    cells = []
    for row in rows:
        estimate, low, high = rounded_texts(row["estimate"], row["interval_low"], row["interval_high"])
        ends = f"{low} to {high}" if low else "-"
        judged = (row["claim"], *([row["protocol"]] if presets else []), row["verdict"], estimate or "-", ends)
        cells.append((*judged, row["wanted"], row["note"] or row["says"]))
    return table(heads, cells, title=name)


def verify(arguments: Namespace) -> int:
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
        verified = table([*heads, "verdict", "column", "by", "where"], map(_row, cells), title=title or None)
        console().print(verified, *_reasons(cells), sep="\n")
    return max(codes)


def _name(cell: CellVerdict) -> str:
    return cell.recorded.name or str(cell.folder)


def _row(cell: CellVerdict) -> tuple[object, ...]:
    """Return which cell it is, how many were checked, the verdict, and where the largest difference is."""
    config, verdict = cell.recorded.config, cell.verdict
    labels = _name(cell), config["algo"]["name"], cell.recorded.data["name"], config["k"]
    if verdict is None:
        return *labels, "", "stale", "", "", ""
    checked, difference = f"{verdict.checked} of {verdict.held}", verdict.difference
    if verdict.failed:
        return *labels, checked, "failed", "", "", ""
    if difference is None:
        return *labels, checked, "same" if verdict.checked else "nothing is finished", "", "", ""
    place = f"repetition {difference.repetition}"
    if difference.examples is not None:
        place += f", {difference.examples} examples"
    size = f"{difference.relative:.1e}" if isfinite(difference.relative) else "no number"
    judged = "differs, same to 1e-9" if difference.within_promise else "differs"
    return *labels, checked, judged, difference.column, size, place


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
    lines = [
        f"{reason} ({names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''})"
        for reason, names in by_reason.items()
    ]
    differences = [cell.verdict.difference for cell in verdicts if cell.verdict and cell.verdict.difference]
    if any(difference.within_promise for difference in differences):
        lines.append("same to 1e-9: as promised for another processor")
    return lines

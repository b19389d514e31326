"""The commands on what should be there and stay the same: ``budgetreg reproduce``, ``status`` and ``verify``."""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import isfinite
from pathlib import Path

from rich.table import Column, Table

from budgetreg.cli.arguments import REPRODUCE_KEYS, VERIFY_KEYS, harmless
from budgetreg.cli.console import console, refuse_root
from budgetreg.errors import DataError, UserError
from budgetreg.figures.tables import right, table
from budgetreg.files import Damaged, at_home, files_below
from budgetreg.notices import in_one_line, say, say_on_terminal
from budgetreg.reproduce import recipes
from budgetreg.reproduce.gallery import refuse_foreign, write_gallery
from budgetreg.reproduce.reproduction import ClaimRow, reproduce, reproduce_quickly
from budgetreg.reproduce.verification import STALE, CellVerdict, cell_problems, verify_folder, why_stale
from budgetreg.runs.journal import RunStatus, read_status
from budgetreg.runs.manifest import read_merged_manifest, run_manifest
from budgetreg.runs.verification import Sample

_QUICK = Path("runs", "quick")
_Reason = tuple[str, str, str, str]
"""Folder; repetitions or cell; state; why."""


def reproduce_recipes(arguments: Namespace) -> int:
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
        ends = f"{row['interval_low']} to {row['interval_high']}" if row["interval_low"] else "-"
        judged = (row["claim"], *([row["protocol"]] if presets else []), row["verdict"], row["estimate"] or "-", ends)
        cells.append((*judged, row["wanted"], row["note"] or row["says"]))
    return table(heads, cells, title=name)


def status(arguments: Namespace) -> int:
    """Tabulate the runs in and below a folder; with ``--why`` show what they and merged results lack.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Raises
    ------
    DataError
        If the folder holds no run; after the table, if a file of a run is damaged.
    """
    runs: list[RunStatus] = []
    merged: dict[Path, str] = {}
    damage: list[str] = []
    for path in files_below(arguments.folder, "manifest.json"):
        try:
            manifest = read_merged_manifest(path.parent) if arguments.why else None
            if manifest is None:
                runs.append(read_status(path.parent))
            else:
                merged[path.parent] = manifest["recipe"]
        except Damaged as error:
            damage.append(str(error))
        except DataError:  # such as merged results, which have a manifest of their own
            continue
    damage += [run.damage for run in runs if run.damage]
    if not runs and not damage and not merged:
        raise DataError(f"{arguments.folder} holds no run (a run leaves a manifest.json)")
    if runs:
        heads = ["folder", "algo", "dataset", *right("k", "planned", "finished", "failed"), "state"]
        rows = (
            (run.folder, run.algo, run.dataset, run.k, run.planned, run.finished, run.failed, run.state) for run in runs
        )
        console().print(table(heads, rows))
    if arguments.why:
        reasons = [*_of_runs(runs), *_of_merged(merged, damage)]
        if reasons:
            console().print(table(("folder", "what", "state", Column("why", overflow="fold")), reasons))
        elif not damage:
            print("nothing is missing, failed or stale")
    if damage:
        raise DataError(f"{damage[0]}{f' (and {len(damage) - 1} more)' if len(damage) > 1 else ''}")
    return 0


def _of_runs(runs: Sequence[RunStatus]) -> Iterator[_Reason]:
    """Yield what runs lack, and which of them a reproduction made for a cell that its recipe does not have any more."""
    for run in runs:
        yield from ((str(run.folder), *lack) for lack in run.lacks())
        if why := why_stale(run.folder, run_manifest(run.folder)):
            yield str(run.folder), "all repetitions", STALE, why


def _of_merged(merged: Mapping[Path, str], damage: list[str]) -> Iterator[_Reason]:
    """Yield the missing parts of merged results, with the names of their recipes; damage is added to the list."""
    for folder, name in merged.items():
        if name not in recipes.names():
            yield str(folder), "all cells", "no longer", f"there is no recipe {name}"
            continue
        try:
            problems = cell_problems(folder, recipes.read_recipe(name))
        except DataError as error:
            damage.append(str(error))
            yield str(folder), "all cells", "damaged", str(error)
            continue
        for problem in problems:
            yield str(folder), problem.cell, problem.state, problem.why


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

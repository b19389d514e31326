"""Reproducing a figure: the missing cells of its recipe are run, and all cells are merged, judged and drawn."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from budgetreg.analysis.claims import ClaimResult, claims_csv, judge
from budgetreg.analysis.comparisons import savings_csv
from budgetreg.common.errors import ConfigError, DataError, UnfinishedError
from budgetreg.common.files import digest, write_atomically
from budgetreg.common.notices import say, say_on_terminal
from budgetreg.figures import Receipt, plot
from budgetreg.figures.specification import axes_of, worst
from budgetreg.reproduce.merged import CellResults, find_runs, held, read_results, read_run, write_results
from budgetreg.reproduce.recipes import Cell, Recipe
from budgetreg.runs.series import Series, labelled, read_folder
from budgetreg.runs.tables import CLAIMS, CURVES, SAVINGS, rows_of

QUICK_REPETITIONS = 2
_FIGURE = "curves"
ClaimRow = dict[str, str]
"""A row of ``claims.csv``."""


def reproduce_quickly(recipe: Recipe, runs: Path, results: Path) -> list[ClaimRow]:
    """Reproduce a recipe with few repetitions, as its figure notes; everything else is as in `reproduce`.

    Raises
    ------
    ConfigError
        If it would replace results of more repetitions.
    """
    cells = tuple(
        replace(cell, config=replace(cell.config, repetitions=min(QUICK_REPETITIONS, cell.config.repetitions)))
        for cell in recipe.cells
    )
    few, most = (max(cell.config.repetitions for cell in some) for some in (cells, recipe.cells))
    folder = results / recipe.name
    repetitions = held(folder)
    if repetitions > few:
        raise ConfigError(
            f"{folder} holds {repetitions} repetitions, more than a quick look has: choose another out=DIR"
        )
    # What all repetitions show, few may not.
    drawing = replace(recipe.drawing, finding="", note=f"quick look: {few} of {most} repetitions")
    return reproduce(replace(recipe, cells=cells, drawing=drawing), runs, results)


def reproduce(recipe: Recipe, runs: Path, results: Path) -> list[ClaimRow]:
    """Run what is missing of a recipe, then merge, judge and draw all of it.

    Current results are used as they are: those in `results` first, then those in `runs`. If verdicts and figures are
    current, too, nothing is written.

    Parameters
    ----------
    recipe : Recipe
    runs, results : Path
        The folders of runs and of merged results; both have a folder for each recipe.

    Returns
    -------
    list of dict
        The rows of ``claims.csv``, one for each claim and preset.

    Raises
    ------
    UnfinishedError
        If repetitions have failed.
    UserError
        If data are missing, or a file cannot be read or written.
    KeyboardInterrupt
        Finished repetitions are kept, as in `budgetreg.runs.runner.execute`.
    """
    folder = results / recipe.name
    receipt = receipt_of(recipe, results)
    if not receipt.holds(results_in(folder)):
        cells = read_results(folder, recipe.cells)
        missing = [cell for cell in recipe.cells if cell.name not in cells]
        if missing:
            cells |= dict(_run(recipe, missing, runs / recipe.name))
        write_results(folder, recipe, cells)
        report(recipe, results)
        receipt.write(results_in(folder))
    return rows_of((folder / CLAIMS).read_bytes())


def receipt_of(recipe: Recipe, results: Path) -> Receipt:
    """Return the receipt of a recipe's verdicts and figures.

    Parameters
    ----------
    recipe : Recipe
    results : Path
        The folder with a folder of merged results for each recipe.
    """
    referred = {name for claim in recipe.claims for name in claim.options["also"]}
    others = sorted((name, results / name / CURVES) for name in referred)
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        ingredients = [
            *(recipe.name, recipe.title, recipe.protocols, recipe.differs, repr(recipe.claims), repr(recipe.drawing)),
            [(cell.name, cell.digest, cell.config.repetitions, cell.config.recorded()) for cell in recipe.cells],
            [(name, digest(table.read_bytes())) for name, table in others if table.is_file()],
        ]
    return Receipt(results / recipe.name, ingredients)


def results_in(folder: Path) -> list[str]:
    """Return the names of the files that a folder of merged results holds; none if there is no such folder."""
    return [path.name for path in folder.glob("*") if path.is_file() and not path.name.startswith(".")]


def report(recipe: Recipe, results: Path) -> None:
    """Judge and draw the merged results of a recipe.

    Parameters
    ----------
    recipe : Recipe
    results : Path
        The folder with a folder of merged results for each recipe.
    """
    folder = results / recipe.name
    read = cache(read_folder)  # claims may refer to the same results again
    series = read(folder)
    measure = axes_of(series, recipe.drawing)[1].column
    panels = _panels(recipe, series, measure)
    write_atomically(folder / CLAIMS, claims_csv(judged(recipe, results, read)))
    # A learner with a curve for each of several data sets has no number of attributes of its own.
    comparable = [(name, curves) for name, curves in panels if len({curve.label for curve in curves}) == len(curves)]
    write_atomically(folder / SAVINGS, savings_csv(comparable, measure))
    called = recipe.drawing.names
    drawn = [replace(curve, label=called.get(curve.label, curve.label)) for _, of_panel in panels for curve in of_panel]
    for name, drawing in recipe.drawing.figures(_FIGURE).items():
        plot(drawn, folder, name, drawing)


def judged(recipe: Recipe, results: Path, read: Callable[[Path], list[Series]]) -> Iterator[ClaimResult]:
    """Judge the claims of a recipe by its merged results, each under every preset unless the claim names presets.

    Parameters
    ----------
    recipe, results
        As for `report`.
    read : callable
        Returns the series of a folder.
    """
    for claim in recipe.claims:
        also = claim.options["also"]
        lacking = [name for name in also if not (results / name / CURVES).exists()]
        series = [curve for name in (recipe.name, *also) if name not in lacking for curve in read(results / name)]
        named = claim.options["where"].get("protocol", "")
        for protocol in [named] if claim.names_presets else recipe.protocols or [""]:
            yield judge(claim, series, recipe.drawing.published, protocol, lacking)


def _run(recipe: Recipe, cells: Sequence[Cell], folder: Path) -> Iterator[tuple[str, CellResults]]:
    """Give the results of some cells, which are run unless there are complete runs of them in a folder."""
    from budgetreg.protocol.plan import make_plan  # here, as current results do not need it
    from budgetreg.runs.runner import execute, remarks

    known = find_runs(folder) if folder.is_dir() else {}
    unfinished, choices = [], []
    for number, cell in enumerate(cells, 1):
        place = known.get(cell.digest, folder / f"{cell.name}-{cell.digest[:8]}")
        say_on_terminal(f"{recipe.name}: {cell.name} ({number} of {len(cells)})")
        results = None
        if cell.digest in known:
            with suppress(DataError):  # if its tables are missing or damaged, its journal restores them
                results = read_run(place, cell)
        if results is None or not results.holds(cell.config.repetitions):
            outcome = execute(make_plan(replace(cell.config, out=str(place))))
            choices.append(outcome.choices)
            if outcome.failed:
                unfinished.append(cell.name)
                continue
            results = read_run(place, cell)
            known[cell.digest] = place  # another preset may have the same configuration
        yield cell.name, results
    for remark in remarks(choices):
        say(f"{recipe.name}: {remark}")
    if unfinished:
        failed = ", ".join(unfinished)
        raise UnfinishedError(f"{recipe.name}: repetitions of {failed} failed; the same command tries again")


def _panels(recipe: Recipe, series: Sequence[Series], measure: str) -> list[tuple[str, list[Series]]]:
    """Return the series of each panel, with labels that are unique there."""
    key = recipe.drawing.worst
    return [
        (name, list(worst(curves, key, measure)) if key else _labelled(curves, recipe))
        for name, curves in recipe.drawing.split(series).items()
    ]


def _labelled(series: Sequence[Series], recipe: Recipe) -> list[Series]:
    """Return the series of a panel with their labels, and with the preset if several give different curves."""
    presets = dict.fromkeys(str(curve.config.get("protocol")) for curve in series)
    if len(presets) == 1:
        return labelled(series)
    distinct: dict[str, dict[str, Series]] = {}  # by label and preset
    for preset in presets:
        for curve in labelled(curve for curve in series if curve.config.get("protocol") == preset):
            others = distinct.setdefault(curve.label, {})
            if not any(curve.mean.equals(other.mean) for other in others.values()):
                others[preset] = curve
    return [
        replace(curve, label=f"{label}, {recipe.drawing.titles.get(preset, preset)}" if len(curves) > 1 else label)
        for label, curves in distinct.items()
        for preset, curve in curves.items()
    ]

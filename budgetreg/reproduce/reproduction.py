"""Reproducing a paper's figure: what is missing of its recipe is run, all of it merged, judged and drawn."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from budgetreg.analysis.claims import ClaimResult, judge, undecided
from budgetreg.analysis.comparisons import Incomparable
from budgetreg.analysis.findings import claims_csv, savings_csv
from budgetreg.analysis.savings import Saving, savings
from budgetreg.errors import ConfigError, UnfinishedError
from budgetreg.figures.axes import axes_of
from budgetreg.figures.drawing import worst
from budgetreg.files.integrity import Damaged
from budgetreg.files.writing import write_atomically
from budgetreg.notices import say
from budgetreg.reproduce.merged import CellResults, find_runs, has_tables, held, read_results, read_run, write_results
from budgetreg.reproduce.receipts import Receipt
from budgetreg.reproduce.recipes import Cell, Recipe
from budgetreg.results.schema import CLAIMS, COST, CURVES, SAVINGS
from budgetreg.results.series import Series, common_unit, labelled, read_folder
from budgetreg.results.tables import rows_of

QUICK_REPETITIONS = 2
_FIGURE = "curves"
ClaimRow = dict[str, str]
"""A row of ``claims.csv``."""


@dataclass(frozen=True)
class Places:
    """Where runs are kept, and where merged results go; both have a folder for each recipe."""

    runs: Path
    results: Path


def reproduce_quickly(recipe: Recipe, places: Places) -> list[ClaimRow]:
    """Reproduce a recipe with few repetitions, which its figure says; everything else is as in `reproduce`.

    Raises
    ------
    ConfigError
        If it would replace results of more repetitions.
    """
    few, folder = _quick(recipe), places.results / recipe.name
    repetitions = held(folder)
    if repetitions > max(cell.config.repetitions for cell in few.cells):
        raise ConfigError(f"{folder} holds {repetitions} repetitions, more than a quick look has: choose another out")
    return reproduce(few, places)


def _quick(recipe: Recipe) -> Recipe:
    cells = tuple(
        replace(cell, config=replace(cell.config, repetitions=min(QUICK_REPETITIONS, cell.config.repetitions)))
        for cell in recipe.cells
    )
    most = max(cell.config.repetitions for cell in recipe.cells)
    note = f"quick look: {max(cell.config.repetitions for cell in cells)} of {most} repetitions"
    return replace(recipe, cells=cells, drawing=replace(recipe.drawing, note=note))


def reproduce(recipe: Recipe, places: Places) -> list[ClaimRow]:
    """Run what is missing of a recipe, then merge, judge and draw all of it.

    Current results are used as they are: those in ``places.results`` first, then those in ``places.runs``. If verdicts
    and figures are current, too, nothing is written. A recipe for a picture runs nothing.

    Parameters
    ----------
    recipe : Recipe
    places : Places

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
        What is finished is kept, as in `budgetreg.execution.runner.execute`.
    """
    folder = places.results / recipe.name
    receipt = Receipt(recipe, places.results)
    if not receipt.holds():
        if recipe.drawing.kind == "pictures":
            from budgetreg.reproduce.pictures import reproduce_picture  # here, as matplotlib is slow to load

            reproduce_picture(recipe, folder, _FIGURE)
        else:
            results = read_results(folder, recipe.cells)
            missing = [cell for cell in recipe.cells if cell.name not in results]
            if missing:
                results |= dict(_run(recipe, missing, places.runs / recipe.name))
            write_results(folder, recipe, results)
            report(recipe, places.results)
        receipt.write()
    return rows_of((folder / CLAIMS).read_bytes()) if (folder / CLAIMS).is_file() else []  # a picture claims nothing


def report(recipe: Recipe, results: Path) -> None:
    """Judge and draw the merged results of a recipe.

    Parameters
    ----------
    recipe : Recipe
    results : Path
        The folder with a folder of merged results for each recipe.
    """
    folder = results / recipe.name
    series = read_folder(folder)
    measure = axes_of(series, recipe.drawing)[1].column
    panels = _panels(recipe, series, measure)
    write_atomically(folder / CLAIMS, claims_csv(judged(recipe, results)))
    saved = {name: _savings(own, measure) for name, own in panels}
    units = {name: unit for name, own in panels if saved[name] and (unit := common_unit(own))}
    money = {name: (units[name], _savings(own, measure, COST)) for name, own in panels if name in units}
    write_atomically(folder / SAVINGS, savings_csv(saved, measure, money))
    from budgetreg.figures import curves, dot_plots, scaling  # here, as matplotlib is slow to load

    plots_of = {"curves": curves.plot_series, "dots": dot_plots.plot_dots, "scaling": scaling.plot_scaling}
    drawn = [one for _, own in panels for one in own]
    for name, drawing in recipe.drawing.figures(_FIGURE).items():
        plots_of[drawing.kind](drawn, folder, name, drawing)


def judged(recipe: Recipe, results: Path) -> Iterator[ClaimResult]:
    """Judge the claims of a recipe by merged results, under each of its presets unless a claim says which it means.

    Parameters
    ----------
    recipe, results
        As for `report`.
    """
    own = read_folder(results / recipe.name)
    for claim in recipe.claims:
        missing = [name for name in claim.also if not (results / name / CURVES).exists()]
        others = [results / name for name in claim.also if name not in missing]
        series = [*own, *(one for folder in others for one in read_folder(folder))]
        own_preset = claim.options["where"].get("protocol", "")
        for protocol in [own_preset] if claim.names_presets else recipe.protocols or [""]:
            if missing:
                yield undecided(claim, protocol, f"without the results of {', '.join(missing)}")
            else:
                yield judge(claim, series, recipe.published, protocol)


def _run(recipe: Recipe, cells: Sequence[Cell], folder: Path) -> Iterator[tuple[str, CellResults]]:
    """Run some cells, unless complete runs of them lie there; a new one has a folder named by cell and digest."""
    from budgetreg.execution.choices import remarks
    from budgetreg.execution.runner import execute
    from budgetreg.protocol.plan import make_plan  # here, as current results need nothing of what computes

    known = find_runs(folder) if folder.is_dir() else {}
    unfinished, choices = [], []
    for number, cell in enumerate(cells, 1):
        place = known.get(cell.digest, folder / f"{cell.name}-{cell.digest[:8]}")
        _say(f"{recipe.name}: {cell.name} ({number} of {len(cells)})")
        done = _left_by_run(place, cell) if cell.digest in known else None
        if done is None or not done.holds(cell.config.repetitions):
            outcome = execute(make_plan(replace(cell.config, out=str(place))))
            choices.append(outcome.choices)
            if outcome.failed:
                unfinished.append(cell.name)
                continue
            done = read_run(place, cell)
            known[cell.digest] = place  # presets may leave a learner as it is
        yield cell.name, done
    for remark in remarks(filter(None, choices)):
        say(f"{recipe.name}: {remark}")
    if unfinished:
        failed = ", ".join(unfinished)
        raise UnfinishedError(f"{recipe.name}: repetitions of {failed} failed; the same command tries again")


def _left_by_run(place: Path, cell: Cell) -> CellResults | None:
    """Return what a run has left; None if it has left no tables, or damaged ones: its journal gives them again."""
    if not has_tables(place):
        return None
    try:
        return read_run(place, cell)
    except Damaged:
        return None


def _panels(recipe: Recipe, series: Sequence[Series], measure: str) -> list[tuple[str, list[Series]]]:
    """Give the series of each panel the labels that tell them apart there."""
    names = dict.fromkeys(map(recipe.drawing.panel, series))
    panels = {name: [one for one in series if recipe.drawing.panel(one) == name] for name in names}
    key = recipe.drawing.worst
    told = (lambda own: list(worst(own, key, measure))) if key else (lambda own: _told_apart(own, recipe))
    return [(name, told(own)) for name, own in panels.items()]


def _told_apart(series: Sequence[Series], recipe: Recipe) -> list[Series]:
    """Give the series of a panel their labels, with the preset if there are several."""
    presets = dict.fromkeys(str(one.config.get("protocol")) for one in series)
    if len(presets) == 1:
        return labelled(series)
    return [
        replace(one, label=f"{one.label}, {recipe.drawing.titles.get(preset, preset)}")
        for preset in presets
        for one in labelled(one for one in series if one.config.get("protocol") == preset)
    ]


def _savings(series: Sequence[Series], measure: str, x: str = "attributes") -> list[Saving]:
    if len({one.label for one in series}) < len(series):  # of many data sets, each with a curve of its own
        return []
    try:
        return savings(series, measure, x=x)
    except Incomparable:
        return []


def _say(message: str) -> None:
    if sys.stderr.isatty():
        print(f"budgetreg: {message}", file=sys.stderr)

"""Reproducing a figure: the missing cells of its recipe are run, and all cells are merged, judged and drawn.

The merged results are the curves of all its runs in one folder, which can be committed. ``curves.csv`` and ``runs.csv``
have the rows of the runs, with a column that names the cell of the recipe. ``manifest.json`` records the configuration,
the data and the source of each cell. The rows of a cell are current if the digest of its configuration is that of the
recipe and they have as many repetitions.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from budgetreg.analysis.claims import ClaimResult, claims_csv, judge
from budgetreg.analysis.comparisons import savings_csv
from budgetreg.common.errors import ConfigError, DataError, UnfinishedError
from budgetreg.common.files import Damaged, digest, files_below, os_errors_explained, write_atomically
from budgetreg.common.notices import say, say_on_terminal
from budgetreg.config.nested import Tree, common, diff, ordered
from budgetreg.figures import Receipt, plot
from budgetreg.figures.specification import axes_of, worst
from budgetreg.reproduce.recipes import Cell, Recipe
from budgetreg.runs.manifest import (
    RecordedCell,
    cells_of,
    promised,
    read_manifest,
    read_merged_manifest,
    read_tables,
    run_manifest,
    write_manifest,
)
from budgetreg.runs.series import Series, labelled, read_folder
from budgetreg.runs.tables import CELL, CLAIMS, CURVES, MANIFEST, RUNS, SAVINGS, as_csv, expanded, meanings_of, rows_of

QUICK_REPETITIONS = 2
_FIGURE = "curves"
_Rows = list[dict[str, str]]
ClaimRow = dict[str, str]
"""A row of ``claims.csv``."""


@dataclass(frozen=True)
class CellResults:
    """The results of one cell.

    Attributes
    ----------
    recorded : RecordedCell
        What decided and computed them. The configuration is without the options that change no result, but with the
        preset and the repetitions.
    tables : dict
        Rows of the tables, as text, by name.
    """

    recorded: RecordedCell
    tables: Mapping[str, _Rows]

    @classmethod
    def of(cls, cell: Cell, config: Tree, recorded: RecordedCell, tables: Mapping[str, _Rows]) -> Self:
        """Return the results of a cell from rows that may hold more repetitions than its recipe asks for."""
        # As presets may share a run, the cell has the preset and the number of repetitions of these results.
        asked = {key: cell.config.resolved[key] for key in ("protocol", "repetitions", "axis")}
        kept = {
            name: [row for row in tables[name] if int(row["repetition"]) < cell.config.repetitions]
            for name in (CURVES, RUNS)
        }
        config = {**config, **{key: value for key, value in asked.items() if value is not None}}
        return cls(replace(recorded, config=config), kept)


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
    manifest = read_merged_manifest(folder)
    repetitions = max((cell.repetitions for cell in cells_of(manifest)), default=0) if manifest else 0
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
        if results is None or lacking(results.tables, cell.config.repetitions):
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


def lacking(tables: Mapping[str, _Rows], repetitions: int) -> list[int]:
    """Return which of the first repetitions are missing in the rows of a cell, or lack checkpoints."""
    points, ends = (Counter(int(row["repetition"]) for row in tables[name]) for name in (CURVES, RUNS))
    whole = max((points[number] for number in range(repetitions)), default=0)
    return [number for number in range(repetitions) if not whole or points[number] != whole or ends[number] != 1]


def has_tables(folder: Path) -> bool:
    """Whether both tables are in a folder; a run that was killed may have left none, or one."""
    return all((folder / name).is_file() for name in (CURVES, RUNS))


def read_rows(folder: Path) -> dict[str, dict[str, _Rows]]:
    """Return the rows of both tables of merged results, by cell, then by table.

    Raises
    ------
    Damaged
        If the content of one does not match its digest.
    DataError
        If one is missing, or is no table of cells.
    """
    cells: dict[str, dict[str, _Rows]] = {}
    for name, rows in _tables(folder).items():
        for row in rows:
            cells.setdefault(row[CELL], {CURVES: [], RUNS: []})[name].append(row)
    return cells


def find_runs(folder: Path) -> dict[str, Path]:
    """Return the folders of the runs in and below a folder, by the digest of their configuration.

    Of several runs of one configuration, it is the one with most repetitions. Runs with a damaged manifest are
    reported and left out.
    """
    fullest: dict[str, tuple[int, Path]] = {}
    for path in files_below(folder, MANIFEST):
        try:
            manifest = read_manifest(path.parent)
        except Damaged as error:
            say(str(error))
            continue
        if manifest is not None:
            done, identity = manifest["repetitions_done"], manifest["identity_digest"]
            if identity not in fullest or done > fullest[identity][0]:
                fullest[identity] = done, path.parent
    return {identity: path for identity, (_, path) in fullest.items()}


def read_run(folder: Path, cell: Cell) -> CellResults:
    """Return the results of a run of a cell, limited to the repetitions of the recipe.

    Raises
    ------
    DataError
        If there is no run, or a file is damaged.
    """
    (recorded,) = cells_of(run_manifest(folder))
    return CellResults.of(cell, cell.config.recorded(), recorded, _tables(folder))


def read_results(folder: Path, cells: Sequence[Cell]) -> dict[str, CellResults]:
    """Return the current results of some cells, by name, from a folder of merged results.

    Raises
    ------
    DataError
        If a file is damaged.
    """
    manifest = read_merged_manifest(folder)
    if manifest is None or not has_tables(folder):
        return {}
    by_digest = {recorded.digest: recorded for recorded in cells_of(manifest)}
    try:
        rows = read_rows(folder)
    except Damaged as error:
        say(f"{error}: it is not used, but made again")
        return {}
    current = {}
    for cell in cells:
        recorded = by_digest.get(cell.digest)
        if recorded is not None and recorded.name in rows:
            results = CellResults.of(cell, recorded.config, recorded, rows[recorded.name])
            if not lacking(results.tables, cell.config.repetitions):
                current[cell.name] = results
    return current


def write_results(folder: Path, recipe: Recipe, by_name: Mapping[str, CellResults]) -> None:
    """Write the merged tables and the manifest of a recipe from the results of all its cells.

    Raises
    ------
    UserError
        If a file cannot be written.
    """
    with os_errors_explained(f"create {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    rows = {
        name: [{**row, CELL: cell.name} for cell in recipe.cells for row in by_name[cell.name].tables[name]]
        for name in (CURVES, RUNS)
    }
    heads = meanings_of(rows)
    tables = {name: as_csv([*expanded(heads[name], table), CELL], table) for name, table in rows.items()}
    base = ordered(common([results.recorded.config for results in by_name.values()]))
    sources, cells = _entries(recipe, base, by_name)
    described = {"recipe": recipe.name, "title": recipe.title, "differs": recipe.differs}
    promises = {cell.config.algo.name: promised(cell.config.algo) for cell in recipe.cells}
    about_tables = {"promised": promises, "columns": heads}
    manifest = {**described, "config": base, "sources": sources, **about_tables, "cells": cells}
    with os_errors_explained(f"write {folder}"):
        if any(not (folder / name).is_file() or (folder / name).read_bytes() != new for name, new in tables.items()):
            # If the process is killed while the tables change, no manifest must describe the wrong ones.
            (folder / MANIFEST).unlink(missing_ok=True)
    for name, content in tables.items():
        write_atomically(folder / name, content)
    # Last, as it holds the digests of the tables.
    write_manifest(folder, manifest, {name: digest(content) for name, content in tables.items()})


def _entries(recipe: Recipe, base: Tree, by_name: Mapping[str, CellResults]) -> tuple[list[Tree], list[Tree]]:
    """Return the sources of results, and the entries of their cells, whose configurations lack what the base has."""
    sources: list[Tree] = []
    cells = []
    for cell in recipe.cells:
        recorded = by_name[cell.name].recorded
        last, *earlier = recorded.sources
        source = {**last, "earlier": earlier}
        sources += [source] if source not in sources else []
        cells.append(
            {
                CELL: cell.name,
                "identity_digest": cell.digest,
                "version": cell.config.identity()["algo"]["version"],
                "repetitions": cell.config.repetitions,
                "config": ordered(diff(recorded.config, base)),
                "data": recorded.data,
                "source": sources.index(source),
            }
        )
    return sources, cells


def _tables(folder: Path) -> dict[str, _Rows]:
    """Return the rows of both tables, compared with their digests."""
    if not has_tables(folder):
        raise DataError(f"{folder}: {CURVES} or {RUNS} is missing: reproduce the figure again")
    contents = read_tables(folder, (CURVES, RUNS))
    return {name: rows_of(content) for name, content in contents.items()}

"""The merged results of a figure: the curves of all its runs in one folder, which can be committed.

``curves.csv`` and ``runs.csv`` have the rows of the runs, with a column that names the cell of the recipe.
``manifest.json`` records the configuration, the data and the source of each cell. The rows of a cell are current if the
digest of its configuration is that of the recipe and they have as many repetitions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from budgetreg.common.errors import DataError
from budgetreg.common.files import Damaged, digest, files_below, os_errors_explained, write_atomically
from budgetreg.common.notices import say
from budgetreg.config.nested import Tree, common, diff, ordered
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
from budgetreg.runs.tables import CELL, CURVES, MANIFEST, RUNS, as_csv, expanded, meanings_of, rows_of

_Rows = list[dict[str, str]]


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

    def holds(self, repetitions: int) -> bool:
        """Whether the first repetitions, up to a number, are complete."""
        return not lacking(self.tables, repetitions)


def lacking(tables: Mapping[str, _Rows], repetitions: int) -> list[int]:
    """Return which of the first repetitions are missing in the rows of a cell, or lack checkpoints."""
    points, ends = (Counter(int(row["repetition"]) for row in tables[name]) for name in (CURVES, RUNS))
    whole = max((points[number] for number in range(repetitions)), default=0)
    return [number for number in range(repetitions) if not whole or points[number] != whole or ends[number] != 1]


def has_tables(folder: Path) -> bool:
    """Whether both tables are in a folder; a run that was killed may have left none, or one."""
    return all((folder / name).is_file() for name in (CURVES, RUNS))


def held(folder: Path) -> int:
    """Return the largest number of repetitions of the merged results in a folder; 0 if there are none.

    Raises
    ------
    DataError
        If their manifest is damaged.
    """
    manifest = read_merged_manifest(folder)
    return max((cell.repetitions for cell in cells_of(manifest)), default=0) if manifest else 0


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
            if results.holds(cell.config.repetitions):
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
    kept_promises = {cell.config.algo.name: promised(cell.config.algo) for cell in recipe.cells}
    manifest = manifest_of(recipe, base, by_name, {"promised": kept_promises, "columns": heads})
    with os_errors_explained(f"write {folder}"):
        if any(not (folder / name).is_file() or (folder / name).read_bytes() != new for name, new in tables.items()):
            # If the process is killed while the tables change, no manifest must describe the wrong ones.
            (folder / MANIFEST).unlink(missing_ok=True)
    for name, content in tables.items():
        write_atomically(folder / name, content)
    # Last, as it holds the digests of the tables.
    write_manifest(folder, manifest, {name: digest(content) for name, content in tables.items()})


def manifest_of(recipe: Recipe, config: Tree, by_name: Mapping[str, CellResults], tables: Tree) -> Tree:
    """Return the manifest of the results of all cells of a recipe.

    Parameters
    ----------
    recipe : Recipe
    config : dict
        What the configurations of all cells share.
    by_name : mapping
        The results of each cell.
    tables : dict
        Keys about the tables.
    """
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
                "config": ordered(diff(recorded.config, config)),
                "data": recorded.data,
                "source": sources.index(source),
            }
        )
    described = {"recipe": recipe.name, "title": recipe.title, "differs": recipe.differs}
    return {**described, "config": config, "sources": sources, **tables, "cells": cells}


def _tables(folder: Path) -> dict[str, _Rows]:
    """Return the rows of both tables, compared with their digests."""
    if not has_tables(folder):
        raise DataError(f"{folder}: {CURVES} or {RUNS} is missing: reproduce the figure again")
    contents = read_tables(folder, (CURVES, RUNS))
    return {name: rows_of(content) for name, content in contents.items()}

"""The merged results of a figure: the curves of all its runs in one folder, which can be committed.

``curves.csv`` and ``runs.csv`` are those of the runs, with a column that says which cell of the recipe a row belongs
to; ``manifest.json`` says of each cell which configuration, data and source its rows come from. A cell's rows are
current if the digest of its configuration is that of the recipe, and they hold as many repetitions; no time counts.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from budgetreg.config.nested import Tree, common, diff, merge, ordered
from budgetreg.errors import DataError
from budgetreg.files.integrity import Damaged, digest
from budgetreg.files.writing import files_below, os_errors_explained, write_atomically
from budgetreg.notices import say
from budgetreg.reproduce.recipes import Cell, Recipe
from budgetreg.results.manifest import (
    SOURCE,
    cells_of,
    read_manifest,
    read_merged_manifest,
    read_tables,
    run_manifest,
    write_manifest,
)
from budgetreg.results.reproducibility import promised
from budgetreg.results.schema import CELL, CURVES, MANIFEST, RUNS
from budgetreg.results.tables import as_csv, expanded, meanings_of, rows_of


@dataclass(frozen=True)
class CellResults:
    """What was computed for one cell.

    Attributes
    ----------
    config : dict
        The resolved configuration without the options that change no result, but with the preset and the repetitions.
    data : dict
        Name, content and shape of the data.
    source : dict
        Versions, commit and processor of what computed it.
    curves, runs : list of dict
        Rows of the tables, as they stand there.
    """

    config: Tree
    data: Tree
    source: Tree
    curves: list[dict[str, str]]
    runs: list[dict[str, str]]

    def holds(self, repetitions: int) -> bool:
        """Whether it has as many repetitions, from the first on, and of all of them equally much."""
        return not lacking(self.curves, self.runs, repetitions)


def lacking(curves: Sequence[Mapping[str, str]], runs: Sequence[Mapping[str, str]], repetitions: int) -> list[int]:
    """Return which of the first so many repetitions the rows of a cell do not hold, or not with all checkpoints."""
    points = Counter(int(row["repetition"]) for row in curves)
    told = Counter(int(row["repetition"]) for row in runs)
    whole = max((points[number] for number in range(repetitions)), default=0)
    return [number for number in range(repetitions) if not whole or points[number] != whole or told[number] != 1]


def has_tables(folder: Path) -> bool:
    """Whether there are tables in the folder of a run; a run that was killed may have left none, or only one."""
    return all((folder / name).is_file() for name in (CURVES, RUNS))


def held(folder: Path) -> int:
    """Return how many repetitions were asked of the merged results in a folder; 0 if there are none.

    Raises
    ------
    DataError
        If their manifest is damaged.
    """
    manifest = read_merged_manifest(folder)
    return max((cell.repetitions for cell in cells_of(manifest)), default=0) if manifest else 0


def read_rows(folder: Path) -> dict[str, dict[str, list[dict[str, str]]]]:
    """Return the rows of both tables of merged results, by cell, then by table.

    Raises
    ------
    Damaged
        If one has another content than its digest describes.
    DataError
        If one is not there, or is no table of cells.
    """
    if not has_tables(folder):
        raise DataError(f"{folder}: {CURVES} or {RUNS} is missing: the command that made them writes them anew")
    found: dict[str, dict[str, list[dict[str, str]]]] = {}
    with _undamaged(folder):
        for name, rows in _tables(folder).items():
            for row in rows:
                if None in row.values():  # what `DictReader` gives for columns that are not there
                    raise ValueError(f"{name} has a row that is not whole")
                found.setdefault(row[CELL], {CURVES: [], RUNS: []})[name].append(row)
    return found


def find_runs(folder: Path) -> dict[str, Path]:
    """Return the folders of runs at or below a folder, by the digest of their configuration; the fullest of equals.

    Those with a damaged manifest are told and left out.
    """
    found: dict[str, tuple[int, Path]] = {}
    for path in files_below(folder, MANIFEST):
        try:
            manifest = read_manifest(path.parent)
        except Damaged as error:
            say(str(error))
            continue
        if manifest is not None:
            done = manifest["repetitions_done"]
            identity = manifest["identity_digest"]
            if identity not in found or done > found[identity][0]:
                found[identity] = done, path.parent
    return {identity: path for identity, (_, path) in found.items()}


def read_run(folder: Path, cell: Cell) -> CellResults:
    """Read what a run of a cell left, without the repetitions that the recipe does not ask for.

    Raises
    ------
    DataError
        If there is none, or a file is damaged.
    """
    manifest = run_manifest(folder)
    with _undamaged(folder):
        tables = _tables(folder)
        return CellResults(
            config=_as_asked(cell.config.recorded(), cell),
            data=manifest["data"],
            source={key: manifest[key] for key in SOURCE},
            curves=_asked(tables[CURVES], cell),
            runs=_asked(tables[RUNS], cell),
        )


def read_results(folder: Path, cells: Sequence[Cell]) -> dict[str, CellResults]:
    """Return what merged results hold of some cells, by name: those that are current.

    Raises
    ------
    DataError
        If a file is damaged.
    """
    manifest = read_merged_manifest(folder)
    if manifest is None or not has_tables(folder):
        return {}
    with _undamaged(folder):
        entries = {entry["identity_digest"]: entry for entry in manifest["cells"]}
        try:
            tables = _tables(folder)
        except Damaged as error:
            say(f"{error}: not taken as it is, but made again")
            return {}
        found = {}
        for cell in cells:
            entry = entries.get(cell.digest)
            if entry is not None:
                own = {name: [row for row in rows if row[CELL] == entry[CELL]] for name, rows in tables.items()}
                found[cell.name] = CellResults(
                    config=_as_asked(merge(manifest["config"], entry["config"]), cell),
                    data=entry["data"],
                    source=manifest["sources"][entry["source"]],
                    curves=_asked(own[CURVES], cell),
                    runs=_asked(own[RUNS], cell),
                )
        asked = {cell.name: cell.config.repetitions for cell in cells}
        return {name: own for name, own in found.items() if own.holds(asked[name])}


def write_results(folder: Path, recipe: Recipe, found: Mapping[str, CellResults]) -> None:
    """Write the merged tables and the manifest of a recipe, all of whose cells were found.

    Raises
    ------
    UserError
        If a file cannot be written.
    """
    with os_errors_explained(f"create {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    results = [found[cell.name] for cell in recipe.cells]
    rows = {
        CURVES: [{**row, CELL: cell.name} for cell in recipe.cells for row in found[cell.name].curves],
        RUNS: [{**row, CELL: cell.name} for cell in recipe.cells for row in found[cell.name].runs],
    }
    heads = meanings_of(rows)
    tables = {name: as_csv([*expanded(heads[name], own), CELL], own) for name, own in rows.items()}
    base = common([own.config for own in results])
    sources: list[Tree] = []
    for own in results:
        sources += [own.source] if own.source not in sources else []
    manifest = {
        "recipe": recipe.name,
        "title": recipe.title,
        "differs": recipe.differs,
        "config": ordered(base),
        "sources": sources,
        "promised": {cell.config.algo.name: promised(cell.config.algo) for cell in recipe.cells},
        "columns": heads,
        "cells": [
            {
                CELL: cell.name,
                "identity_digest": cell.digest,
                "version": cell.config.identity()["algo"]["version"],
                "repetitions": cell.config.repetitions,
                "config": ordered(diff(own.config, base)),
                "data": own.data,
                "source": sources.index(own.source),
            }
            for cell, own in zip(recipe.cells, results, strict=True)
        ],
    }
    with os_errors_explained(f"write {folder}"):
        if any(not (folder / name).is_file() or (folder / name).read_bytes() != new for name, new in tables.items()):
            # Killed while the tables change, we leave none that a manifest calls something else.
            (folder / MANIFEST).unlink(missing_ok=True)
    for name, content in tables.items():
        write_atomically(folder / name, content)
    # Last: it vouches for the tables.
    write_manifest(folder, manifest, {name: digest(content) for name, content in tables.items()})


def _as_asked(config: Tree, cell: Cell) -> Tree:
    """Return a configuration with the preset and repetitions that the cell asks for: presets may share a run."""
    asked = {key: cell.config.resolved[key] for key in ("protocol", "repetitions", "axis")}
    return {**config, **{key: value for key, value in asked.items() if value is not None}}


def _asked(rows: Sequence[dict[str, str]], cell: Cell) -> list[dict[str, str]]:
    return [row for row in rows if int(row["repetition"]) < cell.config.repetitions]


@contextmanager
def _undamaged(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{folder}: its results are damaged ({error}): remove the folder to have them anew") from error


def _tables(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Return the rows of both tables, compared with their digests."""
    contents = read_tables(folder, (CURVES, RUNS))
    return {name: rows_of(content) for name, content in contents.items()}

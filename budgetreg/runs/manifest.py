"""``manifest.json``: how a run, or merged results, came about, and what the columns of its tables mean.

A manifest carries a digest of itself, and the digest of each table under ``tables``, so that readers notice damage.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from budgetreg.config.nested import Tree, merge
from budgetreg.errors import DataError
from budgetreg.files import (
    KEY,
    Damaged,
    content_of,
    content_of_regular,
    digest,
    os_errors_explained,
    parsed,
    signed,
    write_atomically,
)
from budgetreg.runs.schema import CELL, MANIFEST, SCHEMA_VERSION

SOURCE = ("versions", "git", "processor", "earlier")
"""Keys of versions and machine that computed the results; ``earlier`` has those of previous calls, if they differed."""

_RUN, _MERGED, _EITHER = "identity", "cells", "config"
"""Keys that only the manifest of a run has, only that of merged results, and both."""
_REMEDY = "remove the folder to compute its results again"
_TRIES, _PAUSE = 3, 0.1  # seconds: a writer that has replaced one file needs less time to replace the others


@dataclass(frozen=True)
class RecordedCell:
    """A configuration whose results lie in a folder, as the manifest there describes it.

    Attributes
    ----------
    name : str
        Its name among merged results; empty for a run.
    config : dict
        The resolved configuration; for merged results without the options that change no result.
    digest : str
        The digest of its identity.
    version : int
        The version of the learner's numbers.
    repetitions : int
        Repetitions asked for.
    data : dict
        Name, content and shape of the data.
    sources : list of dict
        Versions, commit and processor of what computed the results, of the last call first.
    """

    name: str
    config: Tree
    digest: str
    version: int
    repetitions: int
    data: Tree
    sources: list[Tree]


def read_any_manifest(folder: Path) -> Tree | None:
    """Return the manifest in a folder, of any schema; None if there is none, or somebody else's.

    Raises
    ------
    Damaged
        If its content does not match its digest, or is not JSON.
    UserError
        If it cannot be read.
    """
    path = folder / MANIFEST
    with os_errors_explained(f"read {path}"):
        if not path.is_file():
            return None
        content = path.read_bytes()
    try:
        manifest = parsed(content)
    except ValueError:
        raise Damaged(f"{path} is damaged, or budgetreg did not write it: it is not JSON; {_REMEDY}") from None
    if not isinstance(manifest, dict) or not {"schema_version", KEY} & manifest.keys():
        return None
    if content_of(manifest) is None:
        raise Damaged(f"{path} is damaged: its content does not match its digest; {_REMEDY}")
    return manifest


def read_manifest(folder: Path, key: str = _RUN) -> Tree | None:
    """Return the manifest of the run in a folder; None if there is none of the current schema.

    Parameters
    ----------
    folder : Path
        The folder.
    key : str, optional
        A key that the manifest must have, by default one that only runs have.

    Raises
    ------
    UserError
        As `read_any_manifest`.
    """
    manifest = read_any_manifest(folder)
    known = manifest is not None and manifest.get("schema_version") == SCHEMA_VERSION and key in manifest
    return manifest if known else None


def read_merged_manifest(folder: Path) -> Tree | None:
    """Return the manifest of the merged results in a folder, as `read_manifest` does for a run."""
    return read_manifest(folder, _MERGED)


def run_manifest(folder: Path) -> Tree:
    """Return the manifest of the run in a folder.

    Raises
    ------
    DataError
        If there is none, or it is damaged.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise DataError(f"{folder} holds no run: it has no {MANIFEST} that budgetreg wrote")
    return manifest


def results_manifest(folder: Path) -> Tree:
    """Return the manifest in a folder, of a run or of merged results.

    Raises
    ------
    DataError
        If there is none of the current schema, or it is damaged.
    """
    manifest = read_manifest(folder, _EITHER)
    if manifest is None:
        raise DataError(f"{folder} holds no {MANIFEST} of schema {SCHEMA_VERSION}: run it again, into another folder")
    return manifest


def cells_of(manifest: Mapping[str, Any]) -> list[RecordedCell]:
    """Return the cells of merged results; a run is a single cell."""
    if "cells" not in manifest:
        version = manifest["identity"]["algo"].get("version")
        return [_cell("", manifest["config"], {**manifest, "version": version}, manifest)]
    config, sources = manifest["config"], manifest["sources"]
    return [
        _cell(entry[CELL], merge(config, entry["config"]), entry, sources[entry["source"]])
        for entry in manifest["cells"]
    ]


def write_manifest(folder: Path, manifest: Mapping[str, Any], tables: Mapping[str, str]) -> None:
    """Write a manifest with the digests of tables, by name, and its own.

    Raises
    ------
    UserError
        If it cannot be written.
    """
    whole = signed({"schema_version": SCHEMA_VERSION, **manifest, "tables": tables})
    write_atomically(folder / MANIFEST, (json.dumps(whole, indent=1) + "\n").encode())


def read_tables(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Read tables and compare them with the digests in the manifest beside them.

    Parameters
    ----------
    folder : Path
        Where they are.
    names : sequence of str
        Their names. A table that is not there is left out.

    Raises
    ------
    Damaged
        If a table, or the manifest, does not match its digest, or a table cannot be read.
    """
    for tries_left in reversed(range(_TRIES)):
        contents = {name: _read(folder / name) for name in names if os.path.exists(folder / name)}
        expected = (read_any_manifest(folder) or {}).get("tables", {})
        # No digests at all are those of a run whose tables change; otherwise each table has one.
        wrong = [name for name, content in contents.items() if expected and expected.get(name) != digest(content)]
        if not wrong:
            return contents
        if tries_left:
            time.sleep(_PAUSE)
    raise Damaged(
        f"{folder / wrong[0]} is damaged: its content does not match its digest in {MANIFEST}; the command that made "
        "it writes it again"
    )


def _cell(name: str, config: Tree, entry: Mapping[str, Any], source: Mapping[str, Any]) -> RecordedCell:
    last = {key: source[key] for key in SOURCE if key != "earlier"}
    kept = {key: entry[key] for key in ("version", "repetitions", "data")}
    return RecordedCell(name, config, entry["identity_digest"], sources=[last, *source["earlier"]], **kept)


def _read(path: Path) -> bytes:
    try:
        return content_of_regular(path)
    except OSError as error:
        raise Damaged(f"{path}: cannot be read: {error.strerror or error}") from error

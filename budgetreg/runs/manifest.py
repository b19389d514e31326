"""``manifest.json``: what decides a run or merged results, what computed them, and how either has changed since.

A manifest carries a digest of itself, and the digest of each table under ``tables``, so that readers notice damage.
"""

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_info

from budgetreg import __version__
from budgetreg.common.errors import DataError
from budgetreg.common.files import (
    KEY,
    Damaged,
    content_of,
    content_of_regular,
    digest,
    os_errors_explained,
    parsed,
    record_digest,
    signed,
    write_atomically,
)
from budgetreg.config.nested import Tree, differing, merge, show
from budgetreg.runs.tables import CELL, MANIFEST, SCHEMA_VERSION

if TYPE_CHECKING:
    from budgetreg.algorithms.learner import Learner  # which are slow to load
    from budgetreg.protocol.plan import Plan


SOURCE = ("versions", "git", "processor", "earlier")
"""Keys of versions and machine that computed the results; ``earlier`` has those of previous calls, if they differed."""

PROMISED = 1e-9
"""Largest relative difference on another processor, whose sums may differ in their last digits."""

_HERE = "the same bytes with these versions on processors of this family"
_ELSEWHERE = f"the same to {PROMISED:g} on others"
NOT_PORTABLE = (
    "results differ between processor types, but have the same distribution, because round-off grows without bound"
)

_REMEDY = "remove the folder to compute its results again"
_TRIES, _PAUSE = 3, 0.1  # seconds: a writer that has replaced one file needs less time to replace the others

DISTRIBUTIONS = {"numpy": "numpy", "scipy": "scipy", "scikit-learn": "scikit-learn", "hydra": "hydra-core"}
# Only these can change a result: a folder of results inside the checkout does not make the source dirty.
SOURCES = ("budgetreg", "conf", "experiments", "pyproject.toml")


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


def read_manifest(folder: Path, key: str = "identity") -> Tree | None:
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
    return read_manifest(folder, "cells")


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
    manifest = read_manifest(folder, "config")  # which runs and merged results have
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


def read_tables(folder: Path, names: Sequence[str], *, all_there: bool = False) -> dict[str, bytes]:
    """Read tables and compare them with the digests in the manifest beside them.

    Parameters
    ----------
    folder : Path
        Where they are.
    names : sequence of str
        Their names. A table that is not there is left out.
    all_there : bool, optional
        Whether a table that is not there is an error if the manifest has its digest.

    Raises
    ------
    Damaged
        If a table, or the manifest, does not match its digest, or a table cannot be read, or is missing.
    """
    for tries_left in reversed(range(_TRIES)):
        contents = {name: _read(folder / name) for name in names if os.path.exists(folder / name)}
        expected = (read_any_manifest(folder) or {}).get("tables", {})
        # No digests at all are those of a run whose tables change; otherwise each table has one.
        wrong = [name for name, content in contents.items() if expected and expected.get(name) != digest(content)]
        if all_there:
            wrong += [name for name in names if name in expected and name not in contents]
        if not wrong:
            return contents
        if tries_left:
            time.sleep(_PAUSE)
    mismatch = f"is damaged: its content does not match its digest in {MANIFEST}"
    fault = mismatch if wrong[0] in contents else "is missing"
    raise Damaged(f"{folder / wrong[0]} {fault}; the command that made it writes it again")


def _cell(name: str, config: Tree, entry: Mapping[str, Any], source: Mapping[str, Any]) -> RecordedCell:
    last = {key: source[key] for key in SOURCE if key != "earlier"}
    kept = {key: entry[key] for key in ("version", "repetitions", "data")}
    return RecordedCell(name, config, entry["identity_digest"], sources=[last, *source["earlier"]], **kept)


def _read(path: Path) -> bytes:
    try:
        return content_of_regular(path)
    except OSError as error:
        raise Damaged(f"{path}: cannot be read: {error.strerror or error}") from error


def identity_of(plan: "Plan") -> Tree:
    """Return what decides the results of a plan.

    Returns
    -------
    dict
        ``identity``: the part of the configuration that can change a result; ``identity_digest``: its SHA-256;
        ``data``: name, content, shape and prices of the data, because files can change under the same configuration,
        whether other draws make up for missing values, and whether incomplete rows are tested on.
    """
    identity = json.loads(json.dumps(plan.config.identity(), sort_keys=True))
    return {
        "identity_digest": record_digest(identity),
        "identity": identity,
        "data": {
            "name": plan.dataset,
            "fingerprint": plan.fingerprint,
            "n_train": plan.n_train,
            "n_test": plan.n_test,
            "d": plan.d,
            **({"full_row": plan.full_row} if plan.full_row != plan.d else {}),
            **({"prices": plan.prices.digest()} if plan.prices else {}),
            **({"gaps": "replaced"} if plan.spends_gaps else {}),  # earlier runs ended below their totals
            # Earlier runs were tested on complete rows only.
            **({"tested": "completed"} if plan.gaps and plan.n_test else {}),
        },
    }


def whole_identity(tree: Mapping[str, Any]) -> Tree:
    """Return configuration and data together, from a manifest or from what `identity_of` returns."""
    return {**tree["identity"], "data": tree["data"]}


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return how two configurations, or identities, differ, such as ``"k 4 -> 8"``."""
    return [f"{key} {was} -> {value}" for key, (was, value) in _differing(then, now).items()]


def conflict(there: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Return up to three keys in which results differ from those asked for; empty if there are none."""
    keys = _differing(whole_identity(there), whole_identity(asked))
    words = [f"{key}={was} there but {value} asked" for key, (was, value) in list(keys.items())[:3]]
    return ", ".join([*words, f"and {len(keys) - 3} more"] if len(keys) > 3 else words)


def _differing(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return differing keys with both values as text; what a user would name first comes first."""
    from budgetreg.protocol.configuration import with_defaults  # here, as it loads all learners

    keys = differing(with_defaults(then), with_defaults(now))  # an identity holds no defaults
    first = sorted(keys, key=lambda key: (key.startswith("data."), key.count("."), not key.endswith(".name"), key))
    return {key: (_text(keys[key][0]), _text(keys[key][1])) for key in first}


def _text(value: Any) -> str:
    return json.dumps(value) if value in ("", None) else show(value, in_full=True)


def provenance() -> dict[str, Any]:
    """Return what computes in this process.

    Returns
    -------
    dict
        ``versions``: of python, numpy, scipy, scikit-learn, hydra and budgetreg, and the platform;
        ``git``: ``commit`` of the source checkout and whether its sources were changed since (``dirty``),
        both None if the package does not run from a checkout or there is no git;
        ``processor``: the ``machine``, the ``blas`` of numpy, and the ``core`` that BLAS chose, which decides the last
        digits; None stands for what is not known.
    """
    versions = {"python": platform.python_version(), **libraries(), "platform": platform.platform()}
    return {"versions": versions, "git": git_state(Path(__file__).parents[2]), "processor": _processor()}


@cache
def libraries() -> Mapping[str, str]:
    """Return the versions of numpy, scipy, scikit-learn, hydra and budgetreg."""
    versions = {name: metadata.version(distribution) for name, distribution in DISTRIBUTIONS.items()}
    return {**versions, "budgetreg": __version__}


def apart(recorded: Iterable[Mapping[str, Any]], now: Mapping[str, Any]) -> list[str]:
    """Return how what computes now differs from what computed recorded results.

    Parameters
    ----------
    recorded : iterable of mapping
        What `provenance` returned when the results were computed; several if a run was resumed elsewhere.
    now : mapping
        What it returns now.

    Returns
    -------
    list of str
        Such as ``"numpy 2.0.0 -> 2.1.0"``, and ``"no record of the processor"`` if the record is null.
    """
    lines = []
    for source in recorded:
        known = {key: value for key, value in source.items() if value is not None}
        for key, (was, value) in differing(known, {name: now[name] for name in known}).items():
            lines.append(f"{key.partition('.')[2]} {_brief(key, was)} -> {_brief(key, value)}")
        lines += [f"no record of the {key}" for key in source if key not in known]
    return list(dict.fromkeys(lines))


def _brief(key: str, value: Any) -> str:
    return show(value)[:8] if key == "git.commit" else show(value)


def _processor() -> dict[str, str | None]:
    import numpy as np  # here, as it is slow to load; its BLAS is only found once it is loaded

    libraries = [library for library in threadpool_info() if library.get("user_api") == "blas"]
    # Others, such as scipy's, are only there if something has loaded them, and the record must not depend on that.
    home = str(Path(np.__file__).resolve().parent)
    of_numpy = [each for each in libraries if os.path.realpath(str(each.get("filepath", ""))).startswith(home)]
    library = (of_numpy or libraries or [{}])[0]
    blas = f"{library['internal_api']} {library.get('version') or ''}".strip() if library else None
    return {"machine": platform.machine(), "blas": blas, "core": library.get("architecture")}


def git_state(root: Path) -> dict[str, Any]:
    """Return the commit of a checkout and whether its sources differ from it.

    Parameters
    ----------
    root : Path
        The top folder of the checkout. A folder inside another repository, such as the packages of a virtual
        environment, has no commit of ours.
    """
    commit = _git(root, "rev-parse", "HEAD") if (root / ".git").exists() else None
    if commit is None:
        return {"commit": None, "dirty": None}
    sources = [name for name in SOURCES if (root / name).exists()]
    changes = _git(root, "--no-optional-locks", "status", "--porcelain", "--", *sources)
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _git(root: Path, *arguments: str) -> str | None:
    # A hook of git runs its programs with GIT_DIR set, and git would then answer for that other repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def promised(learner: "Learner") -> str:
    """Return how closely the numbers of a learner are the same when they are computed again."""
    return f"{_HERE}; {_ELSEWHERE if learner.bitwise_portable else NOT_PORTABLE}"

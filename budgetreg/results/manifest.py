"""``manifest.json``: what the folder of a run says of itself, and whose folder it therefore is."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgetreg.errors import ConfigError
from budgetreg.files.writing import os_errors_explained
from budgetreg.protocol.configuration import with_defaults
from budgetreg.results.checksums import Damaged, check_manifest
from budgetreg.results.schema import CURVES, JOURNAL, MANIFEST, MODEL, MODELS, RUNS, SCHEMA_VERSION

if TYPE_CHECKING:
    from budgetreg.protocol.configuration import Config
    from budgetreg.protocol.plan import Plan

Tree = dict[str, Any]
_KEYS = {"schema_version", "algo", "dataset", "k", "repetitions", "repetitions_done", "identity", "identity_digest"}
_KEYS |= {"data", "columns"}
_LATER = 10  # versions of results that are looked for beyond ours


def read_manifest(folder: Path) -> Tree | None:
    """Return the manifest in a folder, None if there is none of our making and schema.

    Raises
    ------
    Damaged
        If there is one whose content is not what its checksum tells, or that is no JSON at all.
    UserError
        If there is one that cannot be read.
    """
    manifest = _read(folder)
    known = manifest is not None and manifest["schema_version"] == SCHEMA_VERSION and manifest.keys() >= _KEYS
    return manifest if known else None


def _read(folder: Path) -> Tree | None:
    path = folder / MANIFEST
    with os_errors_explained(f"read {path}"):
        if not path.is_file():
            return None
        content = path.read_bytes()
    try:
        manifest = json.loads(content)
    except ValueError:
        raise Damaged(f"{path} is damaged (or no manifest of a run): it is not JSON") from None
    if not isinstance(manifest, dict):
        return None
    check_manifest(path, manifest)
    return manifest if "schema_version" in manifest else None


def adopt_manifest(folder: Path, identity: Mapping[str, Any]) -> Tree:
    """Return the manifest of an earlier call of the same run; an empty one if the folder is new to us.

    Parameters
    ----------
    folder : Path
        The folder of the run.
    identity : mapping
        What decides the results of the run asked for, and identifies it (see `identity_of`).

    Raises
    ------
    ConfigError
        If the folder belongs to another configuration or schema, or holds files of the names we use that no
        run of ours left.
    Damaged
        If its manifest is damaged: it tells no longer whose results lie there.
    """
    written = _read(folder)
    if written is not None and written["schema_version"] != SCHEMA_VERSION:
        raise ConfigError(
            f"{folder} was written in schema {written['schema_version']}, and this version writes "
            f"schema {SCHEMA_VERSION}: give another out"
        )
    manifest = read_manifest(folder)
    if manifest is None:
        foreign = [name for name in (MANIFEST, JOURNAL, MODELS, CURVES, RUNS, MODEL) if (folder / name).exists()]
        if foreign:
            raise ConfigError(f"{folder} holds a {foreign[0]} that no run of ours left: give another out")
        return {}
    difference = _difference({key: manifest[key] for key in identity}, identity)
    if difference:
        raise ConfigError(f"{folder} holds results of another configuration ({difference}): give another out")
    return manifest


def identity_of(plan: "Plan") -> Tree:
    """Return what decides the results of a plan.

    Returns
    -------
    dict
        ``identity``: the configuration as far as it can change a result; ``identity_digest``: its SHA-256;
        ``data``: name, content, shape and prices of the data, as files can change under an unchanged configuration.
    """
    identity: Tree = {
        "identity_digest": digest_of(plan.config),
        "identity": json.loads(_text(plan.config.identity())),
        "data": {
            "name": plan.dataset,
            "fingerprint": plan.fingerprint,
            "n_train": plan.n_train,
            "n_test": plan.n_test,
            "d": plan.d,
            **({"prices": plan.prices.digest()} if plan.prices else {}),
        },
    }
    return identity


def digest_of(config: "Config") -> str:
    """Return the SHA-256 of a configuration as far as it can change a result."""
    return _digest(config.identity())


def version_then(config: "Config", digest: str) -> int | None:
    """Return of which version of its learner's results a digest of a configuration is, None if of none.

    Records of merged results hold the digest, not the version: it is found by trying.
    """
    identity = config.identity()
    latest = identity["algo"]["version"]
    tried = ({**identity, "algo": {**identity["algo"], "version": version}} for version in range(latest + _LATER))
    return next((one["algo"]["version"] for one in tried if _digest(one) == digest), None)


def _digest(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(identity).encode()).hexdigest()


def _text(identity: Mapping[str, Any]) -> str:
    return json.dumps(identity, sort_keys=True)


def differing(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the keys in which two configurations, or what decides their results, differ, with both values.

    Parameters
    ----------
    then, now : mapping
        Nested; what they do not say has its default.

    Returns
    -------
    dict
        By dotted key, what a user would call the difference first: k before algo.name before algo.average.
    """
    there, here = (dict(_flat(with_defaults(tree))) for tree in (then, now))
    keys = [key for key in {**there, **here} if there.get(key) != here.get(key)]
    keys.sort(key=lambda key: (key.startswith("data."), key.count("."), not key.endswith(".name"), key))
    return {key: (there.get(key), here.get(key)) for key in keys}


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what `differing` finds as words, such as ``"k 4 -> 8"``."""
    return [f"{key} {_short(was)} -> {_short(value)}" for key, (was, value) in differing(then, now).items()]


def whole_identity(tree: Mapping[str, Any]) -> Tree:
    """Return of a manifest, or of what `identity_of` gives, what decides the results: configuration and data."""
    return {**tree["identity"], "data": tree["data"]}


def _difference(there: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    keys = differing(whole_identity(there), whole_identity(asked))
    told = [f"{key}={_short(was)} there but {_short(value)} asked" for key, (was, value) in list(keys.items())[:3]]
    if len(keys) > 3:
        told.append(f"and {len(keys) - 3} more")
    return ", ".join(told)


def _short(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value

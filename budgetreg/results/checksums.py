"""Checksums that ``manifest.json`` holds: of the tables beside it, and of itself; who reads them notices damage.

Under the key ``sha256`` stands a digest for each table, and one for the manifest: that of the text of all the rest.
Manifests without the key, as they were before there were checksums, vouch for nothing, and all is taken as it is.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from budgetreg.errors import DataError
from budgetreg.results.schema import MANIFEST

KEY = "sha256"
_TRIES, _PAUSE = 3, 0.1  # and seconds: between them a writer that has replaced one of the files replaces the others


class Damaged(DataError):  # noqa: N818 - it says what is the matter
    """A file does not have the content that its checksum tells."""


def digest(content: bytes) -> str:
    """Return the checksum of a table."""
    return hashlib.sha256(content).hexdigest()


def signed(manifest: Mapping[str, Any], tables: Mapping[str, str]) -> dict[str, Any]:
    """Return a manifest with checksums of tables (name -> `digest`) and of itself."""
    # As it will be read back: keys are text then, and tuples are lists.
    whole: dict[str, Any] = json.loads(json.dumps({**manifest, KEY: dict(tables)}))
    whole[KEY][MANIFEST] = _own(whole)
    return whole


def check_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Compare a manifest, as it was read, with its own checksum, if it has any.

    Raises
    ------
    Damaged
        If it has another content.
    """
    if KEY in manifest and (not isinstance(manifest[KEY], dict) or manifest[KEY].get(MANIFEST) != _own(manifest)):
        raise Damaged(f"{path} is damaged: its content is not what its checksum tells")


def vouched(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the checksums of tables that a manifest holds."""
    return {name: value for name, value in manifest.get(KEY, {}).items() if name != MANIFEST}


def read_tables(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Read tables, and compare them with the checksums in the manifest beside them, if it has any.

    Parameters
    ----------
    folder : Path
        Where they are.
    names : sequence of str
        Their names. What is not there is left out.

    Raises
    ------
    Damaged
        If one, or the manifest, has another content than its checksum tells.
    DataError
        If one cannot be read.
    """
    for left in reversed(range(_TRIES)):
        found = {name: _read(folder / name) for name in names if (folder / name).exists()}
        expected = vouched(_manifest(folder / MANIFEST))
        wrong = [name for name, content in found.items() if expected.get(name, digest(content)) != digest(content)]
        if not wrong:
            return found
        if left:
            time.sleep(_PAUSE)
    raise Damaged(
        f"{folder / wrong[0]} is damaged: its content is not what {MANIFEST} tells; the command that made it writes "
        "it anew"
    )


def _manifest(path: Path) -> Mapping[str, Any]:
    """Return a manifest, an empty one if there is none or it is none: whoever needs it will say so."""
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(manifest, dict):
        return {}
    check_manifest(path, manifest)
    return manifest


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def _own(manifest: Mapping[str, Any]) -> str:
    rest = {**manifest, KEY: vouched(manifest)}
    return digest(json.dumps(rest, sort_keys=True).encode())

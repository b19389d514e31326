"""Integrity: whether a file, or a JSON record, still is what was written. Every check compares SHA-256 digests.

A record carries the digest of the rest of it under the key ``sha256``. A manifest also lists the digests of the tables
beside it, and a cached file ends in its own (`budgetreg.data.cache`).
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from budgetreg.errors import DataError

KEY = "sha256"
_PIECE = 1 << 22  # bytes read at a time


class Damaged(DataError):  # noqa: N818 - the name describes the problem
    """A file does not have the content that its digest describes."""


def digest(content: bytes) -> str:
    """Return the digest of a file's content."""
    return hashlib.sha256(content).hexdigest()


def file_digest(path: Path, length: int) -> str:
    """Return the digest of the first bytes of a file, which is not read as a whole."""
    content = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while length > 0 and (piece := file.read(min(_PIECE, length))):
            content.update(piece)
            length -= len(piece)
    return content.hexdigest()


def record_digest(record: Mapping[str, Any]) -> str:
    """Return the digest of a JSON record, whatever the order of its keys."""
    return digest(json.dumps(record, sort_keys=True).encode())


def signed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON record with the digest of all its other keys as the last key."""
    # As it will be read back: JSON turns keys into text and tuples into lists.
    content: dict[str, Any] = json.loads(json.dumps(_unsigned(record)))
    return {**content, KEY: record_digest(content)}


def content_of(record: object) -> dict[str, Any] | None:
    """Return the content of a signed record that was read back; None if the digest is missing or does not match."""
    if not isinstance(record, dict):
        return None
    content = _unsigned(record)
    return content if record.get(KEY) == record_digest(content) else None


def parsed(text: bytes) -> object:
    """Return what JSON text holds.

    Raises
    ------
    ValueError
        If it is not JSON, or nested more deeply than anything of ours.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _unsigned(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != KEY}

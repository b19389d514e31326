"""Thumbnails of the gallery get an alternative text, which Sphinx-Gallery leaves empty: the title of the script."""

import re

from sphinx.application import Sphinx

_THUMBNAIL = re.compile(r'(:alt:)(\s+:doc:`(?:(?!:alt:).)*?thumbnail-title">)([^<]*)(</div>)', re.DOTALL)


def described(text: str) -> str:
    """Return the text of a gallery in which each thumbnail has the title below it as alternative text."""
    return _THUMBNAIL.sub(r"\1 Figure of the script: \3\2\3\4", text)


def _read(_: Sphinx, name: str, source: list[str]) -> None:
    if name == "gallery/index":
        source[0] = described(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Describe thumbnails as the gallery is read."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

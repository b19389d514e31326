"""Figures that are drawn but neither laid out nor rendered, which takes most of their time."""

from io import BytesIO
from struct import pack
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine


def sketch(patch: pytest.MonkeyPatch) -> None:
    """Let an image be its first bytes, format and number of panels; captions and names stay as they are."""

    def savefig(figure: Figure, file: BytesIO, *, format: str, **options: Any) -> None:
        begin = {"pdf": b"%PDF-", "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + pack(">II", 900, 600)}
        file.write(begin.get(format, b"") + f"{format} of {len(figure.axes)} panels".encode())

    patch.setattr(Figure, "savefig", savefig)
    skip_layout(patch)


def skip_layout(patch: pytest.MonkeyPatch) -> None:
    """Leave panels where they are first put, whatever their labels need: this takes most of the time of drawing."""
    patch.setattr(ConstrainedLayoutEngine, "execute", lambda *_: None)

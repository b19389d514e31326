"""Figures that are laid out but not rendered, which takes most of their time."""

from io import BytesIO
from typing import Any

import pytest
from matplotlib.figure import Figure


def sketch(patch: pytest.MonkeyPatch) -> None:
    """Let the images of figures be their formats and numbers of panels; captions and names stay as they are."""

    def savefig(figure: Figure, file: BytesIO, *, format: str, **options: Any) -> None:
        file.write(f"{'%PDF-' * (format == 'pdf')}{format} of {len(figure.axes)} panels".encode())

    patch.setattr(Figure, "savefig", savefig)

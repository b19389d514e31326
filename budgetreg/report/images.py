"""Figures of other commands as images inside the page."""

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from struct import unpack_from
from tempfile import TemporaryDirectory

from budgetreg.errors import DataError
from budgetreg.files import content_of_regular, os_errors_explained
from budgetreg.report.page import PageImage

_MAGIC, _SIZE_AT = b"\x89PNG\r\n\x1a\n", 16
_SCALE = 96 / 150
"""A browser's dots per inch, and those of figures: they are shown in the size that they are drawn for."""


def drawn(draw: Callable[[Path], Sequence[Path]]) -> PageImage:
    """Return the figure that a function draws into a folder; the image has the bytes that other commands write."""
    with os_errors_explained("write temporary files"), TemporaryDirectory(prefix="budgetreg-report-") as folder:
        (image,) = (path for path in draw(Path(folder)) if path.suffix == ".png")
        return image_of(image)


def image_of(path: Path) -> PageImage:
    """Return a PNG file, with the caption in the text file beside it.

    Raises
    ------
    DataError
        If one of them cannot be read, or the first is no PNG file.
    """
    with os_errors_explained(f"read {path} and its caption", DataError):
        content = content_of_regular(path)
        text = content_of_regular(path.with_suffix(".txt")).decode(errors="backslashreplace")
    if not content.startswith(_MAGIC) or len(content) < _SIZE_AT + 8:
        raise DataError(f"{path} is damaged: it is no PNG file; budgetreg plot draws it again")
    width, height = (round(_SCALE * pixels) for pixels in unpack_from(">II", content, _SIZE_AT))
    title, *making = text.strip().split("\n\n")
    title = " ".join(title.split())
    return PageImage(
        f"data:image/png;base64,{b64encode(content).decode()}",
        width,
        height,
        f"{title}. The tables of this section hold its numbers.",
        title,
        [line for paragraph in making for line in _lines(paragraph)],
    )


def _lines(paragraph: str) -> Iterator[str]:
    """Give the lines of a caption's paragraph without their wrapping: an indent of two spaces begins a line."""
    lines: list[str] = []
    for line in paragraph.splitlines():
        begins = not lines or (line.startswith("  ") and not line.startswith("    "))
        if begins:
            lines.append(line.strip())
        else:
            lines[-1] += f" {line.strip()}"
    return iter(lines)

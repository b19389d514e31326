"""The page as data, which every kind of result fills, with figures and tables of other commands, and as HTML."""

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from struct import unpack_from
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Column, Table

from budgetreg.common.errors import DataError
from budgetreg.common.files import content_of_regular, os_errors_explained
from budgetreg.common.notices import in_one_line, table
from budgetreg.figures import plot
from budgetreg.figures.specification import Drawing

GENERATOR = '<meta name="generator" content="budgetreg '
"""How a page of ours can be recognised: the version follows."""

_MOST_ROWS = 60  # of the tables of a part that are open at first


@dataclass(frozen=True)
class PageTable:
    """A table.

    Attributes
    ----------
    caption : str
        What it shows.
    heads : sequence of str
        The names of the columns.
    groups : sequence of sequences of rows
        Texts by group of rows, row and column. A line separates groups.
    numeric : sequence of bool
        Which columns are aligned on the right.
    notes : sequence of str
        What a reader has to know about it, a paragraph each.
    named_by : int
        The column that names the rows.
    """

    caption: str
    heads: Sequence[str]
    groups: Sequence[Sequence[Sequence[str]]]
    numeric: Sequence[bool]
    notes: Sequence[str] = ()
    named_by: int = 0


@dataclass(frozen=True)
class PageImage:
    """A figure.

    Attributes
    ----------
    source : str
        The image as a URI that holds its content.
    width, height : int
        Its size in pixels.
    title : str
        The line below it.
    about : sequence of str
        What its axes and bands mean, a paragraph each.
    making : sequence of str
        How it was made, a paragraph each, which ends the section.
    """

    source: str
    width: int
    height: int
    title: str
    about: Sequence[str] = ()
    making: Sequence[str] = ()


@dataclass(frozen=True)
class PagePart:
    """A part of a section, with a heading.

    Attributes
    ----------
    title : str
        Its heading.
    text : sequence of str
        Paragraphs.
    points : sequence of str
        Items of a list.
    pictures, tables
        What it shows below the text.
    folded : bool
        Whether the tables are closed until a reader opens them; long ones always are.
    """

    title: str
    text: Sequence[str] = ()
    points: Sequence[str] = ()
    pictures: Sequence[PageImage] = ()
    tables: Sequence[PageTable] = ()
    folded: bool = False

    @property
    def closed(self) -> bool:
        """Whether the tables are closed at first."""
        rows = sum(len(group) for table in self.tables for group in table.groups)
        return self.folded or rows > _MOST_ROWS


@dataclass(frozen=True)
class Section:
    """What the page shows of one folder or study.

    Attributes
    ----------
    title : str
        Its heading.
    kind : str
        What it is about, such as ``advice``.
    findings : sequence of str
        The answer, in sentences.
    warnings : sequence of str
        What is missing or damaged.
    parts : sequence of PagePart
        All else.
    """

    title: str
    kind: str
    findings: Sequence[str] = ()
    warnings: Sequence[str] = ()
    parts: Sequence[PagePart] = ()


def html(title: str, version: str, sections: Sequence[Section]) -> bytes:
    """Return the page; it needs no other file, and all texts in it are shown as they are.

    Parameters
    ----------
    title : str
        The heading of the page.
    version : str
        The version of the package that makes it.
    sections : sequence of Section
        At least one.
    """
    import jinja2  # here, as no other command needs it

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("budgetreg.figures", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.get_template("page.html")
    page = template.render(title=title, version=version, sections=sections, number=count(1).__next__)
    return page.encode(errors="backslashreplace")  # names of files need not be text


def _shown(value: Any) -> Any:
    """Return text without control characters, which HTML does not allow; anything else as it is."""
    return in_one_line(value) if type(value) is str else value


_SIZE_AT = 16  # where the header of a PNG file has width and height
_SCALE = 96 / 150
"""A browser's dots per inch, and those of figures: they are shown in the size that they are drawn for."""


def drawn(subject: Any, name: str, drawing: Drawing | None = None) -> PageImage:
    """Return the figure that `plot` draws; the image has the bytes that other commands write."""
    with os_errors_explained("write temporary files"), TemporaryDirectory(prefix="budgetreg-report-") as folder:
        picture, *_ = plot(subject, Path(folder), name, drawing)
        return image_of(picture)


def image_of(path: Path) -> PageImage:
    """Return a PNG file, with the caption in the text file beside it.

    Raises
    ------
    DataError
        If one of them cannot be read.
    """
    with os_errors_explained(f"read {path} and its caption", DataError):
        content = content_of_regular(path)
        text = content_of_regular(path.with_suffix(".txt")).decode(errors="backslashreplace")
    width, height = (round(_SCALE * pixels) for pixels in unpack_from(">II", content, _SIZE_AT))
    title, about, making = (f"{text.strip()}\n\n\n\n").split("\n\n", 2)
    title = " ".join(title.split())
    return PageImage(
        f"data:image/png;base64,{b64encode(content).decode()}",
        width,
        height,
        title,
        _lines(about),
        [line for paragraph in making.split("\n\n") for line in _lines(paragraph)],
    )


def _lines(paragraph: str) -> list[str]:
    """Return the lines of a caption's paragraph without their wrapping: an indent of two spaces begins a line."""
    lines: list[str] = []
    for line in paragraph.splitlines():
        if not lines or re.match(r"  (?!  )", line):
            lines.append(line.strip())
        else:
            lines[-1] += f" {line.strip()}"
    return lines


_NAMES = ("run", "learner", "attribute", "claim", "key")
"""Columns that name the rows of a table, wherever they are."""


def page_table(source: Table, caption: str = "", notes: Sequence[str] = ()) -> PageTable:
    """Return a table that a command prints.

    Parameters
    ----------
    source : Table
        A table of texts.
    caption : str, optional
        What it shows; by default the table's own title.
    notes : sequence of str, optional
        What a reader has to know about it, before the lines of the table's own caption.
    """
    heads = [str(column.header) for column in source.columns]
    numeric = [column.justify == "right" for column in source.columns]
    groups: list[list[list[str]]] = [[]]
    for row, cells in zip(source.rows, zip(*(column.cells for column in source.columns), strict=True), strict=True):
        groups[-1].append([str(cell) for cell in cells])
        if row.end_section:
            groups.append([])
    own = str(source.caption).splitlines() if source.caption else []
    texts = [head for head, number in zip(heads, numeric, strict=True) if not number]
    name = next((name for name in _NAMES if name in heads), (texts or heads)[0])
    rows = [group for group in groups if group]
    return PageTable(caption or str(source.title or ""), heads, rows, numeric, [*notes, *own], heads.index(name))


def listing(
    caption: str, heads: Iterable[str | Column], rows: Iterable[Sequence[object]], notes: Sequence[str] = ()
) -> PageTable:
    """Return a table of rows; columns of numbers come from `budgetreg.figures.tables.right`."""
    return page_table(table(heads, rows), caption, notes)

"""The page as data, which every kind of result fills, and as HTML."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from budgetreg.notices import in_one_line

GENERATOR = '<meta name="generator" content="budgetreg '
"""How a page of ours can be recognised: the version follows."""

_TEMPLATE = "page.html"
_MOST_ROWS = 60  # of the tables of a part that are open at first
_UNENCODABLE = "backslashreplace"  # names of files that cannot be decoded


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
    alternative : str
        What it shows, for readers who do not see it.
    title : str
        The line below it.
    making : sequence of str
        How it was made, a paragraph each.
    """

    source: str
    width: int
    height: int
    alternative: str
    title: str
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
    parts: Sequence[PagePart] = field(default_factory=tuple)


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
        loader=jinja2.PackageLoader("budgetreg.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.get_template(_TEMPLATE)
    page = template.render(title=title, version=version, sections=sections, number=_counter())
    return page.encode(errors=_UNENCODABLE)


def _shown(value: Any) -> Any:
    """Return text without control characters, which HTML does not allow; anything else as it is."""
    return in_one_line(value) if type(value) is str else value


def _counter() -> Callable[[], int]:
    """Return a function that counts its calls, for names that are unique on the page."""
    numbers = iter(range(1, 10**9))
    return lambda: next(numbers)

"""Tables of other commands as tables of the page."""

from collections.abc import Iterable, Sequence

from rich.table import Column, Table

from budgetreg.figures.tables import table
from budgetreg.report.page import PageTable

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

"""Plain tables, which commands print and reports show."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Column, Table


def table(heads: Iterable[str | Column], rows: Iterable[Sequence[object]], **settings: Any) -> Table:
    """Return a table of plain text with settings of rich's `Table`."""
    filled = Table(*heads, box=None, pad_edge=False, title_justify="left", **settings)
    for row in rows:
        filled.add_row(*map(str, row))
    return filled


def right(*heads: str) -> list[str | Column]:
    """Return columns of numbers, which are aligned on the right."""
    return [Column(head, justify="right") for head in heads]

"""Markdown from plain text: escaped words, code, and tables."""

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\*_<>|\[\]$#])")


def escaped(text: str) -> str:
    """Return plain text so that Markdown shows it as it is; what stands between backticks stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a lone backtick
        return _SPECIAL.sub(r"\\\1", text).replace("`", "\\`")
    return "`".join(part.replace("|", r"\|") if i % 2 else _SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts))


def code(text: str) -> str:
    """Return text as code that may stand in a table."""
    return f"`{text}`".replace("|", r"\|") if text else ""


def block(text: str, language: str = "text") -> str:
    """Return text as a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, whose cells are Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

r"""Formulas on pages are what their TeX says.

docutils puts other tokens over the line if the parts of a fraction have no braces, and gives no warning: ``\tfrac12 x``
becomes twelve over x. So fractions have braces.
"""

import re

import pytest

from tests.pages.test_words import SOURCES, texts_of_source
from tests.pages.written import PAGES, name

FRACTION = re.compile(r"\\[dtc]?frac(?![a-zA-Z])\s*")


def unbraced(text: str) -> list[str]:
    """Return the fractions whose numerator or denominator has no braces, each with what follows."""
    found = []
    for fraction in FRACTION.finditer(text):
        end = fraction.end()
        for _ in range(2):
            after = _after_group(text, end)
            if after is None:
                found.append(text[fraction.start() : fraction.end() + 10])
                break
            end = after
    return found


def _after_group(text: str, start: int) -> int | None:
    """Return where the group in braces ends that begins at a place, but for blanks; None if none begins there."""
    start += len(text[start:]) - len(text[start:].lstrip())
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1 if text[place] == "}" else None
    return None


def test_fractions_have_braces_on_pages() -> None:
    texts = ((name(page), page.read_text(encoding="utf-8")) for page in PAGES)
    assert [f"{page}: {found}" for page, text in texts for found in unbraced(text)] == []


def test_fractions_have_braces_in_docstrings() -> None:
    sources = [path for path in SOURCES if name(path) != "tests/pages/test_formulas.py"]
    with_formulas = [path for path in sources if "frac" in path.read_text(encoding="utf-8")]
    texts = ((f"{name(path)}:{line}", text) for path in with_formulas for line, text in texts_of_source(path))
    assert [f"{place}: {found}" for place, text in texts for found in unbraced(text)] == []


@pytest.mark.parametrize(
    ("text", "fractions"),
    [
        (r"\tfrac12 + \frac{1}{2}", 1),
        (r"\frac1d and \frac{1}d", 2),
        (r"\frac{a_{i}}{b} \dfrac {a} {\sqrt{b}} a fraction, \fraction", 0),
        (r"\frac{a", 1),
    ],
)
def test_unbraced_fractions_are_found(text: str, fractions: int) -> None:
    assert len(unbraced(text)) == fractions

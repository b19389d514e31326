r"""Formulas on pages are what their TeX says.

docutils puts other tokens over the line if the parts of a fraction have no braces, and gives no warning: ``\tfrac12 x``
becomes twelve over x. So fractions have braces, and each formula of the pages is compared with the MathML that browsers
get: both are read into the same notation, the TeX by a reader that knows nothing of docutils.
"""

import re
import unicodedata
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from docutils.utils.math.latex2mathml import tex2mathml

from tests.pages.test_words import SOURCES, texts_of_source
from tests.pages.written import PAGES, name, prose

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


SYMBOLS = {
    "sum": "\N{N-ARY SUMMATION}",
    "sim": "\N{TILDE OPERATOR}",
    "times": "\N{MULTIPLICATION SIGN}",
    "cdot": "\N{DOT OPERATOR}",
    "ge": "\N{GREATER-THAN OR EQUAL TO}",
    "circ": "\N{RING OPERATOR}",
    "mid": "\N{DIVIDES}",
    "pm": "\N{PLUS-MINUS SIGN}",
    "otimes": "\N{CIRCLED TIMES}",
    "ell": "\N{SCRIPT SMALL L}",
}
NAMED = ("log", "max", "min", "exp")
SPACES = ("\\,", "\\;", "\\qquad", "\\ ")
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|\s+|\d+(?:\.\d+)?|.", re.S)


class Tex:
    """A reader of the TeX that the pages use, into a notation such as ``frac(1;2)x_(i)``; other commands fail."""

    def __init__(self, text: str) -> None:
        self._tokens = [token for token in TOKEN.findall(text) if not token.isspace()]

    def __str__(self) -> str:
        return "".join(self._parts("")).replace("-", "\N{MINUS SIGN}")

    def _parts(self, end: str) -> Iterator[str]:
        while self._tokens and self._tokens[0] != end:
            yield self._part()
        if end:
            self._tokens.pop(0)

    def _part(self) -> str:
        token = self._tokens.pop(0)
        if token == "{":
            return "".join(self._parts("}"))
        if token in ("_", "^"):
            return f"{token}({self._argument()})"
        if token in SPACES or token in ("\\left", "\\right"):
            return ""
        if not token.startswith("\\"):
            return token
        word = token[1:]
        if word == "frac":
            return f"frac({self._argument()};{self._argument()})"
        if word in ("sqrt", "bar"):
            return f"{word}({self._argument()})"
        if word in ("mathrm", "text"):
            return self._argument()
        return word if word in NAMED else SYMBOLS.get(word) or _greek(word)

    def _argument(self) -> str:
        """Return what a command takes: a group, or one token, and of a number only its first digit."""
        if self._tokens[0][0].isdigit():
            self._tokens[:1] = [*self._tokens[0]]
        return self._part()


def _greek(word: str) -> str:
    case = "CAPITAL" if word[0].isupper() else "SMALL"
    return unicodedata.lookup(f"GREEK {case} LETTER {word.upper().replace('LAMBDA', 'LAMDA')}")


def of_mathml(node: ElementTree.Element) -> str:
    """Return MathML in the notation of `Tex`."""
    kind, parts = node.tag.rpartition("}")[2], [of_mathml(part) for part in node]
    if kind == "mfrac":
        return f"frac({parts[0]};{parts[1]})"
    if kind == "msqrt":
        return f"sqrt({''.join(parts)})"
    if kind == "mover" and parts[1] == "\N{MODIFIER LETTER MACRON}":
        return f"bar({parts[0]})"
    if kind in ("msub", "munder"):
        return f"{parts[0]}_({parts[1]})"
    if kind in ("msup", "mover"):
        return f"{parts[0]}^({parts[1]})"
    if kind in ("msubsup", "munderover"):
        return f"{parts[0]}_({parts[1]})^({parts[2]})"
    return "".join([re.sub(r"[\s\u2061]", "", node.text or ""), *parts])


def formulas(text: str) -> Iterator[str]:
    """Yield the TeX of the formulas on a page."""
    yield from re.findall(r"```\{math\}\n(.*?)```", text, re.S)
    inline = prose(text)
    yield from re.findall(r"\$\$(.+?)\$\$", inline, re.S)
    yield from re.findall(
        r"(?<![\\\w$])\$(?!\$)([^$]+?)(?<!\s)\$(?![\d$])", re.sub(r"\$\$.+?\$\$", "", inline, flags=re.S)
    )


def rendered(tex: str) -> str:
    """Return what browsers get for TeX, in the notation of `Tex`."""
    return of_mathml(ElementTree.fromstring(re.sub(r"&(?!amp;|lt;|gt;)\w+;", "", tex2mathml(tex))))


def test_browsers_get_the_formulas_that_the_pages_have() -> None:
    compared = [(str(Tex(tex)), rendered(tex)) for page in PAGES for tex in formulas(page.read_text(encoding="utf-8"))]
    assert len(compared) > 80
    assert [pair for pair in compared if pair[0] != pair[1]] == []


def test_a_fraction_that_is_rendered_wrongly_is_found() -> None:
    assert str(Tex(r"\frac12 x")) == "frac(1;2)x"
    assert rendered(r"\frac12 x") == "frac(12;x)"

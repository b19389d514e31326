"""The words of the prose, of docstrings, comments, recipes and captions are those of the field."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.written import PAGES, ROOT, name, prose

# Each word that is not used, and what is written in its place.
INSTEAD = {
    r"laws?\b(?! school)": "distribution",
    r"(?:is|are|was|were|be|been|gets?|being) told\b": "reports, prints, shows",
    r"tells\b": "reports, prints, shows",
    r"heed(?:s|ed|ing)?\b": "price-aware, follows",
    r"dear(?:er|est)?\b": "expensive",
    r"buys? (?:pixels|nothing)\b": "costs, adds nothing",
    r"so (?:many|much|few) (?:\w+ )?as\b": "as many as",
    r"draws? alike\b": "samples uniformly",
    r"honest(?:ly)?\b": "paid, unpaid; cross-fitted",
    r"partners?\b": "the factor-model estimate",
    r"counts? from the mean\b": "is centred on the mean",
    r"lets? be\b|hangs? on\b|leaves? alone\b": "the plain verb",
    r"anew\b": "again",
    r"to be known\b": "Notes",
    r"puts? out\b|is put out\b": "returns",
    r"who has (?:neither|no|a|the)\b": "if you have",
}
UNUSUAL = re.compile(rf"\b(?:{'|'.join(INSTEAD)})", re.IGNORECASE)
# A power law is a shape of a curve. All others are names: of code, commands, options, files, results and sections.
NAMES = re.compile(
    r"power laws?|`+[^`]*`+|\w+(?:[/=.]\w+)+|<!--.*?-->|!\[\w+:|(?:\[\w+)?\]\([^)]*\)|\$[^$]*\$"
    r"|^#+ \w+$|^ *\w+ : [^\n]*",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
SOURCES = sorted(
    path
    for folder in ("budgetreg", "scripts", "tests", "examples", "docs/_ext")
    for path in ROOT.glob(f"{folder}/**/*.py")
)
CAPTIONS = sorted(path for folder in ("results", "docs/start") for path in ROOT.glob(f"{folder}/**/*.txt"))
SETTINGS = sorted(path for folder in ("conf", "experiments") for path in ROOT.glob(f"{folder}/**/*.yaml"))


def texts_of_source(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and comments of a module, each with its line."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def texts_of_settings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments of a configuration file and the sentences among its values, each with its line."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        written, _, comment = line.partition("#")
        _, _, value = written.partition(": ")
        yield number, f"{value if len(value.split()) > 3 else ''} {comment}"


def texts_of_page(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a page without its blocks of code, each with its first line."""
    number = 1
    for paragraph in re.split(r"(\n\s*\n)", prose(path.read_text(encoding="utf-8"))):
        yield number, paragraph
        number += paragraph.count("\n")


def unusual(text: str) -> list[str]:
    """Return the words of a text that this project does not use, each with what it writes in their place."""
    plain = NAMES.sub(" ", text)
    found = ((re.search(rf"\b(?:{words})", plain, re.IGNORECASE), instead) for words, instead in INSTEAD.items())
    return [f"{' '.join(match.group().split())!r}, better: {instead}" for match, instead in found if match]


@pytest.mark.parametrize(
    ("paths", "texts"),
    [
        (PAGES, texts_of_page),
        (CAPTIONS, texts_of_page),
        (SOURCES, texts_of_source),
        (SETTINGS, texts_of_settings),
    ],
    ids=["pages", "captions", "sources", "settings"],
)
def test_words_are_those_of_the_field(paths, texts) -> None:
    found = [
        f"{name(path)}:{line}: {word}"
        for path in paths
        if path != Path(__file__) and UNUSUAL.search(path.read_text(encoding="utf-8"))  # to parse all takes long
        for line, text in texts(path)
        for word in unusual(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The law of\nthe data tells little.", 2),
        ("What it puts out is\nhonest.", 2),
        ("a power law, `tuning=honest`, [a page](laws.md), aemr/laws", 0),
        ("Draw again: attributes are expensive.", 0),
    ],
)
def test_unusual_words_are_found_in_sentences_but_not_in_names(text: str, words: int) -> None:
    assert len(unusual(text)) == words

"""The pages of the repository: their blocks of code, the commands in these, and their headings."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    {
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/[!_]*/*.md"),
        *ROOT.glob("results/README.md"),
        *ROOT.glob("results/*/README.md"),
        *ROOT.glob("examples/*/*.md"),
    }
)
"""All pages, among them those of docs/results/ that a build has written."""

UNCHECKED = re.compile(r"<!-- not checked: .+ -->")
"""Stands above a block whose commands are not checked, with the reason."""

_FENCE = re.compile(r"( *)(`{3,})(\S*)")
_END = ("|", ">", "&&", ";", "||", "2>")


@dataclass(frozen=True)
class Command:
    """A command that a page shows: the words after ``budgetreg``, and the line of the page."""

    page: Path
    line: int
    words: tuple[str, ...]

    def __str__(self) -> str:
        """Return where it is and what it says."""
        return f"{self.page.relative_to(ROOT)}:{self.line}: budgetreg {' '.join(self.words)}"


def name(page: Path) -> str:
    """Return the path of a page, seen from the root of the repository."""
    return page.relative_to(ROOT).as_posix()


def prose(text: str) -> str:
    """Return a page without its blocks of code, whose lines are empty."""
    lines, shown = text.splitlines(), {number for number, _ in _lines_of_code(text)}
    return "\n".join("" if number in shown else line for number, line in enumerate(lines, 1))


def commands(page: Path) -> list[Command]:
    """Return the commands in the blocks of code of a page, without those that are marked as not checked."""
    found = []
    for block in _blocks(page.read_text(encoding="utf-8")):
        prompted = any(line.lstrip().startswith("$ ") for _, line in block)
        for number, line in _joined(block):
            text = line.strip()
            if prompted and not text.startswith("$ "):
                continue  # what a command printed
            text = text.removeprefix("$ ").removeprefix(".venv/bin/")
            if not text.startswith("budgetreg "):
                continue
            words = shlex.split(text, comments=True)[1:]
            end = next((place for place, word in enumerate(words) if word in _END), len(words))
            found.append(Command(page, number, tuple(words[:end])))
    return found


def _blocks(text: str) -> Iterator[list[tuple[int, str]]]:
    """Yield the blocks of code that are checked, each as numbered lines."""
    lines = text.splitlines()
    block: list[tuple[int, str]] = []
    for number, line in _lines_of_code(text):
        if block and number > block[-1][0] + 1 and any(lines[block[-1][0] : number - 1]):
            yield from _checked(block, lines)
            block = []
        block.append((number, line))
    yield from _checked(block, lines)


def _checked(block: list[tuple[int, str]], lines: list[str]) -> Iterator[list[tuple[int, str]]]:
    above = [line for line in lines[: block[0][0] - 1] if line.strip()][-1:] if block else []
    if block and not any(UNCHECKED.search(line) for line in above):
        yield block


def _lines_of_code(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of blocks of code, between fences or indented by four spaces."""
    fence, before = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[2].startswith(fence) and not mark[3]:
                fence = ""
            else:
                yield number, line
        elif mark:
            fence = mark[2]
        elif line.startswith("    ") and not re.match(r" *(?:[-*]|\d+\.) ", before):
            yield number, line
        if line.strip() and not line.startswith("    "):
            before = line


def _joined(block: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a block, those that end in a backslash with their continuation."""
    text, first = "", 0
    for number, line in block:
        first = first if text else number
        text += line
        if text.endswith("\\"):
            text = text[:-1]
            continue
        yield first, text
        text = ""


def anchors(text: str) -> set[str]:
    """Return what links to places of a page may name: its headings, in lower case with hyphens, and its targets."""
    titles = re.findall(r"^#+ +(.+?) *$", prose(text), flags=re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()) for title in titles]
    targets = re.findall(r'^\((\S+)\)=$|<a (?:id|name)="([^"]+)"', text, flags=re.MULTILINE)
    return {slug.replace(" ", "-") for slug in slugs} | {target for pair in targets for target in pair if target}

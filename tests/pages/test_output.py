"""The commands on the pages for users print what the pages show."""

import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from steady_output import KERNELS, PROGRESS

from tests.pages.written import ROOT

SECONDS = 600
PAGES = (
    "docs/start/first_run.md",
    "docs/start/your_table.md",
    "docs/howto/prices.md",
    "docs/howto/missing.md",
    "docs/howto/report.md",
)
# The README's commands that show results, each with the page and the command of the page that show all of them.
IN_FULL = {
    "make run": ("docs/start/first_run.md", "budgetreg plot runs/main"),
    "budgetreg advise dataset=file dataset.path=tables/diabetes.csv total=1500": (
        "docs/start/your_table.md",
        "budgetreg advise dataset=file dataset.path=tables/diabetes.csv total=1500 out=runs/advice",
    ),
}
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def commands(page: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a page after a ``$``, each with what it prints there: lines as far to the right."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for _, line, shown in re.findall(r"(?m)^( *)\$ (.+)\n((?:(?!\1\$ |\1```)(?:\1.*)?\n)*)", text):
        yield line, textwrap.dedent(shown)


def agree(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether words are the same: whole numbers exactly, decimals, which were learned, to a hundredth."""
    return len(shown) == len(printed) and all(map(_same, shown, printed))


def _same(shown: str, printed: str) -> bool:
    if shown == printed:
        return True
    if _NUMBER.sub("#", shown) != _NUMBER.sub("#", printed):
        return False
    for one, other in zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=True):
        if "." not in one and "." not in other and one != other:
            return False
        if float(one.replace(",", "")) != pytest.approx(float(other.replace(",", "")), rel=0.01, abs=0.001):
            return False
    return True


def contains(shown: str, printed: str) -> bool:
    """Whether a text is what was printed, where ``...`` stands for any words."""
    words, chunks = printed.split(), [chunk.split() for chunk in re.split(r"(?m)^\.\.\.$|(?<= )\.\.\.(?= )", shown)]
    position = 0
    for number, chunk in enumerate(chunks):
        places = range(position, len(words) - len(chunk) + 1)
        if number == 0:
            places = places[:1]
        if number == len(chunks) - 1 and chunk:
            places = places[-1:] if number else range(0, 1) if len(words) == len(chunk) else range(0)
        found = next((place for place in places if agree(chunk, words[place : place + len(chunk)])), None)
        if found is None:
            return False
        position = found + len(chunk)
    return True


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a 12 b", "a  12\nb", True),
        ("a 12 b", "a 13 b", False),
        ("error 0.527", "error 0.5271", True),
        ("error 0.527", "error 0.56", False),
        ("a\n...\nd", "a b c d", True),
        ("a\n...\nd", "a b c", False),
        ("...\nc", "a b c", True),
        ("...\nc", "a b c d", False),
        ("a\n...", "a b", True),
        ("b\n...", "a b", False),
        ("a ... c", "a b c", True),
        ("a", "a b", False),
        ("...", "a b", True),
    ],
)
def test_dots_stand_for_words_and_decimals_agree_to_a_hundredth(shown: str, printed: str, expected: bool) -> None:
    assert contains(shown, printed) is expected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the tables of the pages, and what the commands name by their place in the repository."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    run("python examples/write_tables.py", tmp_path, 100)
    return tmp_path


def run(line: str, folder: Path, columns: int) -> tuple[str, str]:
    """Run a command of a page in a shell, and return what it prints on stdout and on stderr, without progress."""
    python = shlex.quote(sys.executable)
    command = re.sub(r"\bbudgetreg (?=[a-z])", f"{python} -m budgetreg ", line)
    command = re.sub(r"^python ", f"{python} ", command)
    environment = {**os.environ, **KERNELS, "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        *(command,), shell=True, cwd=folder, text=True, capture_output=True, timeout=SECONDS,
        env={**environment, "COLUMNS": str(columns)},
    )  # fmt: skip
    return done.stdout, PROGRESS.sub("", done.stderr)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # all commands of a page, on a busy machine
@pytest.mark.parametrize("page", PAGES)
def test_commands_print_what_the_page_shows(page: str, folder: Path) -> None:
    checked = 0
    for line, shown in commands(page):
        printed, notices = run(line, folder, 100)
        if "budgetreg: " in shown:
            printed = f"{notices}\n{printed}"
        assert contains(shown, printed), f"{line}\n{printed}"
        checked += 1
    left = {
        f"/{path.name}/" for path in folder.glob("[!.]*") if not path.is_symlink()
    }  # that git ignores folders alone
    assert left <= set((ROOT / ".gitignore").read_text(encoding="utf-8").splitlines())
    assert checked == len(re.findall(r"(?m)^(?:    )?\$ ", (ROOT / page).read_text(encoding="utf-8"))) > 0


def test_the_readme_shows_what_pages_show() -> None:
    shown = {line.partition("  #")[0].strip(): text for line, text in commands("README.md")}
    assert {line for line, text in shown.items() if text.strip()} == set(IN_FULL)
    for line, (page, command) in IN_FULL.items():
        of_results = shown[line].replace("The curves are drawn in runs/main/curves.png", "")
        assert contains(of_results, dict(commands(page))[command]), line

"""A reader can follow the page on studies from top to bottom: each file that a command reads was made by one above."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from tests.pages.written import ROOT

PAGE, LABORATORY = ROOT / "docs" / "howto" / "buying.md", ROOT / "examples" / "laboratory.py"
TABLES = {"patients.csv", "prices.csv", "new.csv", "complete.csv"}
_FILE = re.compile(r"(\w+=)?([\w-]+\.(?:csv|db|npz))")


def unmade(text: str) -> list[str]:
    """Return the commands of a page that read a file which no command above has made, each with the file."""
    made: set[str] = set()
    found = []
    for line in re.findall(r"(?m)^    \$ (.+)$", text):
        for key, file in _FILE.findall(line):
            if key == "out=" or f"study create {file}" in line or f"tee {file}" in line:
                made.add(file)
            elif file not in made:
                found.append(f"{line}: {file}")
            elif "laboratory.py" in line:
                made.add(file.replace(".csv", "-late.csv"))
        if line.endswith("laboratory.py"):
            made |= TABLES
    return found


def test_each_input_of_the_page_is_made_by_a_command() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "$ budgetreg study tell trial.db order-1-late.csv" in text
    assert unmade(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("    $ budgetreg study tell trial.db order.csv\n", 2),
        ("    $ budgetreg study create t.db table=patients.csv\n    $ budgetreg study show t.db\n", 1),
        ("    $ python laboratory.py\n    $ head patients.csv\n    $ budgetreg study ask a.db out=o.csv\n", 1),
    ],
)
def test_a_file_that_no_command_makes_is_found(text: str, found: int) -> None:
    assert len(unmade(text)) == found


def test_the_laboratory_writes_the_tables_that_the_page_shows(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(LABORATORY.parent)
    monkeypatch.setattr(sys, "argv", [str(LABORATORY)])
    runpy.run_path(str(LABORATORY), run_name="__main__")
    assert {path.name for path in here.iterdir()} == TABLES
    text = PAGE.read_text(encoding="utf-8")
    for name in ("patients.csv", "prices.csv"):
        head = "".join(f"    {line}\n" for line in (here / name).read_text(encoding="utf-8").splitlines()[:3])
        assert f"$ head -3 {name}\n{head}" in text

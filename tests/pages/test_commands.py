"""The commands that the pages show are commands of today: none is refused as a mistake."""

import os
import re
import shlex
from pathlib import Path

import pytest

from budgetreg.cli import app
from budgetreg.cli.arguments import parsed
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.config import catalogue
from tests.commands import Call
from tests.pages.written import PAGES, ROOT, commands, name

WITH_COMMANDS = [page for page in PAGES if commands(page) and ROOT / "results" not in page.parents]
# Pages whose commands need another package, which its own test installs.
ELSEWHERE = {"examples/budgetreg_marginals/README.md", "CONTRIBUTING.md", "docs/howto/add_learner.md"}


def test_there_are_commands_to_check() -> None:
    assert {"README.md", "docs/howto/buying.md"} <= set(map(name, WITH_COMMANDS))


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name)
def test_options_exist(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda path: True)  # the folders that earlier commands have made
    for command in commands(page):
        first, *rest = command.words
        assert first in app.COMMANDS or first in ("--help", "--version"), command
        if first in app.COMMANDS:
            parsed(first, rest)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in WITH_COMMANDS if name(page) not in ELSEWHERE], ids=name)
def test_no_command_is_a_mistake(
    page: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_work(monkeypatch)
    for command in commands(page):
        code = app.main(list(planned(command.words)))
        printed = " ".join(capsys.readouterr().err.split())
        # 3: the table or the folder of the example is not here, which is noticed once all words were read.
        shown = code == ConfigError.exit_code and printed in " ".join(page.read_text(encoding="utf-8").split())
        assert shown or code in (0, DataError.exit_code), f"{command}\n{printed}"


@pytest.mark.parametrize(
    "words",
    [
        "run algo=aeml k=4 repetitons=2",
        "advise dataset=diabetes k=2,4",
        "study ask trial.db spent=3",
        "reproduce no_such/recipe",
        "list learners",
    ],
)
def test_a_mistake_is_noticed(words: str, here: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    without_work(monkeypatch)
    call(shlex.join(planned(tuple(words.split()))), 2)


def planned(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that says what it would do, here, rather than computing it or sending it to other machines."""
    if words[0] not in ("run", "advise", "fit") or "--cfg" in words:
        return words
    here = tuple(
        word for word in words if not word.startswith("hydra/launcher") and not word.startswith("hydra.launcher")
    )
    return (*here, *(() if "--dry-run" in here else ("--dry-run",)))


def without_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what commands without ``--dry-run`` compute or fetch."""
    monkeypatch.setattr("budgetreg.cli.reproduce.reproduce", lambda *_: [])
    monkeypatch.setattr("budgetreg.cli.reproduce.reproduce_quickly", lambda *_: [])
    monkeypatch.setattr("budgetreg.testing.checks.run_checks", lambda _: [])
    monkeypatch.setattr("budgetreg.cli.offers.fetch", lambda *_: "")


def test_every_recipe_that_is_named_exists() -> None:
    folders = {recipe.partition("/")[0] for recipe in catalogue.options("experiment")}
    named = {
        (name(page), recipe)
        for page in PAGES
        for text in [page.read_text().replace("\\_", "_")]  # which Markdown would read as emphasis
        for recipe in re.findall(r"(?:budgetreg reproduce |experiment=)([a-z_0-9]+/\w+)", text)
        if recipe.partition("/")[0] in folders and recipe != "cesa_bianchi_2010/fig_budgets"
    }
    assert len(named) > 10
    assert sorted(pair for pair in named if pair[1] not in catalogue.options("experiment")) == []

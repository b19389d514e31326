"""Names from data and command lines cannot control the terminal: they are escaped wherever a command prints them."""

import csv
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetreg.cli.app import main
from budgetreg.cli.console import console
from budgetreg.common.notices import in_one_line, patient_streams, printable, table
from tests.commands import python
from tests.sketches import sketch

ODD = "a\x1b[31m\n\u202e\r\x9b"
SHOWN = r"a\x1b[31m\n\u202e\r\x9b"
NAMES = [ODD, "b\x07", "c\x7f\r"]


def controls(text: str) -> set[str]:
    return {letter for letter in text if letter != "\n" and unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp")}


@given(st.text(max_size=30))
def test_printable_text_holds_no_controls_and_stays_as_it_is(text: str) -> None:
    shown = printable(text)
    assert not controls(shown)
    assert shown == printable(shown)
    assert shown.count("\n") == text.count("\n")
    assert "\n" not in in_one_line(text)


def test_plain_words_of_any_language_are_shown_as_they_are() -> None:
    text = "größer als 3 ± 0.1 ≥ ×² 数据 данные عدد"
    assert printable(text) == text


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("odd")
    values = np.random.default_rng(0).normal(size=(40, 4)).tolist()
    with (place / f"{ODD}.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*NAMES, "y"], *values])
    (place / "other.csv").write_text("a,b,c,y\n1,2,3,4\n2,3,4,5\n")
    with (place / "costs.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["attribute", "cost"], *([name, 1.5] for name in NAMES)])
    words = f"dataset=file dataset.path='{ODD}.csv' dataset.costs=costs.csv dataset.unit='{ODD}' algo=naive k=2"
    rest = "repetitions=1 checkpoints=2 tuning=fixed tuning.B=2 backend=sequential"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        sketch(patch)
        split = [*rest.split(), *words.replace(ODD, "ODD").split()]
        assert main(["run", *(word.replace("ODD", ODD) for word in split), f"out='{ODD}'"]) == 0
    return place


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, ["status", ".", "--why"]),
        (0, ["plot", ODD, "--out", f"{ODD}/figure"]),
        (0, ["compare", ODD, "error=9"]),
        (0, ["reprice", ODD, "costs=costs.csv", "--out", "repriced"]),
        (0, ["predict", ODD, f"{ODD}.csv", f"out={ODD}.txt"]),
        (3, ["predict", ODD, "other.csv"]),
        (0, ["verify", ODD]),
        (3, ["report", ODD * 2]),
        (2, ["run", f"algo='{ODD}'"]),
        (2, ["fetch", ODD]),
        (2, [ODD]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) and value[0] != ODD else "",
)
def test_commands_escape_names(
    here: Path,
    sketched: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    words: list[str],
) -> None:
    monkeypatch.chdir(here)
    assert main(words) == code
    printed = "".join(capsys.readouterr())
    assert not controls(printed)
    assert r"\x1b" in printed


def test_captions_escape_names_and_tables_keep_them(here: Path) -> None:
    caption = (here / ODD / "curve.txt").read_text(encoding="utf-8")
    assert not controls(caption)
    assert f"{SHOWN}, Naive" in caption
    with (here / ODD / "curves.csv").open(newline="", encoding="utf-8") as file:
        assert {row["dataset"] for row in csv.DictReader(file)} == {ODD}


def test_on_a_terminal_tables_have_styles_but_names_no_controls(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with patient_streams():
        console().print(table(["head"], [[ODD]], title=ODD))
    styled = capsys.readouterr().out
    assert "\x1b[" in styled  # the style of the head
    assert styled.count(SHOWN) == 2
    assert ODD[:5] not in styled


def test_the_traceback_of_a_bug_escapes_its_message(tmp_path: Path) -> None:
    code = (
        "import budgetreg.cli.app as app\n"
        "def bug(words): raise ValueError('\\x1b[2J')\n"
        "app._dispatch = bug\n"
        "app.main(['status'])\n"
    )
    done = python("-c", code, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last)")
    assert done.stderr.endswith("ValueError: \\x1b[2J\n")

"""Names and paths are the text that was typed, and what a hint prints can be pasted into a shell."""

import random
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf

from budgetreg.cli.app import main
from budgetreg.cli.run import read_words
from budgetreg.config.composition import pasted
from tests.tiers import slow_but

NAMES = [
    *("1_1", "1e3", "true", "null", "0x1", "007", "1.0", "+1", "2024_01_15", "nan", "-5", ".5", "a b"),
    *("Größe", "é", "日本", "µg/l", "€", "daten/größe.csv", "\udce9.csv"),
]


def chosen(word: str) -> Any:
    _, choices = read_words([word], "fit", (), (), "tests")
    return OmegaConf.to_container(OmegaConf.create(choices), resolve=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", ["dataset.path", "dataset.target", "out"])
def test_a_name_is_what_was_typed(key: str, name: str) -> None:
    read = chosen(f"{key}={name}")[key]
    assert read is None if name == "null" else str(read) == name


@pytest.mark.parametrize("name", NAMES)
def test_names_in_a_list_are_what_was_typed(name: str) -> None:
    assert list(map(str, chosen(f"dataset.drop=[x,{name}, 'y, 1_1']")["dataset.drop"])) == ["x", name, "y, 1_1"]


def test_numbers_stay_numbers_where_none_is_a_name() -> None:
    assert chosen("k=1_1") == {"k": 11}
    assert chosen("dataset.drop=[1,2]") == {"dataset.drop": [1, 2]}  # as in the identities of runs
    assert chosen("dataset.target=3") == {"dataset.target": 3}


@pytest.mark.parametrize("values", slow_but(["1_1,2_2"], ["1_1,2_2", "choice(1_1,2_2)", "'1_1','2_2'"]))
def test_a_sweep_has_the_folders_that_were_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], values: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-m", "algo=naive", "k=4", f"out={values}", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"(?m)^folder +(\S+)", said) == ["1_1/algo=naive,k=4", "2_2/algo=naive,k=4"]


def test_hints_can_be_pasted() -> None:
    rng = random.Random(0)
    letters = "'\"[](){}, $=#\\ab1_é~!`:;%&|<>*?.-+\n\t/"
    for _ in range(100):
        names = ["".join(rng.choices(letters, k=rng.randint(1, 8))) for _ in range(rng.randint(1, 3))]
        (word,) = shlex.split(pasted("dataset.drop", names))
        assert list(map(str, chosen(word)["dataset.drop"])) == names
        (word,) = shlex.split(pasted("dataset.unit", names[0]))
        assert str(chosen(word)["dataset.unit"]) == names[0]


def test_a_shell_reads_hints_as_python_does() -> None:
    names = ["it's", 'say "x"', "a$HOME`b`", "C:\\x", "\\'", "Cement (kg/m3)", "#1", "é=ü", "a\\"]
    words = [pasted("dataset.path", name) for name in names]
    answer = subprocess.run(["bash", "-c", f"printf '%s\\0' {' '.join(words)}"], capture_output=True, timeout=20)
    typed = answer.stdout.decode().split("\0")[:-1]
    assert [chosen(word)["dataset.path"] for word in typed] == names


@pytest.mark.parametrize(
    "word", ["dataset.path=it's/t.csv", "dataset.path='it's/t.csv'", "dataset.drop=[a (b)]", "dataset.drop=[c,]"]
)
def test_the_hint_of_a_refused_word_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("it's").mkdir()
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 5)), columns=["a (b)", "c", "d", "e", "y"])
    frame.to_csv("it's/t.csv", index=False)
    path = [] if word.startswith("dataset.path") else ['dataset.path="it\'s/t.csv"']
    line = ["run", "dataset=file", *path, "algo=naive", "k=2", "tuning=fixed", "tuning.B=1", "--dry-run"]
    assert main([*line, word]) == 2
    hint = capsys.readouterr().err.partition("put special characters in quotes: ")[2]
    assert main([*line, *shlex.split(hint)]) == 0


@pytest.mark.parametrize(
    ("key", "text", "code"), [("n_jobs", "2", 0), ("k", "4", 0), ("seed", "x", 2), ("out", "1_1", 0)]
)
def test_what_an_interpolation_gives_is_read_as_if_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], key: str, text: str, code: int
) -> None:
    monkeypatch.setenv("GIVEN", text)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "algo=naive", f"{key}=${{oc.env:GIVEN}}", "--dry-run"]) == code
    assert key != "out" or re.search(r"(?m)^folder +1_1\s*$", capsys.readouterr().out)


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("ending", slow_but([".csv"], [".csv", ".parquet"]))
def test_a_column_named_null_is_never_taken_for_no_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 4)), columns=["a", "null", "b", "y"])
    if ending == ".csv":
        frame.to_csv("t.csv", index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet("t.parquet")
    line = ["fit", "dataset=file", f"dataset.path=t{ending}", "algo=aemr", "total=40", "k=2"]
    assert main([*line, "dataset.target=null"]) == 3
    first, last = capsys.readouterr().err.partition("write ")[2].strip().split(" or ")
    for name, hint in (("y", first), ("null", last)):
        assert main([*line, *shlex.split(hint), f"out=of {name}"]) == 0
        with np.load(tmp_path / f"of {name}" / "model.npz") as model:
            assert str(model["target"]) == name

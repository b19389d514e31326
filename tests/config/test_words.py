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

from budgetreg.cli.run import read_words
from budgetreg.config.composition import pasted
from tests.commands import Call
from tests.tiers import slow_but

pytestmark = pytest.mark.usefixtures("here")
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
def test_a_sweep_has_the_folders_that_were_typed(call: Call, values: str) -> None:
    said = call(shlex.join(["run", "-m", "algo=naive", "k=4", f"out={values}", "--dry-run"])).out
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
def test_the_hint_of_a_refused_word_works(call: Call, word: str) -> None:
    Path("it's").mkdir()
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 5)), columns=["a (b)", "c", "d", "e", "y"])
    frame.to_csv("it's/t.csv", index=False)
    path = [] if word.startswith("dataset.path") else ['dataset.path="it\'s/t.csv"']
    line = shlex.join(["run", "dataset=file", *path, "algo=naive", "k=2", "tuning=fixed", "tuning.B=1", "--dry-run"])
    hint = call(f"{line} {shlex.quote(word)}", 2).err.partition("put special characters in quotes: ")[2]
    call(f"{line} {hint}")


@pytest.mark.parametrize(
    ("key", "text", "code"), [("n_jobs", "2", 0), ("k", "4", 0), ("seed", "x", 2), ("out", "1_1", 0)]
)
def test_what_an_interpolation_gives_is_read_as_if_typed(
    monkeypatch: pytest.MonkeyPatch, call: Call, key: str, text: str, code: int
) -> None:
    monkeypatch.setenv("GIVEN", text)
    answer = call(f"run algo=naive {key}=${{oc.env:GIVEN}} --dry-run", code)
    assert key != "out" or re.search(r"(?m)^folder +1_1\s*$", answer.out)


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("ending", slow_but([".csv"], [".csv", ".parquet"]))
def test_a_column_named_null_is_never_taken_for_no_choice(here: Path, call: Call, ending: str) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 4)), columns=["a", "null", "b", "y"])
    if ending == ".csv":
        frame.to_csv("t.csv", index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet("t.parquet")
    line = f"fit dataset=file dataset.path=t{ending} algo=aemr total=40 k=2"
    said = call(f"{line} dataset.target=null", 3).err
    first, last = said.partition("write ")[2].strip().split(" or ")
    for name, hint in (("y", first), ("null", last)):
        call(f"{line} {hint} 'out=of {name}'")
        with np.load(here / f"of {name}" / "model.npz") as model:
            assert str(model["target"]) == name

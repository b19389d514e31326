"""The command as Python functions: the same folders, bytes and messages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budgetreg
from budgetreg.cli.app import main
from budgetreg.common.errors import ConfigError, DataError
from tests.commands import python
from tests.refusals import refusal

TINY = {"algo": "aelr", "k": 4, "repetitions": 2, "checkpoints": 3}
TINY |= {"tuning": "fixed", "tuning.B": 2, "tuning.eta": 0.01}
pytestmark = pytest.mark.usefixtures("here")
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 4)), columns=["a", "b", "c", "y"])
OWN = {"algo": "aemr", "dataset": "file", "dataset.path": "table.csv", "k": 2}


def test_a_run_returns_its_tables(here: Path) -> None:
    results = budgetreg.run(TINY)
    assert results.folder.is_relative_to(here / "runs" / "digits_3v5")
    assert results.curves.groupby("repetition").size().tolist() == [3, 3]
    assert (results.curves["attributes"] <= 4 * results.curves["examples"]).all()
    assert results.runs["p_B"].tolist() == [2.0, 2.0]
    assert results.manifest["status"] == "complete"
    assert not (results.folder / "curve.png").exists()


@pytest.mark.usefixtures("undrawn")
def test_the_command_and_the_call_leave_the_same_bytes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    called = budgetreg.run({**TINY, "out": "called"})
    assert main(["run", *(f"{key}={value}" for key, value in TINY.items()), "out=typed"]) == 0
    capsys.readouterr()
    assert (called.folder / "curves.csv").read_bytes() == (here / "typed" / "curves.csv").read_bytes()
    pd.testing.assert_frame_equal(budgetreg.load("typed").curves, called.curves)


@pytest.mark.usefixtures("sketched")
def test_a_call_resumes_an_unfinished_run() -> None:
    few = budgetreg.run({**TINY, "repetitions": 1, "out": "run"})
    journal = (few.folder / "journal.jsonl").read_bytes()
    more = budgetreg.run({**TINY, "out": "run"}, draw=True)
    assert (more.folder / "journal.jsonl").read_bytes().startswith(journal)
    assert (more.folder / "curve.png").exists()


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"algo": "aelrr"}, "no such algo (did you mean"),
        ({"algo.splt": "even"}, "algo.splt: no such key"),
        ("algo=aemr", "the choices are a str, not a mapping of keys to values: write budgetreg.run("),
    ],
)
def test_mistakes_are_one_line(choices: Any, message: str) -> None:
    assert message in refusal(ConfigError, budgetreg.run, choices)


@pytest.mark.parametrize("call", [budgetreg.run, budgetreg.fit])
def test_a_table_in_place_of_its_path_is_one_line(call: Callable[..., object]) -> None:
    table = pd.DataFrame({name: range(400) for name in "abcdefghijk"})
    message = refusal(ConfigError, call, {"algo": "aemr", "dataset": "file", "dataset.path": table})
    said = "dataset.path: must be text, a number, a list or a mapping; got a DataFrame of 400 x 11: save"
    assert message.startswith(said)


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("call", [budgetreg.run, budgetreg.fit])
def test_choices_may_be_paths_tuples_and_numbers_of_numpy(call: Callable[..., Any]) -> None:
    FRAME.assign(day="Monday").to_csv("table.csv", index=False)
    plain = {**OWN, "dataset.target": "y", "dataset.drop": ["day"], "out": "plain"}
    plain |= {"repetitions": 1, "checkpoints": 1} if call is budgetreg.run else {}
    paths = {"dataset.path": Path("table.csv"), "out": Path("paths")}
    other = {**plain, **paths, "dataset.drop": (np.str_("day"),), "k": np.int64(2)}
    first, second = (call(choices).folder / "curves.csv" for choices in (plain, other))
    assert second.parent.name == "paths"
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.usefixtures("short_chains")
def test_what_is_said_of_a_frame_names_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    FRAME.to_csv("table.csv", index=False)
    folder = budgetreg.fit(OWN).folder
    capsys.readouterr()
    budgetreg.predict(folder, FRAME.assign(y=FRAME["y"].where(FRAME.index == 3)))
    said = capsys.readouterr().err
    assert "on the 1 row of the table that has a target;" in said
    assert ".csv" not in said
    with pytest.raises(DataError, match=r"^the table: there is no column 'a'"):
        budgetreg.predict(folder, FRAME.drop(columns="a"))
    with pytest.raises(DataError, match=r"^the table: line 2, data row 1, column 'a'"):
        budgetreg.predict(folder, FRAME.assign(a=np.inf))
    with pytest.raises(ConfigError, match=r"^table: must be a path or a pandas.DataFrame; got a ndarray$"):
        budgetreg.predict(folder, FRAME.to_numpy())  # type: ignore[arg-type]


def test_a_folder_without_results_is_one_line(here: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        budgetreg.load("nowhere")
    (here / "empty").mkdir()
    with pytest.raises(DataError, match=r"curves\.csv"):
        budgetreg.load("empty")


def test_the_package_is_cheap_to_import() -> None:
    program = "import sys, budgetreg; print(sorted({'numpy', 'hydra', 'pandas', 'scipy'} & set(sys.modules)))"
    assert python("-c", program, timeout=60).stdout == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'walk'"):
        _ = budgetreg.walk

"""``status --why`` and ``verify`` on folders of runs."""

import json
import shutil
from pathlib import Path

import pytest

from budgetreg.common import files
from budgetreg.common.errors import DataError
from budgetreg.common.files import signed
from budgetreg.runs.store import Store
from tests.commands import Call, process
from tests.toy_runs import toy_entry, toy_plan, toy_run


@pytest.fixture(autouse=True)
def own_places(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a cache and temporary files of our own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    monkeypatch.setattr(files.tempfile, "tempdir", str(here / "tmp"))
    (here / "tmp").mkdir()


@pytest.mark.slow
def test_runs_are_verified_and_not_changed(here: Path) -> None:
    words = "run -m algo=aelr,ridge k=4 repetitions=3 tuning=fixed tuning.B=2 tuning.eta=0.01 out=runs"
    assert process(*words.split()).returncode == 0
    before = {path: path.read_bytes() for path in sorted(Path("runs").rglob("*")) if path.is_file()}
    answer = process(*["verify", "runs", "n_jobs=2"])
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = [line.split() for line in answer.stdout.splitlines()]
    assert [line[:1] + line[4:] for line in lines[1:]] == [
        [str(folder), "2", "of", "3", "same"] for folder in sorted(Path("runs").iterdir())
    ]
    assert {path: path.read_bytes() for path in sorted(Path("runs").rglob("*")) if path.is_file()} == before

    # Another processor and version then, and other numbers: the message has the column, the checkpoint and both causes.
    folder = next(Path("runs").glob("algo=aelr*"))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["config"]["tuning"]["eta"] = 0.02
    manifest["processor"]["core"] = "Abacus"
    (folder / "manifest.json").write_text(json.dumps(signed(manifest)))
    answer = process(*["verify", "runs", "--all"])
    assert (answer.returncode, answer.stderr) == (1, "")
    differs, same = answer.stdout.splitlines()[1:3]
    assert " 3 of 3  differs  " in differs
    assert "examples" in differs
    assert " same " in same
    reasons = " ".join(" ".join(answer.stdout.splitlines()[3:]).split())
    assert reasons.startswith("since then: tuning.eta 0.01 -> 0.02, core Abacus -> ")

    # One that is damaged, or that this version cannot run, keeps no other from being verified.
    (folder / "manifest.json").write_text("{")
    answer = process(*["verify", "runs"])
    assert answer.returncode == 3
    assert answer.stderr.startswith(f"budgetreg: {folder}/manifest.json is damaged")
    assert answer.stderr.count("\n") == 1
    assert len(answer.stdout.splitlines()) == 2


def test_why_shows_missing_and_failed_repetitions(here: Path, call: Call) -> None:
    plan = toy_plan(Path("runs/a"), log=here / "log", repetitions=4, behaviour={1: "fail", 3: "fail"})
    Path("runs").mkdir()
    toy_run(plan)
    with Store.open(Path("runs/b"), toy_plan(Path("runs/b"), repetitions=9)) as store:
        for number in (0, 4):
            store.add(toy_entry(number))
    (here / "runs" / "merged").mkdir()
    (here / "runs" / "merged" / "manifest.json").write_text('{"recipe": "paper/figure", "cells": []}')
    without = call("status runs").out
    assert [line.split() for line in without.splitlines()[1:]] == [
        ["runs/a", "toy", "toy_data", "4", "4", "2", "2", "failed"],
        ["runs/b", "toy", "toy_data", "4", "9", "2", "0", "incomplete"],
    ]
    shutil.rmtree(here / "runs" / "merged")
    lines = call("status runs --why").out.splitlines()
    assert "\n".join(lines[:3]) + "\n" == without
    assert [line.split() for line in lines[4:]] == [
        ["runs/a", "repetition", "1,", "3", "failed", "ZeroDivisionError:", "no", "such", "luck"],
        [
            *("runs/b", "repetition", "1-3,", "5-8", "missing"),
            *("interrupted:", "the", "same", "command", "resumes"),
        ],
    ]
    with Store.open(Path("runs/b"), toy_plan(Path("runs/b"), repetitions=9)):
        answer = call("status runs/b --why").out
    assert "a process works on it now" in answer
    assert answer.splitlines()[1].endswith("running")


def test_why_shows_the_error_that_would_come_again(here: Path, call: Call) -> None:
    facts = {"log": here / "log", "repetitions": 3}
    with pytest.raises(DataError):
        toy_run(toy_plan(Path("run"), behaviour={1: "refuse"}, **facts))
    answer = call("status run --why").out
    assert "repetition 1-2  missing  stopped by an error: the data are no good" in answer
    with pytest.raises(KeyboardInterrupt):
        toy_run(toy_plan(Path("run"), behaviour={1: "interrupt"}, **facts))
    assert "interrupted: the same command resumes" in call("status run --why").out
    toy_run(toy_plan(Path("run"), **facts))
    toy_run(toy_plan(Path("whole"), **facts))
    kept, whole = (json.loads(Path(name, "manifest.json").read_text()) for name in ("run", "whole"))
    assert kept.keys() == whole.keys()

"""``status --why`` and ``verify`` on folders of runs."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from budgetreg.cli.app import main
from budgetreg.common import files
from budgetreg.common.errors import DataError
from budgetreg.common.files import signed
from budgetreg.runs.store import Store
from tests.toy_runs import toy_entry, toy_plan, toy_run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in an empty folder, with a cache and temporary files of its own, and leave the environment as it was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["budgetreg"])
    before = dict(os.environ)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files.tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


def budgetreg(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    where = {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "budgetreg", *line.split()]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, **where}, check=False, timeout=300
    )


@pytest.mark.slow
def test_runs_are_verified_and_not_changed(here: Path) -> None:
    words = "run -m algo=aelr,ridge k=4 repetitions=3 tuning=fixed tuning.B=2 tuning.eta=0.01 out=runs"
    assert budgetreg(words, here).returncode == 0
    before = {path: path.read_bytes() for path in sorted(Path("runs").rglob("*")) if path.is_file()}
    answer = budgetreg("verify runs n_jobs=2", here)
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
    answer = budgetreg("verify runs --all", here)
    assert (answer.returncode, answer.stderr) == (1, "")
    differs, same = answer.stdout.splitlines()[1:3]
    assert " 3 of 3  differs  " in differs
    assert "examples" in differs
    assert " same " in same
    reasons = " ".join(" ".join(answer.stdout.splitlines()[3:]).split())
    assert reasons.startswith("since then: tuning.eta 0.01 -> 0.02, core Abacus -> ")

    # One that is damaged, or that this version cannot run, keeps no other from being verified.
    (folder / "manifest.json").write_text("{")
    answer = budgetreg("verify runs", here)
    assert answer.returncode == 3
    assert answer.stderr.startswith(f"budgetreg: {folder}/manifest.json is damaged")
    assert answer.stderr.count("\n") == 1
    assert len(answer.stdout.splitlines()) == 2


def test_why_shows_missing_and_failed_repetitions(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = toy_plan(Path("runs/a"), log=here / "log", repetitions=4, behaviour={1: "fail", 3: "fail"})
    Path("runs").mkdir()
    toy_run(plan)
    with Store.open(Path("runs/b"), toy_plan(Path("runs/b"), repetitions=9)) as store:
        for number in (0, 4):
            store.add(toy_entry(number))
    capsys.readouterr()
    assert main(["status", "runs"]) == 0
    without = capsys.readouterr().out
    assert main(["status", "runs", "--why"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "\n".join(lines[:3]) + "\n" == without
    assert [line.split() for line in lines[4:]] == [
        ["runs/a", "repetition", "1,", "3", "failed", "ZeroDivisionError:", "no", "such", "luck"],
        [
            *("runs/b", "repetition", "1-3,", "5-8", "missing"),
            *("interrupted:", "the", "same", "command", "resumes"),
        ],
    ]
    with Store.open(Path("runs/b"), toy_plan(Path("runs/b"), repetitions=9)):
        assert main(["status", "runs/b", "--why"]) == 0
    assert "a process works on it now" in capsys.readouterr().out


def test_why_shows_the_error_that_would_come_again(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"log": here / "log", "repetitions": 3}
    with pytest.raises(DataError):
        toy_run(toy_plan(Path("run"), behaviour={1: "refuse"}, **facts))
    assert main(["status", "run", "--why"]) == 0
    assert "repetition 1-2  missing  stopped by an error: the data are no good" in capsys.readouterr().out
    with pytest.raises(KeyboardInterrupt):
        toy_run(toy_plan(Path("run"), behaviour={1: "interrupt"}, **facts))
    assert main(["status", "run", "--why"]) == 0
    assert "interrupted: the same command resumes" in capsys.readouterr().out
    toy_run(toy_plan(Path("run"), **facts))
    toy_run(toy_plan(Path("whole"), **facts))
    kept, whole = (json.loads(Path(name, "manifest.json").read_text()) for name in ("run", "whole"))
    assert kept.keys() == whole.keys()

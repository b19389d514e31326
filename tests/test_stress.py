"""The trials of ``make stress`` find no fault in a few tries, and notice faults that there are."""

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import stress_files
import stress_tables
import stress_trials
from stress_trials import DATA, Answer, Trial

from tests.commands import ROOT, python

# Newer Pythons warn about forking with threads; pytest may have some, but the forked process uses none.
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
WHOLE = b"".join(b"line %d\n" % number for number in range(30))
TRACE = "Traceback (most recent call last)\nValueError: no\n"


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial("kind", "case", 3, 0, {}, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(DATA))
def test_a_trial_finds_no_fault(tmp_path: Path, kind: str) -> None:
    (tmp_path / "tmp").mkdir()
    committed = (ROOT / "results" / "stress.csv").read_bytes()
    words = ("scripts/stress.py", kind, "--trials", "1")
    done = python(*words, folder=ROOT, timeout=240, TMPDIR=str(tmp_path / "tmp"))
    assert done.returncode == 0, done.stderr
    assert "0 faults in 1 trials" in done.stdout
    assert list((tmp_path / "tmp").iterdir()) == []
    assert (ROOT / "results" / "stress.csv").read_bytes() == committed


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (Answer(0, "table", "a note\n"), None),
        (Answer(2, "", "budgetreg: k: no such thing\n"), None),
        (Answer(2, "", ""), "untold"),
        (Answer(2, "", "one\n" * 9), "untold"),
        (Answer(-11, "", ""), "untold"),
        (Answer(1, "", TRACE), "tracebacks"),
        (Answer(0, "table", TRACE), "tracebacks"),
        (Answer(-9, "", "", hung=True), "hangs"),
    ],
)
def test_each_bad_end_of_a_command_is_a_fault(trial: Trial, answer: Answer, fault: str | None) -> None:
    trial.judge("a command", answer)
    assert list(trial.faults) == ([] if fault is None else [fault])


def test_changed_and_left_over_files_are_faults(trial: Trial, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "curves.csv").write_text("a\n1\n")
    (run / "runs.csv").write_text("seconds,status\n0.5,finished\n")
    expected = stress_trials.snapshot(run)
    (run / "runs.csv").write_text("seconds,status\n0.6,finished\n")  # time is no result
    trial.compare("run", expected)
    assert trial.faults == {}
    (run / "curves.csv").write_text("a\n2\n")
    (run / ".curves.csv.1.tmp").touch()
    trial.compare("run", expected)
    assert {fault: re.sub(r".*: ", "", seen) for fault, seen in trial.faults.items()} == {
        "wrong": "curves.csv",
        "leftovers": ".curves.csv.1.tmp",
    }


def test_temporary_files_left_over_are_faults(trial: Trial, tmp_path: Path) -> None:
    stress_trials.environment(tmp_path)
    trial.without_leftovers({2**22 + 1})
    assert trial.faults == {}
    (tmp_path / "tmp" / "budgetreg-x").mkdir()
    trial.without_leftovers({2**22 + 1})
    assert "budgetreg-x" in trial.faults["leftovers"]


def test_processes_left_over_are_faults_and_are_ended(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress_trials, "_GRACE", 0.2)
    leader = subprocess.Popen(["sh", "-c", "sleep 60 & exit"], start_new_session=True)
    leader.wait(10)
    trial.without_orphans(leader.pid)
    assert "live on" in trial.faults.pop("orphans")
    monkeypatch.setattr(stress_trials, "_GRACE", 10)
    trial.without_orphans(leader.pid)
    assert trial.faults == {}


@forks
def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    answer = stress_trials.forked("--version", tmp_path, lambda: subprocess.run(["sleep", "60"], timeout=90), 0.2)
    assert (answer.code, answer.hung) == (-9, True)


@forks
def test_a_forked_process_runs_a_command(tmp_path: Path) -> None:
    answer = stress_trials.forked("nothing", tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("budgetreg: nothing: no such command")


def test_damage_changes_the_content_but_not_the_time_of_a_file(tmp_path: Path) -> None:
    path, rng = tmp_path / "file", np.random.default_rng(0)
    ways = set()
    for _ in range(30):
        path.write_bytes(WHOLE)
        os.utime(path, ns=(1, 2))
        ways.add(stress_files.damage(path, rng))
        assert path.read_bytes() != WHOLE
        assert path.stat().st_mtime_ns == 2
    assert ways == {"file, flip", "file, overwrite", "file, cut", "file, mix"}


def test_the_seed_decides_the_trials(tmp_path: Path) -> None:
    def words(seed: int) -> list[list[str]]:
        trials = [Trial("line", "run", number, seed, {}, tmp_path) for number in range(20)]
        return [stress_tables.changed(["run", "k=4"], trial) for trial in trials]

    assert words(0) == words(0) != words(1)

"""The time that is left for a sweep, from what its repetitions took so far."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from budgetreg.runs import progress
from budgetreg.runs.progress import SweepClock


def plan(folder: Path, name: str, repetitions: int = 4) -> Any:
    return SimpleNamespace(
        folder=folder, config=SimpleNamespace(algo=SimpleNamespace(name=name), repetitions=repetitions)
    )


def test_a_learner_takes_as_long_as_before_and_one_that_has_not_run_as_long_as_the_others(tmp_path: Path) -> None:
    seconds = 0.0
    names = ["fast", "slow", "fast", "fast", "new"]
    clock = SweepClock([plan(tmp_path / str(i), name) for i, name in enumerate(names)], lambda: seconds)
    assert clock.begin() == ""  # nothing is known
    assert clock.later(2.0) == 4 * 4 * 2  # all learners are taken to be alike
    seconds += 4 * 1
    assert clock.begin() == ", about 16 s left"
    assert clock.later(10.0) == 4 * 1 + 4 * 1 + 4 * 5.5
    seconds += 4 * 20
    assert clock.begin() == ", about 50 s left"  # 4 + 4 + 42
    seconds += 4 * 3
    assert clock.begin() == ", about 52 s left"  # 8, and 44 as the mean of 2 s and 20 s


def test_finished_repetitions_take_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 0.0
    finished = [{"repetition": number, "status": "finished"} for number in (0, 1, 9)]
    entries = {"half": [*finished, {"repetition": 2, "status": "failed"}], "done": [*finished, *finished]}
    monkeypatch.setattr("budgetreg.runs.progress.read_journal", lambda path: entries.get(path.parent.name, []))
    plans = [plan(tmp_path / "done", "a", 2), plan(tmp_path / "new", "a"), plan(tmp_path / "half", "a")]
    clock = SweepClock(plans, lambda: seconds)
    clock.begin()
    seconds += 3
    assert clock.begin() == ""  # what was read from a folder shows nothing
    seconds += 4 * 5
    assert clock.begin() == ", about 10 s left"


def test_lines_show_the_time_that_is_left_for_all_runs(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_OF_LINES", 0.0)
    monkeypatch.setattr(progress, "_PERIOD", 0.01)
    with progress.progress_bar("first", 2, lambda each: 7200.0) as slots:
        for number in (0, 1):
            progress.reporter(slots, number, 1)(1.0)
            time.sleep(0.1)
    first, last = capfd.readouterr().err.splitlines()
    assert first.startswith("budgetreg: first: 1 of 2 repetitions, about ")
    assert last == "budgetreg: first: 2 of 2 repetitions, about 2.0 h for all runs"
    assert first.endswith(" left, about 2.0 h for all runs")

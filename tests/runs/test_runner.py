"""Runs: the same bytes however they are computed, resumed after kills and failures, with progress and warnings."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from budgetreg.api import carry_out
from budgetreg.common.errors import DataError, UserError
from budgetreg.runs import progress
from budgetreg.runs.journal import read_status
from budgetreg.runs.runner import execute, remarks
from budgetreg.runs.store import Store
from budgetreg.runs.tables import CURVE_FILES
from tests.toy_runs import toy_plan, toy_repetitions, toy_run

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from tests.toy_runs import main; sys.exit(main())"
PATIENCE = 60.0  # seconds until a test that waits for something gives up


def start(folder, log, **options):
    """Start a toy run in its own process group, as a shell does."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps({"folder": str(folder), "log": str(log), **options})],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


def computed(log):
    """Return how often each repetition was begun, and the processes that computed them."""
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return Counter(int(repetition) for repetition, _ in lines), {int(process) for _, process in lines}


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def alive(process):
    """Return whether a process exists and has not ended; a process that nobody has waited for is still listed."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def curves(folder):
    return (folder / "curves.csv").read_bytes()


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Return the curves of four repetitions computed without interruption, in one process."""
    folder = tmp_path_factory.mktemp("reference")
    toy_run(toy_plan(folder / "run", log=folder / "log", repetitions=4))
    return curves(folder / "run")


@pytest.mark.parametrize(("backend", "n_jobs"), [("loky", 2), ("sequential", 1), ("sequential", 2)])
def test_results_have_the_same_bytes_with_every_backend(tmp_path, reference, backend, n_jobs):
    folder, log = tmp_path / "run", tmp_path / "log"
    outcome = toy_run(toy_plan(folder, log=log, repetitions=4, n_jobs=n_jobs, backend_name=backend))
    assert (outcome.folder, outcome.finished, outcome.failed, outcome.resumed) == (folder, 4, 0, 0)
    assert curves(folder) == reference
    counts, processes = computed(log)
    assert counts == dict.fromkeys(range(4), 1)
    assert (processes == {os.getpid()}) == (backend == "sequential")


def test_a_finished_run_computes_nothing(tmp_path):
    plan = toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=2)
    toy_run(plan)
    before = curves(plan.folder)
    outcome = toy_run(plan)
    assert (outcome.finished, outcome.resumed) == (2, 2)
    assert computed(plan.log)[0] == {0: 1, 1: 1}
    assert curves(plan.folder) == before


def test_more_repetitions_keep_the_earlier_rows(tmp_path, reference):
    folder, log = tmp_path / "run", tmp_path / "log"
    toy_run(toy_plan(folder, log=log, repetitions=2))
    assert reference.startswith(curves(folder))
    outcome = toy_run(toy_plan(folder, log=log, repetitions=4))
    assert outcome.resumed == 2
    assert computed(log)[0] == dict.fromkeys(range(4), 1)
    assert curves(folder) == reference


@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_killed_run_resumes_and_its_workers_end(tmp_path, reference, n_jobs):
    """Each worker is at a repetition that never ends when the run is killed."""
    folder, log, hanging = tmp_path / "run", tmp_path / "log", range(4 - n_jobs, 4)
    process = start(folder, log, repetitions=4, n_jobs=n_jobs, behaviour=dict.fromkeys(hanging, "hang"))
    wait_until(lambda: all(computed(log)[0][i] for i in hanging) and read_status(folder).finished == 4 - n_jobs)
    assert read_status(folder).running
    process.kill()
    process.communicate(timeout=PATIENCE)
    workers = computed(log)[1]
    assert len(workers) == n_jobs
    wait_until(lambda: not any(map(alive, workers)))
    assert not read_status(folder).running
    outcome = toy_run(toy_plan(folder, log=log, repetitions=4))
    assert (outcome.finished, outcome.resumed) == (4, 4 - n_jobs)
    assert computed(log)[0] == {i: 2 if i in hanging else 1 for i in range(4)}
    assert curves(folder) == reference


def children(process):
    """Return the processes that another one has started."""
    processes = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                processes.add(int(stat.parent.name))
    return processes


def test_workers_without_a_task_end_when_the_run_is_killed(tmp_path):
    process = start(tmp_path / "run", tmp_path / "log", repetitions=4, n_jobs=2, stuck=True)
    wait_until(lambda: len(children(process.pid)) >= 3)  # two workers and the tracker of their resources
    started = children(process.pid)
    wait_until(lambda: all(Path(f"/proc/{child}/task").exists() for child in started))
    process.kill()
    process.communicate(timeout=PATIENCE)
    wait_until(lambda: not any(map(alive, started)))
    assert not computed(tmp_path / "log")[0]


LAUNCHER = """
from joblib import Parallel, delayed
from budgetreg.runs.workers import watched_by_launched
from tests.toy_runs import Stuck
watched_by_launched()
Parallel(n_jobs=2, backend="loky")(delayed(print)(Stuck()) for _ in range(2))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_a_launcher_started_ends_with_it_before_a_task_comes_and_leaves_nothing(number):
    process = subprocess.Popen([sys.executable, "-c", LAUNCHER], cwd=ROOT, stderr=subprocess.PIPE)
    wait_until(lambda: len(children(process.pid)) >= 3)  # two workers and the tracker of their resources
    started = children(process.pid)
    for child in started:
        os.kill(child, number)  # as a terminal sends it
    process.kill()
    assert b"KeyboardInterrupt" not in process.communicate(timeout=PATIENCE)[1]
    wait_until(lambda: not any(map(alive, started)))
    assert not list(Path("/dev/shm").glob(f"sem.loky-{process.pid}-*"))


@pytest.mark.parametrize(
    ("n_jobs", "request_to_end"),
    [
        pytest.param(1, signal.SIGINT, marks=pytest.mark.slow),
        (2, signal.SIGINT),
        pytest.param(2, signal.SIGTERM, marks=pytest.mark.slow),
        (2, signal.SIGHUP),
    ],
)
def test_an_interrupted_run_leaves_its_tables_and_no_workers(tmp_path, reference, n_jobs, request_to_end):
    folder, log = tmp_path / "run", tmp_path / "log"
    process = start(folder, log, repetitions=4, n_jobs=n_jobs, behaviour={3: "hang"})
    wait_until(lambda: computed(log)[0][3] and read_status(folder).finished == 3)
    if request_to_end == signal.SIGTERM:
        process.terminate()
    else:
        os.killpg(process.pid, request_to_end)  # as a terminal sends it
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == (129 if request_to_end == signal.SIGHUP else 130)
    assert errors == ""
    wait_until(lambda: not any(map(alive, computed(log)[1])))
    assert reference.startswith(curves(folder))
    assert len(curves(folder).splitlines()) == 1 + 3 * 2
    assert json.loads((folder / "manifest.json").read_text())["status"] == "incomplete"
    assert toy_run(toy_plan(folder, log=log, repetitions=4)).resumed == 3
    assert curves(folder) == reference


def test_an_interrupt_in_this_process_unlocks_the_folder(tmp_path):
    plan = toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=3, behaviour={1: "interrupt"})
    with pytest.raises(KeyboardInterrupt):
        toy_run(plan)
    status = read_status(plan.folder)
    assert (status.finished, status.failed, status.running) == (1, 0, False)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failed_repetition_is_reported_and_tried_again(tmp_path, reference, n_jobs, capsys):
    folder, log = tmp_path / "run", tmp_path / "log"
    plan = toy_plan(folder, log=log, repetitions=4, n_jobs=n_jobs, behaviour={1: "fail"})
    outcome = toy_run(plan)
    assert (outcome.finished, outcome.failed) == (3, 1)
    errors = capsys.readouterr().err
    assert "repetition 1 failed" in errors
    assert "Traceback" in errors
    assert "ZeroDivisionError: no such luck" in errors
    assert [line.split(b",")[-1] for line in (folder / "runs.csv").read_bytes().splitlines()[1:]] == [
        b"finished",
        b"failed",
        b"finished",
        b"finished",
    ]
    outcome = toy_run(toy_plan(folder, log=log, repetitions=4, n_jobs=n_jobs))
    assert (outcome.finished, outcome.failed, outcome.resumed) == (4, 0, 3)
    assert computed(log)[0] == {0: 1, 1: 2, 2: 1, 3: 1}
    assert curves(folder) == reference


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failure_does_not_affect_repetitions_computed_together_with_it(tmp_path, reference, n_jobs, capsys):
    plan = toy_plan(
        tmp_path / "run",
        log=tmp_path / "log",
        repetitions=4,
        n_jobs=n_jobs,
        behaviour={1: "fail"},
        repetitions_at_once=3,
    )
    outcome = toy_run(plan)
    assert (outcome.finished, outcome.failed) == (3, 1)
    assert "repetition 1 failed" in capsys.readouterr().err
    again = toy_plan(plan.folder, log=plan.log, repetitions=4, n_jobs=n_jobs, repetitions_at_once=3)
    assert toy_run(again).resumed == 3
    assert curves(plan.folder) == reference


def test_a_run_without_a_finished_repetition_is_not_drawn(tmp_path):
    plan = toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=1, behaviour={0: "fail"})
    drawn = []
    outcome = execute(plan, function=toy_repetitions, draw=drawn.append)
    assert (outcome.finished, outcome.failed, drawn) == (0, 1, [])
    assert len(curves(plan.folder).splitlines()) == 1


def test_a_finished_run_is_drawn_after_its_tables_are_written(tmp_path):
    plan = toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=2)
    drawn = []
    execute(plan, function=toy_repetitions, draw=lambda folder: drawn.append((folder, curves(folder))))
    assert drawn == [(plan.folder, curves(plan.folder))]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_mistake_of_the_user_ends_the_run(tmp_path, n_jobs):
    plan = toy_plan(
        tmp_path / "run",
        log=tmp_path / "log",
        repetitions=3,
        n_jobs=n_jobs,
        behaviour={0: "refuse", 1: "hang"},
    )
    with pytest.raises(DataError, match="the data are no good"):
        toy_run(plan)
    assert read_status(plan.folder).failed == 0


def test_too_little_memory_for_the_attributes_is_one_line(tmp_path, capsys):
    plan = toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=3, behaviour={1: "starve"})
    with pytest.raises(UserError, match=r"toy needs more memory than there is for \d+ attributes \(Unable to allocate"):
        toy_run(plan)
    assert capsys.readouterr().err == ""


def test_a_worker_that_dies_is_one_line(tmp_path):
    plan = toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=2, n_jobs=2, behaviour={1: "die"})
    with pytest.raises(UserError, match="a worker process died") as error:
        toy_run(plan)
    assert error.value.exit_code == 1
    assert not read_status(plan.folder).running


def test_a_full_disk_ends_the_run_and_its_workers(tmp_path, monkeypatch):
    plan = toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=3, n_jobs=2, behaviour={2: "hang"})

    def full(*_):
        raise UserError("cannot write journal.jsonl: No space left on device")

    monkeypatch.setattr(Store, "add", full)
    with pytest.raises(UserError, match="No space left"):
        toy_run(plan)
    wait_until(lambda: not any(map(alive, computed(plan.log)[1])))


def test_notes_go_to_stderr_and_choices_to_the_caller(tmp_path, capsys):
    plan = toy_plan(tmp_path / "run", log=tmp_path / "log", notes=("a note",), behaviour={0: "edge", 2: "edge"})
    choices = toy_run(plan).choices
    assert capsys.readouterr() == ("", "budgetreg: a note\n")
    assert choices.repetitions == 3
    assert remarks([choices]) == [
        "some best values are the largest or smallest tried: toy: eta largest (try 10 in algo.grid.eta) in 2 of 3 "
        "repetitions"
    ]


def test_an_error_far_above_the_zero_predictor_at_the_end_gives_a_warning(tmp_path, capsys):
    toy_run(toy_plan(tmp_path / "run", log=tmp_path / "log", behaviour={1: "diverge at last"}))
    (warning,) = capsys.readouterr().err.splitlines()
    assert "up to 4e+14 times that without attributes" in warning
    assert "dataset.scale=max_abs" in warning
    toy_run(toy_plan(tmp_path / "other", log=tmp_path / "log", behaviour={1: "diverge at first"}))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_infinite_loss_is_one_line(tmp_path, n_jobs, capfd):
    plan = toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=2, n_jobs=n_jobs, behaviour={1: "overflow"})
    with pytest.raises(DataError, match=r"^test_mse is inf after 30 examples because .*: scale the data"):
        toy_run(plan)
    assert capfd.readouterr().err == ""
    assert b"inf" not in curves(plan.folder)


def on_a_terminal(monkeypatch, action):
    """Return what an action writes to stderr while this is a terminal."""
    controller, terminal = pty.openpty()
    with open(terminal, "w") as stderr, monkeypatch.context() as patch:
        patch.setenv("COLUMNS", "120")
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stderr", stderr)
        action()
    output = b""
    with suppress(OSError), open(controller, "rb", buffering=0) as file:  # reading fails once the terminal is closed
        while piece := file.read(4096):
            output += piece
    return output.decode()


@pytest.mark.parametrize(("pause", "shown"), [(0.0, False), (0.8, True)])
def test_a_terminal_shows_progress_if_the_run_takes_long(tmp_path, monkeypatch, pause, shown):
    monkeypatch.setattr(progress, "_PATIENCE", 0.2)
    monkeypatch.setattr(progress, "_PERIOD", 0.05)
    plan = toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=1, pause=pause)
    output = on_a_terminal(monkeypatch, lambda: toy_run(plan))
    assert ("toy on toy_data, k=4" in output) == shown
    assert any(f"0.{tenth} of 1 repetitions" in output for tenth in range(2, 10)) == shown


def test_without_a_terminal_there_is_a_line_for_each_repetition(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(progress, "PATIENCE_OF_LINES", 0.0)
    monkeypatch.setattr(progress, "_PERIOD", 0.01)
    toy_run(toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=3, pause=0.2))
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [line.partition(" of ")[0] for line in lines] == [
        f"budgetreg: toy on toy_data, k=4: {number}" for number in (1, 2, 3)
    ]
    assert all(re.fullmatch(r".* of 3 repetitions, about \d+ s left", line) for line in lines[:2])
    assert lines[2].endswith(": 3 of 3 repetitions")
    assert err.replace("\n", "").isprintable()


def test_lines_count_what_repetitions_that_advance_together_have_done(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(progress, "PATIENCE_OF_LINES", 0.0)
    monkeypatch.setattr(progress, "_PERIOD", 0.01)
    with progress.progress_bar("four", 4) as slots:
        report = progress.reporter(slots, 0, 4)
        for fraction in (0.2, 0.3, 0.6):  # 0.8, 1.2 and 2.4 repetitions
            report(fraction)
            time.sleep(0.1)
    numbers = [line.partition(" of ")[0] for line in capfd.readouterr().err.splitlines()]
    assert numbers == ["budgetreg: four: 1", "budgetreg: four: 2"]


def test_an_interruption_while_progress_begins_leaves_no_error(monkeypatch):
    class Interrupted(threading.Thread):
        def start(self):
            super().start()
            raise KeyboardInterrupt

        def run(self):
            time.sleep(0.2)  # by then the file of the slots may be gone
            super().run()

    monkeypatch.setattr(progress.threading, "Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt), progress.progress_bar("four", 4):
        raise AssertionError("the block has begun")
    for thread in threading.enumerate():
        if isinstance(thread, Interrupted):
            thread.join()


def test_short_runs_are_silent_without_a_terminal(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(progress, "PATIENCE_OF_LINES", 30.0)
    toy_run(toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=1, pause=0.2))
    assert capfd.readouterr() == ("", "")


def test_without_temporary_files_there_is_no_progress_but_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert toy_run(toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=1)).finished == 1


def test_a_run_is_drawn_if_its_figure_is_not_current(tmp_path, monkeypatch):
    drawn = []

    def plot_run(folder):
        drawn.append(folder)
        for name in CURVE_FILES:
            (folder / name).write_bytes(b"a picture")

    monkeypatch.setattr("budgetreg.figures.plot_run", plot_run)
    monkeypatch.setattr("budgetreg.protocol.repetitions.run_repetitions", toy_repetitions)
    plan = toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=1)
    assert carry_out(plan, draw=False).finished == 1
    assert drawn == []
    for times in (1, 1):
        carry_out(plan)
        assert drawn == [plan.folder] * times
    (plan.folder / CURVE_FILES[1]).write_bytes(b"damaged")
    carry_out(plan)
    (plan.folder / CURVE_FILES[0]).unlink()
    carry_out(plan)
    carry_out(toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=2))
    assert drawn == [plan.folder] * 4

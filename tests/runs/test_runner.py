"""Runs: the same bytes however they are computed, resumed after kills and failures, with progress and warnings."""

import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from joblib import delayed

from budgetreg.api import carry_out
from budgetreg.common.errors import UserError
from budgetreg.runs import progress
from budgetreg.runs.journal import read_status
from budgetreg.runs.runner import execute, remarks
from budgetreg.runs.store import Store
from budgetreg.runs.tables import CURVE_FILES
from budgetreg.runs.workers import WorkerDied, computing
from tests.tiers import slow_but
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


@pytest.fixture
def toy(tmp_path):
    """Return a function that makes plans for one folder, whose log lies beside it."""
    return partial(toy_plan, tmp_path / "run", log=tmp_path / "log")


@pytest.mark.parametrize(("backend", "n_jobs"), [("loky", 2), ("sequential", 2)])
def test_results_have_the_same_bytes_with_every_backend(toy, reference, backend, n_jobs):
    plan = toy(repetitions=4, n_jobs=n_jobs, backend_name=backend)
    outcome = toy_run(plan)
    assert (outcome.folder, outcome.finished, outcome.failed, outcome.resumed) == (plan.folder, 4, 0, 0)
    assert curves(plan.folder) == reference
    counts, processes = computed(plan.log)
    assert counts == dict.fromkeys(range(4), 1)
    assert (processes == {os.getpid()}) == (backend == "sequential")


def test_a_finished_run_computes_only_further_repetitions_and_keeps_the_earlier_rows(toy, reference):
    few = toy(repetitions=2)
    toy_run(few)
    before = curves(few.folder)
    assert reference.startswith(before)
    outcome = toy_run(few)
    assert (outcome.finished, outcome.resumed) == (2, 2)
    assert computed(few.log)[0] == {0: 1, 1: 1}
    assert curves(few.folder) == before
    assert toy_run(toy(repetitions=4)).resumed == 2
    assert computed(few.log)[0] == dict.fromkeys(range(4), 1)
    assert curves(few.folder) == reference


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


@pytest.mark.slow
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


@pytest.mark.parametrize("number", slow_but([signal.SIGINT], [signal.SIGINT, signal.SIGHUP]))
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
        (1, signal.SIGINT),
        pytest.param(2, signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(2, signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(2, signal.SIGHUP, marks=pytest.mark.slow),
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


def test_an_interrupt_in_this_process_unlocks_the_folder(toy):
    plan = toy(behaviour={1: "interrupt"})
    with pytest.raises(KeyboardInterrupt):
        toy_run(plan)
    status = read_status(plan.folder)
    assert (status.finished, status.failed, status.running) == (1, 0, False)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("options", slow_but([{"n_jobs": 1}], [{"n_jobs": 1}, {"n_jobs": 2, "repetitions_at_once": 3}]))
def test_a_failed_repetition_is_reported_and_tried_again(toy, reference, options, capsys):
    plan = toy(repetitions=4, behaviour={1: "fail"}, **options)
    outcome = toy_run(plan)
    assert (outcome.finished, outcome.failed, read_status(plan.folder).failed) == (3, 1, 1)
    errors = capsys.readouterr().err
    assert "repetition 1 failed" in errors
    assert "Traceback" in errors
    assert "ZeroDivisionError: no such luck" in errors
    states = [line.rpartition(b",")[2] for line in (plan.folder / "runs.csv").read_bytes().splitlines()[1:]]
    assert states == [b"finished", b"failed", b"finished", b"finished"]
    outcome = toy_run(toy(repetitions=4, **options))
    assert (outcome.finished, outcome.failed, outcome.resumed, read_status(plan.folder).failed) == (4, 0, 3, 0)
    assert computed(plan.log)[0][3] == 1
    assert curves(plan.folder) == reference


def test_a_run_is_drawn_after_its_tables_are_written_if_a_repetition_is_finished(toy):
    plan, drawn = toy(repetitions=1, behaviour={0: "fail"}), []
    outcome = execute(plan, function=toy_repetitions, draw=drawn.append)
    assert (outcome.finished, outcome.failed, drawn) == (0, 1, [])
    assert len(curves(plan.folder).splitlines()) == 1
    execute(toy(), function=toy_repetitions, draw=lambda folder: drawn.append((folder, curves(folder))))
    assert drawn == [(plan.folder, curves(plan.folder))]


def test_a_worker_that_dies_before_all_tasks_are_handed_out_ends_the_run_with_one_line():
    def tasks():
        yield from [delayed(os._exit)(1)] * 2  # joblib takes one for each worker before it hands them out
        time.sleep(2)  # until joblib knows
        yield delayed(int)()

    with pytest.raises(WorkerDied, match="a worker process died"), computing(tasks(), n_jobs=2) as arriving:
        list(arriving)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"behaviour": {0: "refuse", 1: "hang"}}, "the data are no good"),
        pytest.param(
            {"behaviour": {0: "refuse", 1: "hang"}, "n_jobs": 2}, "the data are no good", marks=pytest.mark.slow
        ),
        ({"behaviour": {1: "starve"}}, r"toy needs more memory than there is for 8 attributes \(Unable to allocate"),
        ({"behaviour": {1: "overflow"}}, "^test_mse is inf after 30 examples because .*: scale the data"),
        ({"behaviour": {1: "die"}, "n_jobs": 2}, "a worker process died"),
    ],
)
def test_what_no_repetition_can_do_ends_the_run_with_one_line(toy, options, said, capfd):
    plan = toy(**options)
    with pytest.raises(UserError, match=said) as error:
        toy_run(plan)
    assert error.value.exit_code == {"die": 1, "starve": 2}.get(options["behaviour"].get(1), 3)
    assert capfd.readouterr().err == ""
    status = read_status(plan.folder)
    assert (status.failed, status.running) == (0, False)
    assert b"inf" not in curves(plan.folder)


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_its_workers(toy, monkeypatch):
    plan = toy(n_jobs=2, behaviour={2: "hang"})

    def full(*_):
        raise UserError("cannot write journal.jsonl: No space left on device")

    monkeypatch.setattr(Store, "add", full)
    with pytest.raises(UserError, match="No space left"):
        toy_run(plan)
    wait_until(lambda: not any(map(alive, computed(plan.log)[1])))


def test_notes_go_to_stderr_and_choices_to_the_caller(toy, capsys):
    choices = toy_run(toy(notes=("a note",), behaviour={0: "edge", 2: "edge"})).choices
    assert capsys.readouterr() == ("", "budgetreg: a note\n")
    assert choices.repetitions == 3
    assert remarks([choices]) == [
        "some best values are the largest or smallest tried: toy: eta largest (try 10 in algo.grid.eta) in 2 of 3 "
        "repetitions"
    ]


def test_an_error_far_above_the_zero_predictor_at_the_end_gives_a_warning(tmp_path, toy, capsys):
    toy_run(toy(behaviour={1: "diverge at last"}))
    (warning,) = capsys.readouterr().err.splitlines()
    assert "up to 4e+14 times that without attributes" in warning
    assert "dataset.scale=max_abs" in warning
    toy_run(toy_plan(tmp_path / "other", log=tmp_path / "log", behaviour={1: "diverge at first"}))
    assert capsys.readouterr().err == ""


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
def test_a_terminal_shows_progress_if_the_run_takes_long(toy, monkeypatch, pause, shown):
    monkeypatch.setattr(progress, "_PATIENCE", 0.2)
    monkeypatch.setattr(progress, "_PERIOD", 0.05)
    output = on_a_terminal(monkeypatch, lambda: toy_run(toy(repetitions=1, pause=pause)))
    assert ("toy on toy_data, k=4" in output) == shown
    assert any(f"0.{tenth} of 1 repetitions" in output for tenth in range(2, 10)) == shown


def test_only_a_terminal_that_can_have_temporary_files_shows_progress(tmp_path, toy, monkeypatch, capsys):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    toy_run(toy(repetitions=1, pause=0.1))
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert on_a_terminal(monkeypatch, lambda: toy_run(toy(repetitions=2, pause=0.1))) == ""


def test_a_run_is_drawn_if_its_figure_is_not_current(toy, monkeypatch):
    drawn = []

    def plot_run(folder):
        drawn.append(folder)
        for name in CURVE_FILES:
            (folder / name).write_bytes(b"a picture")

    monkeypatch.setattr("budgetreg.figures.plot_run", plot_run)
    monkeypatch.setattr("budgetreg.protocol.repetitions.run_repetitions", toy_repetitions)
    plan = toy(repetitions=1)
    assert carry_out(plan, draw=False).finished == 1
    assert drawn == []
    for _ in range(2):
        carry_out(plan)
        assert drawn == [plan.folder]
    (plan.folder / CURVE_FILES[1]).write_bytes(b"damaged")
    carry_out(plan)
    (plan.folder / CURVE_FILES[0]).unlink()
    carry_out(plan)
    carry_out(toy(repetitions=2))
    assert drawn == [plan.folder] * 4

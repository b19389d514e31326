"""Runs on a dask scheduler and two workers, which are processes on this machine and are killed at the end."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from types import ModuleType, SimpleNamespace

import dask
import distributed
import numpy as np
import pandas as pd
import pytest

from budgetreg import api
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.reproduce.verification import Sample, verify_run
from budgetreg.runs import cluster as subject
from budgetreg.runs.cluster import ClusterLost
from budgetreg.runs.journal import read_status
from budgetreg.runs.runner import execute
from budgetreg.runs.workers import WorkerDied
from tests.runs.test_runner import PATIENCE, ROOT, alive, computed, curves, reference, start, wait_until
from tests.toy_runs import staggered, toy_plan, toy_repetitions, toy_run

__all__ = ["reference"]  # a fixture

SCHEDULER = ["dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--idle-timeout", "300 s"]
WORKER = ["dask_worker", "--nthreads", "2", "--no-nanny", "--no-dashboard", "--death-timeout", "60"]


class Cluster:
    """A scheduler and two workers; what a test kills is started again for the next test."""

    def __init__(self, folder):
        self.folder, self.scheduler, self.workers, self.address = folder, None, [], ""

    def start(self, *words):
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OPENBLAS_NUM_THREADS": "2",  # workers must ignore it
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false",  # which takes time while a worker waits
        }
        with (self.folder / f"{words[0]}.log").open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{words[0]}", *words[1:]],
                cwd=self.folder,  # not the folder of the tests, so that relative paths differ
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def mend(self):
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.end()
            file = self.folder / "scheduler.json"
            file.unlink(missing_ok=True)
            self.scheduler = self.start(*SCHEDULER, "--scheduler-file", str(file))
            wait_until(lambda: file.exists() and file.read_text().endswith("}"))
            self.address = json.loads(file.read_text())["address"]
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        self.workers += [self.start(*WORKER, self.address) for _ in range(2 - len(self.workers))]
        with distributed.Client(self.address, set_as_default=False) as client:
            wait_until(lambda: len(client.nthreads()) == 2)
        return self

    def end(self):
        for process in filter(None, [self.scheduler, *self.workers]):
            process.kill()
            process.wait(PATIENCE)
        self.workers = []


@pytest.fixture(scope="module")
def mended(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.end()


@pytest.fixture
def cluster(mended):
    return mended.mend()


def there(cluster, tmp_path, **options):
    """Return a toy plan that the workers of a cluster compute."""
    options = {"repetitions": 4, "log": tmp_path / "log", **options}
    return toy_plan(tmp_path / "run", backend_name="dask", address=cluster.address, **options)


def begin(cluster, tmp_path, behaviour):
    """Start four toy repetitions on a cluster as a process that can be killed."""
    where = {"backend_name": "dask", "address": cluster.address}
    return start(tmp_path / "run", tmp_path / "log", repetitions=4, behaviour=behaviour, **where)


def finished(tmp_path):
    with suppress(DataError):  # it has not begun
        return read_status(tmp_path / "run").finished
    return 0


def test_a_cluster_computes_the_same_bytes_as_this_process(cluster, tmp_path, reference):
    outcome = toy_run(there(cluster, tmp_path))
    assert (outcome.finished, outcome.failed, outcome.resumed) == (4, 0, 0)
    assert curves(tmp_path / "run") == reference
    counts, processes = computed(tmp_path / "log")
    assert counts == dict.fromkeys(range(4), 1)
    assert processes <= {worker.pid for worker in cluster.workers}


@pytest.fixture
def own_data(tmp_path, monkeypatch):
    """Return the choices of a run on a file with a relative path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    X = np.random.default_rng(0).normal(size=(120, 6))
    pd.DataFrame(X).assign(y=X[:, 0] - X[:, 3]).to_csv("own.csv", index=False)
    learner = {"algo": "aerr", "k": 3, "algo.average": "suffix", "tuning.folds": 3, "checkpoints": 3}
    return {**learner, "dataset": "file", "dataset.path": "own.csv", "repetitions": 3}


@pytest.mark.slow
def test_workers_find_the_data_by_their_path(cluster, own_data, monkeypatch):
    here = api.run({**own_data, "out": "here"})
    elsewhere = {"backend": "dask", "backend.address": cluster.address}
    there = api.run({**own_data, **elsewhere, "out": "there"})
    assert len(there.curves) == len(here.curves) > 0
    assert curves(Path("there")) == curves(Path("here"))
    assert api.plan({**own_data, **elsewhere}).folder == api.plan(own_data).folder
    monkeypatch.setitem(sys.modules, "distributed", None)  # verifying needs no scheduler
    assert verify_run(Path("there"), Sample()).same


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "No such file", marks=pytest.mark.slow),
        ("a,b,c,y\n1,2,3,4\n5,6,7,9\n", "the data are not those of the plan"),
    ],
)
def test_different_data_on_a_worker_are_one_line(cluster, own_data, content, said):
    (cluster.folder / "own.csv").unlink(missing_ok=True)
    if content is not None:
        (cluster.folder / "own.csv").write_text(content)
    own_data |= {"dataset.path": "/proc/self/cwd/own.csv"}  # differs between processes, as between machines
    plan = api.plan({**own_data, "out": "run", "backend": "dask", "backend.address": cluster.address})
    with pytest.raises(DataError, match=rf"^the dask worker at tcp://.*{said}") as error:
        execute(plan)
    assert "\n" not in str(error.value)


def test_different_versions_on_a_worker_are_one_line(cluster, tmp_path, monkeypatch):
    versions = subject.libraries()
    monkeypatch.setattr(subject, "libraries", lambda: {**versions, "numpy": "0.1"})
    with pytest.raises(
        ConfigError, match=rf"worker at tcp://.* has numpy {versions['numpy']} instead of 0\.1: install"
    ):
        toy_run(there(cluster, tmp_path))
    assert not computed(tmp_path / "log")[0]


def test_a_learner_that_is_not_installed_on_a_worker_is_one_line(cluster, tmp_path, monkeypatch):
    def function(plan, repetitions, progress):
        raise AssertionError

    module = ModuleType("only_here")
    function.__module__, function.__qualname__, module.function = "only_here", "function", function
    monkeypatch.setitem(sys.modules, "only_here", module)
    with pytest.raises(ConfigError, match=r"cannot begin .*No module named 'only_here'"):
        execute(there(cluster, tmp_path), function=function)


def test_threads_of_a_worker_do_not_lift_each_others_blas_limits(cluster, tmp_path):
    assert execute(there(cluster, tmp_path), function=staggered).finished == 4
    assert {(tmp_path / f"left {repetition}").read_text() for repetition in range(4)} == {"1"}


def test_failures_are_reported_and_progress_is_shown(cluster, tmp_path, capsys):
    plan, slots = there(cluster, tmp_path, behaviour={1: "fail"}), tmp_path / "slots"
    slots.write_bytes(bytes(8 * 4))
    with subject.arriving(plan, [0, 1, 2, 3], toy_repetitions, slots) as arriving:
        next(arriving)
        assert sum(np.fromfile(slots)) <= 1
        list(arriving)
    assert np.fromfile(slots).tolist() == [1.0] * 4
    assert toy_run(plan).failed == 1
    assert "ZeroDivisionError: no such luck" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_workers_drop_repetitions_that_nobody_waits_for(cluster, tmp_path, reference, end):
    behaviour = {2: "wait", 3: "wait"}
    process = begin(cluster, tmp_path, behaviour)
    wait_until(lambda: len(computed(tmp_path / "log")[0]) == 4 and finished(tmp_path) == 2)
    os.killpg(process.pid, end)
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (130 if end == signal.SIGINT else -end, "")
    wait_until(lambda: all((tmp_path / f"left {repetition}").exists() for repetition in behaviour))
    assert toy_run(there(cluster, tmp_path)).resumed == 2
    assert curves(tmp_path / "run") == reference


@pytest.mark.slow
def test_another_worker_computes_the_repetitions_of_a_killed_one(cluster, tmp_path, reference):
    process = begin(cluster, tmp_path, {3: "hang once"})

    def computing_the_last():
        lines = (tmp_path / "log").read_text().splitlines() if finished(tmp_path) else []
        return [int(worker) for repetition, worker in map(str.split, lines) if repetition == "3"]

    wait_until(computing_the_last)
    os.kill(computing_the_last()[0], signal.SIGKILL)
    assert process.communicate(timeout=PATIENCE)[1] == ""
    assert process.returncode == 0
    assert len(set(computing_the_last())) == len(computing_the_last()) == 2
    assert curves(tmp_path / "run") == reference


@pytest.mark.slow
def test_a_repetition_that_kills_every_worker_is_one_line(cluster, tmp_path):
    with pytest.raises(WorkerDied, match="dask workers died repeatedly"):
        toy_run(there(cluster, tmp_path, repetitions=1, behaviour={0: "die"}))


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_scheduler_is_one_line_and_the_run_resumes_here(cluster, tmp_path, reference, monkeypatch, end):
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "2s")
    process = begin(cluster, tmp_path, {3: "wait"})
    wait_until(lambda: finished(tmp_path) == 3)
    cluster.scheduler.send_signal(end)
    errors = process.communicate(timeout=PATIENCE)[1]
    cluster.scheduler.kill()
    cluster.scheduler.wait(PATIENCE)
    assert (
        f"ClusterLost: the dask scheduler at {cluster.address} no longer answers: finished repetitions are kept"
        in errors
    )
    assert ClusterLost.exit_code == 1
    outcome = toy_run(toy_plan(tmp_path / "run", log=tmp_path / "log", repetitions=4))
    assert (outcome.finished, outcome.resumed) == (4, 3)
    assert curves(tmp_path / "run") == reference


@contextmanager
def peer(kind):
    """Listen on a port that is no scheduler's, and yield it."""
    taken = []

    def answer():
        with suppress(OSError):
            while True:
                taken.append(listener.accept()[0])
                if kind == "bytes":
                    taken[-1].sendall(np.random.default_rng(0).bytes(300))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        if kind == "closed":
            listener.close()
        else:
            Thread(target=answer, daemon=True).start()
        yield port
    for connection in taken:
        connection.close()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("closed", "(ConnectionRefusedError|nothing came)"),
        pytest.param("silent", "nothing came within 0.5 seconds", marks=pytest.mark.slow),
        ("bytes", "perhaps something else answers there"),
    ],
)
def test_an_address_of_something_else_is_one_line(tmp_path, kind, reason):
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.5s"}),
        peer(kind) as port,
        pytest.raises(ClusterLost, match=rf"^no dask scheduler answers at tcp://127\.0\.0\.1:{port}: {reason}"),
    ):
        toy_run(there(SimpleNamespace(address=f"tcp://127.0.0.1:{port}"), tmp_path))


@pytest.mark.slow
def test_without_an_address_workers_of_this_machine_compute_and_end(tmp_path, reference):
    with socket.socket() as other:
        with suppress(OSError):  # the usual port of dask's dashboard may be taken already
            other.bind(("", 8787))
            other.listen()
        process = start(tmp_path / "run", tmp_path / "log", repetitions=4, backend_name="dask", n_jobs=2)
        assert (process.communicate(timeout=PATIENCE)[1], process.returncode) == ("", 0)
    processes = computed(tmp_path / "log")[1]
    assert len(processes - {process.pid}) == 2
    assert not any(map(alive, processes))
    assert curves(tmp_path / "run") == reference


def test_a_missing_dask_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match=r"pip install 'budgetreg\[dask\]'"):
        toy_run(toy_plan(tmp_path / "run", log=tmp_path / "log", backend_name="dask", address="tcp://127.0.0.1:1"))

"""Trials of `stress.py` with dask: addresses of something else, schedulers killed or stopped, and workers here."""

import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from stress_trials import (
    Trial,
    TrialResult,
    compare,
    end_session,
    ended,
    environment,
    note_leftovers,
    note_orphans,
    session,
    snapshot,
    started,
)

_RUN = "run algo=aelr k=4 repetitions=4 checkpoints=3 tuning.folds=2 out=out"
_ANSWER = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "4s"}
_LIMIT = 45.0  # seconds in which a command must end after its scheduler is lost; on an idle machine it takes about ten
_LIFE = "150"  # seconds after which the processes of a cluster end, whatever happens to this one


class _Silent(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def peer(kind: str, rng: np.random.Generator) -> Iterator[int]:
    """Listen on a port that is no scheduler's, and yield it."""
    if kind == "http":
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Silent) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield server.server_port
            server.shutdown()
        return
    taken: list[socket.socket] = []
    said = rng.bytes(int(rng.integers(1, 300)))
    if kind == "length":  # which dask reads first
        said = len(said).to_bytes(8, "little") + said

    def answer() -> None:
        with suppress(OSError):
            while True:
                taken.append(listener.accept()[0])
                if kind != "silent":
                    taken[-1].sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        if kind == "closed":
            listener.close()
        elif kind != "listening":
            threading.Thread(target=answer, daemon=True).start()
        yield port
    for connection in taken:
        connection.close()


def _told(result: TrialResult, what: str, err: str, *, lost: bool) -> None:
    """Note if a command did not say in one line that no scheduler answers, or said more than notices."""
    lines = err.splitlines()
    said = sum("no dask scheduler answers" in line or "no longer answers" in line for line in lines)
    if said != lost or any(not line.startswith("budgetreg: ") for line in lines):
        result.note("untold", f"{what}: {err[-1000:]}")


def _elsewhere(trial: Trial, result: TrialResult, folder: Path) -> None:
    """Give the address of something that is no scheduler: one line in time."""
    kinds = ("http", "closed", "listening", "silent", "bytes", "length")
    kind = kinds[trial.number // len(CASES) % len(kinds)]
    scheme = str(trial.rng.choice(["tcp", "tls"], p=[0.8, 0.2]))
    variables = dict(_ANSWER)
    if scheme == "tls" and trial.rng.random() < 0.5:
        variables["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] = "nothing.pem"
    with peer(kind, trial.rng) as port:
        address = f"{scheme}://127.0.0.1:{port}"
        process = started([*_RUN.split(), "backend=dask", f"backend.address={address}"], folder, variables)
        answer = ended(process, _LIMIT)
    what = f"{kind} at {address}"
    result.judge(what, answer, (1,))
    _told(result, what, answer.err, lost=True)
    note_orphans(result, process.pid)
    _finish(trial, result, folder, what, {process.pid})


def _cluster(folder: Path) -> tuple[set[int], int, str]:
    """Start a scheduler and a worker of two threads; return their sessions, the scheduler's process and its address."""
    file, sessions = folder / "scheduler.json", set()

    def start(*words: str) -> int:
        process = subprocess.Popen(
            ["timeout", "-s", "KILL", _LIFE, sys.executable, "-m", *words],
            cwd=folder,
            env={**environment(folder), "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        sessions.add(process.pid)
        threading.Thread(target=process.wait, daemon=True).start()
        return process.pid

    leader = start(
        *("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
        *("--scheduler-file", str(file)),
    )
    deadline = time.monotonic() + _LIMIT
    while not (file.exists() and file.read_text().endswith("}")):
        if time.monotonic() > deadline:
            raise RuntimeError("the scheduler has not begun")
        time.sleep(0.05)
    (scheduler,) = session(leader) - {leader}
    address = str(json.loads(file.read_text())["address"])
    start("distributed.cli.dask_worker", address, "--nthreads", "2", "--no-nanny", "--no-dashboard")
    return sessions, scheduler, address


def _losing(number: signal.Signals) -> Callable[[Trial, TrialResult, Path], None]:
    def tried(trial: Trial, result: TrialResult, folder: Path) -> None:
        """Send a signal to the scheduler at a random moment: the command ends with one line or is done; and resumes."""
        sessions, scheduler, address = _cluster(folder)
        try:
            process = started([*_RUN.split(), "backend=dask", f"backend.address={address}"], folder, _ANSWER)
            moment = trial.rng.uniform(0, 1.5 * trial.options["seconds"] + 2)
            with suppress(subprocess.TimeoutExpired):
                process.wait(moment)
            os.kill(scheduler, number)
            answer = ended(process, _LIMIT)
        finally:
            for leader in sessions:
                end_session(leader)
        what = f"scheduler {number.name} after {moment:.2f} s"
        result.judge(what, answer, (0, 1))
        _told(result, what, answer.err, lost=answer.code == 1)
        for leader in (process.pid, *sessions):
            note_orphans(result, leader)
        _finish(trial, result, folder, what, {process.pid})

    return tried


def _here(trial: Trial, result: TrialResult, folder: Path) -> None:
    """Give no address: workers on this machine compute the same bytes."""
    _finish(trial, result, folder, "no address", set(), "backend=dask n_jobs=2")


def _finish(
    trial: Trial, result: TrialResult, folder: Path, what: str, processes: set[int], backend: str | None = None
) -> None:
    """Run the command with any backend: the results are as those of an undisturbed run, and nothing is left."""
    backends = ["backend=sequential", "n_jobs=2", "backend=dask n_jobs=2"]
    backend = backend or str(trial.rng.choice(backends, p=[0.6, 0.2, 0.2]))
    process = started([*_RUN.split(), *backend.split()], folder)
    answer = ended(process)
    result.judge(f"{backend} after {what}", answer, (0,))
    _told(result, f"{backend} after {what}", answer.err, lost=False)
    note_orphans(result, process.pid)
    note_leftovers(result, folder, processes | {process.pid})
    compare(result, folder / "out", trial.options["expected"])


CASES: Mapping[str, Callable[[Trial, TrialResult, Path], None]] = {
    "address of something else": _elsewhere,
    "scheduler killed": _losing(signal.SIGKILL),
    "scheduler stopped": _losing(signal.SIGSTOP),
    "workers here": _here,
}


def prepared(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Run undisturbed in this process's place; return for each case the time and the results.

    Raises
    ------
    RuntimeError
        If the run fails.
    """
    folder, start = Path(tempfile.mkdtemp(dir=place)), time.monotonic()
    answer = ended(started([*_RUN.split(), "backend=sequential"], folder))
    if answer.code:
        raise RuntimeError(f"{_RUN}: exit code {answer.code} undisturbed\n{answer.err}")
    options = {"seconds": time.monotonic() - start, "expected": snapshot(folder / "out")}
    return dict.fromkeys(list(CASES)[:count], options)


def tried(trial: Trial) -> TrialResult:
    """Run a case in a folder of its own."""
    result, folder = TrialResult(trial), Path(tempfile.mkdtemp(dir=trial.place))
    CASES[trial.case](trial, result, folder)
    shutil.rmtree(folder, ignore_errors=True)
    return result

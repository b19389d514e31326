"""Trials of `stress.py` on processes: runs that are killed, and schedulers of dask that are lost."""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from stress_trials import (
    DATA,
    Kind,
    Trial,
    alike,
    end_session,
    environment,
    session,
    snapshot,
    started,
    undisturbed,
)


def _finished(line: str, place: Path) -> dict[str, Any]:
    """Run a command undisturbed in a new folder; return it with its time and its results."""
    folder, start = Path(tempfile.mkdtemp(dir=place)), time.monotonic()
    undisturbed(line, folder, fork=False)
    return {"line": line, "seconds": time.monotonic() - start, "expected": snapshot(folder / "out")}


# Runs that end at a random moment; the same command then finishes them

_SIGNALS = {"KILL": 0.48, "INT": 0.13, "HUP": 0.13, "TERM": 0.13, "worker": 0.13}
"""Shares of the trials: SIGKILL to the process; SIGINT, or SIGHUP, to all processes, as a terminal does; SIGTERM to the
process; SIGKILL to a worker."""


def _prepared_kills(place: Path, count: int) -> dict[str, dict[str, Any]]:
    asked = dict(islice(DATA["kill"].items(), count))
    address = _dask() if any("{dask}" in line for line in asked.values()) else ""
    return {case: _finished(line.format(dask=address), place) for case, line in asked.items()}


def _dask() -> str:
    """Start a scheduler with two workers, which ends with this process; return its address."""
    from distributed import LocalCluster  # here, as most trials need none

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs="ERROR")
    atexit.register(cluster.close)
    return str(cluster.scheduler_address)


def _kill(trial: Trial) -> None:
    """Start the run of a case, end it at a random moment, and finish it."""
    line, rng = trial.options["line"], trial.rng
    moment, how = rng.uniform(0, 1.05 * trial.options["seconds"]), rng.choice(list(_SIGNALS), p=list(_SIGNALS.values()))
    how = "HUP" if trial.case == "closed terminal" else str(how)
    process = started(line, trial.folder)
    with suppress(subprocess.TimeoutExpired):
        process.wait(moment)
    if how in ("INT", "HUP", "TERM"):  # before the command has begun, Python itself answers them
        while process.poll() is None and not any((trial.folder / "tmp").iterdir()):
            time.sleep(0.01)
    processes = session(process.pid) | {process.pid}
    _deliver(how, process, rng)
    what = f"SIG{how} after {moment:.2f} s"
    # Killed workers make it 1; a signal that comes before or after the run is not caught.
    answer = trial.end(
        process, what, (0, 1, 129, 130, -signal.SIGKILL, -signal.SIGINT, -signal.SIGHUP, -signal.SIGTERM)
    )
    if how == "HUP" and (answer.err.count("interrupted") != (answer.code == 129) or "Warning" in answer.err):
        trial.note("untold", f"{what}: exit code {answer.code}\n{answer.err[-1000:]}")
    trial.end(started(line, trial.folder), f"the same again after {what}")
    if not trial.faults:
        trial.compare("out", trial.options["expected"])
        trial.without_leftovers(processes)


def _deliver(how: str, process: "subprocess.Popen[str]", rng: np.random.Generator) -> None:
    with suppress(ProcessLookupError):
        if how in ("INT", "HUP"):
            os.killpg(process.pid, getattr(signal, f"SIG{how}"))
        elif how == "worker":
            workers = sorted(filter(_works, session(process.pid) - {process.pid}))
            os.kill(int(rng.choice(workers)) if workers else process.pid, signal.SIGKILL)
        elif process.poll() is None:
            os.kill(process.pid, getattr(signal, f"SIG{how}"))


def _works(process: int) -> bool:
    """Return whether a process is a worker, and not joblib's resource tracker."""
    try:
        return b"resource_tracker" not in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


# Runs on dask whose scheduler is killed or stopped at a random moment; the same command then finishes them

_ANSWER = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "4s"}
_LOST = 45.0  # seconds in which a command must end after its scheduler is lost; on an idle machine it takes about ten
_LIFE = "150"  # seconds after which the processes of a cluster end, whatever happens to this one
_LOSSES = {"scheduler killed": signal.SIGKILL, "scheduler stopped": signal.SIGSTOP}


def _lose_scheduler(trial: Trial) -> None:
    """Send a signal to the scheduler at a random moment: the command ends with one line or is done; and resumes."""
    line, number = trial.options["line"], _LOSSES[trial.case]
    sessions, scheduler, address = _cluster(trial.folder)
    try:
        process = started(f"{line} backend=dask backend.address={address}", trial.folder, _ANSWER)
        moment = trial.rng.uniform(0, 1.5 * trial.options["seconds"] + 2)
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        os.kill(scheduler, number)
        what = f"{number.name} after {moment:.2f} s"
        answer = trial.end(process, what, (0, 1), _LOST)
    finally:
        for leader in sessions:
            end_session(leader)
    lines = answer.err.splitlines()
    said = sum("no dask scheduler answers" in line or "no longer answers" in line for line in lines)
    plain = said == (answer.code == 1) and all(line.startswith("budgetreg: ") for line in lines)
    trial.expect(plain, f"{what}: {answer.err[-1000:]}", "untold")
    backend = trial.pick(("backend=sequential", "n_jobs=2", "backend=dask n_jobs=2"))
    again = started(f"{line} {backend}", trial.folder)
    trial.end(again, f"{backend} after {what}")
    trial.without_leftovers([process.pid, again.pid])
    trial.compare("out", trial.options["expected"])


def _cluster(folder: Path) -> tuple[list[int], int, str]:
    """Start a scheduler and a worker of two threads; return their sessions, the scheduler's process and its address."""
    file, sessions = folder / "scheduler.json", []

    def start(line: str) -> int:
        process = subprocess.Popen(
            ["timeout", "-s", "KILL", _LIFE, sys.executable, "-m", *line.split()],
            cwd=folder,
            env={**environment(folder), "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        sessions.append(process.pid)
        threading.Thread(target=process.wait, daemon=True).start()
        return process.pid

    here = "--host 127.0.0.1 --port 0 --no-dashboard --scheduler-file scheduler.json"
    leader = start(f"distributed.cli.dask_scheduler {here}")
    deadline = time.monotonic() + _LOST
    while not (file.exists() and file.read_text().endswith("}")):
        if time.monotonic() > deadline:
            raise RuntimeError("the scheduler has not begun")
        time.sleep(0.05)
    (scheduler,) = session(leader) - {leader}
    address = str(json.loads(file.read_text())["address"])
    start(f"distributed.cli.dask_worker {address} --nthreads 2 --no-nanny --no-dashboard")
    return sessions, scheduler, address


def _prepared_clusters(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    return alike(_LOSSES, **_finished(DATA["cluster"], place))


KINDS = {
    "kill": Kind(152, _prepared_kills, _kill),
    "cluster": Kind(20, _prepared_clusters, _lose_scheduler),
}

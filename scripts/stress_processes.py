"""Trials of `stress.py` on processes: kills, lost schedulers of dask, and odd surroundings."""

import atexit
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from stress_trials import (
    DATA,
    Kind,
    Trial,
    Try,
    alike,
    end_session,
    environment,
    session,
    snapshot,
    started,
    undisturbed,
)


def _finished(line: str, place: Path, install: Callable[[Path], None] = lambda folder: None) -> dict[str, Any]:
    """Run a command undisturbed in a new folder; return it with its time and its results."""
    folder, start = Path(tempfile.mkdtemp(dir=place)), time.monotonic()
    install(folder)
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


# dask's backend with the address of something else, a scheduler killed or stopped, and workers here

_DASK_RUN = DATA["cluster"]
_ANSWER = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "4s"}
_LOST = 45.0  # seconds in which a command must end after its scheduler is lost; on an idle machine it takes about ten
_LIFE = "150"  # seconds after which the processes of a cluster end, whatever happens to this one
_PEERS = ("http", "closed", "listening", "silent", "bytes", "length")


@contextmanager
def peer(kind: str, rng: np.random.Generator) -> Iterator[int]:
    """Listen on a port that is no scheduler's, and yield it."""
    noise = rng.bytes(int(rng.integers(1, 300)))
    greetings = {"http": b"HTTP/1.0 400 Bad Request\r\n\r\n", "bytes": noise}
    greetings["length"] = len(noise).to_bytes(8, "little") + noise  # which dask reads first
    taken: list[socket.socket] = []

    def answer() -> None:
        with suppress(OSError):
            while True:
                taken.append(listener.accept()[0])
                taken[-1].sendall(greetings.get(kind, b""))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        if kind == "closed":
            listener.close()
        elif kind != "listening":
            threading.Thread(target=answer, daemon=True).start()
        yield port
    for connection in taken:
        connection.close()


def _elsewhere(trial: Trial) -> None:
    """Give the address of something that is no scheduler: one line in time."""
    kind, scheme = trial.next_of(_PEERS), trial.pick(("tcp", "tcp", "tcp", "tls"))
    variables = dict(_ANSWER)
    if scheme == "tls" and trial.pick((True, False)):
        variables["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] = "nothing.pem"
    with peer(kind, trial.rng) as port:
        address = f"{scheme}://127.0.0.1:{port}"
        process = started(f"{_DASK_RUN} backend=dask backend.address={address}", trial.folder, variables)
        _end(trial, process, f"{kind} at {address}", (1,))
    _resume(trial, [process.pid])


def _losing(number: signal.Signals, trial: Trial) -> None:
    """Send a signal to the scheduler at a random moment: the command ends with one line or is done; and resumes."""
    sessions, scheduler, address = _cluster(trial.folder)
    try:
        process = started(f"{_DASK_RUN} backend=dask backend.address={address}", trial.folder, _ANSWER)
        moment = trial.rng.uniform(0, 1.5 * trial.options["seconds"] + 2)
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        os.kill(scheduler, number)
        _end(trial, process, f"scheduler {number.name} after {moment:.2f} s", (0, 1))
    finally:
        for leader in sessions:
            end_session(leader)
    _resume(trial, [process.pid])


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


def _resume(trial: Trial, processes: list[int], backend: str = "") -> None:
    """Run the command with any backend: the results are as those of an undisturbed run, and nothing is left."""
    backend = backend or trial.pick(("backend=sequential", "n_jobs=2", "backend=dask n_jobs=2"))
    process = started(f"{_DASK_RUN} {backend}", trial.folder)
    _end(trial, process, f"{backend} at last", (0,))
    trial.without_leftovers([*processes, process.pid])
    trial.compare("out", trial.options["expected"])


def _end(trial: Trial, process: "subprocess.Popen[str]", what: str, codes: tuple[int, ...]) -> None:
    """Wait for a command, which prints notices, and if it fails one line more: that no scheduler answers."""
    answer = trial.end(process, what, codes, _LOST if 1 in codes else None)
    lines = answer.err.splitlines()
    said = sum("no dask scheduler answers" in line or "no longer answers" in line for line in lines)
    if said != (answer.code == 1) or any(not line.startswith("budgetreg: ") for line in lines):
        trial.note("untold", f"{what}: {answer.err[-1000:]}")


_CLUSTERS: Mapping[str, Try] = {
    "address of something else": _elsewhere,
    "scheduler killed": partial(_losing, signal.SIGKILL),
    "scheduler stopped": partial(_losing, signal.SIGSTOP),
    "workers here": lambda trial: _resume(trial, [], "backend=dask n_jobs=2"),
}


def _prepared_clusters(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    return alike(list(_CLUSTERS)[:count], **_finished(f"{_DASK_RUN} backend=sequential", place))


# What surrounds a command: matplotlib's settings, a package with a faulty learner, and little address space

_REFUSED = 60.0  # seconds until a refusal counts as hanging; on an idle machine it takes less than one
_ENOUGH = 900_000  # KB of address space
_MATPLOTLIB = (b"nonsense: : 5\nfont.size: x\n", b"backend: nothing\n", b"font.size: \xff\n", bytes(range(256)))
HOW = ("SystemExit", "KeyboardInterrupt", "MemoryError", "Unspeakable", "Odd", "ValueError", "recursion")


def install_faulty(root: Path) -> None:
    """Write a package with a learner that raises ``HOW`` at ``WHEN``, after N times, for FAULTY=WHEN,HOW,N."""
    for name, content in DATA["environment"]["faulty"].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def _drawing(trial: Trial) -> None:
    """Draw with damaged settings of matplotlib: the figure must be the same, and nothing be printed."""
    folder, variables = trial.folder, {}
    ways = set(trial.rng.choice(["backend", "cache", "here", "named", "configured"], trial.rng.integers(1, 4), False))
    if "backend" in ways or not trial.turn:
        variables["MPLBACKEND"] = trial.pick(("nonsense", "", "qtagg", "module://nothing"))
    if "cache" in ways:
        (folder / "file").touch()
        variables["MPLCONFIGDIR"] = trial.pick((str(folder / "file"), "/proc/nothing", "/dev/null"))
    for way, key in (("here", ""), ("named", "MATPLOTLIBRC"), ("configured", "MPLCONFIGDIR")):
        if way in ways:
            place = folder / way if key else folder
            place.mkdir(exist_ok=True)
            (place / "matplotlibrc").write_bytes(trial.pick(_MATPLOTLIB))
            if key:
                variables.setdefault(key, str(place))
    process = started(trial.options["line"], folder, variables)
    answer = trial.end(process, f"{sorted(ways)} {variables}")
    trial.expect(not answer.err, f"{sorted(ways)} {variables}: {answer.err[-500:]}", "untold")
    _as_usual(trial, process)


def _package(trial: Trial) -> None:
    """Run a faulty learner of another package: one line each names it; without faults the run must end as usual."""
    install_faulty(trial.folder)
    when = trial.pick(("import", "constructor", "fit", "fit", "fit"))
    how, jobs = trial.next_of(HOW), int(trial.rng.integers(1, 3))
    faulty = f"{when},{how},{trial.rng.integers(3) if when == 'fit' else 0}"
    line = f"{trial.options['line']} n_jobs={jobs}"
    # Each of two workers may stay below the number of calls after which the learner fails.
    codes = (1, 2) if when != "fit" else (0, 1) if jobs == 2 else (1,)
    answer = trial.end(started(line, trial.folder, {"FAULTY": faulty}), f"{faulty} n_jobs={jobs}", codes)
    lines = answer.err.splitlines()
    plain = all(line.startswith("budgetreg: ") for line in lines)
    named = not answer.code or any("faulty" in line or "a worker process died" in line for line in lines)
    trial.expect(plain and named, f"{faulty} n_jobs={jobs}: {answer.err[-500:]}", "untold")
    process = started(line, trial.folder)
    trial.end(process, f"without a fault after {faulty} n_jobs={jobs}")
    _as_usual(trial, process)


def _addresses(trial: Trial) -> None:
    """Run in a limited address space: one line at once, or the run as usual."""
    limit = trial.pick((300_000, 400_000, 500_000, int(trial.rng.integers(30_000, 740_000)), _ENOUGH))
    bounds = (resource.RLIMIT_AS, (limit * 1024, limit * 1024))
    process = started(trial.options["line"], trial.folder, before=lambda: resource.setrlimit(*bounds))
    trial.end(process, f"ulimit -v {limit}", (0,) if limit == _ENOUGH else (2,), _REFUSED)
    if limit == _ENOUGH:
        _as_usual(trial, process)


def _as_usual(trial: Trial, process: "subprocess.Popen[str]") -> None:
    """Compare the results with those of an undisturbed run."""
    trial.without_leftovers([process.pid])
    trial.compare("out", trial.options["expected"])


_SURROUNDINGS: Mapping[str, Try] = {"drawing": _drawing, "another package": _package, "address space": _addresses}


def _prepared_environments(place: Path, count: int) -> dict[str, dict[str, Any]]:
    algo = {"another package": "faulty"}
    return {
        case: _finished(DATA["environment"]["run"].format(algo.get(case, "naive")), place, install_faulty)
        for case in islice(_SURROUNDINGS, count)
    }


KINDS = {
    "kill": Kind(152, _prepared_kills, _kill),
    "cluster": Kind(40, _prepared_clusters, _CLUSTERS),
    "environment": Kind(36, _prepared_environments, _SURROUNDINGS),
}

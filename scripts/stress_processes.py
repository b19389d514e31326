"""Trials of `stress.py` on processes: kills, lost schedulers of dask, and odd surroundings."""

import atexit
import http.server
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
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from stress_trials import (
    Kind,
    TrialResult,
    Try,
    alike,
    compare,
    end_session,
    ended,
    environment,
    note_leftovers,
    note_orphans,
    session,
    snapshot,
    started,
    undisturbed,
)


def _finished(line: str, place: Path, install: Callable[[Path], None] | None = None) -> dict[str, Any]:
    """Run a command undisturbed in a new folder; return it with its time and its results."""
    folder, start = Path(tempfile.mkdtemp(dir=place)), time.monotonic()
    if install:
        install(folder)
    undisturbed(line, folder, fork=False)
    return {"line": line, "seconds": time.monotonic() - start, "expected": snapshot(folder / "out")}


# Runs that end at a random moment; the same command then finishes them

_MONEY = "dataset=diabetes dataset.costs=bundled total=2000 algo=aelr k=4 tuning.folds=2 out=out"
_RUN = "k=4 repetitions=4 checkpoints=3 tuning.folds=2 out=out"
_KILLED: Mapping[str, str] = {  # by name what is run; a case leaves the same bytes each time
    "fit": "fit algo=aelr k=4 tuning.folds=2 out=out",
    "fit, total in money": f"fit {_MONEY}",
    "total in money": f"run repetitions=4 checkpoints=3 {_MONEY}",
    "sequential": f"run algo=aelr backend=sequential {_RUN}",
    "n_jobs=1": f"run algo=aelr n_jobs=1 {_RUN}",
    "n_jobs=2": f"run algo=aelr n_jobs=2 {_RUN}",
    "sweep": f"run -m algo=aelr,naive n_jobs=1 {_RUN}",
    "sweep, n_jobs=2": f"run -m algo=aelr,naive n_jobs=2 {_RUN}",
    "sweep, joblib launcher": f"run -m algo=aelr,naive hydra/launcher=joblib hydra.launcher.n_jobs=2 n_jobs=1 {_RUN}",
    "closed terminal": f"run algo=aelr n_jobs=2 {_RUN}",
    "dask": f"run algo=aelr backend=dask backend.address={{dask}} {_RUN}",
    "dask, n_jobs=2": f"run algo=aelr backend=dask n_jobs=2 {_RUN}",
}

_SIGNALS = ("KILL", "INT", "HUP", "TERM", "worker")
_SHARES = (0.48, 0.13, 0.13, 0.13, 0.13)
"""Shares of the trials: SIGKILL to the process; SIGINT, or SIGHUP, to all processes, as a terminal does; SIGTERM to the
process; SIGKILL to a worker."""


def _prepared_kills(place: Path, count: int) -> dict[str, dict[str, Any]]:
    asked = dict(islice(_KILLED.items(), count))
    address = _dask() if any("{dask}" in line for line in asked.values()) else ""
    return {case: _finished(line.format(dask=address), place) for case, line in asked.items()}


def _dask() -> str:
    """Start a scheduler with two workers, which ends with this process; return its address."""
    from distributed import LocalCluster  # here, as most trials need none

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs="ERROR")
    atexit.register(cluster.close)
    return str(cluster.scheduler_address)


def _kill(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Start the run of a case, end it at a random moment, and finish it."""
    options = result.trial.options
    words = options["line"].split()
    moment, how = rng.uniform(0, 1.05 * options["seconds"]), str(rng.choice(_SIGNALS, p=_SHARES))
    how = "HUP" if result.trial.case == "closed terminal" else how
    process = started(words, folder)
    with suppress(subprocess.TimeoutExpired):
        process.wait(moment)
    if how in ("INT", "HUP", "TERM"):  # before the command has begun, Python itself answers them
        while process.poll() is None and not any((folder / "tmp").iterdir()):
            time.sleep(0.01)
    processes = session(process.pid) | {process.pid}
    _deliver(how, process, rng)
    answer = ended(process)
    what = f"SIG{how} after {moment:.2f} s"
    # Killed workers make it 1; a signal that comes before or after the run is not caught.
    result.judge(what, answer, (0, 1, 129, 130, *(-getattr(signal, f"SIG{name}") for name in _SIGNALS[:-1])))
    if how == "HUP" and (answer.err.count("interrupted") != (answer.code == 129) or "Warning" in answer.err):
        result.note("untold", f"{what}: exit code {answer.code}\n{answer.err[-1000:]}")
    note_orphans(result, process.pid)
    process = started(words, folder)
    answer = ended(process)
    result.judge(f"the same again after {what}", answer, (0,))
    note_orphans(result, process.pid)
    if not result.faults:
        compare(result, folder / "out", options["expected"])
        note_leftovers(result, folder, processes)
    end_session(process.pid)


def _deliver(how: str, process: "subprocess.Popen[str]", rng: np.random.Generator) -> None:
    with suppress(ProcessLookupError):
        if how in ("INT", "HUP"):
            os.killpg(process.pid, getattr(signal, f"SIG{how}"))
        elif how == "worker":
            workers = sorted(filter(_works, session(process.pid) - {process.pid}))
            os.kill(int(rng.choice(workers)) if workers else process.pid, signal.SIGKILL)
        elif process.poll() is None:
            os.kill(process.pid, {"KILL": signal.SIGKILL, "TERM": signal.SIGTERM}[how])


def _works(process: int) -> bool:
    """Return whether a process is a worker, and not joblib's resource tracker."""
    try:
        return b"resource_tracker" not in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


# dask's backend with the address of something else, a scheduler killed or stopped, and workers here

_DASK_RUN = "run algo=aelr k=4 repetitions=4 checkpoints=3 tuning.folds=2 out=out"
_ANSWER = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "4s"}
_LOST = 45.0  # seconds in which a command must end after its scheduler is lost; on an idle machine it takes about ten
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


def _elsewhere(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Give the address of something that is no scheduler: one line in time."""
    kinds = ("http", "closed", "listening", "silent", "bytes", "length")
    kind = kinds[result.trial.turn(len(_CLUSTERS)) % len(kinds)]
    scheme = str(rng.choice(["tcp", "tls"], p=[0.8, 0.2]))
    variables = dict(_ANSWER)
    if scheme == "tls" and rng.random() < 0.5:
        variables["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] = "nothing.pem"
    with peer(kind, rng) as port:
        address = f"{scheme}://127.0.0.1:{port}"
        process = started([*_DASK_RUN.split(), "backend=dask", f"backend.address={address}"], folder, variables)
        answer = ended(process, _LOST)
    what = f"{kind} at {address}"
    result.judge(what, answer, (1,))
    _told(result, what, answer.err, lost=True)
    note_orphans(result, process.pid)
    _finish(result, folder, rng, what, {process.pid})


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
    deadline = time.monotonic() + _LOST
    while not (file.exists() and file.read_text().endswith("}")):
        if time.monotonic() > deadline:
            raise RuntimeError("the scheduler has not begun")
        time.sleep(0.05)
    (scheduler,) = session(leader) - {leader}
    address = str(json.loads(file.read_text())["address"])
    start("distributed.cli.dask_worker", address, "--nthreads", "2", "--no-nanny", "--no-dashboard")
    return sessions, scheduler, address


def _losing(number: signal.Signals) -> Try:
    def lose(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
        """Send a signal to the scheduler at a random moment: the command ends with one line or is done; and resumes."""
        sessions, scheduler, address = _cluster(folder)
        try:
            process = started([*_DASK_RUN.split(), "backend=dask", f"backend.address={address}"], folder, _ANSWER)
            moment = rng.uniform(0, 1.5 * result.trial.options["seconds"] + 2)
            with suppress(subprocess.TimeoutExpired):
                process.wait(moment)
            os.kill(scheduler, number)
            answer = ended(process, _LOST)
        finally:
            for leader in sessions:
                end_session(leader)
        what = f"scheduler {number.name} after {moment:.2f} s"
        result.judge(what, answer, (0, 1))
        _told(result, what, answer.err, lost=answer.code == 1)
        for leader in (process.pid, *sessions):
            note_orphans(result, leader)
        _finish(result, folder, rng, what, {process.pid})

    return lose


def _here(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Give no address: workers on this machine compute the same bytes."""
    _finish(result, folder, rng, "no address", set(), "backend=dask n_jobs=2")


def _finish(
    result: TrialResult, folder: Path, rng: np.random.Generator, what: str, processes: set[int], backend: str = ""
) -> None:
    """Run the command with any backend: the results are as those of an undisturbed run, and nothing is left."""
    backends = ["backend=sequential", "n_jobs=2", "backend=dask n_jobs=2"]
    backend = backend or str(rng.choice(backends, p=[0.6, 0.2, 0.2]))
    process = started([*_DASK_RUN.split(), *backend.split()], folder)
    answer = ended(process)
    result.judge(f"{backend} after {what}", answer, (0,))
    _told(result, f"{backend} after {what}", answer.err, lost=False)
    note_orphans(result, process.pid)
    note_leftovers(result, folder, processes | {process.pid})
    compare(result, folder / "out", result.trial.options["expected"])


_CLUSTERS: Mapping[str, Try] = {
    "address of something else": _elsewhere,
    "scheduler killed": _losing(signal.SIGKILL),
    "scheduler stopped": _losing(signal.SIGSTOP),
    "workers here": _here,
}


def _prepared_clusters(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    return alike(list(_CLUSTERS)[:count], **_finished(f"{_DASK_RUN} backend=sequential", place))


# What surrounds a command: matplotlib's settings, a package with a faulty learner, and little address space

_NAIVE_RUN = "k=4 repetitions=3 checkpoints=2 tuning=fixed tuning.B=2 out=out"
_REFUSED = 60.0  # seconds until a refusal counts as hanging; on an idle machine it takes less than one
_ENOUGH = 900_000  # KB of address space

_LEARNER = """
import os
import warnings
from dataclasses import dataclass
import numpy as np
from budgetreg import extend

class Unspeakable(Exception):
    def __str__(self):
        raise self

class Odd(BaseException):
    pass

WHEN, HOW, NTH = (os.environ.get("FAULTY") or "never,nothing,0").split(",")
calls = 0

def recurse():
    return recurse()

def reach(place):
    global calls
    if place != WHEN:
        return
    calls += 1
    if calls <= int(NTH):
        return
    if HOW == "recursion":
        recurse()
    raise {"SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt, "MemoryError": MemoryError,
           "Unspeakable": Unspeakable, "Odd": Odd, "ValueError": ValueError}[HOW]()

reach("import")

@dataclass(frozen=True)
class Faulty(extend.Learner):
    core = "faulty"
    parameters = (extend.RADIUS,)
    tuned = ("B",)
    words = ("no attributes", "nothing")

    def __post_init__(self):
        reach("constructor")

    def fit(self, accessor, settings, checkpoints, rngs, given):
        warnings.warn("two\\nlines")
        accessor.open(0, checkpoints[-1])
        for checkpoint in checkpoints:
            yield checkpoint, np.ones((accessor.n_streams, accessor.d, accessor.n_settings))
        reach("fit")
"""
HOW = ("SystemExit", "KeyboardInterrupt", "MemoryError", "Unspeakable", "Odd", "ValueError", "recursion")


def install_faulty(root: Path) -> None:
    """Write a package with a learner that raises ``HOW`` at ``WHEN``, after N times, for FAULTY=WHEN,HOW,N."""
    files = {
        "faulty/__init__.py": "",
        "faulty/learner.py": _LEARNER,
        "faulty/conf/algo/faulty.yaml": "# Faulty\nname: faulty\ncore: faulty\ngrid: {B: [1]}\n",
        "faulty-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: faulty\nVersion: 1\n",
        "faulty-1.dist-info/entry_points.txt": "[budgetreg.learners]\nfaulty = faulty.learner:Faulty\n",
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def _drawing(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Draw with damaged settings of matplotlib: the figure must be the same, and nothing be printed."""
    trial, variables = result.trial, {}
    ways = set(rng.choice(["backend", "cache", "here", "named", "configured"], rng.integers(1, 4), replace=False))
    settings = [b"nonsense: : 5\nfont.size: x\n", b"backend: nothing\n", b"font.size: \xff\n", rng.bytes(500)]
    if not trial.turn(len(_SURROUNDINGS)):
        ways, variables = {"backend"}, {"MPLBACKEND": "nonsense"}
    elif "backend" in ways:
        letters = bytes(rng.integers(97, 123, 8).astype(np.uint8)).decode()
        variables["MPLBACKEND"] = str(rng.choice(["nonsense", "", "qtagg", "module://nothing", letters]))
    if "cache" in ways:
        (folder / "file").touch()
        variables["MPLCONFIGDIR"] = str(rng.choice([str(folder / "file"), "/proc/nothing", "/dev/null"]))
    for way, place in (("here", "."), ("named", "named"), ("configured", "configured")):
        if way in ways:
            (folder / place).mkdir(exist_ok=True)
            (folder / place / "matplotlibrc").write_bytes(settings[rng.integers(len(settings))])
            if way != "here":
                variables.setdefault({"named": "MATPLOTLIBRC", "configured": "MPLCONFIGDIR"}[way], str(folder / place))
    process = started(trial.options["line"].split(), folder, variables)
    answer = ended(process)
    what = f"{sorted(ways)} {variables}"
    result.judge(what, answer, (0,))
    if answer.err:
        result.note("untold", f"{what}: {answer.err[-500:]}")
    note_leftovers(result, folder, {process.pid})
    compare(result, folder / "out", trial.options["expected"])


def _package(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Run a faulty learner of another package: one line each names it; without faults the run must end as usual."""
    trial = result.trial
    install_faulty(folder)
    when = str(rng.choice(["import", "constructor", "fit"], p=[0.2, 0.2, 0.6]))
    how, jobs = HOW[trial.turn(len(_SURROUNDINGS)) % len(HOW)], int(rng.integers(1, 3))
    faulty = f"{when},{how},{rng.integers(3) if when == 'fit' else 0}"
    words = [*trial.options["line"].split(), f"n_jobs={jobs}"]
    process = started(words, folder, {"FAULTY": faulty})
    answer = ended(process)
    what = f"{faulty} n_jobs={jobs}"
    # Each of two workers may stay below the number of calls after which the learner fails.
    result.judge(what, answer, (1, 2) if when != "fit" else (0, 1) if jobs == 2 else (1,))
    lines = answer.err.splitlines()
    if any(not line.startswith("budgetreg: ") for line in lines):
        result.note("untold", f"{what}: {answer.err[-500:]}")
    if answer.code and not any("faulty" in line or "a worker process died" in line for line in lines):
        result.note("untold", f"{what}: {answer.err[-500:]}")
    note_orphans(result, process.pid)
    process = started(words, folder)
    result.judge(f"without a fault after {what}", ended(process), (0,))
    note_leftovers(result, folder, {process.pid})
    compare(result, folder / "out", trial.options["expected"])
    end_session(process.pid)


def _addresses(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Run in a limited address space: one line at once, or the run as usual."""
    trial, fixed = result.trial, [300_000, 400_000, 500_000]
    turn = trial.turn(len(_SURROUNDINGS))
    limit = fixed[turn] if turn < len(fixed) else int(rng.integers(30_000, _ENOUGH))
    if limit >= 740_000:
        limit = _ENOUGH
    bounds = (resource.RLIMIT_AS, (limit * 1024, limit * 1024))
    process = started(trial.options["line"].split(), folder, before=lambda: resource.setrlimit(*bounds))
    answer = ended(process, _REFUSED)
    result.judge(f"ulimit -v {limit}", answer, (0,) if limit == _ENOUGH else (2,))
    note_leftovers(result, folder, {process.pid})
    if limit == _ENOUGH:
        compare(result, folder / "out", trial.options["expected"])


_SURROUNDINGS: Mapping[str, tuple[str, Try]] = {  # by name what is run, and how
    "drawing": (f"run algo=naive {_NAIVE_RUN}", _drawing),
    "another package": (f"run algo=faulty {_NAIVE_RUN}", _package),
    "address space": (f"run algo=naive {_NAIVE_RUN}", _addresses),
}


def _prepared_environments(place: Path, count: int) -> dict[str, dict[str, Any]]:
    return {case: _finished(line, place, install_faulty) for case, (line, _) in islice(_SURROUNDINGS.items(), count)}


KINDS = {
    "kill": Kind("kills", 152, _prepared_kills, _kill),
    "cluster": Kind("clusters", 40, _prepared_clusters, _CLUSTERS),
    "environment": Kind(
        "environments", 36, _prepared_environments, {case: tried for case, (_, tried) in _SURROUNDINGS.items()}
    ),
}

"""Trials of `stress.py` that end a run at a random moment; the same command then finishes it."""

import atexit
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from stress_trials import (
    Trial,
    TrialResult,
    compare,
    end_session,
    ended,
    note_leftovers,
    note_orphans,
    session,
    snapshot,
    started,
)

_MONEY = "dataset=diabetes dataset.costs=bundled total=2000 algo=aelr k=4 tuning.folds=2 out=out"
_RUN = "k=4 repetitions=4 checkpoints=3 tuning.folds=2 out=out"
CASES: Mapping[str, str] = {  # by name what is run; a case leaves the same bytes each time
    "fit": "fit algo=aelr k=4 tuning.folds=2 out=out",
    "fit, total in money": f"fit {_MONEY}",
    "total in money": f"run repetitions=4 checkpoints=3 {_MONEY}",
    "sequential": f"run algo=aelr backend=sequential {_RUN}",
    "n_jobs=1": f"run algo=aelr n_jobs=1 {_RUN}",
    "n_jobs=2": f"run algo=aelr n_jobs=2 {_RUN}",
    "sweep": f"run -m algo=aelr,naive n_jobs=1 {_RUN}",
    "sweep, n_jobs=2": f"run -m algo=aelr,naive n_jobs=2 {_RUN}",
    "sweep, joblib launcher": f"run -m algo=aelr,naive hydra/launcher=joblib hydra.launcher.n_jobs=2 n_jobs=1 {_RUN}",
    "dask": f"run algo=aelr backend=dask backend.address={{dask}} {_RUN}",
    "dask, n_jobs=2": f"run algo=aelr backend=dask n_jobs=2 {_RUN}",
}

_SIGNALS = ("KILL", "INT", "HUP", "TERM", "worker")
_SHARES = (0.48, 0.13, 0.13, 0.13, 0.13)
"""Shares of the trials: SIGKILL to the process; SIGINT, or SIGHUP, to all processes, as a terminal does; SIGTERM to the
process; SIGKILL to a worker."""


def prepared(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Run as many cases as there are trials, undisturbed; return their time and their results.

    Raises
    ------
    RuntimeError
        If a run fails.
    """
    asked = dict(islice(CASES.items(), count))
    address = _cluster() if any("{dask}" in line for line in asked.values()) else ""
    return {case: _undisturbed(line.format(dask=address), place) for case, line in asked.items()}


def _cluster() -> str:
    """Start a scheduler with two workers, which ends with this process; return its address."""
    from distributed import LocalCluster  # here, as most trials need none

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs="ERROR")
    atexit.register(cluster.close)
    return str(cluster.scheduler_address)


def _undisturbed(line: str, place: Path) -> dict[str, Any]:
    start = time.monotonic()
    folder = Path(tempfile.mkdtemp(dir=place))
    answer = ended(started(line.split(), folder))
    if answer.code:
        raise RuntimeError(f"{line}: exit code {answer.code} undisturbed\n{answer.err}")
    return {"line": line, "seconds": time.monotonic() - start, "expected": snapshot(folder / "out")}


def tried(trial: Trial) -> TrialResult:
    """Start the run of a case, end it at a random moment, and finish it."""
    result, rng, folder = TrialResult(trial), trial.rng, Path(tempfile.mkdtemp(dir=trial.place))
    words = trial.options["line"].split()
    moment, how = rng.uniform(0, 1.05 * trial.options["seconds"]), str(rng.choice(_SIGNALS, p=_SHARES))
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
    note_orphans(result, process.pid)
    process = started(words, folder)
    answer = ended(process)
    result.judge(f"the same again after {what}", answer, (0,))
    note_orphans(result, process.pid)
    if not result.faults:
        compare(result, folder / "out", trial.options["expected"])
        note_leftovers(result, folder, processes)
    end_session(process.pid)
    return result


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

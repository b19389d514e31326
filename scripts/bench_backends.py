"""Time how much longer repetitions, or the cells of a sweep, take in other processes.

Prints two tables and writes them to results/bench/backends.csv and launchers.csv; everything is measured in turns, the
least of several rounds counts, and ratios are to the plainest way in the same rounds, as machines differ and are noisy:

- start_s: seconds of a run of two repetitions that compute nothing; ms_per_repetition: milliseconds of each one more,
  tables and journal included; and the ratios of both to those of backend=sequential
- cell_s: seconds of one more cell of a sweep whose cells are planned only; first_s: of a sweep of one cell

The workers of dask and of submitit are processes of this machine: a network adds its own.

    .venv/bin/python scripts/bench_backends.py
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import bench_common  # before numpy is loaded
import pandas as pd
from distributed import LocalCluster
from joblib.externals.loky import get_reusable_executor

from budgetreg import api
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.repetitions import run_repetitions
from budgetreg.runs.runner import Repetitions, execute

FEW, MANY = 2, 202
CELLS = 4
LAUNCHERS = {
    "basic": [],
    "joblib": ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"],
    "submitit_local": ["hydra/launcher=submitit_local"],
}


def nothing(plan: Plan, repetitions: Sequence[int], progress: Callable[[float], None], like: Any) -> list[Any]:
    """Return the result of another repetition, without computing anything."""
    return [{**like, "repetition": repetition} for repetition in repetitions]


def seconds(function: Callable[[], object]) -> float:
    """Return the wall-clock seconds of a call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def run_anew(choices: dict[str, Any], repetitions: int, function: Repetitions) -> float:
    """Return the seconds of a run in a new folder, with new loky workers, as a command has them."""
    get_reusable_executor().shutdown()
    with redirect_stderr(StringIO()), tempfile.TemporaryDirectory() as folder:
        plan = api.plan({**choices, "repetitions": repetitions, "out": str(Path(folder, "run"))})
        return seconds(lambda: execute(plan, function=function))


def backends(rounds: int) -> pd.DataFrame:
    """Measure the backends."""
    learner: dict[str, Any] = {"algo": "aelr", "k": 4, "backend.batch_size": 1}  # one repetition at a time
    like = run_repetitions(api.plan(learner), [0], lambda done: None)[0]
    empty = partial(nothing, like=like)
    best: dict[str, tuple[float, float]] = {}
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        ways: dict[str, dict[str, Any]] = {
            "sequential": {"backend": "sequential"},
            "loky, n_jobs=2": {"backend": "loky", "n_jobs": 2},
            "dask, 2 workers": {"backend": "dask", "backend.address": cluster.scheduler_address},
        }
        for _ in range(rounds):
            for name, way in ways.items():
                few, many = (run_anew({**learner, **way}, repetitions, empty) for repetitions in (FEW, MANY))
                before = best.get(name, (few, many))
                best[name] = min(before[0], few), min(before[1], many)
    frame = pd.DataFrame(
        {
            "backend": name,
            "start_s": round(few, 3),
            "ms_per_repetition": round(1000 * (many - few) / (MANY - FEW), 2),
        }
        for name, (few, many) in best.items()
    )
    for column in ("start_s", "ms_per_repetition"):
        frame[f"{column.partition('_')[0]}_ratio"] = (frame[column] / frame[column].iloc[0]).round(1)
    return frame


def launchers(rounds: int) -> pd.DataFrame:
    """Measure the launchers of sweeps."""
    best: dict[str, tuple[float, float]] = {}
    for _ in range(rounds):
        for name, words in LAUNCHERS.items():
            clock = []
            for cells in (1, CELLS + 1):
                budgets = ",".join(str(k) for k in range(4, 4 + cells))
                command = [sys.executable, "-m", "budgetreg", "run", "-m", "--dry-run", f"k={budgets}", *words]
                clock.append(seconds(partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)))
            before = best.get(name, (clock[0], clock[1]))
            best[name] = min(before[0], clock[0]), min(before[1], clock[1])
    frame = pd.DataFrame(
        {"launcher": name, "first_s": round(first, 2), "cell_s": round((all_cells - first) / CELLS, 2)}
        for name, (first, all_cells) in best.items()
    )
    frame["first_ratio"] = (frame["first_s"] / frame["first_s"].iloc[0]).round(1)
    return frame


def main() -> None:
    """Measure backends and launchers."""
    rounds = bench_common.options(__doc__, rounds=3).rounds
    for measure in (backends, launchers):
        bench_common.save(measure(rounds), f"{measure.__name__}.csv")


if __name__ == "__main__":
    main()

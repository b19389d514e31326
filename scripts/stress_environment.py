"""Trials of `stress.py` with what surrounds a command: matplotlib's settings, faulty packages, little address space."""

import resource
import shutil
import tempfile
from collections.abc import Callable, Mapping
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
    snapshot,
    started,
)

_RUN = "k=4 repetitions=3 checkpoints=2 tuning=fixed tuning.B=2 out=out"
_LIMIT = 60.0  # seconds until a refusal counts as hanging; on an idle machine it takes less than one
_ENOUGH = 900_000  # KB of address space

LEARNER = """
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
        "faulty/learner.py": LEARNER,
        "faulty/conf/algo/faulty.yaml": "# Faulty\nname: faulty\ncore: faulty\ngrid: {B: [1]}\n",
        "faulty-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: faulty\nVersion: 1\n",
        "faulty-1.dist-info/entry_points.txt": "[budgetreg.learners]\nfaulty = faulty.learner:Faulty\n",
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def _drawing(trial: Trial, result: TrialResult, folder: Path) -> None:
    """Draw with damaged settings of matplotlib: the figure must be the same, and nothing be printed."""
    rng, variables = trial.rng, {}
    ways = set(rng.choice(["backend", "cache", "here", "named", "configured"], rng.integers(1, 4), replace=False))
    settings = [b"nonsense: : 5\nfont.size: x\n", b"backend: nothing\n", b"font.size: \xff\n", rng.bytes(500)]
    if trial.number < len(CASES):
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


def _package(trial: Trial, result: TrialResult, folder: Path) -> None:
    """Run a faulty learner of another package: one line each names it; without faults the run must end as usual."""
    rng = trial.rng
    install_faulty(folder)
    when = str(rng.choice(["import", "constructor", "fit"], p=[0.2, 0.2, 0.6]))
    how, jobs = HOW[trial.number // len(CASES) % len(HOW)], int(rng.integers(1, 3))
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


def _addresses(trial: Trial, result: TrialResult, folder: Path) -> None:
    """Run in a limited address space: one line at once, or the run as usual."""
    fixed, turn = [300_000, 400_000, 500_000], trial.number // len(CASES)
    limit = fixed[turn] if turn < len(fixed) else int(trial.rng.integers(30_000, _ENOUGH))
    if limit >= 740_000:
        limit = _ENOUGH
    bounds = (resource.RLIMIT_AS, (limit * 1024, limit * 1024))
    process = started(trial.options["line"].split(), folder, before=lambda: resource.setrlimit(*bounds))
    answer = ended(process, _LIMIT)
    result.judge(f"ulimit -v {limit}", answer, (0,) if limit == _ENOUGH else (2,))
    note_leftovers(result, folder, {process.pid})
    if limit == _ENOUGH:
        compare(result, folder / "out", trial.options["expected"])


CASES: Mapping[str, tuple[str, Callable[[Trial, TrialResult, Path], None]]] = {  # by name what is run, and how
    "drawing": (f"run algo=naive {_RUN}", _drawing),
    "another package": (f"run algo=faulty {_RUN}", _package),
    "address space": (f"run algo=naive {_RUN}", _addresses),
}


def prepared(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Run as many cases as there are trials, undisturbed; return their results.

    Raises
    ------
    RuntimeError
        If a run fails.
    """
    cases = {}
    for case, (line, _) in islice(CASES.items(), count):
        folder = Path(tempfile.mkdtemp(dir=place))
        install_faulty(folder)
        answer = ended(started(line.split(), folder))
        if answer.code:
            raise RuntimeError(f"{line}: exit code {answer.code} undisturbed\n{answer.err}")
        cases[case] = {"line": line, "expected": snapshot(folder / "out")}
    return cases


def tried(trial: Trial) -> TrialResult:
    """Run a case in a folder of its own."""
    result, folder = TrialResult(trial), Path(tempfile.mkdtemp(dir=trial.place))
    CASES[trial.case][1](trial, result, folder)
    shutil.rmtree(folder)
    return result

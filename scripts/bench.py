"""Measure time and memory in one thread, and write tables to results/bench: ``bench.py [NAME ...]``.

Everything is measured in turns so that a noisy machine slows all alike; of times, the least of several rounds counts.
Without names, all but streaming are measured.

- cores: microseconds per replica-step of the batched core and of the papers' listing (cumsum and searchsorted, one
  example at a time), and their ratio, on random pixels that are as many and as sparse as those of MNIST 3-vs-5
- growth: how the cost of a step grows with the number of attributes: AELR and AERR at k = 8, 48 replicas. Medians over
  rounds, with their intervals and the ratios to the cheapest d of the same learner, are drawn too
- subspaces: of learners that update a subspace, for each d: CPU microseconds per example of 28 attributes; what
  planning the draws costs more, if it is done every 5 d / k examples, the most often that aefa_streaming does it; and
  megabytes that a pass keeps
- backends: seconds of a run of two repetitions that compute nothing; milliseconds of each one more, tables and journal
  included; and the ratios of both to those of backend=sequential. Workers of dask are processes of this machine
- launchers: seconds of a sweep of one cell that is planned only, and of one more cell
- streaming: runs on tables larger than memory, each in a process of its own with an empty cache: what n x d floats
  take; megabytes on the disk with the cache; the most memory of the process, with pages of mapped files, which the
  system takes back at need, and without; and the last error
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

from budgetreg.runs.workers import pin_blas_threads

pin_blas_threads()

import numpy as np  # noqa: E402 - the number of threads is read when numpy is loaded
import pandas as pd  # noqa: E402
from joblib.externals.loky import get_reusable_executor  # noqa: E402
from scipy.stats import binom  # noqa: E402

from budgetreg import api  # noqa: E402
from budgetreg.algorithms.cesa_bianchi_2010 import aer  # noqa: E402
from budgetreg.algorithms.engine import DATA_POINT_SAMPLERS, next_block  # noqa: E402
from budgetreg.algorithms.factors import StreamingFactorAnalysis  # noqa: E402
from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import GradientLearner, aelr, aerr  # noqa: E402
from budgetreg.algorithms.learner import BudgetSplit, Learner, SideInformation  # noqa: E402
from budgetreg.algorithms.streaming_subspaces import StreamingLearner  # noqa: E402
from budgetreg.common.files import write_atomically  # noqa: E402
from budgetreg.common.streams import generator  # noqa: E402
from budgetreg.data.dataset import Coins  # noqa: E402
from budgetreg.figures.canvas import End, grid, label_ends, own_settings, set_ticks, sheet, write_figure  # noqa: E402
from budgetreg.figures.looks import style  # noqa: E402
from budgetreg.metering.accessor import Accessor  # noqa: E402
from budgetreg.metering.table import Table  # noqa: E402
from budgetreg.protocol.plan import Plan  # noqa: E402
from budgetreg.protocol.repetitions import run_repetitions  # noqa: E402
from budgetreg.revealed.designs import fixed_size, working_probabilities  # noqa: E402
from budgetreg.runs.runner import Repetitions, execute  # noqa: E402

RESULTS = Path(__file__).resolve().parents[1] / "results" / "bench"
Row = dict[str, Any]


# What benchmarks share


def cpu_seconds(function: Callable[[], object], calls: int = 1) -> float:
    """Return the CPU seconds of one call, as the mean of several calls."""
    start = time.process_time()
    for _ in range(calls):
        function()
    return (time.process_time() - start) / calls


def seconds(function: Callable[[], object]) -> float:
    """Return the wall-clock seconds of a call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def least(cases: Mapping[Any, Callable[[], Any]], rounds: int) -> dict[Any, Any]:
    """Take all measurements in turns, several times; return the least of each, or of each of its numbers."""
    return {case: np.min(values, axis=0) for case, values in in_turns(cases, rounds).items()}


def in_turns(cases: Mapping[Any, Callable[[], Any]], rounds: int) -> dict[Any, list[Any]]:
    """Take all measurements in turns, several times; return those of each."""
    turns: dict[Any, list[Any]] = defaultdict(list)
    for _ in range(rounds):
        for case, measure in cases.items():
            turns[case].append(measure())
    return turns


def coins(d: int, n: int) -> Table:
    """Return n examples of d coins of mean .2, which are computed when they are read, with random signs as targets."""
    return Table(Coins(1, np.full(d, 0.2), np.arange(n)), np.random.default_rng(0).choice([-1.0, 1.0], n))


LENGTH, WARM, LAST = 3072, 1024, 2816


def passed(
    table: Table,
    learner: Learner,
    settings: Mapping[str, np.ndarray],
    given: SideInformation,
    streams: int = 1,
    length: int = LENGTH,
    *,
    opened: Callable[[int], None] = lambda stop: None,
) -> None:
    """Let a learner pass over some examples, in an order of its own for each stream."""
    orders = np.stack([np.random.default_rng(f).permutation(length) for f in range(streams)])
    n_settings = max((values.size for values in settings.values()), default=1)
    accessor = Accessor(table, orders, n_settings, given.k, [length], opened)
    rngs = [generator("bench", f) for f in range(streams)]
    for _ in learner.fit(accessor, dict(settings), [length], rngs, given):
        pass


def microseconds(*arguments: Any) -> float:
    """Return the CPU time of a pass per example, from the 1025th to the 2817th.

    State and output, which take O(d) once per pass, do not count.
    """
    begun, times = 0, {}

    def opened(stop: int) -> None:
        nonlocal begun
        times[begun], begun = time.process_time(), stop

    passed(*arguments, opened=opened)
    return 1e6 * (times[LAST] - times[WARM]) / (LAST - WARM)


# The cores


CORES: dict[str, tuple[Any, ...]] = {  # name: update, data point, k_x, k_ip, parameter, its 8 values, listing
    "aelr 3+1": ("eg", "uniform", 3, 1, "eta", 1e-4 * 2.0 ** np.arange(8), aelr),
    "aerr 55+1": ("ogd", "uniform", 55, 1, "eta", 1e-5 * 2.0 ** np.arange(8), aerr),
    "aerr 28+28": ("ogd", "uniform", 28, 28, "eta", 1e-5 * 2.0 ** np.arange(8), aerr),
    "aer 2+2": ("pegasos", "subset", 2, 2, "lambda", 2.0 ** np.arange(8), aer),
    "aer 28+28": ("pegasos", "subset", 28, 28, "lambda", 2.0 ** np.arange(-3.0, 5.0), aer),
}
RADII = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
REPLICAS = {1: (1, 1), 10: (10, 1), 100: (10, 10), 480: (10, 48), 1440: (30, 48)}
LISTINGS = 4
"""Number of passes of the listing that are timed before, and again after, each pass of the core."""


def cores() -> Iterator[Row]:
    """Time every case at every number of replicas."""
    rng = np.random.default_rng(0)
    X = rng.integers(1, 256, (12_109, 784)) * (rng.random((12_109, 784)) < 0.19)
    table = Table(X.astype(np.uint8), rng.choice([-1.0, 1.0], 12_109), 1 / 255)
    for case, (update, data_point, k_x, k_ip, name, values, _) in CORES.items():
        learner = GradientLearner(name="bench", update=update, data_point=data_point)
        given = SideInformation(k_x + k_ip, BudgetSplit(k_x, k_ip))
        for replicas, (streams, n_settings) in REPLICAS.items():
            steps = 1024 if replicas < 1440 else 512
            radii, parameters = np.array([(B, value) for value in values for B in RADII][:n_settings]).T
            settings = {"B": radii, name: parameters}
            core = partial(passed, table, learner, settings, given, streams, steps)
            plain = listing(table, case, steps)
            pairs = []
            for _ in range(5):
                before, ours = cpu_seconds(plain, LISTINGS), cpu_seconds(core)
                theirs = (before + cpu_seconds(plain, LISTINGS)) / 2
                pairs.append((ours / steps / replicas, theirs / steps))
            ratios = [theirs / ours for ours, theirs in pairs]
            yield {
                "core": case,
                "replicas": replicas,
                "us_per_replica_step": round(1e6 * min(ours for ours, _ in pairs), 3),
                "us_transcription": round(1e6 * min(theirs for _, theirs in pairs), 1),
                "ratio_median": round(median(ratios), 1),
                "ratio_min": round(min(ratios), 1),
                "ratio_max": round(max(ratios), 1),
            }


def listing(table: Table, case: str, steps: int) -> Callable[[], object]:
    """Return a pass of the paper's listing, with the average of its iterates."""
    _, data_point, k_x, k_ip, _, values, printed = CORES[case]
    order = np.random.default_rng(0).permutation(len(table.y))[:steps]
    X, y = table.rows(order), table.y[order]
    rng = generator("bench", 0)
    blocks = [
        next_block([rng], [DATA_POINT_SAMPLERS[data_point]], X.shape[1], k_x, k_ip) for _ in range(-(-steps // 256))
    ]
    attributes, uniforms = (np.concatenate(part, axis=1)[0, :steps] for part in zip(*blocks, strict=True))

    def run() -> object:
        total = np.zeros(X.shape[1])
        for w, _ in printed(X, y, attributes, uniforms, 4.0, values[4]):
            total += w
        return total / steps

    return run


# Growth with the number of attributes

FOLDS, ROUNDS = 8, 13
MULTIPLES = 2.0 ** np.arange(-6, 0)
GROWING = {"aelr 7+1": ("eg", 7, 1), "aelr 4+4": ("eg", 4, 4), "aerr 7+1": ("ogd", 7, 1), "aerr 4+4": ("ogd", 4, 4)}
FINDING = "AELR and AERR, k = 8: from 1,000 to 1,000,000 attributes, the time of a step grows at most {:.2f} times"
CAPTION = f"""growth: the time of a step of AELR and AERR against the number of attributes, k = 8, 48 replicas

Lines show CPU microseconds of a step per replica, the median of {ROUNDS} rounds; bars are 90 % intervals of the median,
by order statistics. 8 draws are split between the data point and the inner product. The data are coins of mean 0.2 that
are computed when they are looked at, so that no step is spared as d grows and no table is held. The clock runs from the
1,025th example of a pass to the 2,817th, so that the state and the output, which take O(d) once per pass, do not count.
"""


def growth() -> pd.DataFrame:
    """Time and draw steps of AELR and AERR at every number of attributes."""
    tables = {d: coins(d, LENGTH) for d in (10**3, 10**4, 10**5, 10**6)}
    cases = {(case, d): partial(step, tables[d], *GROWING[case]) for d in tables for case in GROWING}
    rows = [{"core": case, "d": d, **middle(times)} for (case, d), times in in_turns(cases, ROUNDS).items()]
    frame = pd.DataFrame(rows).sort_values(["core", "d"], ignore_index=True)
    smallest = frame.groupby("core")["us_per_replica_step"].transform("min")
    frame["ratio"] = (frame["us_per_replica_step"] / smallest).round(2)
    draw(frame)
    return frame


def step(table: Table, update: str, k_x: int, k_ip: int) -> float:
    """Return the CPU microseconds of a step per replica, in a pass of 8 streams with 6 step sizes each."""
    # A step moves a prediction by about eta |x|^2 d / k_x (OGD), an exponent by eta d / k_x (EG): alike at every d.
    eta = MULTIPLES * k_x / (table.d**2 if update == "ogd" else table.d)
    learner = GradientLearner(name="online", update=update, data_point="uniform")
    given = SideInformation(k_x + k_ip, BudgetSplit(k_x, k_ip))
    whole = microseconds(table, learner, {"B": np.full(eta.size, 2.0), "eta": eta}, given, FOLDS)
    return whole / FOLDS / eta.size


def middle(times: Sequence[float]) -> Row:
    """Return the median, and the order statistics between which the true one lies in 90 % of all cases or more."""
    cut = int(binom.ppf(0.05, len(times), 0.5))  # fewer of them lie below the true median with at most 5 %
    ordered = sorted(times)
    ends = (median(times), ordered[cut - 1], ordered[len(times) - cut])
    return dict(zip(("us_per_replica_step", "low", "high"), (round(float(end), 2) for end in ends), strict=True))


def draw(frame: pd.DataFrame) -> None:
    """Draw times against the number of attributes, into results/bench."""
    ends = []
    with own_settings():
        drawn = sheet(1)
        ax = drawn.places[0].ax
        ax.set(xscale="log", xlabel="attributes of an example, d (log scale)")
        ax.set(ylabel="CPU microseconds per replica and step", ylim=(0, 1.1 * frame["high"].max()))
        for core, rows in frame.groupby("core"):
            learner, split = str(core).split()
            look, marker = style(learner), "s" if split.endswith("+1") else "o"
            ax.plot(
                rows["d"], rows["us_per_replica_step"], color=look.colour, marker=marker, linewidth=1.5, markersize=5
            )
            ax.vlines(rows["d"], rows["low"], rows["high"], color=look.colour, linewidth=1.5)
            last = rows.iloc[-1]
            ends.append(End(f"{look.name} {split}", last["d"], last["us_per_replica_step"], look.colour, False))
        set_ticks(ax)
        grid(ax)
        drawn.finish(FINDING.format(frame["ratio"].max()), {})
        label_ends(drawn.figure, {ax: ends})
        write_figure(drawn.figure, CAPTION, RESULTS, "growth")


K, N_COMPONENTS = 28, 10
SUBSPACES: dict[str, tuple[Learner, dict[str, np.ndarray]]] = {
    "aefa_streaming": (
        *(StreamingFactorAnalysis(name="aefa_streaming", n_components=N_COMPONENTS, design="importance"), {}),
    ),
    **{
        update: (
            StreamingLearner(name=update, n_components=N_COMPONENTS, update=update),
            {parameter: np.array([value])},
        )
        for update, parameter, value in (("petrels", "forgetting", 0.999), ("grouse", "eta", 4.0), ("oja", "eta", 2.8))
    },
}


def subspaces() -> pd.DataFrame:
    """Time learners that update a subspace, on coins that are computed when they are looked at."""
    cases = {
        (case, d): partial(_updated, coins(d, LENGTH), *learner)
        for d in (10**3, 10**4, 10**5)
        for case, learner in SUBSPACES.items()
    }
    rows = [
        {"algo": case, "d": d, "us_per_example": example, "us_per_example_plan": plan, "state_mb": held}
        for (case, d), (example, plan, held) in least(cases, 2).items()
    ]
    return pd.DataFrame(rows).sort_values(["algo", "d"], ignore_index=True).round(1)


def _updated(table: Table, learner: Learner, settings: dict[str, np.ndarray]) -> tuple[float, float, float]:
    """Return microseconds per example, the same of planning the draws, and megabytes in use during the pass."""
    held = []

    def plan() -> object:
        return fixed_size(working_probabilities(np.linspace(1, 2, table.d), K, 0.1), K)

    example = microseconds(table, learner, settings, SideInformation(K))
    planning = 1e6 * cpu_seconds(plan) / (5 * table.d / K) if learner.name == "aefa_streaming" else 0.0
    tracemalloc.start()
    opened = lambda stop: held.append(tracemalloc.get_traced_memory()[0])  # noqa: E731
    passed(table, learner, settings, SideInformation(K), length=512, opened=opened)
    tracemalloc.stop()
    return example, planning, max(held) / 1e6


# Processes

FEW, MANY, CELLS = 2, 202, 4
LAUNCHERS = {
    "basic": [],
    "joblib": ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"],
    "submitit_local": ["hydra/launcher=submitit_local"],
}


def backends() -> pd.DataFrame:
    """Time runs whose repetitions compute nothing, on each backend."""
    from distributed import LocalCluster  # here, as others do without dask

    learner: Row = {"algo": "aelr", "k": 4, "backend.batch_size": 1}  # one repetition at a time
    like = run_repetitions(api.plan(learner), [0], lambda done: None)[0]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        ways: dict[str, Row] = {
            "sequential": {"backend": "sequential"},
            "loky, n_jobs=2": {"backend": "loky", "n_jobs": 2},
            "dask, 2 workers": {"backend": "dask", "backend.address": cluster.scheduler_address},
        }
        cases = {
            (name, repetitions): partial(_run_anew, {**learner, **way}, repetitions, partial(_nothing, like=like))
            for name, way in ways.items()
            for repetitions in (FEW, MANY)
        }
        times = least(cases, 3)
    frame = pd.DataFrame(
        {
            "backend": name,
            "start_s": round(times[name, FEW], 3),
            "ms_per_repetition": round(1000 * (times[name, MANY] - times[name, FEW]) / (MANY - FEW), 2),
        }
        for name in ways
    )
    for column in ("start_s", "ms_per_repetition"):
        frame[f"{column.partition('_')[0]}_ratio"] = (frame[column] / frame[column].iloc[0]).round(1)
    return frame


def _nothing(plan: Plan, repetitions: Sequence[int], progress: Callable[[float], None], like: Any) -> list[Any]:
    """Return the result of another repetition, without computing anything."""
    return [{**like, "repetition": repetition} for repetition in repetitions]


def _run_anew(choices: Row, repetitions: int, function: Repetitions) -> float:
    """Return the seconds of a run in a new folder, with new loky workers, as a command has them."""
    get_reusable_executor().shutdown()
    with redirect_stderr(StringIO()), tempfile.TemporaryDirectory() as folder:
        plan = api.plan({**choices, "repetitions": repetitions, "out": str(Path(folder, "run"))})
        return seconds(lambda: execute(plan, function=function))


def launchers() -> pd.DataFrame:
    """Time sweeps whose cells are planned only, with each launcher."""

    def sweep(cells: int, words: list[str]) -> float:
        command = [sys.executable, "-m", "budgetreg", "run", "-m", "--dry-run", *words]
        command.append(f"k={','.join(str(k) for k in range(4, 4 + cells))}")
        return seconds(partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL))

    cases = {(name, cells): partial(sweep, cells, LAUNCHERS[name]) for name in LAUNCHERS for cells in (1, CELLS + 1)}
    times = least(cases, 3)
    frame = pd.DataFrame(
        {
            "launcher": name,
            "first_s": round(times[name, 1], 2),
            "cell_s": round((times[name, CELLS + 1] - times[name, 1]) / CELLS, 2),
        }
        for name in LAUNCHERS
    )
    frame["first_ratio"] = (frame["first_s"] / frame["first_s"].iloc[0]).round(1)
    return frame


# Tables larger than memory

_STREAMED = "k=8 repetitions=1 checkpoints=4 backend=sequential tuning=theory"
_ROWS = 2000  # written at a time


def _power_law(folder: Path, n: int, d: int) -> list[str]:
    """Return the overrides of a run on values that are computed when they are read."""
    return ["algo=aerr", "dataset=power_law_stream", f"dataset.n={n}", f"dataset.d={d}", "tuning.B=3"]


def _libsvm(folder: Path, n: int, d: int) -> list[str]:
    """Write a sparse table of about 50 entries a row, common attributes first; targets are linear in the first 100."""
    rng, path = np.random.default_rng(0), folder / "sparse.libsvm"
    w = np.where(np.arange(d) < 100, rng.choice([-1.0, 1.0], d), 0.0)
    with path.open("w") as file:
        for _ in range(n // _ROWS):
            columns = np.floor(d * rng.random((_ROWS, 60)) ** 3).astype(int)
            for row in map(np.unique, columns):
                entries = " ".join([f"{column + 1}:1" for column in row])
                file.write(f"{w[row].sum():g} {entries}\n")
    return ["algo=aerr", "dataset=file", f"dataset.path={path}", "dataset.test_fraction=0.01", "tuning.B=10"]


def _mapped(folder: Path, n: int, d: int) -> list[str]:
    """Write a dense table of bytes, whose targets are linear in a few of them."""
    rng, path = np.random.default_rng(0), folder / "dense"
    path.mkdir()
    X = np.lib.format.open_memmap(path / "X.npy", "w+", np.uint8, (n // _ROWS * _ROWS, d))
    y = []
    for start in range(0, len(X), _ROWS):
        X[start : start + _ROWS] = block = rng.integers(0, 256, (_ROWS, d), dtype=np.uint8)
        y.append(block[:, :20].mean(axis=1) / 255)
    np.save(path / "y.npy", np.concatenate(y))
    return ["algo=aelr", "dataset=file", f"dataset.path={path}", "dataset.test_fraction=0.01", "tuning.B=1"]


STREAMED: dict[str, tuple[Callable[[Path, int, int], list[str]], int, int]] = {  # name: writer, n, d
    "power_law_stream": (_power_law, 250_000, 10_000),
    "sparse LIBSVM": (_libsvm, 400_000, 20_000),
    "dense bytes, mapped": (_mapped, 100_000, 10_000),
}


def streaming() -> Iterator[Row]:
    """Measure the memory of runs on tables larger than memory."""
    for name, (prepare, n, d) in STREAMED.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            rss, private = _peaks(prepare(folder, n, d), folder)
            out = folder / "out"
            last = pd.read_csv(out / "curves.csv").iloc[-1]
            disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and out not in path.parents)
        yield {
            "data": name,
            "n": n,
            "d": d,
            "gigabytes": round(n * d * 8e-9, 1),
            "disk_mb": round(disk / 1e6),
            "peak_rss_mb": round(rss),
            "peak_private_mb": round(private),
            "attributes": int(last["attributes"]),
            "test_relative": round(last["test_relative"], 3),
        }


def _peaks(overrides: list[str], folder: Path) -> tuple[float, float]:
    """Run budgetreg; return the peaks in MB of its resident memory and, ten times a second, of its private memory."""
    command = [sys.executable, "-m", "budgetreg", "run", *_STREAMED.split(), *overrides, f"out={folder / 'out'}"]
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    private = 0
    while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        status = Path(f"/proc/{child.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        private = max([private] + [int(line.split()[1]) for line in lines if line.startswith("RssAnon")])
        time.sleep(0.1)
    _, code, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(code)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return usage.ru_maxrss / 1000, private / 1000


BENCHMARKS: dict[str, Callable[[], Any]] = {
    each.__name__: each for each in (cores, growth, subspaces, backends, launchers, streaming)
}


def main() -> None:
    """Measure what is named, print the tables and write them to results/bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure: {', '.join(BENCHMARKS)}")
    names = parser.parse_args().names or [name for name in BENCHMARKS if name != "streaming"]
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(f"{', '.join(unknown)}: no such benchmark; possible: {', '.join(BENCHMARKS)}")
    for name in names:
        frame = pd.DataFrame(BENCHMARKS[name]())
        print(frame.to_string(index=False))
        write_atomically(RESULTS / f"{name}.csv", frame.to_csv(index=False).encode())


if __name__ == "__main__":
    main()

"""Measure time and memory in one thread, and write tables to results/bench: ``bench.py [NAME ...] [--root DIR]``.

Everything is measured in turns so that a noisy machine slows all alike; of times, the least of several rounds counts.
With --root (the folder that holds MNIST/raw) cores and parts are timed on MNIST 3-vs-5, else on random data of the
same shape and sparsity. Without names, all but streaming are measured, and figures only with --root.

- cores: microseconds per replica-step of the batched core and of the papers' listing (cumsum and searchsorted, one
  example at a time), and their ratio
- split: the share of a pass that each part takes, in percent, evaluation at one checkpoint included
- wide: CPU microseconds to open a table of 100 rows, or a price list, per column, and their ratio to the fewest columns
- subspaces: of learners that update a subspace, for each d: CPU microseconds per example of 28 attributes; what
  planning the draws costs more, if it is done every 5 d / k examples, the most often that aefa_streaming does it; and
  megabytes that a pass keeps
- backends: seconds of a run of two repetitions that compute nothing; milliseconds of each one more, tables and journal
  included; and the ratios of both to those of backend=sequential. Workers of dask are processes of this machine
- launchers: seconds of a sweep of one cell that is planned only, and of one more cell
- figures: budgeted learners of Figures 1 and 2 of Hazan & Koren 2012 from the command line, with ten splits and two
  workers: seconds on the clock and of processor time, and both as multiples of the time that the listing of AELR takes
  for 10,000 examples in the same minutes
- streaming: runs on tables larger than memory, each in a process of its own with an empty cache: what n x d floats
  take; megabytes on the disk with the cache; the most memory of the process, with pages of mapped files, which the
  system takes back at need, and without; and the last error
"""

import argparse
import csv
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

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))  # for the scripts that import this one

from budgetreg.runs.workers import pin_blas_threads  # noqa: E402 - after the path is set

pin_blas_threads()

import numpy as np  # noqa: E402 - the number of threads is read when numpy is loaded
import pandas as pd  # noqa: E402
from joblib.externals.loky import get_reusable_executor  # noqa: E402
from sklearn.datasets import dump_svmlight_file  # noqa: E402

from budgetreg import api  # noqa: E402
from budgetreg.algorithms import engine  # noqa: E402
from budgetreg.algorithms.cesa_bianchi_2010 import aer  # noqa: E402
from budgetreg.algorithms.engine import DATA_POINT_SAMPLERS, next_block  # noqa: E402
from budgetreg.algorithms.factors import StreamingFactorAnalysis  # noqa: E402
from budgetreg.algorithms.hazan_koren_2012.gradients import STATES, GradientLearner, aelr, aerr  # noqa: E402
from budgetreg.algorithms.learner import BudgetSplit, Learner, SideInformation  # noqa: E402
from budgetreg.algorithms.streaming_subspaces import StreamingLearner  # noqa: E402
from budgetreg.common.files import write_atomically  # noqa: E402
from budgetreg.common.streams import generator  # noqa: E402
from budgetreg.data.attributes import read_prices  # noqa: E402
from budgetreg.data.dataset import Coins  # noqa: E402
from budgetreg.data.file import parse_file  # noqa: E402
from budgetreg.data.mnist import Mnist  # noqa: E402
from budgetreg.figures.canvas import End, grid, label_ends, own_settings, set_ticks, sheet, write_figure  # noqa: E402
from budgetreg.figures.looks import Style  # noqa: E402
from budgetreg.metering.accessor import Accessor  # noqa: E402
from budgetreg.metering.table import Outputs, Table  # noqa: E402
from budgetreg.protocol.plan import Plan  # noqa: E402
from budgetreg.protocol.repetitions import run_repetitions  # noqa: E402
from budgetreg.revealed.designs import fixed_size, working_probabilities  # noqa: E402
from budgetreg.runs.runner import Repetitions, execute  # noqa: E402
from budgetreg.tasks import mean_loss  # noqa: E402

RESULTS = TOP / "results" / "bench"
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


def save(rows: pd.DataFrame | list[Row], name: str) -> None:
    """Print a table, and write it to a file in results/bench; without a name print it only."""
    frame = pd.DataFrame(rows)
    print(frame.to_string(index=False))
    if name:
        RESULTS.mkdir(parents=True, exist_ok=True)
        write_atomically(RESULTS / f"{name}.csv", frame.to_csv(index=False).encode())


def draw(
    lines: Mapping[str, tuple[pd.DataFrame, Style]], labels: tuple[str, str], finding: str, text: str, name: str
) -> None:
    """Draw times against the number of attributes, and write them into results/bench.

    The y axis is logarithmic if the times span more than a decade, and else begins at 0.

    Parameters
    ----------
    lines : mapping of str to (DataFrame, Style)
        The times of each line, with the columns ``time``, ``low`` and ``high`` and the number of attributes as index,
        and its look, by label.
    labels : tuple of str
        The texts beside the x and the y axis.
    finding : str
        What the figure shows.
    text : str
        The caption.
    name : str
        Name of the files, without ending.
    """
    with own_settings():
        drawn = sheet(1)
        ax = drawn.places[0].ax
        every = np.concatenate([times.to_numpy().ravel() for times, _ in lines.values()])
        log = every.max() > 10 * every.min()
        ax.set(xscale="log", xlabel=f"{labels[0]} (log scale)", ylabel=f"{labels[1]}{' (log scale)' if log else ''}")
        for times, look in lines.values():
            width = 2.6 if look.heavy else 1.5
            ax.plot(times.index, times["time"], color=look.colour, marker=look.marker, linewidth=width, markersize=5)
            ax.vlines(times.index, times["low"], times["high"], color=look.colour, linewidth=1.5)
        if log:
            ax.set_yscale("log")
            ax.set_ylim(every.min() / 1.5, 2 * every.max())
        else:
            ax.set_ylim(0, 1.1 * every.max())
        set_ticks(ax)
        grid(ax)
        drawn.finish(finding, {})
        ends = [
            End(label, times.index[-1], times["time"].iloc[-1], look.colour, look.heavy)
            for label, (times, look) in lines.items()
        ]
        label_ends(drawn.figure, {ax: ends})
        write_figure(drawn.figure, text, RESULTS, name)


# Cores, and the parts of their passes

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
STEPS, HELD_OUT = 1024, 1211
PARTS = {  # of a pass, and the calls that belong to them
    "draws": ((engine, "next_block"),),
    "gather": ((Accessor, "reveal_block"), (Accessor, "reveal"), (Accessor, "pay"), (engine, "sparse_points")),
    "sampling": tuple((update, "draw") for update in STATES.values()),
    "update": tuple((update, "step") for update in STATES.values()),
    "projection and averaging": tuple(
        (update, name) for update in STATES.values() for name in ("project_and_accumulate", "running_sum")
    ),
}


def digits(root: str | None) -> Table:
    """Return MNIST 3-vs-5, or random pixels that are as sparse."""
    if root:
        data = Mnist(root, (3, 5)).load()
        return Table(data.X, data.y, data.scale)
    rng = np.random.default_rng(0)
    X = rng.integers(1, 256, (12_109, 784)) * (rng.random((12_109, 784)) < 0.19)
    return Table(X.astype(np.uint8), rng.choice([-1.0, 1.0], 12_109), 1 / 255)


def core(table: Table, case: str, replicas: int, steps: int) -> Callable[[], dict[int, Outputs]]:
    """Return a pass of the batched core."""
    update, data_point, k_x, k_ip, name, values, _ = CORES[case]
    learner = GradientLearner(name="bench", update=update, data_point=data_point)
    n_streams, n_settings = REPLICAS[replicas]
    orders = np.stack([np.random.default_rng(f).permutation(len(table.y))[:steps] for f in range(n_streams)])
    pairs = [(B, value) for value in values for B in RADII][:n_settings]
    settings = dict(zip(("B", name), np.array(pairs).T, strict=True))

    def run() -> dict[int, Outputs]:
        accessor = Accessor(table, orders, n_settings, k_x + k_ip, [steps])
        rngs = [generator("bench", f) for f in range(n_streams)]
        return dict(learner.fit(accessor, settings, [steps], rngs, SideInformation(k_x + k_ip, BudgetSplit(k_x, k_ip))))

    return run


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


def cores(arguments: argparse.Namespace) -> Iterator[Row]:
    """Time every case at every number of replicas."""
    table = digits(arguments.root)
    for case in CORES:
        for replicas in REPLICAS:
            steps = 1024 if replicas < 1440 else 512
            batched, plain = core(table, case, replicas, steps), listing(table, case, steps)
            pairs = []
            for _ in range(arguments.rounds or 5):
                before, ours = cpu_seconds(plain, LISTINGS), cpu_seconds(batched)
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


def split(arguments: argparse.Namespace) -> Iterator[Row]:
    """Time the parts of a pass of each core."""
    table = digits(arguments.root)
    for case in CORES:
        run = core(table, case, 480, STEPS)
        run()
        spent: dict[str, float] = defaultdict(float)
        originals = [
            (owner, name, _watched(spent, part, owner, name)) for part, calls in PARTS.items() for owner, name in calls
        ]
        start = time.perf_counter()
        W = run()[STEPS]
        spent["rest"] = time.perf_counter() - start - sum(spent.values())
        for owner, name, original in originals:
            setattr(owner, name, original)
        spent["evaluation"] = seconds(partial(_evaluated, table, W))
        whole = sum(spent.values())
        yield {"core": case} | {part: round(100 * spent[part] / whole, 1) for part in (*PARTS, "rest", "evaluation")}


def _evaluated(table: Table, W: Outputs) -> None:
    rows = np.arange(HELD_OUT)
    for regressors in W:
        mean_loss(table, rows, np.asarray(regressors))


def _watched(spent: dict[str, float], part: str, owner: Any, name: str) -> Any:
    """Add the time of a function or method to that of its part from now on; return what it was."""
    original = getattr(owner, name)

    def timed(*args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        result = original(*args, **options)
        spent[part] += time.perf_counter() - start
        return result

    setattr(owner, name, timed)
    return original


# Growth with the number of columns and attributes


def wide(arguments: argparse.Namespace) -> pd.DataFrame:
    """Time the opening of tables in every format at every number of columns."""
    rows = []
    for d in (1000, 10_000, 60_000):
        with tempfile.TemporaryDirectory() as folder:
            cases = {name: partial(cpu_seconds, opened) for name, opened in _written(Path(folder), d).items()}
            for name, time_ in least(cases, arguments.rounds or 3).items():
                rows.append({"opened": name, "columns": d, "us_per_column": round(1e6 * time_ / d, 2)})
    frame = pd.DataFrame(rows).sort_values(["opened", "columns"], ignore_index=True)
    frame["ratio"] = (frame["us_per_column"] / frame.groupby("opened")["us_per_column"].transform("first")).round(2)
    return frame


def _written(folder: Path, d: int) -> Mapping[str, Callable[[], object]]:
    """Write a table of d attributes in all formats, and a price list; return what opens each."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, d)).round(3), rng.normal(size=100)
    names = [f"gene{number}" for number in range(d)]
    frame = pd.DataFrame(np.column_stack([X, y]), columns=[*names, "y"])
    frame.to_csv(folder / "table.csv", index=False)
    frame.to_parquet(folder / "table.parquet")
    np.savez(folder / "table.npz", X=X, y=y)
    dump_svmlight_file(X, y, str(folder / "table.svm"), zero_based=False)
    pd.DataFrame({"attribute": names, "cost": 1.0}).to_csv(folder / "costs.csv", index=False)

    def opened(ending: str) -> Callable[[], object]:
        return lambda: parse_file({"path": str(folder / f"table.{ending}"), "scale": "none"}).load()

    tables = {ending: opened(ending) for ending in ("csv", "parquet", "npz", "svm")}
    return {**tables, "price list": lambda: read_prices(folder / "costs.csv", names, d)}


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


def subspaces(arguments: argparse.Namespace) -> pd.DataFrame:
    """Time learners that update a subspace, on coins that are computed when they are looked at."""
    cases = {
        (case, d): partial(_passed, coins(d, 3072), case, *learner)
        for d in (10**3, 10**4, 10**5)
        for case, learner in SUBSPACES.items()
    }
    rows = [
        {"algo": case, "d": d, "us_per_example": example, "us_per_example_plan": plan, "state_mb": held}
        for (case, d), (example, held, plan) in least(cases, arguments.rounds or 2).items()
    ]
    return pd.DataFrame(rows).sort_values(["algo", "d"], ignore_index=True).round(1)


def _passed(table: Table, case: str, learner: Learner, settings: dict[str, np.ndarray]) -> tuple[float, float, float]:
    """Return microseconds per example, megabytes in use during the pass, and microseconds of planning the draws.

    The clock runs from the 1025th example of a pass to the 2817th, so that state and output, which take O(d) once per
    pass, do not count.
    """
    times, held = {}, {}
    begun = 0

    def opened(stop: int) -> None:
        nonlocal begun
        times[begun], begun = time.process_time(), stop
        if tracemalloc.is_tracing():
            held[begun] = tracemalloc.get_traced_memory()[0]

    def run(length: int) -> None:
        nonlocal begun
        begun = 0
        accessor = Accessor(table, np.arange(length)[None], 1, K, [length], opened)
        for _ in learner.fit(accessor, settings, [length], [generator("subspaces")], SideInformation(K)):
            pass

    def plan() -> object:
        return fixed_size(working_probabilities(np.linspace(1, 2, table.d), K, 0.1), K)

    run(3072)
    tracemalloc.start()
    run(512)
    tracemalloc.stop()
    planning = 1e6 * cpu_seconds(plan) / (5 * table.d / K) if case == "aefa_streaming" else 0.0
    return 1e6 * (times[2816] - times[1024]) / 1792, max(held.values()) / 1e6, planning


# Processes

FEW, MANY, CELLS = 2, 202, 4
LAUNCHERS = {
    "basic": [],
    "joblib": ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"],
    "submitit_local": ["hydra/launcher=submitit_local"],
}


def backends(arguments: argparse.Namespace) -> pd.DataFrame:
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
        times = least(cases, arguments.rounds or 3)
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


def launchers(arguments: argparse.Namespace) -> pd.DataFrame:
    """Time sweeps whose cells are planned only, with each launcher."""

    def sweep(cells: int, words: list[str]) -> float:
        command = [sys.executable, "-m", "budgetreg", "run", "-m", "--dry-run", *words]
        command.append(f"k={','.join(str(k) for k in range(4, 4 + cells))}")
        return seconds(partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL))

    cases = {(name, cells): partial(sweep, cells, LAUNCHERS[name]) for name in LAUNCHERS for cells in (1, CELLS + 1)}
    times = least(cases, arguments.rounds or 3)
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


FIGURES = {"hazan_koren_2012/fig1": "aelr,aer", "hazan_koren_2012/fig2": "aerr,aer"}


def figures(arguments: argparse.Namespace) -> Iterator[Row]:
    """Time whole figures: cold start, cross-validation and drawing included."""
    examples = 2000
    plain = listing(digits(arguments.root), "aelr 3+1", examples)
    for experiment, learners in FIGURES.items():
        before, used = cpu_seconds(plain), os.times()
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "budgetreg", "run", f"experiment={experiment}", f"algo={learners}"]
            command += [f"dataset.root={arguments.root}", "n_jobs=2", f"out={folder}"]
            clock = seconds(partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL))
        after = os.times()
        processor = after.children_user + after.children_system - used.children_user - used.children_system
        unit = (before + cpu_seconds(plain)) / 2 * 10_000 / examples
        yield {
            "experiment": experiment,
            "learners": learners,
            "seconds": round(clock, 1),
            "processor_seconds": round(processor, 1),
            "in_transcriptions": round(clock / unit, 1),
            "processor_in_transcriptions": round(processor / unit, 1),
        }


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


def streaming(arguments: argparse.Namespace) -> Iterator[Row]:
    """Measure the memory of runs on tables larger than memory."""
    for name, (prepare, n, d) in STREAMED.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            rss, private = _peaks(prepare(folder, n, d), folder)
            out = folder / "out"
            with (out / "curves.csv").open() as file:
                *_, last = csv.DictReader(file)
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
            "test_relative": round(float(last["test_relative"]), 3),
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


BENCHMARKS: dict[str, Callable[[argparse.Namespace], Any]] = {
    each.__name__: each for each in (cores, split, wide, subspaces, backends, launchers, figures, streaming)
}


def main() -> None:
    """Measure what is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure")
    parser.add_argument("--root", help="folder that holds MNIST/raw")
    parser.add_argument("--rounds", type=int, help="times that everything is measured, in turns")
    arguments = parser.parse_args()
    usual = [name for name in BENCHMARKS if name != "streaming" and (name != "figures" or arguments.root)]
    for name in arguments.names or usual:
        if name not in BENCHMARKS:
            parser.error(f"{name}: no such benchmark; possible: {', '.join(BENCHMARKS)}")
        if name == "figures" and not arguments.root:
            parser.error("figures needs --root")
        rows = BENCHMARKS[name](arguments)
        save(rows if isinstance(rows, pd.DataFrame) else list(rows), name)


if __name__ == "__main__":
    main()

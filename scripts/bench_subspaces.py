"""Measure how the cost of an example grows with the number of attributes, for learners whose subspace moves on the way.

One stream each, 28 attributes of each example, 10 dimensions, on coins of mean .2 that are computed when they are
looked at. The clock runs from the 1025th example of a pass to the 2817th, so that state and output, which take O(d)
once per pass, do not count. Prints a table and writes results/bench/subspaces.csv:

- us_per_example: CPU microseconds, the least of several rounds
- us_per_example_plan: what planning the draws costs more, if it is done every 5 d / k examples, the most often that
  aefa_streaming does it; 0 of the others, who draw uniformly
- state_mb: numbers that a pass keeps, in megabytes

    .venv/bin/python scripts/bench_subspaces.py
"""

import argparse
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from budgetreg.execution.threads import pin_blas_threads

pin_blas_threads()

import numpy as np  # noqa: E402 - after the threads are pinned
import pandas as pd  # noqa: E402

from budgetreg.data.values import Coins  # noqa: E402
from budgetreg.files.writing import write_atomically  # noqa: E402
from budgetreg.learners.factors import streaming as factors  # noqa: E402
from budgetreg.learners.streaming import core as streaming  # noqa: E402
from budgetreg.metering.accessor import Accessor  # noqa: E402
from budgetreg.metering.table import Table  # noqa: E402
from budgetreg.sampling.designs import fixed_size  # noqa: E402
from budgetreg.sampling.inclusion_probabilities import working_probabilities  # noqa: E402
from budgetreg.streams import generator  # noqa: E402

TARGET = Path(__file__).resolve().parent.parent / "results" / "bench" / "subspaces.csv"
K, N, LENGTH, FIRST, LAST = 28, 10, 3072, 1024, 2816
Fit = Callable[..., Iterator[object]]
CASES: dict[str, tuple[Fit, dict[str, np.ndarray]]] = {
    "aefa_streaming": (partial(factors.fit, n_factors=None, design="importance"), {}),
    "petrels": (partial(streaming.fit, update="petrels"), {"forgetting": np.array([0.999])}),
    "grouse": (partial(streaming.fit, update="grouse"), {"eta": np.array([4.0])}),
    "oja": (partial(streaming.fit, update="oja"), {"eta": np.array([2.8])}),
}


def measured(table: Table, fit: Fit, settings: dict[str, np.ndarray]) -> tuple[float, float]:
    """Return microseconds per example, and megabytes held while examples are learned from."""
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
        for _ in fit(accessor, settings, [length], [generator("subspaces")], k=K, n_components=N):
            pass

    run(LENGTH)
    tracemalloc.start()
    run(512)
    tracemalloc.stop()
    return 1e6 * (times[LAST] - times[FIRST]) / (LAST - FIRST), max(held.values()) / 1e6


def planning(d: int) -> float:
    """Return microseconds of planning per example, at the first plan."""
    begin = time.process_time()
    fixed_size(working_probabilities(np.linspace(1, 2, d), K, 0.1), K)
    return 1e6 * (time.process_time() - begin) / (5 * d / K)


def main() -> None:
    """Measure every learner at every number of attributes, in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2, help="how often everything is measured in turn")
    parser.add_argument("--d", type=int, nargs="+", default=[10**3, 10**4, 10**5], help="numbers of attributes")
    arguments = parser.parse_args()
    found: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for _ in range(arguments.rounds):
        for d in arguments.d:
            table = Table(Coins(1, np.full(d, 0.2), np.arange(LENGTH)), np.zeros(LENGTH))
            for case, (fit, settings) in CASES.items():
                plan = planning(d) if case == "aefa_streaming" else 0.0
                found.setdefault((case, d), []).append((*measured(table, fit, settings), plan))
    rows = []
    for (case, d), own in found.items():
        example, held, plan = np.min(own, axis=0)
        rows.append(
            {
                "algo": case,
                "d": d,
                "us_per_example": round(example, 1),
                "us_per_example_plan": round(plan, 1),
                "state_mb": round(held, 1),
            }
        )
    frame = pd.DataFrame(rows).sort_values(["algo", "d"], ignore_index=True)
    print(frame.to_string(index=False))
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(TARGET, frame.to_csv(index=False).encode())


if __name__ == "__main__":
    main()

"""Measure how the cost of an example grows with the number of attributes, for learners that update a subspace.

One stream each, 28 attributes of each example, 10 dimensions, on coins of mean .2 that are computed when they are
looked at. The clock runs from the 1025th example of a pass to the 2817th, so that state and output, which take O(d)
once per pass, do not count. Prints a table and writes results/bench/subspaces.csv:

- us_per_example: CPU microseconds, the least of several rounds
- us_per_example_plan: what planning the draws costs more, if it is done every 5 d / k examples, the most often that
  aefa_streaming does it; 0 of the others, who draw uniformly
- state_mb: numbers that a pass keeps, in megabytes

    .venv/bin/python scripts/bench_subspaces.py
"""

import time
import tracemalloc

import bench_common  # before numpy is loaded
import numpy as np
import pandas as pd

from budgetreg.algorithms.factors import StreamingFactorAnalysis
from budgetreg.algorithms.learner import Learner, SideInformation
from budgetreg.algorithms.streaming_subspaces import StreamingLearner
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.revealed.designs import fixed_size, working_probabilities
from budgetreg.streams import generator

K, N, LENGTH, FIRST, LAST = 28, 10, 3072, 1024, 2816
CASES: dict[str, tuple[Learner, dict[str, np.ndarray]]] = {
    "aefa_streaming": (StreamingFactorAnalysis(name="aefa_streaming", n_components=N, design="importance"), {}),
    **{
        update: (StreamingLearner(name=update, n_components=N, update=update), {parameter: np.array([value])})
        for update, parameter, value in (("petrels", "forgetting", 0.999), ("grouse", "eta", 4.0), ("oja", "eta", 2.8))
    },
}


def measured(table: Table, learner: Learner, settings: dict[str, np.ndarray]) -> tuple[float, float]:
    """Return microseconds per example, and megabytes in use during the pass."""
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

    run(LENGTH)
    tracemalloc.start()
    run(512)
    tracemalloc.stop()
    return 1e6 * (times[LAST] - times[FIRST]) / (LAST - FIRST), max(held.values()) / 1e6


def planning(d: int) -> float:
    """Return microseconds per example for the first plan of the draws."""

    def plan() -> object:
        return fixed_size(working_probabilities(np.linspace(1, 2, d), K, 0.1), K)

    return 1e6 * bench_common.cpu_seconds(plan) / (5 * d / K)


def main() -> None:
    """Measure every learner at every number of attributes, in turns."""
    arguments = bench_common.options(__doc__, rounds=2, d=[10**3, 10**4, 10**5])
    times: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for _ in range(arguments.rounds):
        for d in arguments.d:
            table = bench_common.coins(d, LENGTH)
            for case, (fit, settings) in CASES.items():
                plan = planning(d) if case == "aefa_streaming" else 0.0
                times.setdefault((case, d), []).append((*measured(table, fit, settings), plan))
    rows = []
    for (case, d), values in times.items():
        example, held, plan = np.min(values, axis=0)
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
    bench_common.save(frame, "subspaces.csv")


if __name__ == "__main__":
    main()

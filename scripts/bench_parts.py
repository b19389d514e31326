"""Time the parts of a pass of each core, and what runs around the cores.

Prints two tables and writes them to results/bench/: `split.csv`, the share of a pass that each part takes, evaluation
at one checkpoint included; `around.csv`, microseconds of the evaluation, of draws and of POPCA, each beside the plain
way to the same numbers, measured in turns so that a noisy machine slows both alike.

    make bench ROOT=DIR
"""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import bench  # pins the threads before numpy is loaded
import bench_common
import numpy as np
import pandas as pd

from budgetreg.algorithms import engine
from budgetreg.algorithms.gonen_2016 import product_sums
from budgetreg.algorithms.hazan_koren_2012.gradients import STATES
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.revealed.designs import uniform_subset
from budgetreg.streams import BLOCK, generator, subset
from budgetreg.tasks import mean_loss

REPLICAS = 480
STEPS = 1024
HELD_OUT = 1211
PARTS = {  # of a pass, and the calls that belong to them
    "draws": ((engine, "next_block"),),
    "gather": ((Accessor, "reveal_block"), (Accessor, "reveal"), (Accessor, "pay"), (engine, "sparse_points")),
    "sampling": tuple((update, "draw") for update in STATES.values()),
    "update": tuple((update, "step") for update in STATES.values()),
    "projection and averaging": tuple(
        (update, name) for update in STATES.values() for name in ("project_and_accumulate", "running_sum")
    ),
}


class Clock:
    """Adds up the time of calls, by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def watch(self, part: str, owner: Any, name: str) -> Callable[[], None]:
        """Time the calls of a function or method from now on; return a function that stops this."""
        original = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            start = time.perf_counter()
            result = original(*args, **options)
            self.seconds[part] += time.perf_counter() - start
            return result

        setattr(owner, name, timed)
        return lambda: setattr(owner, name, original)


def split(table: Table, case: str) -> dict[str, Any]:
    """Return the shares of a pass's parts, in percent."""
    run = bench.core(table, case, REPLICAS, STEPS)
    run()
    clock = Clock()
    undo = [clock.watch(part, owner, name) for part, calls in PARTS.items() for owner, name in calls]
    start = time.perf_counter()
    W = run()[STEPS]
    clock.seconds["rest"] = time.perf_counter() - start - sum(clock.seconds.values())
    for put_back in undo:
        put_back()
    start = time.perf_counter()
    rows = np.arange(HELD_OUT)
    for regressors in W:
        mean_loss(table, rows, np.asarray(regressors))
    clock.seconds["evaluation"] = time.perf_counter() - start
    whole = sum(clock.seconds.values())
    parts = [*PARTS, "rest", "evaluation"]
    return {"core": case, **{part: round(100 * clock.seconds[part] / whole, 1) for part in parts}}


def evaluation(table: Table) -> tuple[Callable[[], object], Callable[[], object], int]:
    """Return two evaluations of 48 settings on held-out rows, by one matrix product or each alone, and a divisor."""
    W, rows = np.random.default_rng(0).normal(size=(table.d, 48)), np.arange(HELD_OUT)
    columns = [np.ascontiguousarray(w[:, None]) for w in W.T]
    return (
        lambda: mean_loss(table, rows, W),
        lambda: [mean_loss(table, rows, w) for w in columns],
        48 * HELD_OUT,
    )


def draws(table: Table) -> tuple[Callable[[], object], Callable[[], object], int]:
    """Return two ways to draw a block of uniform subsets of 28 attributes, ours and numpy's, and a divisor."""
    rng = np.random.default_rng(0)
    return (
        lambda: subset(rng, table.d, 28),
        lambda: [rng.choice(table.d, 28, replace=False) for _ in range(BLOCK)],
        BLOCK,
    )


def popca(table: Table) -> tuple[Callable[[], object], Callable[[], object], int]:
    """Return two sums of products of 28 attributes, of those that are not 0 or of all, and a divisor."""
    steps = 4096
    order = np.random.default_rng(0).permutation(len(table.y))[None, :steps]
    design = uniform_subset(table.d, 28)

    def batched() -> object:
        return dict(product_sums(Accessor(table, order, 1, 28), 0, [steps], [generator("bench")], [design]))

    def plain() -> object:
        rng, total = np.random.default_rng(0), np.zeros((table.d, table.d))
        for row in order[0, :256]:
            x = np.zeros(table.d)
            seen = rng.choice(table.d, 28, replace=False)
            x[seen] = table.entries(row, seen)
            total += np.outer(x, x)
        return total

    return batched, lambda: [plain() for _ in range(steps // 256)], steps


def compare(name: str, ours: Callable[[], object], plain: Callable[[], object], units: int) -> dict[str, Any]:
    """Return a row of the table, from three measurements of both in turns."""
    ours()
    pairs = [(bench_common.cpu_seconds(ours) / units, bench_common.cpu_seconds(plain) / units) for _ in range(3)]
    return {
        "what": name,
        "us": round(1e6 * min(time for time, _ in pairs), 3),
        "us_plain": round(1e6 * min(theirs for _, theirs in pairs), 3),
        **bench_common.ratio_columns([theirs / time for time, theirs in pairs]),
    }


def main() -> None:
    """Measure and write both tables."""
    table = bench.load(bench_common.options(__doc__, root=True).root)
    tables = {
        "split.csv": pd.DataFrame([split(table, case) for case in bench.CASES]),
        "around.csv": pd.DataFrame(
            [
                compare("evaluation", *evaluation(table)),
                compare("draws of subsets", *draws(table)),
                compare("POPCA, r = 28", *popca(table)),
            ]
        ),
    }
    for name, frame in tables.items():
        bench_common.save(frame, name)


if __name__ == "__main__":
    main()

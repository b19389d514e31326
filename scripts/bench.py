"""Time the cores against the straightforward transcription of the papers' listings, in one process and one thread.

Prints a table and writes results/bench/cores.csv: microseconds per replica-step of the batched core and of the
transcription (cumsum and searchsorted, one example at a time), and their ratio, measured in turns so that a noisy
machine slows both alike.  With --root (the folder that holds MNIST/raw) on MNIST 3-vs-5, else on random data of the
same shape and sparsity.

    make bench ROOT=DIR
"""

import sys
from collections.abc import Callable
from typing import Any

import bench_common  # before numpy is loaded
import numpy as np
import pandas as pd

from budgetreg.algorithms.cesa_bianchi_2010 import aer
from budgetreg.algorithms.engine import DATA_POINT_SAMPLERS, next_block
from budgetreg.algorithms.hazan_koren_2012.gradients import GradientLearner, aelr, aerr
from budgetreg.algorithms.learner import BudgetSplit, SideInformation
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.streams import generator
from budgetreg.tasks import Outputs

FOLDS = 10
RADII = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
CASES: dict[str, tuple[Any, ...]] = {  # name: update, data point, k_x, k_ip, parameter, its 8 values, listing
    "aelr 3+1": ("eg", "uniform", 3, 1, "eta", 1e-4 * 2.0 ** np.arange(8), aelr),
    "aerr 55+1": ("ogd", "uniform", 55, 1, "eta", 1e-5 * 2.0 ** np.arange(8), aerr),
    "aerr 28+28": ("ogd", "uniform", 28, 28, "eta", 1e-5 * 2.0 ** np.arange(8), aerr),
    "aer 2+2": ("pegasos", "subset", 2, 2, "lambda", 2.0 ** np.arange(8), aer),
    "aer 28+28": ("pegasos", "subset", 28, 28, "lambda", 2.0 ** np.arange(-3.0, 5.0), aer),
}
TRANSCRIPTIONS = 4
"""Number of passes of the listing that are timed before, and again after, each pass of the core."""
REPLICAS = {1: (1, 1), 10: (10, 1), 100: (10, 10), 480: (10, 48), 1440: (30, 48)}


def load(root: str | None) -> Table:
    """Return the benchmark's data: MNIST 3-vs-5, or random pixels that are as sparse."""
    if root:
        from budgetreg.data.mnist import Mnist

        data = Mnist(root, (3, 5)).load()
        return Table(data.X, data.y, data.scale)
    rng = np.random.default_rng(0)
    X = rng.integers(1, 256, (12_109, 784)) * (rng.random((12_109, 784)) < 0.19)
    return Table(X.astype(np.uint8), rng.choice([-1.0, 1.0], 12_109), 1 / 255)


def core(table: Table, case: str, replicas: int, steps: int) -> Callable[[], dict[int, Outputs]]:
    """Return a pass of the batched core."""
    update, data_point, k_x, k_ip, name, values, _ = CASES[case]
    learner = GradientLearner(name="bench", update=update, data_point=data_point)
    n_streams, n_settings = REPLICAS[replicas]
    orders = np.stack([np.random.default_rng(f).permutation(len(table.y))[:steps] for f in range(n_streams)])
    grid = [(B, value) for value in values for B in RADII][:n_settings]
    settings = dict(zip(("B", name), np.array(grid).T, strict=True))

    def run() -> dict[int, Outputs]:
        accessor = Accessor(table, orders, n_settings, k_x + k_ip, [steps])
        rngs = [generator("bench", f) for f in range(n_streams)]
        return dict(learner.fit(accessor, settings, [steps], rngs, SideInformation(k_x + k_ip, BudgetSplit(k_x, k_ip))))

    return run


def transcription(table: Table, case: str, steps: int) -> Callable[[], object]:
    """Return a pass of the listing, with the average of its iterates."""
    _, data_point, k_x, k_ip, _, values, listing = CASES[case]
    order = np.random.default_rng(0).permutation(len(table.y))[:steps]
    X, y = table.rows(order), table.y[order]
    rng = generator("bench", 0)
    blocks = [
        next_block([rng], [DATA_POINT_SAMPLERS[data_point]], X.shape[1], k_x, k_ip) for _ in range(-(-steps // 256))
    ]
    attributes, uniforms = (np.concatenate(part, axis=1)[0, :steps] for part in zip(*blocks, strict=True))

    def run() -> object:
        total = np.zeros(X.shape[1])
        for w, _ in listing(X, y, attributes, uniforms, 4.0, values[4]):
            total += w
        return total / steps

    return run


def main() -> None:
    """Measure every case at every number of replicas."""
    arguments = bench_common.options(__doc__, rounds=5, root=True)
    table = load(arguments.root)
    rows = []
    for case in CASES:
        for replicas in REPLICAS:
            steps = 1024 if replicas < 1440 else 512
            batched, plain = core(table, case, replicas, steps), transcription(table, case, steps)
            pairs = []
            for _ in range(arguments.rounds):
                before, ours = bench_common.cpu_seconds(plain, TRANSCRIPTIONS), bench_common.cpu_seconds(batched)
                theirs = (before + bench_common.cpu_seconds(plain, TRANSCRIPTIONS)) / 2
                pairs.append((ours / steps / replicas, theirs / steps))
            rows.append(
                {
                    "core": case,
                    "replicas": replicas,
                    "us_per_replica_step": round(1e6 * min(ours for ours, _ in pairs), 3),
                    "us_transcription": round(1e6 * min(theirs for _, theirs in pairs), 1),
                    **bench_common.ratio_columns([theirs / ours for ours, theirs in pairs]),
                }
            )
            print(f"{case}, {replicas} replicas: {rows[-1]['ratio_median']} times", file=sys.stderr)
    bench_common.save(pd.DataFrame(rows), "cores.csv")


if __name__ == "__main__":
    main()

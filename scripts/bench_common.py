"""What the benchmarks share: one BLAS thread, options, a clock and the tables in results/bench.

Import this module before numpy, which reads the number of threads when it is loaded.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))  # the listings are among the tests, which are not installed

from budgetreg.execution.workers import pin_blas_threads  # noqa: E402 - after the path is set

pin_blas_threads()

if TYPE_CHECKING:
    import pandas as pd

    from budgetreg.metering.table import Table

RESULTS = TOP / "results" / "bench"


def options(
    doc: str | None, *, rounds: int = 0, d: Sequence[int] = (), root: bool = False, root_required: bool = False
) -> argparse.Namespace:
    """Read the command line of a benchmark.

    Parameters
    ----------
    doc : str or None
        The script's docstring, its help text.
    rounds : int
        Default of ``--rounds``; 0 leaves the option out.
    d : sequence of int
        Default of ``--d``; an empty one leaves the option out.
    root, root_required : bool
        Whether there is a ``--root``, and whether it must be given.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if rounds:
        parser.add_argument("--rounds", type=int, default=rounds, help="times that everything is measured, in turns")
    if d:
        parser.add_argument("--d", type=int, nargs="+", default=list(d), help="numbers of attributes")
    if root or root_required:
        parser.add_argument("--root", required=root_required, help="folder that holds MNIST/raw")
    return parser.parse_args()


def cpu_seconds(function: Callable[[], object], calls: int = 1) -> float:
    """Return the CPU seconds of one call, as the mean of several calls."""
    start = time.process_time()
    for _ in range(calls):
        function()
    return (time.process_time() - start) / calls


def ratio_columns(ratios: Sequence[float]) -> dict[str, float]:
    """Return the median and the range of some ratios, as columns of a table."""
    return {
        "ratio_median": round(median(ratios), 1),
        "ratio_min": round(min(ratios), 1),
        "ratio_max": round(max(ratios), 1),
    }


def coins(d: int, n: int) -> "Table":
    """Return n examples of d coins of mean .2, which are computed when they are read, with random signs as targets."""
    import numpy as np

    from budgetreg.data.values import Coins
    from budgetreg.metering.table import Table

    return Table(Coins(1, np.full(d, 0.2), np.arange(n)), np.random.default_rng(0).choice([-1.0, 1.0], n))


def save(frame: "pd.DataFrame", name: str) -> None:
    """Print a table, and write it to a file in results/bench; without a name print it only."""
    from budgetreg.files.writing import write_atomically

    print(frame.to_string(index=False))
    if name:
        RESULTS.mkdir(parents=True, exist_ok=True)
        write_atomically(RESULTS / name, frame.to_csv(index=False).encode())

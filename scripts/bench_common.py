"""What the benchmarks share: one BLAS thread, options, a clock and the tables in results/bench.

Import this module before numpy, which reads the number of threads when it is loaded.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))  # the listings are among the tests, which are not installed

from budgetreg.runs.workers import pin_blas_threads  # noqa: E402 - after the path is set

pin_blas_threads()

if TYPE_CHECKING:
    import pandas as pd

    from budgetreg.figures.looks import Style
    from budgetreg.metering.table import Table

RESULTS = TOP / "results" / "bench"


def options(
    doc: str | None,
    *,
    rounds: int = 0,
    d: Sequence[int] = (),
    root: bool = False,
    root_required: bool = False,
    draws: bool = False,
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
    draws : bool
        Whether there is a ``--draw``, for scripts with a figure.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if rounds:
        parser.add_argument("--rounds", type=int, default=rounds, help="times that everything is measured, in turns")
    if d:
        parser.add_argument("--d", type=int, nargs="+", default=list(d), help="numbers of attributes")
    if root or root_required:
        parser.add_argument("--root", required=root_required, help="folder that holds MNIST/raw")
    if draws:
        parser.add_argument("--draw", action="store_true", help="draw the figure of the last numbers, measure nothing")
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


def draw(
    lines: "Mapping[str, tuple[pd.Series, Style]]", labels: tuple[str, str], finding: str, text: str, name: str
) -> None:
    """Draw times against the number of attributes on log axes, and write them into results/bench.

    Parameters
    ----------
    lines : mapping of str to (Series, Style)
        The times of each line, whose index is the number of attributes, and its look, by label.
    labels : tuple of str
        The texts beside the x and the y axis.
    finding : str
        What the figure shows.
    text : str
        The caption.
    name : str
        Name of the files, without ending.
    """
    from budgetreg.figures.canvas import End, grid, label_ends, own_settings, set_ticks, sheet, write_figure

    with own_settings():
        drawn = sheet(1)
        ax = drawn.places[0].ax
        ax.set(xscale="log", yscale="log", xlabel=f"{labels[0]} (log scale)", ylabel=f"{labels[1]} (log scale)")
        for times, look in lines.values():
            width = 2.6 if look.heavy else 1.5
            ax.plot(times.index, times, color=look.colour, marker=look.marker, linewidth=width, markersize=5)
        most = max(times.max() for times, _ in lines.values())
        ax.set_ylim(top=2 * most, bottom=min(1.0, min(times.min() for times, _ in lines.values()) / 1.5))
        set_ticks(ax)
        grid(ax)
        drawn.finish(finding, 0)
        ends = [
            End(label, times.index[-1], times.iloc[-1], look.colour, look.heavy)
            for label, (times, look) in lines.items()
        ]
        label_ends(drawn.figure, {ax: ends})
        write_figure(drawn.figure, text, RESULTS, name)


def save(frame: "pd.DataFrame", name: str) -> None:
    """Print a table, and write it to a file in results/bench; without a name print it only."""
    from budgetreg.files import write_atomically

    print(frame.to_string(index=False))
    if name:
        RESULTS.mkdir(parents=True, exist_ok=True)
        write_atomically(RESULTS / name, frame.to_csv(index=False).encode())

"""Time whole figures from the command line: cold start, cross-validation and drawing included.

Runs the budgeted learners of Figures 1 and 2 of Hazan & Koren 2012 with ten splits of MNIST 3-vs-5 and two workers, and
writes results/bench/figures.csv: seconds on the clock and of processor time, and both as multiples of the time that
the plain transcription of AELR takes for 10 000 examples in the same minutes, as machines differ and are noisy.

    make bench ROOT=DIR
"""

import os
import subprocess
import sys
import tempfile
import time

import bench  # pins the threads before numpy is loaded
import bench_common
import pandas as pd

FIGURES = {"hazan_koren_2012/fig1": "aelr,aer", "hazan_koren_2012/fig2": "aerr,aer"}
YARDSTICK = 2000
"""Number of examples on which the transcription is timed, before and after."""


def run(experiment: str, learners: str, root: str) -> tuple[float, float]:
    """Return wall-clock seconds, and the CPU seconds of all processes."""
    before, start = os.times(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "budgetreg", "run", f"experiment={experiment}", f"algo={learners}"]
        command += [f"dataset.root={root}", "n_jobs=2", f"out={folder}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, used


def main() -> None:
    """Time both figures."""
    root = bench_common.options(__doc__, root_required=True).root
    plain = bench.transcription(bench.load(root), "aelr 3+1", YARDSTICK)
    rows = []
    for experiment, learners in FIGURES.items():
        yardstick = bench_common.cpu_seconds(plain)
        clock, used = run(experiment, learners, root)
        unit = (yardstick + bench_common.cpu_seconds(plain)) / 2 * 10_000 / YARDSTICK
        rows.append(
            {
                "experiment": experiment,
                "learners": learners,
                "seconds": round(clock, 1),
                "processor_seconds": round(used, 1),
                "in_transcriptions": round(clock / unit, 1),
                "processor_in_transcriptions": round(used / unit, 1),
            }
        )
        print(f"{experiment}: {clock:.0f} s", file=sys.stderr)
    bench_common.save(pd.DataFrame(rows), "figures.csv")


if __name__ == "__main__":
    main()

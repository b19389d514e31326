"""Measure how the cost of a step grows with the number of attributes: AELR and AERR at k = 8, 48 replicas.

The data are coins of mean .2 that are computed when they are looked at, so that no step is spared as d grows and no
table is held.  The clock runs from the 1025th example of a pass to the 2817th, so that the state and the output, which
take O(d) once per pass, do not count.  Prints a table and writes results/bench/growth.csv, growth.png and growth.pdf:

- us_per_replica_step: CPU microseconds, the least of several rounds
- ratio: to the cheapest d of the same learner, measured in the same rounds

    .venv/bin/python scripts/bench_growth.py
"""

import time
from io import BytesIO

import bench_common  # before numpy is loaded
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from budgetreg.figures.palette import style
from budgetreg.files.writing import write_atomically
from budgetreg.learners.partial import GradientLearner
from budgetreg.learners.signature import BudgetSplit, SideInformation
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.sampling.draws import BLOCK
from budgetreg.streams import generator

FOLDS, LENGTH, WARM = 8, 3072, 1024
B, MULTIPLES = 2.0, 2.0 ** np.arange(-6, 0)
CASES = {"aelr 7+1": ("eg", 7, 1), "aelr 4+4": ("eg", 4, 4), "aerr 7+1": ("ogd", 7, 1), "aerr 4+4": ("ogd", 4, 4)}


def microseconds(table: Table, update: str, k_x: int, k_ip: int) -> float:
    """Return the CPU time of a step per replica, in a pass of 8 streams with 6 step sizes each."""
    times: dict[int, float] = {}

    def opened(stop: int) -> None:
        times[stop - BLOCK] = time.process_time()

    orders = np.stack([np.random.default_rng(f).permutation(LENGTH) for f in range(FOLDS)])
    accessor = Accessor(table, orders, MULTIPLES.size, k_x + k_ip, [LENGTH], opened)
    # A step moves a prediction by about eta |x|^2 d / k_x (OGD), an exponent by eta d / k_x (EG): alike at every d.
    eta = MULTIPLES * k_x / (table.d**2 if update == "ogd" else table.d)
    settings = {"B": np.full(MULTIPLES.size, B), "eta": eta}
    rngs = [generator("growth", f) for f in range(FOLDS)]
    learner = GradientLearner(name="online", update=update, data_point="uniform")
    given = SideInformation(k_x + k_ip, BudgetSplit(k_x, k_ip))
    for _ in learner.fit(accessor, settings, [LENGTH], rngs, given):
        pass
    last = LENGTH - BLOCK
    return 1e6 * (times[last] - times[WARM]) / ((last - WARM) * FOLDS * MULTIPLES.size)


def draw(frame: pd.DataFrame) -> dict[str, bytes]:
    """Return the figure in two formats, the same bytes for the same numbers."""
    figure = Figure((6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for core, rows in frame.groupby("core"):
        look = style(str(core).split()[0])
        dashes = "-" if str(core).endswith("+1") else "--"
        axes.loglog(rows["d"], rows["us_per_replica_step"], dashes, color=look.colour, marker=look.marker, label=core)
    axes.set_xlabel("attributes d")
    axes.set_ylabel("CPU microseconds per replica and step")
    axes.set_ylim(1, 2 * frame["us_per_replica_step"].max())
    axes.legend(title="learner, draws for x and for <w, x>")
    contents = {}
    for ending, metadata in (("png", {"Software": None}), ("pdf", {"CreationDate": None, "Producer": None})):
        buffer = BytesIO()
        figure.savefig(buffer, format=ending, dpi=150, metadata=metadata)
        contents[ending] = buffer.getvalue()
    return contents


def main() -> None:
    """Measure every case at every number of attributes, in turns."""
    arguments = bench_common.options(__doc__, rounds=2, d=[10**3, 10**4, 10**5, 10**6])
    times: dict[tuple[str, int], list[float]] = {}
    for _ in range(arguments.rounds):
        for d in arguments.d:
            table = bench_common.coins(d, LENGTH)
            for case, (update, k_x, k_ip) in CASES.items():
                times.setdefault((case, d), []).append(microseconds(table, update, k_x, k_ip))
    rows = [{"core": case, "d": d, "us_per_replica_step": round(min(values), 2)} for (case, d), values in times.items()]
    frame = pd.DataFrame(rows).sort_values(["core", "d"], ignore_index=True)
    least = frame.groupby("core")["us_per_replica_step"].transform("min")
    frame["ratio"] = (frame["us_per_replica_step"] / least).round(2)
    bench_common.save(frame, "growth.csv")
    for ending, content in draw(frame).items():
        write_atomically(bench_common.RESULTS / f"growth.{ending}", content)


if __name__ == "__main__":
    main()

"""Measure how the cost of a step grows with the number of attributes: AELR and AERR at k = 8, 48 replicas.

Prints a table of the median over rounds, with its interval and the ratio to the cheapest d of the same learner, and
writes results/bench/growth.csv, growth.png, growth.pdf and growth.txt.

    .venv/bin/python scripts/bench_growth.py
"""

import argparse
import time
from collections.abc import Sequence
from functools import partial

import bench  # before numpy is loaded
import numpy as np
import pandas as pd
from scipy.stats import binom

from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import GradientLearner
from budgetreg.algorithms.learner import BudgetSplit, SideInformation
from budgetreg.common.streams import BLOCK, generator
from budgetreg.figures.looks import Style, style
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table

FOLDS, LENGTH, WARM = 8, 3072, 1024
B, MULTIPLES = 2.0, 2.0 ** np.arange(-6, 0)
CASES = {"aelr 7+1": ("eg", 7, 1), "aelr 4+4": ("eg", 4, 4), "aerr 7+1": ("ogd", 7, 1), "aerr 4+4": ("ogd", 4, 4)}
COLUMNS = ("us_per_replica_step", "low", "high")
FINDING = "AELR and AERR, k = 8: from 1,000 to 1,000,000 attributes, the time of a step grows at most {ratio:.2f} times"
CAPTION = """growth: the time of a step of AELR and AERR against the number of attributes, k = 8, 48 replicas

Lines show CPU microseconds of a step per replica, the median of {rounds} rounds; bars are 90 % intervals of the median,
by order statistics. 8 draws are split between the data point and the inner product. The data are coins of mean 0.2 that
are computed when they are looked at, so that no step is spared as d grows and no table is held. The clock runs from the
1,025th example of a pass to the 2,817th, so that the state and the output, which take O(d) once per pass, do not count.
"""


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


def look_of(core: str) -> Style:
    """Return the look of a line: the learner's colour and name, and a marker for each split of the budget."""
    learner, split = core.split()
    of_learner = style(learner)
    return Style(of_learner.colour, "s" if split.endswith("+1") else "o", name=f"{of_learner.name} {split}")


def main() -> None:
    """Measure every case at every number of attributes, in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=13, help="times that everything is measured, in turns")
    tables = {d: bench.coins(d, LENGTH) for d in (10**3, 10**4, 10**5, 10**6)}
    cases = {(case, d): partial(microseconds, tables[d], *CASES[case]) for d in tables for case in CASES}
    rounds = parser.parse_args().rounds
    rows = [
        {"core": case, "d": d, **dict(zip(COLUMNS, median(times), strict=True))}
        for (case, d), times in bench.in_turns(cases, rounds).items()
    ]
    frame = pd.DataFrame(rows).sort_values(["core", "d"], ignore_index=True)
    smallest = frame.groupby("core")["us_per_replica_step"].transform("min")
    frame["ratio"] = (frame["us_per_replica_step"] / smallest).round(2)
    bench.save(frame, "growth")
    draw(frame, rounds)


def median(times: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, and the order statistics between which the true one lies in 90 % of all cases or more."""
    cut = int(binom.ppf(0.05, len(times), 0.5))  # fewer of them lie below the true median with at most 5 %
    low, high = np.sort(times)[[max(cut - 1, 0), min(len(times) - cut, len(times) - 1)]]
    return round(float(np.median(times)), 2), round(float(low), 2), round(float(high), 2)


def draw(frame: pd.DataFrame, rounds: int) -> None:
    """Draw the times."""
    lines = {
        (look := look_of(str(core))).name: (
            rows.set_index("d")[list(COLUMNS)].set_axis(["time", "low", "high"], axis="columns"),
            look,
        )
        for core, rows in frame.groupby("core")
    }
    labels = "attributes of an example, d", "CPU microseconds per replica and step"
    finding = FINDING.format(ratio=frame["ratio"].max())
    bench.draw(lines, labels, finding, CAPTION.format(rounds=rounds), "growth")


if __name__ == "__main__":
    main()

"""Measure what a fit of AEMR costs as the number of attributes grows: its moments, and the chain of its factor model.

Prints a table, also of the most memory that a fit takes beside what was revealed, and writes results/bench/moments.csv,
moments.png, moments.pdf and moments.txt.

    .venv/bin/python scripts/bench_moments.py
"""

import argparse
import tracemalloc
from collections.abc import Callable
from functools import partial

import bench  # before numpy is loaded
import numpy as np
import pandas as pd

from budgetreg.algorithms.aemr.moments import solve
from budgetreg.algorithms.factors.posterior import Posterior, posterior_moments
from budgetreg.figures.looks import COLOURS, Style
from budgetreg.revealed.collection import Entries
from budgetreg.revealed.columns import StandardisedEntries
from budgetreg.revealed.designs import uniform_subset
from budgetreg.streams import generator

EXAMPLES, K, FACTORS, N_FACTORS = 10_000, 5, 10, 20
FINDING = "AEMR, 5 attributes of each of 10,000 examples: beyond 1,000 attributes its moments take most of the time"
CAPTION = """moments: the time of a fit of AEMR against the number of attributes: its moments, and its factor model

Lines show the CPU seconds of one fit, the least of several rounds, on one stream of 10,000 examples that ten factors
move; 5 attributes of each were seen, uniformly; no intercept. The first fit of the factor model runs its chain from the
beginning, a later one continues it.
"""
LINES = {
    "s_moments": ("moments", Style(COLOURS["indigo"], "D", heavy=True)),
    "s_partner_first": ("factor model, first", Style(COLOURS["violet"], "o", heavy=True)),
    "s_partner_later": ("factor model, later", Style(COLOURS["lilac"], "s", heavy=True)),
}


def revealed(d: int) -> Entries:
    """Return the attributes seen of the examples."""
    rng = generator("moments", d)
    loadings, w = rng.standard_normal((d, FACTORS)), rng.standard_normal(FACTORS)
    draw, S = uniform_subset(d, K).draw, np.empty((0, K), dtype=np.int64)
    while len(S) < EXAMPLES:
        S = np.append(S, draw(rng).attributes, axis=0)
    S = S[:EXAMPLES]
    Z = rng.standard_normal((EXAMPLES, FACTORS))
    x = np.einsum("tkf,tf->tk", loadings[S], Z) + rng.standard_normal(S.shape)
    entries = Entries(d + 1)
    entries.add(S[None], x[None], (Z @ w)[None])
    return entries


def peak(action: Callable[[], object]) -> float:
    """Return the largest memory that an action takes, in megabytes."""
    tracemalloc.start()
    action()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


def measured(d: int, rounds: int) -> dict[str, float]:
    """Return one row of the table."""
    entries = revealed(d)
    blocks = entries.blocks()

    def moments() -> None:
        solve(blocks, 0, (EXAMPLES,), d, centred=False, intercept=False)

    def chain(posterior: Posterior) -> None:
        posterior_moments(posterior, StandardisedEntries(blocks, d, centred=False, intercept=False), entries.size)

    alone = min(bench.cpu_seconds(moments) for _ in range(rounds))  # one after the other, as for the streams of a run
    times = []
    for _ in range(rounds):
        posterior = Posterior(d + 1, min(N_FACTORS, d), [generator("chain", d)])
        times.append([bench.cpu_seconds(partial(chain, posterior)) for _ in range(2)])
    first, later = np.min(times, axis=0)
    posterior = Posterior(d + 1, min(N_FACTORS, d), [generator("chain", d)])
    return {
        "d": d,
        "s_moments": round(alone, 2),
        "s_partner_first": round(first, 2),
        "s_partner_later": round(later, 2),
        "mb_moments": round(peak(moments)),
        "mb_partner": round(peak(lambda: chain(posterior))),
    }


def main() -> None:
    """Measure at every number of attributes, and draw the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2, help="times that everything is measured")
    rounds = parser.parse_args().rounds
    measured(16, 1)  # the first fit imports modules, which is no part of its time
    frame = pd.DataFrame([measured(d, rounds) for d in (64, 128, 256, 512, 784, 1024, 2048)])
    bench.save(frame, "moments")
    lines = {label: (frame.set_index("d")[column], look) for column, (label, look) in LINES.items()}
    labels = "attributes of an example, d", "CPU seconds of a fit"
    bench.draw(lines, labels, FINDING, CAPTION, "moments")


if __name__ == "__main__":
    main()

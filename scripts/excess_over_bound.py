"""The excess error of learners in field/bound, divided by the least that is possible for normal data.

Reads the results of `budgetreg reproduce field/bound`. The excess is the mean test error above the noise. The bound is
that for uniform subsets of k attributes, and for ridge that for full rows, see `budgetreg.analysis.theory`.

Writes results/field/bound.csv, with a row for each design, number of examples (of k attributes each; ridge sees as
many attributes) and learner, and prints it.

    .venv/bin/python scripts/excess_over_bound.py
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from budgetreg.analysis.theory import noise_and_bound
from budgetreg.runs.series import read_folder

RESULTS = Path(__file__).resolve().parents[1] / "results" / "field"


def rows(folder: Path) -> Iterator[dict[str, object]]:
    """Yield the excess of each learner at each checkpoint, n times its bound, and their ratio."""
    for series in read_folder(folder):
        full = series.algo == "ridge"
        least = noise_and_bound(series, series.d if full else int(series.k))
        if least is None:
            raise SystemExit(f"{series.dataset} is not normal")
        noise, bound = least
        for examples, error in zip(series.mean["examples"], series.mean["test_relative"], strict=True):
            excess = error - noise
            yield {
                "design": series.config["protocol"],
                "examples": round(examples * series.d / int(series.k)) if full else examples,
                "algo": series.algo,
                "excess": excess,
                "n_bound": bound,
                "over_bound": excess * examples / bound,
            }


def main() -> None:
    """Write the table, and print it."""
    table = pd.DataFrame(rows(RESULTS / "bound"))
    table.to_csv(RESULTS / "bound.csv", index=False, float_format="%.6g")
    print(table.round(4).to_string(index=False))


if __name__ == "__main__":
    main()

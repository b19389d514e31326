"""Measure what each part of AEMR's moments contributes: replace one part at a time by the obvious alternative.

The runs use the moments alone (no factor model) and k = 4, on tables and distributions. For each
variant and data set, the script prints the geometric mean of the mean relative errors at a tenth, four tenths and all
of the budget, and its ratio to that of AEMR's moments. It writes them to results/aemr/parts.csv.

    .venv/bin/python scripts/ablate_moments.py
"""

import argparse
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from budgetreg.runs.workers import pin_blas_threads

pin_blas_threads()

import numpy as np  # noqa: E402 - after the threads are pinned
import pandas as pd  # noqa: E402

import budgetreg  # noqa: E402
from budgetreg.algorithms.aemr import moments  # noqa: E402
from budgetreg.files import write_atomically  # noqa: E402
from budgetreg.revealed.collection import Collected  # noqa: E402

TARGET = Path(__file__).resolve().parent.parent / "results" / "aemr" / "parts.csv"
DATA: Mapping[str, Mapping[str, Any]] = {
    "diabetes": {"dataset": "diabetes"},
    "breast cancer": {"dataset": "breast_cancer"},
    "wine": {"dataset": "wine"},
    "digits": {"dataset": "digits_3v5"},
    "independent": {"dataset": "gaussian", "dataset.d": 60, "dataset.n": 2000},
    "neighbours": {"dataset": "gaussian", "dataset.d": 60, "dataset.n": 2000, "dataset.rho": 0.9},
    "factors": {"dataset": "gaussian", "dataset.d": 60, "dataset.n": 2000, "dataset.n_factors": 5},
}


def uncleaned(G: np.ndarray, variance: float) -> moments.Spectrum:
    """Return the spectrum without cleaning, except that no eigenvalue is below the least that cleaning leaves."""
    del variance
    values, U = np.linalg.eigh(G)
    return moments.Spectrum(U, np.maximum(values, 0.02))


def picked(judgement: moments.CandidateScores) -> np.ndarray:
    """Return all weight for the candidate of the least risk."""
    return np.asarray(np.arange(len(judgement.risk)) == judgement.risk.argmin()).astype(float)


def by_variance(*arguments: Any) -> moments.Pairs:
    """Return pairs of attributes scaled to equal variances, however often they were seen."""
    seen = moments.Pairs(*arguments)
    c = seen.scale / np.sqrt(seen.diagonal)
    turn = np.outer(c, c) / np.outer(seen.scale, seen.scale)
    seen.scale, seen.diagonal, seen.sums = c, np.ones(len(c)), seen.sums * turn
    return seen


PARTS: Mapping[str, tuple[Any, str, Any]] = {
    "spectrum not cleaned": (moments, "clean", uncleaned),
    "best candidate picked": (moments.CandidateScores, "weights", picked),
    "correlation metric": (moments, "Pairs", by_variance),
    "uniform draws": (Collected, "plan", lambda *_: None),
}


def errors(data: Mapping[str, Any], repetitions: int) -> float:
    """Return the geometric mean over checkpoints of the mean error."""
    with tempfile.TemporaryDirectory() as out:
        choices = {"algo": "aemr", "algo.partner": "none", "tuning": "paid", "k": 4, **data}
        results = budgetreg.run(
            {**choices, "repetitions": repetitions, "checkpoints": [0.1, 0.4, 1], "backend": "sequential", "out": out}
        )
        return float(np.exp(np.log(results.curves.groupby("examples")["test_relative"].mean()).mean()))


def main() -> None:
    """Measure every variant on every set of data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=10)
    arguments = parser.parse_args()
    rows = []
    for name, data in DATA.items():
        whole = errors(data, arguments.repetitions)
        rows.append({"variant": "as it is", "data": name, "error": whole, "ratio": 1.0})
        for part, replacement in PARTS.items():
            with ExitStack() as stack:
                stack.enter_context(patch.object(*replacement))
                error = errors(data, arguments.repetitions)
            rows.append({"variant": part, "data": name, "error": error, "ratio": error / whole})
    frame = pd.DataFrame(rows)
    mean = np.exp(np.log(frame.pivot_table(index="variant", columns="data", values="ratio")).mean(axis=1))
    frame = pd.concat(
        [frame, pd.DataFrame({"variant": mean.index, "data": "geometric mean", "ratio": mean.to_numpy()})]
    ).round(4)
    print(frame.pivot_table(index="variant", columns="data", values="ratio", sort=False).to_string())
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(TARGET, frame.to_csv(index=False).encode())


if __name__ == "__main__":
    main()

"""Trials of `stress.py` with tables whose values do not show their scale: nearly constant, heaped, skewed, of any unit.

Each trial draws a table with ordinary attributes and others of its case, learns from it with a random learner and k in
ten random splits, and compares the mean error with that of predicting the mean.
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from stress_trials import Trial, TrialResult, forked

_LARGEST = 1.2
"""Mean error, relative to that of predicting the mean."""

_N, _D = 126, 12
_LEARNERS = (
    "aemr",
    "aemr algo.partner=none",
    "aeml",
    "impute_ridge",
    "impute_ridge algo.impute=iterative",
    "fixed_subset",
)

Column = Callable[[np.random.Generator], np.ndarray]


def _heap(rng: np.random.Generator, at: float, within: float) -> np.ndarray:
    """Return values near one value, of which 1 to 5 % are others."""
    others = rng.random(_N) < rng.uniform(0.01, 0.05)
    return at + np.where(others, rng.normal(size=_N), within * rng.normal(size=_N))


def _lognormal(rng: np.random.Generator) -> np.ndarray:
    return np.exp(rng.uniform(2, 8) * rng.normal(size=_N))


_COLUMNS: Mapping[str, Column] = {
    "rounding": lambda rng: _heap(rng, 0.0, 10.0 ** rng.uniform(-13, -6)),
    "nearly constant": lambda rng: _heap(rng, 1.0, 1e-9),
    "equal": lambda rng: _heap(rng, float(rng.integers(6)), 0.0),
    "skewed": _lognormal,
    "any unit": lambda rng: 10.0 ** rng.uniform(-19, 9) * rng.normal(size=_N),
}


def _mixed(rng: np.random.Generator) -> np.ndarray:
    return list(_COLUMNS.values())[rng.integers(len(_COLUMNS))](rng)


_CASES: Mapping[str, Column] = {**_COLUMNS, "mixed": _mixed}


def prepared(place: Path, count: int) -> Mapping[str, Mapping[str, Any]]:
    """Return the cases."""
    del place, count
    return {case: {} for case in _CASES}


def tried(trial: Trial) -> TrialResult:
    """Run a learner on a table of the case."""
    rng, result = trial.rng, TrialResult(trial)
    folder = trial.place / f"{trial.case} {trial.number}"
    folder.mkdir()
    factors = rng.normal(size=(_N, 2))
    X = factors @ rng.normal(size=(2, _D)) + rng.normal(size=(_N, _D))
    y = factors @ [1, 0.6] + 0.5 * rng.normal(size=_N)
    for at in rng.permutation(_D)[: rng.integers(1, _D - 2)]:
        X[:, at] = _CASES[trial.case](rng)
    np.savez(folder / "table.npz", X=X, y=y)
    learner, k = _LEARNERS[rng.integers(len(_LEARNERS))], rng.choice([3, 4, _D])
    words = f"run dataset=file dataset.path=table.npz algo={learner} k={k} repetitions=10 checkpoints=1 out=out"
    answer = forked([*words.split(), "backend=sequential"], folder)
    result.judge(words, answer, (0,))
    if not result.faults:
        error = pd.read_csv(folder / "out" / "curves.csv")["test_relative"].mean()
        if not error <= _LARGEST:
            result.note("wrong", f"{folder}: {words}: mean error {error:.3g}")
        elif "radii" in answer.err:
            result.note("untold", f"{words}: {answer.err[-2000:]}")
        else:
            shutil.rmtree(folder)
    return result

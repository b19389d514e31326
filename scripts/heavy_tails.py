"""The errors of AEMR and AEML on tables with heavy tails, constant or collinear columns, or more columns than rows.

Each table is drawn once per seed, see `TABLES`. Each learner sees k attributes of every training example, with the
defaults for own data (``dataset.scale=revealed`` and an automatic pilot), in ten repetitions with a test part each. An
error is relative to that of predicting the mean. No learner may end above `LIMIT`, averaged over the repetitions.

Writes results/heavy_tails.csv, with a row for each table, seed, learner and k: the mean error of the last checkpoint
with its interval (`budgetreg.analysis.intervals.mean_error`) and the largest error of a repetition. Prints the means
over seeds, and the rows above the limit.

    .venv/bin/python scripts/heavy_tails.py
"""

import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from budgetreg.analysis.intervals import mean_error
from budgetreg.config.composition import Composer
from budgetreg.protocol.configuration import validate
from budgetreg.protocol.plan import make_plan
from budgetreg.protocol.repetitions import run_repetitions

LIMIT = 1.2
REPETITIONS = 10
LEARNERS, BUDGETS, SEEDS = ("aemr", "aeml"), (2, 4, 8), 3
RESULTS = Path(__file__).resolve().parents[1] / "results" / "heavy_tails.csv"

Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


def factors(rng: np.random.Generator, n: int = 437, d: int = 25, noise: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    """Return normal columns of about unit variance with three common factors, and a target of these with noise."""
    common, loadings = rng.normal(size=(n, 3)), rng.normal(size=(3, d)) / 3**0.5
    X = (common @ loadings + noise * rng.normal(size=(n, d))) / (1 + noise**2) ** 0.5
    return X, common @ [1, 0.5, -0.5] + 0.5 * rng.normal(size=n)


def of_factors(change: Callable[[np.random.Generator, np.ndarray], np.ndarray]) -> Draw:
    """Return a table whose columns are those of `factors`, changed; the target is as there."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X, y = factors(rng)
        return change(rng, X), y

    return draw


def linear(columns: Callable[[np.random.Generator, tuple[int, int]], np.ndarray], noise: float) -> Draw:
    """Return a table of independent columns and a linear target with normal weights of total variance 1, and noise."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X = columns(rng, (437, 25))
        return X, X @ rng.normal(size=25) / 5 + noise * rng.normal(size=437)

    return draw


TABLES: dict[str, Draw] = {
    "normal": of_factors(lambda rng, X: X),
    "lognormal": of_factors(lambda rng, X: np.exp(1.5 * X)),
    "t2": of_factors(lambda rng, X: X + rng.standard_t(2, X.shape)),
    "cauchy": of_factors(lambda rng, X: X + rng.standard_cauchy(X.shape)),
    "outliers": of_factors(lambda rng, X: X * np.where(rng.random(X.shape) < 0.01, 100, 1)),
    "counts": of_factors(lambda rng, X: rng.poisson(np.exp(X) * rng.gamma(0.5, 2, X.shape)).astype(float)),
    "constant": of_factors(lambda rng, X: np.where(np.arange(25) < 5, 5.0, X)),
    "t2 linear": linear(lambda rng, shape: rng.standard_t(2, shape), 0.5),
    "cauchy linear": linear(lambda rng, shape: rng.standard_cauchy(shape), 0.5),
    "low noise": linear(lambda rng, shape: rng.normal(size=shape), 0.01),
    "collinear": lambda rng: factors(rng, noise=0.01),
    "wide": lambda rng: factors(rng, n=80, d=120),
}
"""By name, 437 examples with 25 attributes, but 80 with 120 in "wide"."""


def errors(path: Path, algo: str, k: int) -> np.ndarray:
    """Return the error of each repetition on a table, relative to that of predicting the mean."""
    choices = {"dataset": "file", "dataset.path": str(path), "algo": algo, "k": k, "checkpoints": 1}
    plan = make_plan(validate(Composer()(choices)))
    results = run_repetitions(plan, range(REPETITIONS), lambda done: None)
    return np.array([result["curve"][-1]["test_relative"] for result in results])


def rows(folder: Path) -> Iterator[dict[str, object]]:
    """Yield the rows of the table of results."""
    for table, draw in TABLES.items():
        for seed in range(SEEDS):
            X, y = draw(np.random.default_rng([seed, *table.encode()]))
            path = folder / f"{table.replace(' ', '_')}_{seed}.npz"
            np.savez(path, X=X, y=y)
            for algo, k in product(LEARNERS, BUDGETS):
                each = errors(path, algo, k)
                mean = mean_error(each)
                row = {"table": table, "seed": seed, "algo": algo, "k": k}
                yield {**row, "error": mean.value, "low": mean.low, "high": mean.high, "largest": each.max()}


def main() -> None:
    """Write the results, and print what they come to."""
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        results = pd.DataFrame(rows(Path(folder)))
    results.to_csv(RESULTS, index=False, float_format="%.6g")
    means = results.pivot_table(values="error", index="table", columns=["algo", "k"], sort=False)
    print(means.round(3).to_string())
    print(f"\nworst: {results.sort_values('error').iloc[-1].to_dict()}")
    above = results[results["error"] > LIMIT]
    print(f"above {LIMIT}: {len(above)} of {len(results)}")
    if len(above):
        print(above.to_string(index=False))


if __name__ == "__main__":
    main()

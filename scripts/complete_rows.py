"""The errors of AEMR and AEML on complete rows (k = d), beside those of ridge on the same rows.

The tables are the bundled ones, and simulated ones with a linear target, see `TABLES`. Noise is the share of the
target's variance that no attribute explains. Each repetition draws other rows for training, 1.5, 4 and 10 per
attribute if there are so many, and tests on others. An error is relative to that of predicting the mean. Ridge chooses
its penalty by leave-one-out errors.

Writes results/aemr/complete_rows.csv, with a row for each table, number of rows and learner: the mean error. Prints the
ratios to ridge.

    .venv/bin/python scripts/complete_rows.py
"""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from budgetreg.estimators import AEML, AEMR

PER_ATTRIBUTE = (1.5, 4, 10)
REPETITIONS, TEST = 10, 1000
RESULTS = Path(__file__).resolve().parents[1] / "results" / "aemr" / "complete_rows.csv"

Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


def bundled(load: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Draw:
    """Return a function that shuffles the rows of a table."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X, y = load(return_X_y=True)
        order = rng.permutation(len(y))
        return X[order], y[order].astype(float)

    return draw


def linear(d: int, noise: float, n_factors: int = 0, unique: float = 1.0, support: int | None = None) -> Draw:
    """Return a function that draws normal attributes with common factors, and a target of all or some of them."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        n = 10 * d + TEST
        X = rng.normal(size=(n, n_factors)) @ rng.normal(size=(n_factors, d)) + unique * rng.normal(size=(n, d))
        w = np.where(rng.permutation(d) < (support or d), rng.normal(size=d), 0.0)
        signal = (X / X.std(axis=0)) @ w
        return X, signal / signal.std() * (1 - noise) ** 0.5 + noise**0.5 * rng.normal(size=n)

    return draw


TABLES: dict[str, Draw] = {
    "diabetes": bundled(load_diabetes),
    "wine": bundled(load_wine),
    "breast cancer": bundled(load_breast_cancer),
    "independent": linear(20, 0.02),
    "three factors": linear(20, 0.02, n_factors=3),
    "collinear": linear(12, 0.02, n_factors=3, unique=0.1),
    "sparse": linear(40, 0.02, support=4),
    "noisy": linear(24, 0.2, n_factors=3),
}
"""By name; the simulated ones have a noise of 0.02, "noisy" 0.2."""


def rows() -> Iterator[dict[str, object]]:
    """Yield the error of each learner in each repetition."""
    for table, draw in TABLES.items():
        for repetition in range(REPETITIONS):
            X, y = draw(np.random.default_rng([repetition, *table.encode()]))
            d = X.shape[1]
            for per_attribute in PER_ATTRIBUTE:
                n = int(per_attribute * d)
                if n > 0.8 * len(y):
                    continue
                test = slice(max(n, len(y) - TEST), None)
                learners = {
                    "aemr": AEMR(k=d, random_state=repetition),
                    "aeml": AEML(k=d, random_state=repetition),
                    "ridge": make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-4, 1e4, 50))),
                }
                for name, learner in learners.items():
                    predictions = learner.fit(X[:n], y[:n]).predict(X[test])
                    error = np.square(predictions - y[test]).mean() / np.square(y[:n].mean() - y[test]).mean()
                    yield {"table": table, "per_attribute": per_attribute, "rows": n, "algo": name, "error": error}


def main() -> None:
    """Write the results, and print what they come to."""
    warnings.simplefilter("ignore", UserWarning)
    each = pd.DataFrame(rows())
    keys = ["table", "per_attribute", "rows", "algo"]
    means = each.groupby(keys, sort=False)["error"].mean().reset_index()
    means.to_csv(RESULTS, index=False, float_format="%.6g")
    errors = means.pivot_table(values="error", index=keys[:3], columns="algo", sort=False)
    print(errors.assign(ratio=errors["aemr"] / errors["ridge"]).round(3).to_string())


if __name__ == "__main__":
    main()

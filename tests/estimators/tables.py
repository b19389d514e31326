"""Tables with holes for the tests of estimators, and small constants for every learner."""

from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.estimators import ESTIMATORS, BudgetEstimator
from budgetreg.estimators.parameters import learner_of, python_name

CONSTANTS = {"B": 1.0, "lambda": 0.1, "forgetting": 0.9}


def table(n: int, d: int, share: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return values (n, d), of which a share is known, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 1)) + rng.standard_normal((n, d)) * np.arange(1, d + 1) + 3
    y = X @ (1 / np.arange(1, d + 1)) + 0.5 * rng.standard_normal(n)
    return np.where(rng.random((n, d)) < share, X, np.nan), y


class Observed:
    """A table whose values are asked for; it notes of which example which attributes were, call by call."""

    def __init__(self, X: np.ndarray) -> None:
        self.X = X
        self.calls: list[tuple[int, list[int]]] = []

    def __call__(self, example: int, attributes: np.ndarray) -> np.ndarray:
        self.calls.append((example, attributes.tolist()))
        return np.asarray(self.X[example, attributes])

    @property
    def cells(self) -> list[tuple[int, int]]:
        """All cells that were asked for."""
        return [(example, j) for example, attributes in self.calls for j in attributes]


def written(path: Path, X: np.ndarray, y: np.ndarray | None = None) -> Path:
    """Write a table as CSV, the target last; NaN becomes an empty cell."""
    columns, header = (X, []) if y is None else (np.column_stack([X, y]), ["y"])
    rows = [",".join("" if np.isnan(v) else repr(float(v)) for v in row) for row in columns]
    path.write_text("\n".join([",".join([*(f"x{j}" for j in range(X.shape[1])), *header]), *rows]) + "\n")
    return path


def small(name: str, **given: Any) -> BudgetEstimator:
    """Return an estimator that sees 4 attributes of each example, with a model that is quickly computed."""
    cls = ESTIMATORS[name]
    defaults = {"k": 4, "n_components": 1, "n_factors": 2, "pilot": 2, "folds": 2}
    defaults |= {
        python_name(constant): CONSTANTS.get(constant, 0.05) for constant in learner_of(cls.algo).tuned if not cls.tuned
    }
    known = cls().get_params()
    return cls(**{key: value for key, value in {**defaults, **given}.items() if key in known})

"""What ridge on imputed rows has to be: refitted without one row after the other, for each strength."""

import numpy as np

from budgetreg.enumeration import certificates
from budgetreg.enumeration.expectations import LearnerUnderTest, Oracle, same
from budgetreg.learners.imputation.core import strengths
from budgetreg.metering.table import Table
from budgetreg.streams import generator

D, M = 5, 40


class ImputationOracle(Oracle):
    """Ridge on imputed rows: refitted without one row after the other, for each strength."""

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare with ridge on full rows at k = d, where there is nothing to impute."""
        rng = generator("check imputation")
        X = rng.standard_normal((M, D)) * np.linspace(0.5, 2, D)
        y = X @ np.linspace(-1, 1, D) + rng.standard_normal(M)
        (W,), _ = subject.run(Table(X, y), np.arange(M)[None], [generator("check imputation draws")], D, {})
        same("the regressor at k = d", W[0, :, 0], _chosen(X, y))

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Compare with ridge on rows in which the mean of what was shown of an attribute stands for what was not."""
        for shown in certificates.run(subject, {}):
            X = np.full((len(shown.y), certificates.D), np.nan)
            for row, attributes, values in zip(X, shown.attributes, shown.values, strict=True):
                row[attributes] = values
            seen, w = ~np.isnan(X).all(axis=0), np.zeros(certificates.D)
            X = X[:, seen]
            w[seen] = _chosen(np.where(np.isnan(X), np.nanmean(X, axis=0), X), shown.y)
            same(f"ridge on {len(X)} imputed rows", shown.output[:, 0], w)


def _chosen(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ridge of the strength with which rows are predicted best from all others."""

    def ridge(X: np.ndarray, y: np.ndarray, strength: float) -> np.ndarray:
        return np.linalg.solve(X.T @ X + strength * np.eye(X.shape[1]), X.T @ y)

    def error(strength: float) -> float:
        others = [np.arange(len(y)) != row for row in range(len(y))]
        return sum((y[~kept] - X[~kept] @ ridge(X[kept], y[kept], strength)).item() ** 2 for kept in others)

    return ridge(X, y, min(strengths(X), key=error))

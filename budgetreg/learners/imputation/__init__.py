"""Impute, then ridge: what is commonly done where values are missing, for comparison with learners made for a budget.

All of it is scikit-learn's: its imputers, and `RidgeCV`, which chooses the strength by leaving out one row at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.config.options import option
from budgetreg.config.requirements import one_of
from budgetreg.enumeration import certificates
from budgetreg.enumeration.expectations import LearnerUnderTest, Oracle, same
from budgetreg.errors import ConfigError
from budgetreg.learners.bases import PairwiseLearner
from budgetreg.learners.declaration import (
    UNBOUNDED,
    Missing,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    Trajectory,
)
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.streams import generator

_WAYS = {"mean": "the means of those seen", "iterative": "regressions on all others, ten times over"}

_MOST_ATTRIBUTES = 100
"""For iterative imputation, which takes ten times d regressions on d attributes at each checkpoint."""

_GUESSED = "imputed values are guesses, and the regressor is not linear in them"


_D, _M = 5, 40
"""Attributes and examples of full rows."""


class ImputationOracle(Oracle):
    """Ridge on imputed rows: refitted without one row after the other, for each strength."""

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare with ridge on full rows at k = d, where there is nothing to impute."""
        rng = generator("check imputation")
        X = rng.standard_normal((_M, _D)) * np.linspace(0.5, 2, _D)
        y = X @ np.linspace(-1, 1, _D) + rng.standard_normal(_M)
        (W,), _ = subject.run(Table(X, y), np.arange(_M)[None], [generator("check imputation draws")], _D, {})
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
    from budgetreg.learners.imputation.core import strengths

    def ridge(X: np.ndarray, y: np.ndarray, strength: float) -> np.ndarray:
        return np.linalg.solve(X.T @ X + strength * np.eye(X.shape[1]), X.T @ y)

    def error(strength: float) -> float:
        others = [np.arange(len(y)) != row for row in range(len(y))]
        return sum((y[~kept] - X[~kept] @ ridge(X[kept], y[kept], strength)).item() ** 2 for kept in others)

    return ridge(X, y, min(strengths(X), key=error))


@dataclass(frozen=True)
class ImputationLearner(PairwiseLearner):
    """Ridge on rows whose unseen values are imputed, by their means or by regressions."""

    impute: str = option("the way to impute", one_of(*_WAYS))

    core = "imputation"
    centres_itself = True
    missing = Missing.LEFT_OUT
    oracle = ImputationOracle()

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run `budgetreg.learners.imputation.core.fit`."""
        from budgetreg.learners.imputation import core

        return core.fit(
            accessor,
            settings,
            checkpoints,
            rngs,
            k=given.k,
            impute=self.impute,
            centred=given.centred,
            intercept=given.intercept,
        )

    def notes(self, run: RunContext, settings: Mapping[str, Sequence[float]]) -> Sequence[str]:
        """Return nothing.

        Raises
        ------
        ConfigError
            If there are too many attributes for iterative imputation.
        """
        if self.impute == "iterative" and run.d > _MOST_ATTRIBUTES:
            raise ConfigError(
                f"algo.impute=iterative: at most {_MOST_ATTRIBUTES} attributes, as {run.d} would take too long; "
                "use mean"
            )
        return ()

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it imputes."""
        return "k attributes per example", f"ridge, what was not seen being imputed by {_WAYS[self.impute]}"

    @property
    def skipped_checks(self) -> Mapping[str, str]:
        """Estimates are guesses."""
        guessed = {"unbiased": _GUESSED, "second moments": _GUESSED, "boundary": UNBOUNDED}
        if self.impute == "mean":
            return guessed
        return {**guessed, "minimiser": "what it minimises depends on values that scikit-learn makes up"}

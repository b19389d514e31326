"""Impute, then ridge: what is commonly done where values are missing, for comparison with learners made for a budget.

All of it is scikit-learn's: its imputers, and `RidgeCV`, which chooses the strength by leaving out one row at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from budgetreg.config.options import option
from budgetreg.config.requirements import one_of
from budgetreg.errors import ConfigError
from budgetreg.learners.declaration import (
    UNBOUNDED,
    Missing,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    Trajectory,
)
from budgetreg.learners.imputation.oracle import ImputationOracle
from budgetreg.learners.subspaces import PairwiseLearner
from budgetreg.metering.accessor import Accessor

_WAYS = {"mean": "the means of those seen", "iterative": "regressions on all others, ten times over"}

_MOST_ATTRIBUTES = 100
"""For iterative imputation, which takes ten times d regressions on d attributes at each checkpoint."""

_GUESSED = "imputed values are guesses, and the regressor is not linear in them"


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

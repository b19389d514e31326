"""Offline ridge and lasso: the empirical loss minimised over balls, on each prefix of the examples, seen in full.

The comparisons of Cesa-Bianchi et al. 2010 and of Hazan & Koren 2012.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from budgetreg.config.options import option
from budgetreg.config.requirements import one_of
from budgetreg.enumeration.certificates import BallOracle, largest, one_norm, two_norm
from budgetreg.learners.declaration import (
    ANY_BUDGET,
    RADIUS,
    SEES_ALL,
    UNBOUNDED,
    Batching,
    Learner,
    Observation,
    Rngs,
    Settings,
    SideInformation,
    Trajectory,
)
from budgetreg.metering.accessor import Accessor

_PROBLEMS = {"ridge": "least squares in the 2-ball", "lasso": "least squares in the 1-ball"}
_NORMS = {"ridge": (two_norm, two_norm), "lasso": (one_norm, largest)}
"""The norm of the ball, and the dual norm."""


@dataclass(frozen=True)
class OfflineLearner(Learner):
    """Ridge and lasso on full rows: which ball the regressor lies in.

    Attributes
    ----------
    update : {'ridge', 'lasso'}
        The ball: ``|w|_2 <= B`` or ``|w|_1 <= B``.
    """

    update: str = option("the update", one_of(*_PROBLEMS), tried=())

    core = "offline"
    observation = Observation.ALL
    parameters = (RADIUS,)
    tuned = ("B",)
    batching = Batching.WITH_ITS_FOLDS
    shares_settings = True
    centres_itself = True
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": "the loss is minimised itself, without gradients",
        "second moments": SEES_ALL,
        "full at k=d": SEES_ALL,
        "boundary": UNBOUNDED,
        "small k": ANY_BUDGET,
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run `budgetreg.learners.offline.core.fit`."""
        from budgetreg.learners.offline import core

        return core.fit(self, accessor, settings, checkpoints, rngs, given)

    @property
    def words(self) -> Sequence[str]:
        """What it sees and minimises."""
        return "all attributes, offline solution for each prefix of the examples", _PROBLEMS.get(self.update, "")

    @property
    def oracle(self) -> BallOracle:
        """Certificates that no regressor of the ball has a smaller loss."""
        return BallOracle(*_NORMS[self.update])

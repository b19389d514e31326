"""Online ridge and online lasso: the exact gradient from all attributes, in one pass.

The comparisons of Hazan & Koren 2012 and of Kukliansky & Shamir 2015.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from budgetreg.enumeration.gradients import GradientOracle
from budgetreg.learners import bases
from budgetreg.learners.declaration import (
    ANY_BUDGET,
    ONE_PASS,
    RADIUS,
    SEES_ALL,
    STEP_SIZE,
    Learner,
    Observation,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    Theorem,
    Trajectory,
)
from budgetreg.metering.accessor import Accessor
from budgetreg.theory import eg_step, ogd_step
from budgetreg.updates.reference_updates import REFERENCE_UPDATES


@dataclass(frozen=True)
class ExactGradientLearner(Learner):
    """Online ridge and online lasso: the update and the iterates that are averaged."""

    update: str = bases.update_option("ogd", "eg")
    average: str = bases.average_option()

    core = "exact"
    observation = Observation.ALL
    parameters = (RADIUS, STEP_SIZE)
    tuned = ("B", "eta")
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "second moments": SEES_ALL,
        "full at k=d": SEES_ALL,
        "minimiser": ONE_PASS,
        "small k": ANY_BUDGET,
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run `budgetreg.learners.exact.core.fit`."""
        from budgetreg.learners.exact import core

        return core.fit(accessor, settings, checkpoints, rngs, update=self.update, average=self.average)

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return the step size of Hazan & Koren 2012 for exact gradients."""
        assert B is not None
        return {"eta": eg_step(B, run.d, run.m, None) if self.update == "eg" else ogd_step(run.d, run.m, None)}

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return "all attributes, one pass", bases.UPDATES.get(self.update, "")

    @property
    def theorem(self) -> Theorem | None:
        """The regret bounds, of the average of all iterates."""
        return bases.gradient_theorem(self.update, None) if self.average == "all" else None

    @property
    def oracle(self) -> GradientOracle:
        """Exact gradients: nothing is drawn."""
        return GradientOracle(REFERENCE_UPDATES[self.update], None, average=self.average)

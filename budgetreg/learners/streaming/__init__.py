"""Oja, GROUSE and PETRELS: a subspace that moves with every example, of which a uniform subset is seen.

The references stand with the updates, `budgetreg.updates`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from budgetreg.config.options import option
from budgetreg.config.requirements import one_of
from budgetreg.errors import ConfigError
from budgetreg.learners.bases import SubspaceLearner
from budgetreg.learners.declaration import (
    ONE_PASS,
    STEP_SIZE,
    UNBOUNDED,
    Batching,
    BudgetSplit,
    Parameter,
    Rngs,
    Settings,
    SideInformation,
    Trajectory,
)
from budgetreg.metering.accessor import Accessor

_UPDATES = {
    "oja": "Oja's rule with an unbiased estimate of the second moment",
    "grouse": "GROUSE, gradient steps on the Grassmannian",
    "petrels": "PETRELS, recursive least squares for each attribute",
}
_FITTED = "the subspace is fitted to what is seen of each example, without an estimate of x x'"
_DIVIDED = "the estimate is popca's, and the step that follows it is divided by the size of all steps before"
_FORGETTING = "the factor by which an example's weight falls with each one that follows"


@dataclass(frozen=True)
class StreamingLearner(SubspaceLearner):
    """Oja, GROUSE and PETRELS: how the subspace moves."""

    update: str = option("the update", one_of(*_UPDATES), tried=())

    core = "streaming"
    parameters = (
        replace(STEP_SIZE, absolute=True),
        Parameter("forgetting", _FORGETTING, absolute=True, tried=(0.9, 0.99), unlimited=False),
    )
    batching = Batching.IN_STEP

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run `budgetreg.learners.streaming.core.fit`."""
        from budgetreg.learners.streaming import core

        return core.fit(
            accessor, settings, checkpoints, rngs, k=given.k, n_components=self.n_components, update=self.update
        )

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse a budget of 1, and of no more attributes than weights that are fitted to them.

        Raises
        ------
        ConfigError
            If the budget is too small.
        """
        super().split_budget(k)
        n = self.n_components
        if self.update != "oja" and k <= n:
            raise ConfigError(
                f"k={k}: {self.name} fits {n} weights to the attributes of each example, and needs a budget above "
                f"algo.n_components={n}"
            )
        return None

    @property
    def tuned(self) -> Sequence[str]:
        """The step size, or for PETRELS how fast it forgets."""
        return ("forgetting",) if self.update == "petrels" else ("eta",)

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return "k attributes per example", _UPDATES.get(self.update, "")

    @property
    def skipped_checks(self) -> Mapping[str, str]:
        """No estimate without bias, and no minimum."""
        reason = _DIVIDED if self.update == "oja" else _FITTED
        estimates = dict.fromkeys(("unbiased", "second moments", "full at k=d"), reason)
        return {**estimates, "boundary": UNBOUNDED, "minimiser": ONE_PASS}

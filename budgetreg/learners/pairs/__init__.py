"""Baseline and Naive: pairs of attributes estimate the loss, or the correlations with the target.

References
----------
N. Cesa-Bianchi, S. Shalev-Shwartz, O. Shamir. Efficient Learning with Partially Observed Attributes. ICML 2010,
Algorithm 1 and footnote 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from budgetreg.config.options import option
from budgetreg.config.requirements import one_of
from budgetreg.enumeration.expectations import Oracle
from budgetreg.errors import ConfigError
from budgetreg.learners.bases import UNBOUNDED
from budgetreg.learners.declaration import RADIUS, Cost, Learner, Missing
from budgetreg.learners.signature import BudgetSplit, Rngs, Settings, SideInformation, Trajectory
from budgetreg.metering.accessor import Accessor
from budgetreg.tasks.task import WithIntercept

_PROBLEMS = {
    "program": "estimated least squares in the 1-ball, negative eigenvalues set to 0",
    "correlation": "estimated correlations scaled to a 1-norm",
}


@dataclass(frozen=True)
class Baseline(Learner):
    """Baseline and Naive: what is solved for the estimates.

    Attributes
    ----------
    update : {'program', 'correlation'}
        How the regressor is computed from the estimates, see `minimisers` and `correlation`.
    """

    update: str = option("the update", one_of(*_PROBLEMS), tried=())

    core = "pairs"
    parameters = (RADIUS,)
    tuned = ("B",)
    missing = Missing.WEIGHED
    centres_itself = True
    shares_settings = True
    skipped_checks: ClassVar[Mapping[str, str]] = {"boundary": UNBOUNDED}

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Estimate the loss along all streams and minimise it at the checkpoints; see `Learner.fit`.

        A pair is charged 2 attributes, also if they are equal. The setting is ``B``, the largest 1-norm.
        """
        from budgetreg.learners.pairs import core  # imported here because SciPy loads slowly

        solve = {"program": core.minimisers, "correlation": core.correlation}[self.update]
        centring = None
        if given.centred or given.intercept:
            centring = core.PairCentring(accessor.n_streams, accessor.d, core.together(accessor))
        for checkpoint, A, v in core.estimates(accessor, checkpoints, rngs, given.k, centring):
            if centring is None:
                yield checkpoint, np.stack([solve(A_f, v_f, settings["B"]) for A_f, v_f in zip(A, v, strict=True)])
                continue
            m, r = centring.origin(given.centred, given.intercept)
            moments = zip(*centring.centre(A, v, m, r), strict=True)
            W = np.stack([solve(A_f, v_f, settings["B"]) for A_f, v_f in moments])
            yield checkpoint, WithIntercept(W, r[:, None] - np.einsum("fd,fdg->fg", m, W))

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse a budget below a pair.

        Raises
        ------
        ConfigError
            If the budget is 1.
        """
        if k < 2:
            raise ConfigError(f"k={k}: {self.name} needs a budget of at least 2, the attributes of one pair")
        return None

    def cost(self, d: int, k: int, settings: Mapping[str, float]) -> Cost:
        """Return what whole pairs cost; one attribute of an odd budget is left over."""
        return Cost(k - k % 2, k - k % 2)

    @property
    def words(self) -> Sequence[str]:
        """What it sees and solves."""
        return "k attributes per example, in pairs", _PROBLEMS.get(self.update, "")

    @property
    def oracle(self) -> Oracle:
        """The distribution of what pairs estimate, and certificates of what is solved."""
        from budgetreg.learners.pairs.oracle import PairEstimatesOracle

        return PairEstimatesOracle(self.update)

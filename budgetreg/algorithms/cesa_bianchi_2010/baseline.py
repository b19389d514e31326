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

from budgetreg.algorithms.bases import UNBOUNDED
from budgetreg.algorithms.learner import RADIUS, Cost, Learner, Missing
from budgetreg.algorithms.signature import BudgetSplit, Rngs, Settings, SideInformation, Trajectory
from budgetreg.config.options import one_of, option
from budgetreg.errors import ConfigError
from budgetreg.metering.accessor import Accessor
from budgetreg.tasks import WithIntercept

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
    continues = True
    parameters = (RADIUS,)
    tuned = ("B",)
    missing = Missing.WEIGHED
    centres_itself = True
    scales_itself = True
    shares_settings = True
    skipped_checks: ClassVar[Mapping[str, str]] = {"boundary": UNBOUNDED}

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Estimate the loss along all streams and minimise it at the checkpoints; see `Learner.fit`.

        A pair is charged 2 attributes, also if they are equal. The setting is ``B``, the largest 1-norm. Where
        attributes are scaled, it is that for attributes in units of the standard deviations of what was seen.
        """
        from budgetreg.algorithms.cesa_bianchi_2010 import pairs_core  # imported here because SciPy loads slowly

        solve = {"program": pairs_core.minimisers, "correlation": pairs_core.correlation}[self.update]
        centred = given.centred or given.intercept
        centring = pairs_core.PairCentring(accessor) if centred or given.scaled else None
        for checkpoint, A, v in pairs_core.estimates(accessor, checkpoints, rngs, given.k, centring):
            scale = np.ones(v.shape)
            if centring:
                m, r = centring.origin(given.centred, given.intercept)
                A, v = centring.centre(A, v, m, r)
            if centring and given.scaled:
                scale = centring.scale(given.centred)
                A, v = A * (scale[:, :, None] * scale[:, None, :]), v * scale
            W = np.stack([solve(A_f, v_f, settings["B"]) for A_f, v_f in zip(A, v, strict=True)]) * scale[:, :, None]
            yield checkpoint, WithIntercept(W, r[:, None] - np.einsum("fd,fdg->fg", m, W)) if centred else W

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

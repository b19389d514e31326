"""Two-phased DDAERR and DDAELR: the second moments that guide the draws are estimated on the way.

References
----------
D. Kukliansky, O. Shamir. Attribute Efficient Linear Regression with Distribution-Dependent Sampling. ICML 2015,
Algorithms 2 and 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.config.options import option
from budgetreg.config.requirements import FRACTION, NOT_NEGATIVE, ZERO, one_of
from budgetreg.enumeration.expectations import Oracle
from budgetreg.learners import bases
from budgetreg.learners.declaration import (
    RADIUS,
    STEP_SIZE,
    Missing,
    Parameter,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    Trajectory,
)
from budgetreg.metering.accessor import Accessor
from budgetreg.theory import ddaelr_two_phase_step, ddaerr_two_phase_step, eg_step, first_phase, ogd_step


@dataclass(frozen=True)
class TwoPhaseLearner(bases.GuidedLearner):
    """How the two phases share the examples, and what of the first guides the second."""

    update: str = bases.update_option("ogd", "eg")
    phase_one: float = option("the first phase's share of the examples", FRACTION, tried=(0.5,))
    smoothing: float | str = option(
        "the smoothing of estimated moments", one_of("theory") | NOT_NEGATIVE, tried=("theory", 0, 0.3)
    )
    mix: float = option("the share of equal weights in the draws", ZERO | FRACTION, tried=(0, 0.5))

    core = "two_phase"
    parameters = (RADIUS, STEP_SIZE, Parameter("eta_two", "the second phase's step size"))
    tuned = ("B", "eta", "eta_two")
    missing = Missing.WEIGHED

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run `budgetreg.learners.two_phase.core.fit`."""
        from budgetreg.learners.two_phase import core

        return core.fit(
            accessor,
            settings,
            checkpoints,
            rngs,
            update=self.update,
            inner_product=self.inner_product,
            k_x=given.split.k_x,
            k_ip=given.split.k_ip,
            average=self.average,
            phase_one=self.phase_one,
            smoothing=self.smoothing,
            mix=self.mix,
            prices=given.prices,
        )

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return both phases' step sizes of Kukliansky & Shamir 2015."""
        k_x = run.budget_split.k_x if run.budget_split else 1
        assert B is not None
        m_1 = first_phase(self.phase_one, run.m)
        # Where the theorems make use of the estimates they cannot be had yet: what holds for any moments is taken.
        worst, m_2 = np.ones(run.d), max(1, run.m - m_1)
        if self.update == "eg":
            return {"eta": eg_step(B, run.d, m_1, k_x), "eta_two": ddaelr_two_phase_step(B, worst, 1.0, m_2, k_x)}
        return {"eta": ogd_step(run.d, m_1, k_x), "eta_two": ddaerr_two_phase_step(worst, 1.0, m_2, k_x)}

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return (
            "k attributes per example, the first of two phases estimating moments",
            bases.UPDATES.get(self.update, ""),
        )

    @property
    def oracle(self) -> Oracle:
        """The probabilities with which attributes have to be drawn in the second phase."""
        from budgetreg.learners.two_phase.oracle import gradient_oracle

        return gradient_oracle(self)

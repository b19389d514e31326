"""AEMR: a regression of the target on what was seen, under a factor model of it; ours.

The factor model is that of AEML. `target_regression` regresses the target given what the model expects of attributes
that were not seen, and names its sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from budgetreg.algorithms.factors import PlannedDrawsLearner
from budgetreg.algorithms.learner import (
    UNBOUNDED,
    Missing,
    Rngs,
    Settings,
    SideInformation,
    Trajectory,
)
from budgetreg.config.options import option, whole
from budgetreg.revealed.columns import Rescaled

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

_SHRUNK = "a posterior mean is shrunk, hence biased, less with each example"


@dataclass(frozen=True)
class TargetRegressionLearner(PlannedDrawsLearner):
    """AEMR: the factor model's regressor, and a regression of the target as far as it is clearly better.

    Attributes
    ----------
    n_factors : int
        Factors of the model, capped at d.
    """

    n_factors: int = option("the factors of the factor model", whole(1), tried=(2,))

    core = "target_regression"
    version = 15
    centres_itself = True
    scales_itself = True
    check_streams = 48
    missing = Missing.LEFT_OUT
    unlabelled = True
    uses_free = True
    draws_groups = True
    bitwise_portable = False
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": _SHRUNK,
        "second moments": _SHRUNK,
        "boundary": UNBOUNDED,
        "minimiser": "an average over posteriors minimises nothing that was shown",
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Draw k attributes of each example, and yield the regressor of all that was seen at each checkpoint.

        Draws are planned when AEML's are, by the second moments of the weights' posterior, see
        `budgetreg.revealed.designs.regression_weights`. There is one setting and nothing to tune; see `Learner.fit`.
        """
        # imported here because SciPy loads slowly
        from budgetreg.algorithms.aemr.target_regression import Known, average_regressors, expected_parts
        from budgetreg.algorithms.factors.posterior import Posterior, plan_by_posterior, posterior_of

        d, centring = accessor.d, {"centred": given.centred, "intercept": given.intercept}
        chains, draws = zip(*(rng.spawn(2) for rng in rngs), strict=True)
        posterior = Posterior(d + 1, min(self.n_factors, d), chains, doubted=True)
        for collected in self.collected(accessor, checkpoints, rngs, given):
            if (recalled := self.recalled(collected, checkpoints, given)) is not None:
                (posterior, draws), outputs = recalled
                if collected.is_checkpoint:
                    yield collected.examples, outputs
                continue
            rescaled = Rescaled(collected.entries.blocks(), d, given.scaled, accessor.stored_units())
            standardised, moments = posterior_of(posterior, collected, rescaled, given, chain=False)
            inflation = np.where(rescaled.has_variance[:, None], rescaled.inflation, np.inf)
            known = Known(standardised, moments, inflation)
            planned: Sequence[Any] = ()
            outputs = None
            if collected.is_checkpoint:
                outputs = rescaled.as_revealed(average_regressors(known, draws, **centring))
                yield collected.examples, outputs
            if collected.is_plan:
                parts = expected_parts(known, draws, **centring)
                planned = plan_by_posterior(collected, standardised, moments, parts, centred=given.centred)
            self.remember(collected, checkpoints, given, planned, (posterior, draws), outputs)

    @property
    def words(self) -> Sequence[str]:
        """How it draws and what it solves."""
        return (
            self.draws_in_words,
            f"regression of the target under a model with {self.n_factors} factors",
        )

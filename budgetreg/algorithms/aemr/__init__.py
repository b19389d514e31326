"""AEMR: regressors from second moments of what was revealed, and from a factor model of it, averaged; ours.

Second moments are solved in `moments`; `target_regression` regresses the target, given the factor model's covariance,
and averages. The modules name their sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from budgetreg.algorithms.factors import PlannedDrawsLearner
from budgetreg.algorithms.learner import (
    UNBOUNDED,
    Batching,
    Missing,
    Parameter,
    Rngs,
    Settings,
    SideInformation,
    Trajectory,
)
from budgetreg.config.options import one_of, option, whole
from budgetreg.revealed.columns import Rescaled, equal_values

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

CANDIDATE = Parameter("candidate", "which candidate", absolute=True, tried=(1.0, 15.0), unlimited=False)

_CLEANED = "moments are shrunk and cleaned, hence biased, less with each example"


@dataclass(frozen=True)
class MomentRegression(PlannedDrawsLearner):
    """AEMR: an average of regressors of what was revealed, of which one solves second moments.

    Attributes
    ----------
    partner : {'auto', 'none'}
        'auto' averages with three regressors that use the factor model: its own, which is AEML's, and two of the
        target on the attributes, see `target_regression`. With 'none' the moments are alone.
    n_factors : int
        Factors of the model, capped at d.
    """

    partner: str = option(
        "whether regressors of the factor model are averaged in", one_of("auto", "none"), tried=("none",)
    )
    choice: str = option("the rule that chooses among candidates", one_of("revealed", "given"))
    n_factors: int = option("the factors of the factor model", whole(1), tried=(2,))

    core = "moment_regression"
    version = 6
    version_uncentred = 7
    version_scaled = 10
    parameters = (CANDIDATE,)
    shares_settings = True
    batching = Batching.WHILE_SMALL
    centres_itself = True
    scales_itself = True
    check_streams = 32
    missing = Missing.LEFT_OUT
    unlabelled = True
    uses_free = True
    draws_groups = True
    bitwise_portable = False
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": _CLEANED,
        "second moments": _CLEANED,
        "boundary": UNBOUNDED,
        "minimiser": "an average of candidates minimises nothing that was shown",
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Draw k attributes of each example, and yield the regressor of all that was seen at each checkpoint.

        With the factor model, attributes are drawn as AEML draws them. Without it, the plans use the regressor of the
        moments in the same way. Without settings, held-out risks weigh the candidates; the setting ``candidate`` holds
        the numbers, from 1, of the candidates of `Solution` to yield. See `Learner.fit`.
        """
        # imported here because SciPy loads slowly
        from budgetreg.algorithms.aemr.moments import solve_streams, with_intercepts
        from budgetreg.algorithms.aemr.target_regression import Known, average_regressors, expected_parts
        from budgetreg.algorithms.factors.posterior import Posterior, plan_by_posterior, posterior_of

        d, centring = accessor.d, {"centred": given.centred, "intercept": given.intercept}
        averages = self.partner == "auto" and not settings
        chains, draws = zip(*(rng.spawn(2) for rng in rngs), strict=True)
        posterior = Posterior(d + 1, min(self.n_factors, d), chains) if averages else None
        for collected in self.collected(accessor, checkpoints, rngs, given):
            rescaled = Rescaled(collected.entries.blocks(), d, given.scaled, accessor.stored_units())
            if posterior:
                standardised, moments = posterior_of(posterior, collected, rescaled, given)
                known = Known(standardised, moments, rescaled.inflation, posterior.states)
            if collected.is_checkpoint or not posterior:
                solutions = solve_streams(
                    rescaled, collected.phases, d, zero_is_meaningful=given.zero_is_meaningful, **centring
                )
            if collected.is_checkpoint and posterior:
                solved = np.stack([solution.w for solution in solutions])
                outputs = average_regressors(known, solved, draws, **centring)
                yield collected.examples, rescaled.as_revealed(outputs)
            elif collected.is_checkpoint:
                W = np.stack([solution.w for solution in solutions])[:, :, None]
                if settings:
                    chosen = np.array(settings["candidate"]).astype(int) - 1
                    W = np.stack([solution.candidates[chosen].T for solution in solutions])
                by_moments = with_intercepts(W, solutions, rescaled.blocks, **centring)
                outputs = by_moments if any(centring.values()) else by_moments.regressors
                yield collected.examples, rescaled.as_revealed(outputs)
            if collected.is_plan and posterior:
                parts = expected_parts(known, draws, **centring)
                plan_by_posterior(collected, standardised, moments, parts, centred=given.centred)
            elif collected.is_plan:
                deviations = [solution.label.deviations for solution in solutions]
                equal = equal_values(rescaled.blocks, d + 1, zero_is_meaningful=given.zero_is_meaningful)
                known = equal.known(collected.phases[-1], centred=given.centred)[:, :d]
                collected.plan(np.stack(deviations), np.stack([solution.w for solution in solutions]), known)

    @property
    def tuned(self) -> Sequence[str]:
        """The candidate, if it is given."""
        return ("candidate",) if self.choice == "given" else ()

    @property
    def chooses_k(self) -> bool:
        """Whether the factor-model estimate is there, whose moments judge designs."""
        return super().chooses_k and self.partner == "auto" and self.choice == "revealed"

    @property
    def inactive_options(self) -> Sequence[str]:
        """The factors of a model that is not averaged in."""
        return ("n_factors",) if self.partner == "none" else ()

    @property
    def words(self) -> Sequence[str]:
        """How it draws and what it solves."""
        return (
            self.draws_in_words,
            "second moments of what was revealed, cleaned and solved"
            + (", averaged with regressors of a factor model" if self.partner == "auto" else ""),
        )

    def refuse(self) -> str | None:
        """Refuse a given candidate where others than moments' candidates exist."""
        if self.choice == "given" and self.partner != "none":
            return "choice=given: candidates are those of moments alone; partner=none"
        return None

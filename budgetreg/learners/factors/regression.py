"""AEML: regression by the posterior mean moments of a factor model of attributes and target."""

from collections.abc import Iterator, Sequence

from budgetreg.learners.declaration import Rngs, Settings, SideInformation
from budgetreg.learners.factors import FactorRegression
from budgetreg.learners.factors.posterior import Moments, Posterior
from budgetreg.metering.accessor import Accessor
from budgetreg.revealed.collection import Collected, collect
from budgetreg.revealed.standardised import StandardisedEntries
from budgetreg.tasks.task import Outputs

_BURN_IN, _MIN_KEPT, _MAX_KEPT, _MAX_VALUES = 60, 20, 120, 10_000_000
"""Sweeps before those averaged when a chain starts; least and most sweeps averaged; and the values that these may read
in all. More data leave a narrower posterior, which fewer sweeps average well enough."""


def fit(
    learner: FactorRegression,
    accessor: Accessor,
    settings: Settings,
    checkpoints: Sequence[int],
    rngs: Rngs,
    given: SideInformation,
) -> Iterator[tuple[int, Outputs]]:
    """Draw k attributes of each example, and yield the regressor of the posterior at each checkpoint.

    The first ``2 d / k`` examples show uniform subsets. After them, and whenever the number of examples has doubled,
    new inclusion probabilities are computed from the posterior, see
    `budgetreg.sampling.importance_weights.regression_weights`.

    Parameters
    ----------
    learner : FactorRegression
    accessor, settings, checkpoints, rngs, given
        As for `budgetreg.learners.declaration.Learner.fit`; there is one setting and nothing to tune.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, 1); or WithIntercept
    """
    del settings
    d = accessor.d
    posterior = Posterior(d + 1, min(learner.n_factors, d), [rng.spawn(1)[0] for rng in rngs])
    for collected in collect(accessor, checkpoints, rngs, given.k):
        standardised = StandardisedEntries(collected.entries.blocks(), d)
        moments = posterior_moments(posterior, standardised, collected.entries.size)
        if collected.is_checkpoint:
            yield collected.examples, standardised.regressors(moments, centred=given.centred, intercept=given.intercept)
        if collected.is_plan:
            plan_by_posterior(collected, standardised, moments)


def posterior_moments(posterior: Posterior, standardised: StandardisedEntries, size: int) -> Moments:
    """Continue the chains by as many sweeps as the number of values asks for, and return the moments.

    Parameters
    ----------
    posterior : Posterior
    standardised : StandardisedEntries
        Everything revealed.
    size : int
        Number of values of each stream.
    """
    kept = min(max(_MIN_KEPT, _MAX_VALUES // size), _MAX_KEPT)
    before = kept // 3 if posterior.sweeps else _BURN_IN
    return posterior.moments(standardised.blocks, standardised.live, before + kept, kept)


def plan_by_posterior(collected: Collected, standardised: StandardisedEntries, moments: Moments) -> None:
    """Draw, from now on, by the posterior's residual deviations and regressors."""
    W, _ = standardised.regressors(moments, centred=True, intercept=True)
    collected.plan(standardised.spread(moments), W[:, :, 0])

"""AEML: a factor model of attributes and target, solved for a regressor in the posterior mean of its moments."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from budgetreg.learners.declaration import Outputs
from budgetreg.learners.factors.collection import Collected, collect
from budgetreg.learners.factors.known import Known
from budgetreg.learners.factors.posterior import Moments, Posterior
from budgetreg.metering.accessor import Accessor

_BEGIN, _LEAST, _MOST, _WORK = 60, 20, 120, 10_000_000
"""Sweeps before those that count, when a chain begins; the least and the most of those that count; and how many values
these may look at in all. The more was revealed, the less is left to chance, and the fewer are needed."""


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    n_factors: int,
    centred: bool = False,
    intercept: bool = False,
) -> Iterator[tuple[int, Outputs]]:
    """Draw k attributes of each example, and put out what the posterior says of all that was seen.

    The first ``2 d / k`` examples see uniform subsets; then, whenever there are twice as many, attributes are drawn in
    shares that `budgetreg.sampling.inclusion_probabilities.regression_weights` makes of what is known by then.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Fit`: there is one setting, and nothing to tune.
    k : int
        Attributes of an example that are seen, at least 2.
    n_factors : int
        Factors of the model, at most d of which are of use.
    centred, intercept : bool
        Whether attributes count from their means, and whether the mean of the targets is predicted there.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, 1); or WithIntercept
    """
    del settings
    d = accessor.d
    posterior = Posterior(d + 1, min(n_factors, d), [rng.spawn(1)[0] for rng in rngs])
    for collected in collect(accessor, checkpoints, rngs, k):
        known = Known(collected.entries.blocks(), d)
        moments = posterior_moments(posterior, known, collected.entries.size)
        if collected.is_checkpoint:
            yield collected.examples, known.regressors(moments, centred=centred, intercept=intercept)
        if collected.is_plan:
            plan_by_posterior(collected, known, moments)


def posterior_moments(posterior: Posterior, known: Known, size: int) -> Moments:
    """Go on with a chain for as long as so many values ask for, or begin it.

    Parameters
    ----------
    posterior : Posterior
    known : Known
        All that was revealed.
    size : int
        Values of each stream.
    """
    kept = min(max(_LEAST, _WORK // size), _MOST)
    before = kept // 3 if posterior.sweeps else _BEGIN
    return posterior.moments(known.blocks, known.live, before + kept, kept)


def plan_by_posterior(collected: Collected, known: Known, moments: Moments) -> None:
    """Draw by what a posterior says of attributes from now on."""
    W, _ = known.regressors(moments, centred=True, intercept=True)
    collected.plan(known.spread(moments), W[:, :, 0])

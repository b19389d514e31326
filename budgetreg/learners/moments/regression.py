"""AEMR: regression by cleaned second moments, averaged with the factor-model estimate."""

from collections.abc import Iterator, Sequence

import numpy as np

from budgetreg.learners.declaration import Rngs, Settings, SideInformation
from budgetreg.learners.factors.posterior import Posterior
from budgetreg.learners.factors.regression import plan_by_posterior, posterior_moments
from budgetreg.learners.moments import MomentRegression
from budgetreg.learners.moments.solution import Solution, solve
from budgetreg.metering.accessor import Accessor
from budgetreg.revealed.collection import collect
from budgetreg.revealed.entries import Block
from budgetreg.revealed.standardised import StandardisedEntries
from budgetreg.tasks.task import Outputs, WithIntercept

_PRIOR_EXAMPLES = 200
"""Examples that the factor model's prior is worth: the moments have no prior, and count for more beyond them."""


def fit(
    learner: MomentRegression,
    accessor: Accessor,
    settings: Settings,
    checkpoints: Sequence[int],
    rngs: Rngs,
    given: SideInformation,
) -> Iterator[tuple[int, Outputs]]:
    """Draw k attributes of each example, and yield the regressor of all that was seen at each checkpoint.

    With the factor-model estimate, attributes are drawn as AEML draws them. Without it, the plans use the regressor
    of the moments in the same way.

    Parameters
    ----------
    learner : MomentRegression
    accessor, settings, checkpoints, rngs, given
        As for `budgetreg.learners.declaration.Learner.fit`.
    settings : mapping
        Empty: held-out risks choose among the candidates. Else ``candidate``: numbers, from 1, of the candidates of
        `Solution` to yield.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, G); or WithIntercept
    """
    d = accessor.d
    chains = [rng.spawn(1)[0] for rng in rngs]
    posterior = (
        Posterior(d + 1, min(learner.n_factors, d), chains) if learner.partner == "auto" and not settings else None
    )
    for collected in collect(accessor, checkpoints, rngs, given.k):
        blocks = collected.entries.blocks()
        factor_estimate = None
        if posterior is not None:
            standardised = StandardisedEntries(blocks, d)
            factor_estimate = standardised, posterior_moments(posterior, standardised, collected.entries.size)
        if collected.is_checkpoint or factor_estimate is None:
            solutions = [
                solve(
                    blocks, f, collected.phases, d, norm=learner.norm, centred=given.centred, intercept=given.intercept
                )
                for f in range(len(rngs))
            ]
        if collected.is_checkpoint:
            if settings:
                chosen = np.array(settings["candidate"]).astype(int) - 1
                W = np.stack([solution.candidates[chosen].T for solution in solutions])
            else:
                W = np.stack([solution.w for solution in solutions])[:, :, None]
            outputs = _with_intercepts(W, solutions, blocks, centred=given.centred, intercept=given.intercept)
            if factor_estimate is not None:
                standardised, moments = factor_estimate
                factor_outputs = standardised.regressors(moments, centred=given.centred, intercept=given.intercept)
                examples = collected.phases[-1]
                share = [
                    _factor_share(solution, examples, standardised.residual(moments, f), learner.n_factors)
                    for f, solution in enumerate(solutions)
                ]
                outputs = _mixed(outputs, factor_outputs, np.array(share))
            yield collected.examples, outputs if given.centred or given.intercept else outputs.regressors
        if collected.is_plan and factor_estimate is not None:
            plan_by_posterior(collected, *factor_estimate)
        elif collected.is_plan:
            deviations = [np.where(solution.label.live, np.sqrt(solution.label.v), 0.0) for solution in solutions]
            collected.plan(np.stack(deviations), np.stack([solution.w for solution in solutions]))


def _with_intercepts(
    W: np.ndarray, solutions: Sequence[Solution], blocks: Sequence[Block], *, centred: bool, intercept: bool
) -> WithIntercept:
    """Return regressors (F, d, G) and intercepts that predict the mean target at the means."""
    b = np.zeros((len(W), W.shape[2]))
    if intercept:
        b += np.concatenate([block.values[:, :, -1] for block in blocks], axis=1).mean(axis=1)[:, None]
    if centred:
        b -= np.stack([solution.label.a @ w for solution, w in zip(solutions, W, strict=True)])
    return WithIntercept(W, b)


def _factor_share(solution: Solution, examples: int, residual: np.ndarray, n_factors: int) -> float:
    """Return the factor-model estimate's share: from 1 to 1/2, or to 0 if sparse; 0 if contradicted."""
    moments = examples / (examples + _PRIOR_EXAMPLES)
    if solution.contradicts(residual, n_factors):
        return 0.0
    return 1 - (moments if solution.sparse else moments / 2)


def _mixed(by_moments: WithIntercept, by_factors: Outputs, share: np.ndarray) -> WithIntercept:
    """Average two outputs, given the shares (F,) of the second."""
    zero = np.zeros(by_moments.intercept.shape)
    W, b = by_factors if isinstance(by_factors, WithIntercept) else (by_factors, zero)
    by_stream = share[:, None, None]
    return WithIntercept(
        (1 - by_stream) * by_moments.regressors + by_stream * W,
        (1 - share[:, None]) * by_moments.intercept + share[:, None] * b,
    )

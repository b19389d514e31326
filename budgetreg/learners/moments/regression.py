"""AEMR: ridge regression on cleaned second moments of what was revealed, averaged with a factor model's posterior."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from budgetreg.learners.declaration import Outputs, WithIntercept
from budgetreg.learners.factors.collection import collect
from budgetreg.learners.factors.entries import Block
from budgetreg.learners.factors.known import Known
from budgetreg.learners.factors.posterior import Posterior
from budgetreg.learners.factors.regression import plan_by_posterior, posterior_moments
from budgetreg.learners.moments.solution import Solution, solve
from budgetreg.metering.accessor import Accessor

_SUPPOSED = 200
"""Examples, known to the partner's prior beforehand: moments have none, and are trusted as more than these are seen."""


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    partner: str,
    norm: str,
    n_factors: int,
    centred: bool = False,
    intercept: bool = False,
) -> Iterator[tuple[int, Outputs]]:
    """Draw k attributes of each example, and put out what the moments of all that was seen say.

    With a partner the draws are AEML's; without, they are planned in the same way by the regressor of the moments.

    Parameters
    ----------
    accessor, checkpoints, rngs
        As for `budgetreg.learners.declaration.Fit`.
    settings : mapping
        Empty: what was revealed chooses. Else ``candidate``, numbers from 1 of those that are wanted, see `Solution`.
    k : int
        Attributes of an example that are seen, at least 2.
    partner : {'auto', 'none'}
        'auto': the mean with the regressor of AEML, which counts for more where examples are few, for less where the
        target is sparse, and not at all where pairs contradict the factor model.
    norm : {'auto', 'l2', 'l1'}
        See `budgetreg.learners.moments.solution.solve`.
    n_factors : int
        Factors of the partner, at most d of which are of use.
    centred, intercept : bool
        Whether attributes count from their means, and whether the mean of the targets is predicted there.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, G); or WithIntercept
    """
    d = accessor.d
    chains = [rng.spawn(1)[0] for rng in rngs]
    posterior = Posterior(d + 1, min(n_factors, d), chains) if partner == "auto" and not settings else None
    for collected in collect(accessor, checkpoints, rngs, k):
        blocks = collected.entries.blocks()
        partners = None
        if posterior is not None:
            known = Known(blocks, d)
            partners = known, posterior_moments(posterior, known, collected.entries.size)
        if collected.is_checkpoint or partners is None:
            solutions = [
                solve(blocks, f, collected.phases, d, norm=norm, centred=centred, intercept=intercept)
                for f in range(len(rngs))
            ]
        if collected.is_checkpoint:
            if settings:
                chosen = np.array(settings["candidate"]).astype(int) - 1
                W = np.stack([own.candidates[chosen].T for own in solutions])
            else:
                W = np.stack([own.w for own in solutions])[:, :, None]
            outputs = _from_origin(W, solutions, blocks, centred=centred, intercept=intercept)
            if partners is not None:
                known, moments = partners
                other = known.regressors(moments, centred=centred, intercept=intercept)
                examples = collected.phases[-1]
                share = [
                    _share(own, examples, known.residual(moments, f), n_factors) for f, own in enumerate(solutions)
                ]
                outputs = _mixed(outputs, other, np.array(share))
            yield collected.examples, outputs if centred or intercept else outputs.regressors
        if collected.is_plan and partners is not None:
            plan_by_posterior(collected, *partners)
        elif collected.is_plan:
            spread = np.stack([np.where(own.label.live, np.sqrt(own.label.v), 0.0) for own in solutions])
            collected.plan(spread, np.stack([own.w for own in solutions]))


def _from_origin(
    W: np.ndarray, solutions: Sequence[Solution], blocks: Sequence[Block], *, centred: bool, intercept: bool
) -> WithIntercept:
    """Let regressors (F, d, G) count from 0, and predict at the attributes' means what is predicted there."""
    b = np.zeros((len(W), W.shape[2]))
    if intercept:
        b += np.concatenate([block.values[:, :, -1] for block in blocks], axis=1).mean(axis=1)[:, None]
    if centred:
        b -= np.stack([own.label.a @ w for own, w in zip(solutions, W, strict=True)])
    return WithIntercept(W, b)


def _share(solution: Solution, examples: int, residual: np.ndarray, n_factors: int) -> float:
    """Return the partner's share: 1 at first, then less; a half at last, or none if its model does not fit."""
    moments = examples / (examples + _SUPPOSED)
    if solution.contradict(residual, n_factors):
        return 0.0
    return 1 - (moments if solution.sparse else moments / 2)


def _mixed(own: WithIntercept, other: Outputs, share: np.ndarray) -> WithIntercept:
    W, b = other if isinstance(other, WithIntercept) else (other, np.zeros(own.intercept.shape))
    by_stream = share[:, None, None]
    return WithIntercept(
        (1 - by_stream) * own.regressors + by_stream * W, (1 - share[:, None]) * own.intercept + share[:, None] * b
    )

"""AEFA: the leading subspace of a factor model of what was revealed, mixed with mean products."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from budgetreg.learners.declaration import Rngs, Settings, SideInformation
from budgetreg.learners.factors import FactorAnalysis
from budgetreg.learners.factors.likelihood import RevealedEntries
from budgetreg.learners.factors.moment_estimate import MomentEstimator, mean_squares
from budgetreg.metering.accessor import Accessor
from budgetreg.revealed.collection import AttributeDraws, reveal
from budgetreg.revealed.entries import Entries
from budgetreg.sampling.draws import BLOCK
from budgetreg.sampling.inclusion_probabilities import working_probabilities
from budgetreg.solvers.eigenspaces import leading
from budgetreg.theory import first_phase


def fit(
    learner: FactorAnalysis,
    accessor: Accessor,
    settings: Settings,
    checkpoints: Sequence[int],
    rngs: Rngs,
    given: SideInformation,
) -> Iterator[tuple[int, np.ndarray]]:
    """Draw k attributes of each example, and yield the moment estimate's leading subspace.

    Parameters
    ----------
    learner : FactorAnalysis
    accessor, settings, checkpoints, rngs, given
        As for `budgetreg.learners.declaration.Learner.fit`; there is one setting and nothing to tune.

    Yields
    ------
    checkpoint : int
    V : ndarray of float64, shape (F, 1, d, n_components)
        Orthonormal columns.
    """
    del settings
    d, last, k, n = accessor.d, checkpoints[-1], given.k, learner.n_components
    q = min(learner.n_factors or 2 * n, d)
    m_1 = min(last, max(first_phase(learner.phase_one, last), -(-10 * d // k)))
    entries, draws = Entries(d), [AttributeDraws(rng, d, k) for rng in rngs]
    estimator = MomentEstimator(d, n, q, learner.noise == "shared", learner.kappa)
    marks = sorted({*range(0, last, BLOCK), *checkpoints, *([m_1] if learner.design == "importance" else [])})
    for start, stop in pairwise(marks):
        reveal(accessor, draws, entries, start, stop, targets=False)
        if stop in checkpoints:
            (block,) = entries.blocks()
            moments = map(estimator.estimate, block.attributes, block.values)
            yield stop, np.stack([leading(C, n) for C in moments])[:, None]
        if stop == m_1 and learner.design == "importance":
            (block,) = entries.blocks()
            for draw, i, x in zip(draws, block.attributes, block.values, strict=True):
                draw.plan(working_probabilities(np.sqrt(mean_squares(RevealedEntries(i, x, d))), k, learner.mix))

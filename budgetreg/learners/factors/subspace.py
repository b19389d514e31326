"""AEFA: the leading subspace of a factor model of what was revealed, mixed with mean products."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

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
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    n_components: int,
    n_factors: int | None,
    design: str,
    phase_one: float,
    mix: float,
    noise: str,
    kappa: float | str,
) -> Iterator[tuple[int, np.ndarray]]:
    """Draw k attributes of each example, and yield the leading subspace of the moment estimate at each checkpoint.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Learner.fit`; there is one setting and nothing to tune.
    k : int
        Attributes seen of each example, the papers' r, at least 2.
    n_components : int
        Dimension of the subspace, below d.
    n_factors : int or None
        Factors of the model; None: ``2 n_components``.
    design : {'importance', 'uniform'}
        'importance' draws attributes, after a uniform first phase, in proportion to their root mean squares in that
        phase; 'uniform' draws uniform subsets.
    phase_one : float
        The first phase's share of the examples up to the last checkpoint; it has at least ``10 d / k`` examples.
    mix : float
        Share of equal probabilities in the draws.
    noise : {'each', 'shared'}
        Whether each attribute has its noise variance, or all share one.
    kappa : 'auto', 'model' or float
        Weight of the model in each entry of the second moment, in observations of the pair. 'auto' takes the weight
        whose subspace keeps most of held-out examples, and 0 while too little was seen; 'model' uses the model alone.

    Yields
    ------
    checkpoint : int
    V : ndarray of float64, shape (F, 1, d, n_components)
        Orthonormal columns.
    """
    del settings
    d, last = accessor.d, checkpoints[-1]
    m_1 = min(last, max(first_phase(phase_one, last), -(-10 * d // k)))
    entries, draws = Entries(d), [AttributeDraws(rng, d, k) for rng in rngs]
    estimator = MomentEstimator(d, n_components, min(n_factors or 2 * n_components, d), noise == "shared", kappa)
    marks = sorted({*range(0, last, BLOCK), *checkpoints, *([m_1] if design == "importance" else [])})
    for start, stop in pairwise(marks):
        reveal(accessor, draws, entries, start, stop, targets=False)
        if stop in checkpoints:
            (block,) = entries.blocks()
            moments = map(estimator.estimate, block.attributes, block.values)
            yield stop, np.stack([leading(C, n_components) for C in moments])[:, None]
        if stop == m_1 and design == "importance":
            (block,) = entries.blocks()
            for draw, i, x in zip(draws, block.attributes, block.values, strict=True):
                draw.plan(working_probabilities(np.sqrt(mean_squares(RevealedEntries(i, x, d))), k, mix))

"""Estimates of ``C = E x x'``, whose leading eigenvectors POPCA and PCA put out.

A sampling design (`budgetreg.sampling.designs`) decides which attributes of an example are seen. The products of the
values seen, each divided by the probability of being seen, sum to unbiased estimates of C, which need not be positive
semidefinite. Each stream needs O(d^2) memory for the sum, the estimate, and its eigenvectors.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from budgetreg.learners.second_moment import SecondMomentLearner, importance
from budgetreg.learners.second_moment.moment_sums import full_sums, sums
from budgetreg.learners.signature import Rngs
from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.designs import Design, bernoulli, uniform_subset, with_replacement


def estimates(
    learner: SecondMomentLearner, accessor: Accessor, checkpoints: Sequence[int], rngs: Rngs, k: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Estimate C along all streams of the accessor; the parameters are those of `Learner.fit`.

    Yields
    ------
    checkpoint : int
    C : ndarray of float64, shape (F, d, d)
        Symmetric, and unbiased except for 'zero_filled'.
    """
    if learner.update == "importance":
        yield from importance.estimates(accessor, checkpoints, rngs, k=k, phase_one=learner.phase_one, mix=learner.mix)
        return
    if learner.update == "full":
        totals = full_sums(accessor, checkpoints)
    else:
        totals = sums(accessor, 0, checkpoints, rngs, [_design(learner, accessor.d, k)] * len(rngs))
    for checkpoint, total in totals:
        yield checkpoint, total / checkpoint


def _design(learner: SecondMomentLearner, d: int, k: int) -> Design:
    if learner.update == "passive":
        return bernoulli(d, k)
    if learner.update == "active" and learner.replacement:
        return with_replacement(d, k)
    subset = uniform_subset(d, k)
    # Zero-filling takes the zeros for seen values, so that nothing is divided by a probability.
    return Design(subset.draw, np.ones((d, d))) if learner.update == "zero_filled" else subset

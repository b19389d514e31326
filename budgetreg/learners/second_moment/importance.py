"""Importance sampling for ``C = E x x'``: attributes with larger second moments are seen more often.

The first phase draws uniform subsets and estimates the diagonal of C. Then attributes are drawn in proportion to
``sqrt(C_ii)``, by conditional Poisson sampling (`budgetreg.sampling.designs`).

Both phases give unbiased estimates of C, and the precision of an entry grows with how often it was seen. So the first
phase should have the weight ``m_1 pi'_ij / (m_1 pi'_ij + m_2 pi_ij)`` in entry (i, j), with the probabilities pi' and
pi of the two phases. But pi depends on the first phase's values, so these weights would be correlated with them and
bias the estimate. Therefore the weights of each half of the first phase use the pi that the other half gives, and the
pooled estimate is unbiased.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from budgetreg.learners.second_moment.moment_sums import sums
from budgetreg.learners.signature import Rngs
from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.designs import conditional_poisson, joint_inclusion, uniform_subset, working_probabilities
from budgetreg.theory import first_phase


def estimates(
    accessor: Accessor, checkpoints: Sequence[int], rngs: Rngs, *, k: int, phase_one: float, mix: float
) -> Iterator[tuple[int, np.ndarray]]:
    """Estimate C along all streams of the accessor.

    Parameters
    ----------
    accessor : Accessor
        F streams of examples.
    checkpoints : sequence of int
        Numbers of examples at which the estimate is wanted, increasing.
    rngs : sequence of numpy.random.Generator
        One per stream.
    k : int
        Attributes seen of each example, at least 2.
    phase_one : float
        The first phase's share of the examples up to the last checkpoint.
    mix : float
        Share of equal probabilities in the second phase's draws.

    Yields
    ------
    checkpoint : int
    C : ndarray of float64, shape (F, d, d)
        Symmetric and unbiased.
    """
    last, uniform = checkpoints[-1], uniform_subset(accessor.d, k)
    m_1 = min(last, max(2, first_phase(phase_one, last)))
    total = np.zeros((accessor.n_streams, accessor.d, accessor.d))
    halves = []
    for start, stop in ((0, m_1 // 2), (m_1 // 2, m_1)):
        half = total
        inner = [checkpoint for checkpoint in checkpoints if start < checkpoint < stop]
        for checkpoint, half in sums(accessor, start, [*inner, stop], rngs, [uniform] * len(rngs)):
            if checkpoint in checkpoints:
                yield checkpoint, (total + half) / checkpoint
        halves.append((stop - start, half / max(1, stop - start)))
        total = total + half
    late = [checkpoint for checkpoint in checkpoints if checkpoint > m_1]
    if not late:
        return
    designs = [conditional_poisson(p, k) for p in _probabilities(total / m_1, k, mix)]
    inclusions = [np.stack([joint_inclusion(p, k) for p in _probabilities(C, k, mix)]) for _, C in halves]
    for checkpoint, second in sums(accessor, m_1, late, rngs, designs):
        m_2 = checkpoint - m_1
        pooled = np.zeros_like(second)
        for (size, C), probability in zip(halves, reversed(inclusions), strict=True):
            share = m_1 * uniform.probability / (m_1 * uniform.probability + m_2 * probability)
            pooled += size / m_1 * (share * C + (1 - share) * (second / m_2))
        yield checkpoint, pooled


def _probabilities(moments: np.ndarray, k: int, mix: float) -> list[np.ndarray]:
    return [working_probabilities(np.sqrt(np.diagonal(C)), k, mix) for C in moments]

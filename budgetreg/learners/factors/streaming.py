"""AEFA in a stream: the model learns from each block of examples once, and stores none."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import pairwise

import numpy as np

from budgetreg.learners.declaration import Rngs, Settings, SideInformation
from budgetreg.learners.factors import StreamingFactorAnalysis
from budgetreg.learners.factors.stepwise import StepwiseEM
from budgetreg.metering.accessor import Accessor
from budgetreg.revealed.collection import AttributeDraws
from budgetreg.sampling.inclusion_probabilities import working_probabilities
from budgetreg.solvers.eigenspaces import leading_of_sum

_BLOCK = 32
"""Examples of a block. With 16, results are equal at twice the time; with 64, the early results are worse."""

_VALUES, _MIX = 5, 0.1
"""Mean number of values per attribute before the first plan; and the share of equal probabilities in the draws."""


def fit(
    learner: StreamingFactorAnalysis,
    accessor: Accessor,
    settings: Settings,
    checkpoints: Sequence[int],
    rngs: Rngs,
    given: SideInformation,
) -> Iterator[tuple[int, np.ndarray]]:
    """Draw k attributes of each example, and yield the factor model's leading subspace.

    Nothing depends on the number of examples to come. Memory is O(d q^2) per stream. The cost of an example does not
    depend on d, except for outputs and for plans, of which there is one per doubling of the examples.

    Parameters
    ----------
    learner : StreamingFactorAnalysis
    accessor, settings, checkpoints, rngs, given
        As for `budgetreg.learners.declaration.Learner.fit`; there is one setting and nothing to tune.

    Yields
    ------
    checkpoint : int
    V : ndarray of float64, shape (F, 1, d, n)
        Orthonormal columns.
    """
    del settings
    d = accessor.d
    streams = [_Stream(rng, d, given.k, min(learner.n_factors or 2 * learner.n_components, d)) for rng in rngs]
    next_plan = -(-_VALUES * d // given.k)
    for start, stop in pairwise(sorted({*range(0, checkpoints[-1], _BLOCK), *checkpoints})):
        accessor.open(start, stop)
        attributes = np.stack([stream.draws.take(stop - start) for stream in streams])
        values = accessor.reveal_block(attributes)
        if not accessor.complete:
            attributes = np.where(accessor.available(attributes), attributes, d)
        for stream, i, x in zip(streams, attributes, values, strict=True):
            stream.see(i, x)
        if stop in checkpoints:
            yield stop, np.stack([stream.subspace(learner.n_components) for stream in streams])[:, None]
        if learner.design == "importance" and stop % _BLOCK == 0 and stop >= next_plan:
            next_plan = 2 * stop
            for stream in streams:
                stream.draws.plan(working_probabilities(np.sqrt(stream.model.mean_squares()), given.k, _MIX))


class _Stream:
    """The model of one stream, its draws, and the examples of the block that is being filled."""

    def __init__(self, rng: np.random.Generator, d: int, k: int, q: int) -> None:
        self.draws, self.model = AttributeDraws(rng, d, k), StepwiseEM(rng, d, q)
        self._attributes, self._values = np.empty((0, k), dtype=np.int64), np.empty((0, k))

    def see(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Append examples (T, k) of the current block, and learn from the block once it is full."""
        self._attributes = np.append(self._attributes, attributes, axis=0)
        self._values = np.append(self._values, values, axis=0)
        if len(self._values) == _BLOCK:
            self.model.learn(self._attributes, self._values)
            self._attributes, self._values = self._attributes[:0], self._values[:0]

    def subspace(self, n: int) -> np.ndarray:
        """Return the leading subspace (d, n) of all examples, those of an unfinished block included."""
        em = self.model
        if len(self._values):
            em = deepcopy(em)
            em.learn(self._attributes, self._values)
        model = em.model()
        return leading_of_sum(model.W, model.psi, n)

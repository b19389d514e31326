"""AEFA of a stream: the factor model is learned from each block of examples once, and none of them is kept."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise

import numpy as np

from budgetreg.learners.factors.draws import AttributeDraws
from budgetreg.learners.factors.stepwise import StepwiseEM
from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.inclusion_probabilities import working_probabilities
from budgetreg.solvers.low_rank import leading_of_sum

TOGETHER = 32
"""Examples of a block: half as many learn as much for twice the time, twice as many learn less at the beginning."""

_VALUES, _MIX = 5, 0.1
"""Values of each attribute, on average, before draws are planned; share of equal probabilities in them."""


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
) -> Iterator[tuple[int, np.ndarray]]:
    """Draw k attributes of each example, and put out the leading subspace of the model that they made likely so far.

    Nothing depends on how many examples are to come. Memory is O(d q^2) for each stream, and no example costs more at
    a larger d, but for the plans, of which there is one for each doubling of the examples, and for what is put out.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Fit`: there is one setting, and nothing to tune.
    k : int
        Attributes of an example that are seen, the papers' r, at least 2.
    n_components : int
        Dimension n of the subspace, below d.
    n_factors : int or None
        Factors q of the model, at least n; None: twice as many.
    design : {'importance', 'uniform'}
        In proportion to the roots of the mean squares revealed, from 5 values of each attribute on and planned anew
        whenever there are twice as many; all subsets alike.

    Yields
    ------
    checkpoint : int
    V : ndarray of float64, shape (F, 1, d, n)
        Orthonormal columns.
    """
    del settings
    d = accessor.d
    streams = [_Stream(rng, d, k, min(n_factors or 2 * n_components, d)) for rng in rngs]
    plan = -(-_VALUES * d // k)
    for start, stop in pairwise(sorted({*range(0, checkpoints[-1], TOGETHER), *checkpoints})):
        accessor.open(start, stop)
        attributes = np.stack([own.draws.take(stop - start) for own in streams])
        values = accessor.reveal_block(attributes)
        if not accessor.complete:
            attributes = np.where(accessor.available(attributes), attributes, d)
        for own, i, x in zip(streams, attributes, values, strict=True):
            own.see(i, x)
        if stop in checkpoints:
            yield stop, np.stack([own.subspace(n_components) for own in streams])[:, None]
        if design == "importance" and stop % TOGETHER == 0 and stop >= plan:
            plan = 2 * stop
            for own in streams:
                own.draws.plan(working_probabilities(np.sqrt(own.model.mean_squares()), k, _MIX))


class _Stream:
    """The model of one stream, its draws, and the examples of a block that is not full."""

    def __init__(self, rng: np.random.Generator, d: int, k: int, q: int) -> None:
        self.draws, self.model = AttributeDraws(rng, d, k), StepwiseEM(rng, d, q)
        self._attributes, self._values = np.empty((0, k), dtype=np.int64), np.empty((0, k))

    def see(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Take in examples (T, k), no more than a block lacks, and learn from it once it is full."""
        self._attributes = np.append(self._attributes, attributes, axis=0)
        self._values = np.append(self._values, values, axis=0)
        if len(self._values) == TOGETHER:
            self.model.learn(self._attributes, self._values)
            self._attributes, self._values = self._attributes[:0], self._values[:0]

    def subspace(self, n: int) -> np.ndarray:
        """Return the leading subspace (d, n) of what all examples so far say; those of a full block alone are kept."""
        model = self.model
        if len(self._values):
            model = deepcopy(model)
            model.learn(self._attributes, self._values)
        found = model.model()
        return leading_of_sum(found.W, found.psi, n)

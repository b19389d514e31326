"""Examples collected for learners that keep what they see, drawn by what is known so far."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from budgetreg.learners.factors.draws import AttributeDraws
from budgetreg.learners.factors.entries import Entries
from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.draws import BLOCK
from budgetreg.sampling.importance_weights import regression_weights
from budgetreg.sampling.inclusion_probabilities import working_probabilities

_MIX = 0.1
"""Share of equal probabilities in the draws."""


@dataclass(frozen=True)
class Collected:
    """What is known at a checkpoint, or where draws are to be planned anew.

    Attributes
    ----------
    examples : int
        How many were drawn.
    is_checkpoint : bool
        Whether the output is wanted.
    is_plan : bool
        Whether `plan` is waited for.
    entries : Entries
        All that was revealed, the pilot's first.
    phases : tuple of int
        Entries' examples before each of which the probabilities of draws changed; the last: all.
    draws : sequence of AttributeDraws
        One per stream.
    """

    examples: int
    is_checkpoint: bool
    is_plan: bool
    entries: Entries
    phases: tuple[int, ...]
    draws: Sequence[AttributeDraws]

    def plan(self, spread: np.ndarray, W: np.ndarray) -> None:
        """Change the draw probabilities, see `budgetreg.sampling.importance_weights.regression_weights`.

        Parameters
        ----------
        spread : ndarray of float, shape (F, d)
            Residual standard deviations of the attributes.
        W : ndarray of float, shape (F, d)
            Regressors.
        """
        for own, s, w in zip(self.draws, spread, W, strict=True):
            own.plan(working_probabilities(regression_weights(s, w), own.k, _MIX))


def collect(
    accessor: Accessor, checkpoints: Sequence[int], rngs: Sequence[np.random.Generator], k: int
) -> Iterator[Collected]:
    """Draw k attributes of each example: of the first ``2 d / k`` uniform subsets, planned anew at each doubling.

    Parameters
    ----------
    accessor : Accessor
        F streams of examples, and their pilots.
    checkpoints : sequence of int
        Increasing.
    rngs : sequence of numpy.random.Generator
        One per stream.
    k : int
        Attributes of an example that are seen.
    """
    d, last = accessor.d, checkpoints[-1]
    entries, draws, changes = Entries(d + 1), [AttributeDraws(rng, d, k) for rng in rngs], []
    X, y = accessor.pilot()
    known = X.shape[1]
    if known:
        entries.add(np.broadcast_to(np.arange(d), X.shape), X, y)
        changes.append(known)
    plans = _doubling(-(-2 * d // k), last)
    marks = sorted({*range(0, last, BLOCK), *checkpoints, *plans})
    for start, stop in pairwise(marks):
        accessor.open(start, stop)
        attributes = np.stack([own.take(stop - start) for own in draws])
        there = None if accessor.complete else accessor.available(attributes)
        entries.add(attributes, accessor.reveal_block(attributes), accessor.targets(), there)
        if stop in checkpoints or stop in plans:
            yield Collected(stop, stop in checkpoints, stop in plans, entries, (*changes, known + stop), draws)
        if stop in plans:
            changes.append(known + stop)


def _doubling(first: int, last: int) -> set[int]:
    plans = set()
    while first < last:
        plans.add(first)
        first *= 2
    return plans

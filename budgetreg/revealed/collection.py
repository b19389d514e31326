"""Examples collected for learners that keep what they see, drawn by what is known so far."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from budgetreg.metering.accessor import Accessor
from budgetreg.revealed.entries import Entries
from budgetreg.sampling.designs import Draw, fixed_size
from budgetreg.sampling.draws import BLOCK, subset
from budgetreg.sampling.importance_weights import regression_weights
from budgetreg.sampling.inclusion_probabilities import working_probabilities

_MIX = 0.1
"""Share of equal probabilities in the draws."""


class AttributeDraws:
    """Attributes of one example after another, drawn in blocks that checkpoints do not change.

    Parameters
    ----------
    rng : numpy.random.Generator
        The stream's.
    d, k : int
        Attributes, and how many are drawn of each example, without replacement.
    """

    def __init__(self, rng: np.random.Generator, d: int, k: int) -> None:
        self.k, self._rng = k, rng
        self._draw = lambda rng: Draw(subset(rng, d, k))
        self._left = np.empty((0, k), dtype=np.int64)

    def plan(self, p: np.ndarray) -> None:
        """Draw with other probabilities from now on: about p (d,), see `budgetreg.sampling.designs.fixed_size`."""
        self._draw = fixed_size(p, self.k)
        self._left = self._left[:0]

    def take(self, examples: int) -> np.ndarray:
        """Return the attributes (T, k) of the next examples."""
        while len(self._left) < examples:
            self._left = np.append(self._left, self._draw(self._rng).attributes, axis=0)
        taken, self._left = self._left[:examples], self._left[examples:]
        return taken


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

"""Marginal ridge: the weight of each attribute from its own moments, as if attributes were uncorrelated.

Of each example a uniform subset S of k attributes is seen, each with probability k/d. Without bias,

    c_i = mean_t (d/k) 1[i in S_t] y_t x_ti   estimates   mean(y x_i),
    s_i = mean_t (d/k) 1[i in S_t] x_ti^2     estimates   mean(x_i^2),

and ``w_i = c_i / (s_i + shrinkage s)`` with the mean s of the s_i: ridge with the diagonal of its matrix alone.
The learner adds up what it sees, so it centres that itself: sums of 1, x and y give c and s of ``x - m`` and ``y - r``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from budgetreg.extend import (
    BLOCK,
    Accessor,
    Learner,
    Oracle,
    Parameter,
    Rngs,
    Settings,
    SideInformation,
    Trajectory,
    WithIntercept,
    one_of,
    option,
    subset,
)

_DIAGONALS = {"own": "each weight in its attribute's own scale", "common": "all weights in the attributes' mean scale"}


@dataclass(frozen=True)
class MarginalRidge(Learner):
    """Ridge on marginal moments; the option chooses the diagonal."""

    diagonal: str = option("the diagonal", one_of(*_DIAGONALS), default="own")

    core = "marginals"
    parameters = (Parameter("shrinkage", "the shrinkage, in units of the mean second moment", absolute=True),)
    tuned = ("shrinkage",)
    centres_itself = True
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "boundary": "nothing is clipped or projected",
        "small k": "each attribute is estimated by itself, and k=1 is enough",
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Yield at each checkpoint its number of examples and the regressors, one for each value of ``shrinkage``."""
        for checkpoint, sums in estimates(accessor, checkpoints, rngs, given.k):
            n, x, y, xx, xy, targets = sums
            m = x / np.maximum(n, np.finfo(float).tiny) if given.centred else np.zeros_like(x)
            r = targets if given.intercept else np.zeros_like(targets)
            c, s = xy - r * x - m * y + r * m * n, xx - 2 * m * x + m * m * n
            mean = s.mean(axis=1, keepdims=True)
            diagonal = s if self.diagonal == "own" else mean
            ridge = diagonal[:, :, None] + settings["shrinkage"] * mean[:, :, None]
            W = c[:, :, None] / np.maximum(ridge, np.finfo(float).tiny)
            yield checkpoint, WithIntercept(W, r - np.einsum("fd,fdg->fg", m, W))

    @property
    def words(self) -> Sequence[str]:
        """Phrases for captions."""
        return "k attributes per example", "ridge on marginal moments", _DIAGONALS.get(self.diagonal, "")

    @property
    def oracle(self) -> Oracle:
        """What the checks compare the estimates and the weights with."""
        from budgetreg_marginals.oracle import MarginalsOracle

        return MarginalsOracle(self.diagonal)


def estimates(
    accessor: Accessor, checkpoints: Sequence[int], rngs: Sequence[np.random.Generator], k: int
) -> Iterator[tuple[int, tuple[np.ndarray, ...]]]:
    """Yield at each checkpoint its number of examples and estimates of the means of 1, x, y, x^2 and xy, each (F, d).

    The last one is the mean of the targets, (F, 1).
    """
    F, d = accessor.n_streams, accessor.d
    sums, targets = np.zeros((5, F, d)), np.zeros((F, 1))
    for start in range(0, checkpoints[-1], BLOCK):
        stop = min(start + BLOCK, checkpoints[-1])
        S = np.stack([subset(rng, d, k) for rng in rngs])[:, : stop - start]
        accessor.open(start, stop)
        x, y = accessor.reveal_block(S), accessor.targets()
        for first, last in pairwise([start, *(m for m in checkpoints if start < m < stop), stop]):
            part = slice(first - start, last - start)
            where = (np.arange(F)[:, None, None], S[:, part])
            values, target = x[:, part], np.broadcast_to(y[:, part, None], S[:, part].shape)
            for total, terms in zip(sums, (1.0, values, target, np.square(values), target * values), strict=True):
                np.add.at(total, where, terms)
            targets += y[:, part].sum(axis=1, keepdims=True)
            if last in checkpoints:
                yield last, (*(sums * (d / (k * last))), targets / last)

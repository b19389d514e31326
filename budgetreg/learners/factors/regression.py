"""AEML: a factor model of attributes and target, solved for a regressor in the posterior mean of its moments."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from budgetreg.learners.declaration import Outputs, WithIntercept
from budgetreg.learners.factors.draws import Draws
from budgetreg.learners.factors.entries import Block, Entries
from budgetreg.learners.factors.posterior import Moments, Posterior
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.running_means import sums
from budgetreg.sampling.draws import BLOCK
from budgetreg.sampling.shares import regression_weights, working_probabilities

_MIX = 0.1
"""Share of equal probabilities in the draws."""

_LEAST_SEEN = 2
"""Values of an attribute before anything is made of it."""

_SUPPOSED = 3
"""Values of the usual variance that are supposed of each attribute, whose own may be too few to tell."""

_BEGIN, _LEAST, _MOST, _WORK = 60, 20, 120, 10_000_000
"""Sweeps before those that count, when a chain begins; the least and the most of those that count; and how many values
these may look at in all. The more was revealed, the less is left to chance, and the fewer are needed."""


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    n_factors: int,
    centred: bool = False,
    intercept: bool = False,
) -> Iterator[tuple[int, Outputs]]:
    """Draw k attributes of each example, and put out what the posterior says of all that was seen.

    The first ``2 d / k`` examples see uniform subsets; then, whenever there are twice as many, attributes are drawn in
    shares that `budgetreg.sampling.shares.regression_weights` makes of what is known by then.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Fit`: there is one setting, and nothing to tune.
    k : int
        Attributes of an example that are seen, at least 2.
    n_factors : int
        Factors of the model, at most d of which are of use.
    centred, intercept : bool
        Whether attributes count from their means, and whether the mean of the targets is predicted there.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, 1); or WithIntercept
    """
    del settings
    d = accessor.d
    entries = Entries(d + 1)
    X, y = accessor.pilot()
    if X.shape[1]:
        entries.add(np.broadcast_to(np.arange(d), X.shape), X, y)
    draws = [Draws(rng, d, k) for rng in rngs]
    posterior = Posterior(d + 1, min(n_factors, d), [rng.spawn(1)[0] for rng in rngs])
    plans = _doubling(-(-2 * d // k), checkpoints[-1])
    before = _BEGIN
    marks = sorted({*range(0, checkpoints[-1], BLOCK), *checkpoints, *plans})
    for start, stop in pairwise(marks):
        accessor.open(start, stop)
        attributes = np.stack([own.take(stop - start) for own in draws])
        there = None if accessor.complete else accessor.available(attributes)
        entries.add(attributes, accessor.reveal_block(attributes), accessor.targets(), there)
        if stop not in checkpoints and stop not in plans:
            continue
        known = _Known(entries.blocks(), d)
        kept = min(max(_LEAST, _WORK // entries.size), _MOST)
        moments = posterior.moments(known.blocks, known.live, (before or kept // 3) + kept, kept)
        before = 0
        if stop in checkpoints:
            yield stop, known.regressors(moments, centred=centred, intercept=intercept)
        if stop in plans:
            W, _ = known.regressors(moments, centred=True, intercept=True)
            for own, spread, w in zip(draws, known.spread(moments), W[:, :, 0], strict=True):
                own.plan(working_probabilities(regression_weights(spread, w), k, _MIX))


def _doubling(first: int, last: int) -> set[int]:
    plans = set()
    while first < last:
        plans.add(first)
        first *= 2
    return plans


class _Known:
    """What was revealed, in units that it tells of itself: the posterior's prior is for columns of variance about 1.

    Attributes
    ----------
    blocks : list of Block
        In these units, counting from the columns' means.
    live : ndarray of bool, shape (F, d + 1)
        Columns that were seen often enough, and with more than one value.
    """

    def __init__(self, blocks: Sequence[Block], d: int) -> None:
        F = len(blocks[0].values)
        counts, totals = np.zeros((F, d + 1)), np.zeros((F, d + 1))
        for block in blocks:
            counts += sums(block.attributes, np.ones(block.values.shape), d + 2)[:, :-1]
            totals += sums(block.attributes, block.values, d + 2)[:, :-1]
        self._means = totals / np.maximum(counts, 1)
        centred, squares = [], np.zeros((F, d + 1))
        stream = np.arange(F)[:, None, None]
        means = np.append(self._means, np.zeros((F, 1)), axis=1)  # one more for what is missing
        for block in blocks:
            centred.append(block.values - means[stream, block.attributes])
            squares += sums(block.attributes, np.square(centred[-1]), d + 2)[:, :-1]
        variances = squares / np.maximum(counts, 1)
        self.live = (counts >= _LEAST_SEEN) & (variances > 0)
        among = np.where(self.live[:, :d], counts[:, :d], 0)
        usual = (among * variances[:, :d]).sum(axis=1, keepdims=True) / np.maximum(among.sum(axis=1, keepdims=True), 1)
        variances[:, :d] = (squares[:, :d] + _SUPPOSED * usual) / (counts[:, :d] + _SUPPOSED)
        self.live &= variances > 0
        self._units = np.sqrt(np.where(variances > 0, variances, 1.0))
        units = np.append(self._units, np.ones((F, 1)), axis=1)
        self.blocks = [
            Block(block.attributes, values / units[stream, block.attributes])
            for block, values in zip(blocks, centred, strict=True)
        ]

    def regressors(self, moments: Moments, *, centred: bool, intercept: bool) -> Outputs:
        """Solve for regressors, counting from the posterior's means of attributes and target, or from 0.

        Returns
        -------
        ndarray of float, shape (F, d, 1); or WithIntercept if something counts from its mean
        """
        F, c = self.live.shape
        W, b = np.zeros((F, c - 1, 1)), np.zeros((F, 1))
        # In the posterior's units: what is left of a column is that of `first` when it counts from there.
        origin = np.append(np.full(c - 1, centred), intercept)
        zero = np.where(origin, moments.first, -self._means / self._units)
        for f in range(F):
            first, live = moments.first[f], np.flatnonzero(self.live[f, :-1])
            left = first - zero[f]
            M = moments.second[f] - np.outer(first, first) + np.outer(left, left)
            if self.live[f, -1] and live.size:
                w = np.linalg.solve(M[np.ix_(live, live)], M[live, -1])
                W[f, live, 0] = w * self._units[f, -1] / self._units[f, live]
            at = self._means[f] + zero[f] * self._units[f]
            b[f] = at[-1] - at[:-1] @ W[f]
        return WithIntercept(W, b) if centred or intercept else W

    def spread(self, moments: Moments) -> np.ndarray:
        """Return the attributes' standard deviations (F, d) given the target; as supposed where nothing is known."""
        variance = np.einsum("fcc->fc", moments.second) - np.square(moments.first)
        shared = moments.second[:, :-1, -1] - moments.first[:, :-1] * moments.first[:, -1:]
        left = variance[:, :-1] - np.square(shared) / np.where(variance[:, -1:] > 0, variance[:, -1:], 1.0)
        return np.where(self.live[:, :-1], np.sqrt(np.maximum(left, 0)), 1.0) * self._units[:, :-1]

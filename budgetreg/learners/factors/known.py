"""What was revealed to a factor model, in units and about points that it tells of itself; and what comes of it."""

from collections.abc import Sequence

import numpy as np

from budgetreg.learners.declaration import Outputs, WithIntercept
from budgetreg.learners.factors.entries import Block
from budgetreg.learners.factors.posterior import Moments
from budgetreg.metering.running_means import sums

_LEAST_SEEN = 2
"""Values of an attribute before anything is made of it."""

_SUPPOSED = 3
"""Values of the usual variance that are supposed of each attribute, whose own may be too few to tell."""


class Known:
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

    def residual(self, moments: Moments, f: int) -> np.ndarray:
        """Return the covariance (d, d) of a stream's attributes given the target; 0 where nothing is known."""
        covariance = moments.second[f] - np.outer(moments.first[f], moments.first[f])
        shared = covariance[:-1, -1]
        left = covariance[:-1, :-1] - np.outer(shared, shared) / (covariance[-1, -1] or 1.0)
        units = np.where(self.live[f, :-1], self._units[f, :-1], 0.0)
        return np.asarray(left * np.outer(units, units))

    def spread(self, moments: Moments) -> np.ndarray:
        """Return the attributes' standard deviations (F, d) given the target; as supposed where nothing is known."""
        variance = np.einsum("fcc->fc", moments.second) - np.square(moments.first)
        shared = moments.second[:, :-1, -1] - moments.first[:, :-1] * moments.first[:, -1:]
        left = variance[:, :-1] - np.square(shared) / np.where(variance[:, -1:] > 0, variance[:, -1:], 1.0)
        return np.where(self.live[:, :-1], np.sqrt(np.maximum(left, 0)), 1.0) * self._units[:, :-1]

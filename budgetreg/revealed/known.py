"""What was revealed to a factor model, in units and about points that it tells of itself; and what comes of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.metering.centring import sums
from budgetreg.revealed.entries import Block
from budgetreg.tasks.task import Outputs, WithIntercept

_LEAST_SEEN = 2
"""Values of an attribute before anything is made of it."""

_SUPPOSED = 3
"""Values of the usual variance that are supposed of each attribute, whose own may be too few to tell."""

_NORMAL = 3
"""Kurtosis of normal values, and the least that is believed. The standard error of the variance of n values is that of
``2 n / (kurtosis - 1)`` normal ones."""


@dataclass(frozen=True)
class Moments:
    """Posterior means of the columns' moments, about the points that the columns are centred on.

    Attributes
    ----------
    first : ndarray of float, shape (F, c)
    second : ndarray of float, shape (F, c, c)
        Positive definite, also after the outer product of `first` is subtracted.
    """

    first: np.ndarray
    second: np.ndarray


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
        stream = np.arange(F)[:, None, None]

        def total(values: Iterable[np.ndarray]) -> np.ndarray:
            parts = [sums(block.attributes, own, d + 2)[:, :-1] for block, own in zip(blocks, values, strict=True)]
            return np.sum(parts, axis=0)

        def of_columns(own: np.ndarray) -> list[np.ndarray]:
            filled = np.append(own, np.ones((F, 1)), axis=1)  # one more for what is missing
            return [filled[stream, block.attributes] for block in blocks]

        counts = total(np.ones(block.values.shape) for block in blocks)
        n = np.maximum(counts, 1)
        self._means = total(block.values for block in blocks) / n
        centred = [block.values - means for block, means in zip(blocks, of_columns(self._means), strict=True)]
        variances = total(np.square(own) for own in centred) / n
        self.live = (counts >= _LEAST_SEEN) & (variances > 0)
        deviations = of_columns(np.sqrt(np.where(self.live, variances, 1.0)))
        kurtoses = total((own / unit) ** 4 for own, unit in zip(centred, deviations, strict=True)) / n
        among = np.where(self.live[:, :d], counts[:, :d], 0)
        usual, usual_kurtosis = (
            (among * own[:, :d]).sum(axis=1, keepdims=True) / np.maximum(among.sum(axis=1, keepdims=True), 1)
            for own in (variances, kurtoses)
        )
        variances[:, :d] = (counts * variances + _SUPPOSED * usual)[:, :d] / (counts[:, :d] + _SUPPOSED)
        kurtosis = np.maximum(np.maximum(kurtoses[:, -1], usual_kurtosis[:, 0]), _NORMAL)
        self._told = counts[:, -1] * (_NORMAL - 1) / (kurtosis - 1)
        self.live &= variances > 0
        self._units = np.sqrt(np.where(variances > 0, variances, 1.0))
        self.blocks = [
            Block(block.attributes, values / units)
            for block, values, units in zip(blocks, centred, of_columns(self._units), strict=True)
        ]

    def regressors(self, moments: Moments, *, centred: bool, intercept: bool) -> Outputs:
        """Solve for regressors, counting from the posterior's means of attributes and target, or from 0.

        Chance alone seems to explain 1/T of the target of T examples, or of as many as T are worth where values are far
        off at times. By what that is of all that they seem to explain regressors are held back.

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
                explained = M[live, -1] @ w / M[-1, -1]
                w *= explained / (explained + 1 / self._told[f])
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

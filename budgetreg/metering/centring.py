"""Centring that costs nothing: attributes minus the means of what was revealed before."""

from typing import NamedTuple

import numpy as np

HELD = 256
"""Most examples for which means are held still: as many as learners that draw have in a block."""


class Origin(NamedTuple):
    """Origin of the regressors of a stream at a checkpoint."""

    shift: np.ndarray | None = None
    """What attributes are counted from, shape (d,); None: from what their table has for 0."""
    intercept: np.ndarray | float = 0.0
    """What is predicted there, for all settings or (G,) for each; in units of the target."""


def sums(attributes: np.ndarray, values: np.ndarray, d: int) -> np.ndarray:
    """Add up what belongs to each attribute.

    Parameters
    ----------
    attributes : ndarray of int, shape (F, T, n)
        Attributes, below d.
    values : ndarray of float, shape (F, T, n)
        What belongs to them.
    d : int
        Number of attributes.

    Returns
    -------
    ndarray of float, shape (F, d)
        One added after the other: a stream's sums depend on no other stream.
    """
    F = len(attributes)
    place = np.arange(F)[:, None, None] * d + attributes
    return np.bincount(place.reshape(-1), values.reshape(-1), F * d).reshape(F, d)


class TargetMeans:
    """Means of the targets of each of F streams, which are free: of the examples before each one.

    An example's target less this mean is centred by nothing of its own, but for the first, which is its own mean.

    Parameters
    ----------
    known : ndarray of float, shape (F, N)
        Targets of examples that came before.
    """

    def __init__(self, known: np.ndarray) -> None:
        self._sum, self._count = known.sum(axis=1), known.shape[1]
        self._start, self._means = 0, self._sum[:, None] / max(1, self._count)

    def open(self, start: int, y: np.ndarray) -> np.ndarray:
        """Take in the targets of a block that begins at an example, shape (F, T); return them centred."""
        sums = np.cumsum(np.hstack([self._sum[:, None], y]), axis=1)
        counts = self._count + np.arange(sums.shape[1])
        self._start, self._means = start, sums / np.maximum(counts, 1)
        self._sum, self._count = sums[:, -1], int(counts[-1])
        return y - np.where(counts[:-1] > 0, self._means[:, :-1], y)

    def at(self, examples: int) -> np.ndarray:
        """Return the means (F,) of so many examples, one of which is in the current block."""
        return self._means[:, examples - self._start]


class RunningMeans:
    """Means of the values that were revealed to each of F streams, held still from block to block.

    An example is centred by means of the blocks before its own: nothing that is drawn for it decides where its zero is,
    so that unbiased estimates stay unbiased.  An attribute that was never revealed has the mean 0.

    Parameters
    ----------
    n_streams, d : int
        Streams F and attributes d.
    """

    def __init__(self, n_streams: int, d: int) -> None:
        self._d = d
        self._sum, self._count = np.zeros((n_streams, d)), np.zeros((n_streams, d))
        self._held: list[tuple[int, np.ndarray]] = []

    def begin(self, stream: int, values: np.ndarray) -> None:
        """Take in an example (d,) that a stream knew beforehand."""
        self._sum[stream] += values
        self._count[stream] += 1

    def open(self, start: int) -> None:
        """Begin a block at example ``start``, counted from 0, with the means of all that was revealed before it."""
        self._held.clear()
        self._hold(start)

    def at(self, examples: int) -> np.ndarray:
        """Return the means (F, d) by which the last of so many examples, one of the current block, is centred."""
        return next(means for start, means in reversed(self._held) if start < examples)

    def centred(self, values: np.ndarray, streams: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        """Return values minus the means of their attributes; streams and attributes are broadcast to the values."""
        _, means = self._held[-1]
        return values - means.take(streams * self._d + attributes)

    def add(self, values: np.ndarray, attributes: np.ndarray, there: np.ndarray | None = None) -> None:
        """Take in values of single attributes, both of shape (F, T, n); those that are not there, if not all, are 0."""
        self._sum += sums(attributes, values, self._d)
        self._count += sums(attributes, np.ones(values.shape) if there is None else there, self._d)

    def centre_rows(self, X: np.ndarray) -> None:
        """Centre the full rows of a block, (F, T, d), in place, and take them in `HELD` examples at a time."""
        start, _ = self._held[-1]
        for begin in range(0, X.shape[1], HELD):
            if begin:
                self._hold(start + begin)
            _, means = self._held[-1]
            part = X[:, begin : begin + HELD]
            sums = np.stack([rows.sum(axis=0) for rows in part])
            part -= means[:, None, :]
            self._sum += sums
            self._count += part.shape[1]

    def _hold(self, start: int) -> None:
        self._held.append((start, self._sum / np.maximum(self._count, 1)))

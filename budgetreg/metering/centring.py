"""Centring at no cost by the means of revealed values, and the origins of regressors."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

HELD = 256
"""Most examples that are centred by the same means: the length of a block of learners that draw attributes."""


class JointMoments(NamedTuple):
    """Mean and covariance of the attributes and, last, the target."""

    mean: np.ndarray
    """Shape (d + 1,)."""
    covariance: np.ndarray
    """Shape (d + 1, d + 1)."""


class Origin(NamedTuple):
    """The origin of a stream's regressors at a checkpoint: ``f(x) = intercept + <w, x - shift>``."""

    shift: np.ndarray | None = None
    """What is subtracted from the attributes, shape (d,); None for nothing."""
    intercept: np.ndarray | float = 0.0
    """What is predicted at the origin, one number or one for each setting (G,); in units of the target."""
    moments: Callable[[], JointMoments] | None = None
    """Returns what the learner knows of attributes as the accessor returns them; None if it models none."""
    left_out: np.ndarray | None = None
    """The attributes, bool of shape (d,), whose scale the values seen do not show; None if there are none."""


def sums(attributes: np.ndarray, values: np.ndarray, d: int) -> np.ndarray:
    """Return the sums of values by attribute.

    Parameters
    ----------
    attributes : ndarray of int, shape (F, T, n)
        Attributes, below d.
    values : ndarray of float, shape (F, T, n)
        The value that belongs to each.
    d : int
        Number of attributes.

    Returns
    -------
    ndarray of float, shape (F, d)
        Values are added one after the other, so that a stream's sums depend on no other stream.
    """
    F = len(attributes)
    place = np.arange(F)[:, None, None] * d + attributes
    return np.bincount(place.reshape(-1), values.reshape(-1), F * d).reshape(F, d)


class TargetMeans:
    """Means of the targets of each of F streams, over the examples before each one; targets are free.

    The target of an example is not in the mean that is subtracted from it. Only the first example, which has none
    before it, is centred by its own target.

    Parameters
    ----------
    known : ndarray of float, shape (F, N)
        Targets of earlier examples.
    """

    def __init__(self, known: np.ndarray) -> None:
        self._sum, self._count = known.sum(axis=1), known.shape[1]
        self._start, self._means = 0, self._sum[:, None] / max(1, self._count)

    def open(self, start: int, y: np.ndarray) -> np.ndarray:
        """Add the targets (F, T) of a block whose first example has the number ``start``; return them centred."""
        sums = np.cumsum(np.hstack([self._sum[:, None], y]), axis=1)
        counts = self._count + np.arange(sums.shape[1])
        self._start, self._means = start, sums / np.maximum(counts, 1)
        self._sum, self._count = sums[:, -1], int(counts[-1])
        return y - np.where(counts[:-1] > 0, self._means[:, :-1], y)

    def at(self, examples: int) -> np.ndarray:
        """Return the means (F,) over a number of examples, the last of which is in the current block."""
        return self._means[:, examples - self._start]


class RunningMeans:
    """Means of the values that were revealed to each of F streams, which change only between blocks.

    An example is centred by the means over earlier blocks. What is drawn for it does not move its own origin, so that
    unbiased estimates stay unbiased. An attribute that was never revealed has mean 0.

    Parameters
    ----------
    n_streams, d : int
        Streams F and attributes d.
    known : iterable of ndarray of shape (F, d)
        Examples of each stream that were known before the pass.
    """

    def __init__(self, n_streams: int, d: int, known: Iterable[np.ndarray]) -> None:
        self._d = d
        self._sum, self._count = np.zeros((n_streams, d)), np.zeros((n_streams, d))
        for X in known:
            self._sum += X
            self._count += 1
        self._held: list[tuple[int, np.ndarray]] = []

    def open(self, start: int) -> None:
        """Begin a block at example ``start``, counted from 0, with the means over all that was revealed before."""
        self._held.clear()
        self._hold(start)

    def at(self, examples: int) -> np.ndarray:
        """Return the means (F, d) that centre the last one of a number of examples; it is in the current block."""
        return next(means for start, means in reversed(self._held) if start < examples)

    def centred(self, values: np.ndarray, streams: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        """Return values minus the means of their attributes; streams and attributes are broadcast to the values."""
        _, means = self._held[-1]
        return values - means.take(streams * self._d + attributes)

    def add(self, values: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None = None) -> None:
        """Add values of single attributes, both of shape (F, T, n); those that are drawn, if not all are."""
        counted = np.ones(values.shape) if drawn is None else np.broadcast_to(drawn, values.shape)
        self._sum += sums(attributes, values if drawn is None else np.where(drawn, values, 0.0), self._d)
        self._count += sums(attributes, counted, self._d)

    def centre_rows(self, X: np.ndarray) -> None:
        """Centre the full rows of a block, (F, T, d), in place; add them to the means, `HELD` examples at a time."""
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

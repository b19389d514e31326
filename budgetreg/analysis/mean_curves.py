"""Mean curves, resampled all at once: interpolated, and where they fall to a level."""

from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True)
class Means:
    """Mean curves over the same checkpoints, the first over all repetitions and the others over resampled ones.

    Attributes
    ----------
    x : ndarray, shape (C,)
        Where the checkpoints lie, ascending and above 0.
    values : ndarray, shape (S, C)
        The means.
    """

    x: np.ndarray
    values: np.ndarray

    def at(self, points: np.ndarray) -> np.ndarray:
        """Return the values at some points, shape (S, number of points).

        Between checkpoints they are interpolated linearly in log x; beyond the ends they stay as they are.
        """
        if self.x.size == 1:
            return np.repeat(self.values, np.size(points), axis=1)
        x, points = np.log(self.x), np.log(points)
        left = np.clip(np.searchsorted(x, points, side="right") - 1, 0, x.size - 2)
        share = np.clip((points - x[left]) / (x[left + 1] - x[left]), 0, 1)
        return self.values[:, left] * (1 - share) + self.values[:, left + 1] * share

    @property
    def end(self) -> np.ndarray:
        """The values at the last checkpoint, shape (S,)."""
        return self.values[:, -1]

    def since(self, start: float) -> Self:
        """Return the curves from some point on."""
        kept = self.x >= start
        return type(self)(self.x[kept], self.values[:, kept])

    def crossing(self, level: float) -> np.ndarray:
        """Return where each curve first falls to a level, shape (S,), interpolated linearly in log x.

        A curve that has fallen to it by the first checkpoint gives 0, one that does not by the last gives infinity:
        such a number is censored, and only a bound.
        """
        reached = self.values <= level
        first = np.argmax(reached, axis=1)
        rows = np.arange(len(first))
        before = np.maximum(first - 1, 0)
        above, below = self.values[rows, before], self.values[rows, first]
        drop = np.where(above > below, above - below, 1.0)
        x = np.log(self.x)
        at = np.exp(x[before] + (x[first] - x[before]) * np.clip((above - level) / drop, 0, 1))
        return np.where(reached.any(axis=1), np.where(first == 0, 0.0, at), np.inf)

"""All that a learner may draw for one example, each outcome with its probability: exact laws, not samples.

A learner turns the numbers of its Generator into attributes. For one example these numbers are given here: each is a
coordinate of the unit cube, and what the learner does is constant on boxes of it. The walls between them are found by
asking the learner itself; one point of each box, weighted by its volume, gives the law to about 1e-9.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from budgetreg.sampling.draws import BLOCK

_PARTS = (128, *(16,) * 6)
"""Parts into which an interval with walls inside is divided, again and again; at first, a box may be no narrower."""

_MOST_OUTCOMES = 2**14


class Scripted:
    """A Generator whose numbers for one example are given, the others being spread evenly.

    Learners draw for a block of examples at a time, ``BLOCK`` rows in one or several calls.

    Parameters
    ----------
    rows : sequence of int or None
        For each of these calls the example's row; None if it is not in that block.
    script : ndarray of shape (n,)
        Points of the unit interval, one for each number that is drawn for the example; further ones are 1/2.

    Attributes
    ----------
    calls : int
        How many of these calls there were.
    values : list of int
        How many equally probable values each number for the example has; 0 for a continuum.
    """

    def __init__(self, rows: Sequence[int | None], script: Sequence[float] | np.ndarray = ()) -> None:
        self._rows, self._script = rows, np.asarray(script, dtype=float)
        self.calls = 0
        self.values: list[int] = []

    def integers(self, low: int, high: int | None = None, size: Any = None, **options: Any) -> np.ndarray:
        """Draw whole numbers, as a Generator does."""
        first, end = (0, low) if high is None else (low, high)
        if np.ravel(size)[0] != BLOCK:  # the key of other streams, not draws for examples
            return np.full(size, first, **options)
        numbers = first + _counted(size) % (end - first)
        return self._given(numbers, end - first, lambda u: first + np.floor(u * (end - first)))

    def random(self, size: Any = None) -> np.ndarray:
        """Draw from the uniform distribution, as a Generator does."""
        return self._given(_golden(size).copy(), 0, lambda u: u)

    def geometric(self, p: float, size: Any = None) -> np.ndarray:
        """Draw from the geometric distribution, as a Generator does."""
        return self._given(np.full(size, 2), 0, lambda u: np.ceil(np.log1p(-u) / np.log1p(-p)))

    def _given(self, numbers: np.ndarray, values: int, inverse: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        row = self._rows[self.calls] if self.calls < len(self._rows) else None
        self.calls += 1
        if row is not None:
            own = numbers[row]
            given = self._script[len(self.values) : len(self.values) + own.size]
            u = np.concatenate([given, np.full(own.size - given.size, 0.5)])
            numbers[row] = inverse(u).reshape(own.shape)
            self.values += [values] * own.size
        return numbers


@cache
def _counted(size: int | tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(size)).reshape(size)


@cache
def _golden(size: int | tuple[int, ...]) -> np.ndarray:
    return (_counted(size) + 1) * (np.sqrt(5) / 2 - 0.5) % 1


def rows_of(example: int, opened: Sequence[tuple[int, int]]) -> list[int | None]:
    """Return in which row of which call an example is, see `Scripted`.

    Parameters
    ----------
    example : int
        Its number, from 0.
    opened : sequence of pairs (int, int)
        For each block that was opened the number of calls before, and the number of examples up to its end.
    """
    rows: list[int | None] = []
    start = 0
    for calls, stop in opened:
        rows += [example - start if start <= example < stop else None] * (calls - len(rows))
        start = stop
    return rows


def outcomes(
    values: Sequence[int], act: Callable[[np.ndarray], np.ndarray], fixed: Mapping[int, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Find one script for each outcome.

    Parameters
    ----------
    values : sequence of int
        See `Scripted`.
    act : callable
        Returns what the learner does, shape (N, ...), by scripts of shape (N, n).
    fixed : mapping of int to float
        Numbers that do not vary, and the points of the unit interval given for them.

    Returns
    -------
    scripts : ndarray of shape (N, n)
    probability : ndarray of shape (N,)

    Raises
    ------
    ValueError
        If there are too many.
    """
    base = np.array([fixed.get(i, 0.5) for i in range(len(values))])
    edges = {i: np.linspace(0, 1, n + 1) for i, n in enumerate(values) if n}
    edges |= {i: np.array([0.0, 1.0]) for i in fixed}
    edges |= _walls(act, base, [i for i in range(len(values)) if i not in edges])
    ordered = [edges[i] for i in range(len(values))]
    if prod(len(own) - 1 for own in ordered) > _MOST_OUTCOMES:
        raise ValueError("too many outcomes to enumerate")
    points = [[fixed[i]] if i in fixed else (own[:-1] + own[1:]) / 2 for i, own in enumerate(ordered)]
    widths = [np.diff(own) for own in ordered]
    return np.array(list(product(*points))), np.array(list(product(*widths))).prod(axis=1)


def in_turn(n: int, act: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Find one script for each outcome where what a number does depends on those before it, but on none after it.

    Parameters
    ----------
    n : int
        How many numbers there are, all of a continuum.
    act : callable
        As for `outcomes`.

    Returns
    -------
    scripts : ndarray of shape (N, n)
    probability : ndarray of shape (N,)
    """
    scripts, probability = np.full((1, n), 0.5), np.ones(1)
    for i in range(n):
        edges = [_walls(act, own, [i])[i] for own in scripts]
        scripts = np.repeat(scripts, [len(own) - 1 for own in edges], axis=0)
        scripts[:, i] = np.concatenate([(own[:-1] + own[1:]) / 2 for own in edges])
        probability = np.concatenate([p * np.diff(own) for p, own in zip(probability, edges, strict=True)])
    return scripts, probability


def _walls(act: Callable[[np.ndarray], np.ndarray], base: np.ndarray, free: list[int]) -> dict[int, np.ndarray]:
    """Return 0, the places where what the learner does changes with one number alone, and 1."""
    number, low, high = np.array(free, dtype=int), np.zeros(len(free)), np.full(len(free), np.nextafter(1, 0))

    def acted(points: np.ndarray) -> np.ndarray:
        scripts = np.tile(base, (*points.shape, 1))
        np.put_along_axis(scripts, np.broadcast_to(number[:, None, None], (*points.shape, 1)), points[..., None], 2)
        return act(scripts.reshape(-1, base.size)).reshape(*points.shape, -1)

    ends = acted(np.stack([low, high], axis=1)) if number.size else np.empty(0)
    for parts in _PARTS:
        if not number.size:
            break
        points = np.linspace(low, high, parts + 1, axis=1)
        done = np.concatenate([ends[:, :1], acted(points[:, 1:-1]), ends[:, 1:]], axis=1)  # the ends are known
        i, j = np.nonzero((done[:, 1:] != done[:, :-1]).any(axis=2))
        number, low, high, ends = number[i], points[i, j], points[i, j + 1], np.stack([done[i, j], done[i, j + 1]], 1)
    middle = (low + high) / 2
    return {i: np.concatenate([[0.0], np.sort(middle[number == i]), [1.0]]) for i in free}

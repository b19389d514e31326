"""All outcomes of a learner's draws for one example, with their exact probabilities.

A learner turns the numbers of its random generator into attributes. A `Scripted` generator gives these numbers for one
example: each is a coordinate of the unit cube, and what the learner does is constant on boxes of the cube. The walls
between the boxes are located by running the learner. One point of each box, weighted by the volume of the box, gives
the distribution to about 1e-9.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from budgetreg.streams import BLOCK

_PARTS = (128, *(16,) * 6)
"""Numbers of parts into which an interval with walls is divided repeatedly; no box may be narrower than the first."""

_MOST_OUTCOMES = 2**14


class Scripted:
    """A random generator whose numbers for one example are given; all other numbers are spread evenly.

    Learners draw for a block of examples at a time, ``BLOCK`` rows in one or several calls.

    Parameters
    ----------
    rows : sequence of int or None
        The row of the example in each of these calls; None if the example is not in that block.
    script : ndarray of shape (n,)
        Points of the unit interval, one for each number that is drawn for the example; further numbers are 1/2.

    Attributes
    ----------
    calls : int
        Number of these calls so far.
    values : list of int
        Number of equally probable values of each number for the example; 0 for a continuous one.
    """

    def __init__(self, rows: Sequence[int | None], script: Sequence[float] | np.ndarray = ()) -> None:
        self._rows, self._script = rows, np.asarray(script, dtype=float)
        self.calls = 0
        self.values: list[int] = []

    def integers(self, low: int, high: int | None = None, size: Any = None, **options: Any) -> np.ndarray:
        """Draw whole numbers, as a Generator does."""
        first, end = (0, low) if high is None else (low, high)
        if np.ravel(size)[0] != BLOCK:  # the key of another stream, not draws for examples
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
            shape, size = numbers[row].shape, numbers[row].size
            given = self._script[len(self.values) : len(self.values) + size]
            u = np.concatenate([given, np.full(size - given.size, 0.5)])
            numbers[row] = inverse(u).reshape(shape)
            self.values += [values] * size
        return numbers


@cache
def _counted(size: int | tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(size)).reshape(size)


@cache
def _golden(size: int | tuple[int, ...]) -> np.ndarray:
    return (_counted(size) + 1) * (np.sqrt(5) / 2 - 0.5) % 1


def rows_of(example: int, opened: Sequence[tuple[int, int]]) -> list[int | None]:
    """Return the row of an example in each call, see `Scripted`.

    Parameters
    ----------
    example : int
        Number of the example, from 0.
    opened : sequence of pairs (int, int)
        For each opened block the number of calls before it, and the number of examples up to its end.
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
    """Return one script for each outcome, with its probability.

    Parameters
    ----------
    values : sequence of int
        See `Scripted`.
    act : callable
        Maps scripts (N, n) to what the learner does, shape (N, ...).
    fixed : mapping of int to float
        Numbers that do not vary, and their points of the unit interval.

    Returns
    -------
    scripts : ndarray of shape (N, n)
    probability : ndarray of shape (N,)

    Raises
    ------
    ValueError
        If there are too many outcomes.
    """
    base = np.array([fixed.get(i, 0.5) for i in range(len(values))])
    edges = {i: np.linspace(0, 1, n + 1) for i, n in enumerate(values) if n}
    edges |= {i: np.array([0.0, 1.0]) for i in fixed}
    edges |= _walls(act, base, [i for i in range(len(values)) if i not in edges])
    ordered = [edges[i] for i in range(len(values))]
    if prod(len(walls) - 1 for walls in ordered) > _MOST_OUTCOMES:
        raise ValueError("too many outcomes to enumerate")
    points = [[fixed[i]] if i in fixed else (walls[:-1] + walls[1:]) / 2 for i, walls in enumerate(ordered)]
    widths = [np.diff(walls) for walls in ordered]
    return np.array(list(product(*points))), np.array(list(product(*widths))).prod(axis=1)


def distribution(rows: Sequence[int | None], act: Callable[[list[Any]], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return a learner's results for an example by outcome, shape (N, ...), and probabilities, shape (N,).

    Parameters
    ----------
    rows : sequence of int or None
        See `Scripted`.
    act : callable
        Maps a random generator per stream to what the learner does along each stream.
    """

    def scripted(scripts: np.ndarray) -> np.ndarray:
        return act([Scripted(rows, script) for script in scripts])

    probe = Scripted(rows)
    act([probe])
    scripts, probability = outcomes(probe.values, scripted, {})
    return scripted(scripts), probability


def in_turn(n: int, act: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return one script for each outcome where the effect of a number depends only on the numbers before it.

    Parameters
    ----------
    n : int
        Number of random numbers, all continuous.
    act : callable
        As for `outcomes`.

    Returns
    -------
    scripts : ndarray of shape (N, n)
    probability : ndarray of shape (N,)
    """
    scripts, probability = np.full((1, n), 0.5), np.ones(1)
    for i in range(n):
        edges = [_walls(act, script, [i])[i] for script in scripts]
        scripts = np.repeat(scripts, [len(walls) - 1 for walls in edges], axis=0)
        scripts[:, i] = np.concatenate([(walls[:-1] + walls[1:]) / 2 for walls in edges])
        probability = np.concatenate([p * np.diff(walls) for p, walls in zip(probability, edges, strict=True)])
    return scripts, probability


def _walls(act: Callable[[np.ndarray], np.ndarray], base: np.ndarray, free: list[int]) -> dict[int, np.ndarray]:
    """Return, for each free number, 0, the points at which its change alone changes the outcome, and 1."""
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

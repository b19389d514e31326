"""All outcomes of a learner's draws with their exact probabilities, and of a step, compared with the paper's listing.

A learner turns the numbers of its random generator into attributes. A `Scripted` generator gives these numbers for one
example: each is a coordinate of the unit cube, and what the learner does is constant on boxes of the cube. The walls
between the boxes are located by running the learner. One point of each box, weighted by the volume of the box, gives
the distribution to about 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from budgetreg.algorithms.cesa_bianchi_2010 import aer_update
from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import aelr_exponents, aelr_regressor, aelr_update, aerr_update
from budgetreg.common.streams import BLOCK
from budgetreg.metering.table import Table
from budgetreg.testing.certificates import LearnerUnderTest, Oracle, close, expect, same

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


# The steps of the papers' listings, and their inverses.
#
# The inverse of a step returns the gradient between two iterates, where neither projection nor clipping acts. The
# inverse of averaging returns the iterates.

Settings = Mapping[str, float]


@dataclass(frozen=True)
class ReferenceUpdate:
    """An update and its inverse.

    Attributes
    ----------
    step : callable
        ``step(before, gradient, t, settings)``: ``w_{t+1}``, (N, d), from ``w_t`` and gradients, (d,) and (N, d), with
        clipping and projection.
    gradient : callable
        ``gradient(before, after, t, settings)``: the gradients, (N, d), from ``w_t`` and ``w_{t+1}``, both (N, d).
    """

    step: Callable[[np.ndarray, np.ndarray, int, Settings], np.ndarray]
    gradient: Callable[[np.ndarray, np.ndarray, int, Settings], np.ndarray]


def iterates(outputs: np.ndarray, average: str, first: int = 0) -> np.ndarray:
    """Return the iterates whose averages are a learner's outputs, see `budgetreg.algorithms.vectors`.

    Parameters
    ----------
    outputs : ndarray of float, shape (m, ...)
        Outputs after each of 1..m examples.
    average : {'all', 'suffix', 'last'}
        The averaging rule.
    first : int
        Examples of a first phase, whose iterates are averaged separately.

    Returns
    -------
    ndarray of float, shape (m, ...)
        ``w_1 .. w_m``.
    """
    w = np.array(outputs)
    for phase in (w[:first], w[first:]):  # views: each iterate replaces its output
        for c in range(1, len(phase) + 1):
            begin = {"all": 0, "suffix": c // 2, "last": c - 1}[average]
            phase[c - 1] = (c - begin) * phase[c - 1] - phase[begin : c - 1].sum(axis=0)
    return w


REFERENCE_UPDATES: Mapping[str, ReferenceUpdate] = {
    "ogd": ReferenceUpdate(
        step=lambda w, gradient, t, given: aerr_update(w, 1.0, gradient, given["B"], given["eta"]),
        gradient=lambda before, after, t, given: (before - after) / given["eta"],
    ),
    "eg": ReferenceUpdate(
        step=lambda w, gradient, t, given: aelr_regressor(
            aelr_update(aelr_exponents(w[None], given["B"]), 1.0, gradient, given["eta"]), given["B"]
        ),
        gradient=lambda before, after, t, given: (
            (aelr_exponents(before, given["B"]) - aelr_exponents(after, given["B"])) / given["eta"]
        ),
    ),
    "pegasos": ReferenceUpdate(
        step=lambda w, gradient, t, given: aer_update(w, 1.0, gradient, t, given["B"], given["lambda"]),
        gradient=lambda before, after, t, given: given["lambda"] / 2 * ((t - 1) * before - t * after),
    ),
}
"""By name of the update."""

# All outcomes of one step of an online learner.

STEP = 9
"""The step that is enumerated: by then every attribute has been drawn."""

LATE = BLOCK + 2
"""The step that is enumerated where a step depends on what was seen in earlier blocks."""

INSIDE = {"B": 50.0, "eta": 0.005, "lambda": 20.0}
"""Parameters with which no step reaches the boundary of the ball, or a gradient that is clipped."""

EDGE = {**INSIDE, "B": 1.0}
"""Parameters with which the step of a large example does, and no other step."""


def prices(d: int) -> np.ndarray:
    """Return the prices of attributes with which the checks run price-aware learners, shape (d,)."""
    return np.asarray(1.5 ** (np.arange(d) % 3) * 2.0 ** -(np.arange(d) % 2))


_STREAMS = 1024
"""Streams that run together."""

_SOME = 64
"""Number of outcomes that are compared where their mean is not needed."""


@dataclass(frozen=True)
class Place:
    """The step of a learner that is enumerated.

    Attributes
    ----------
    t : int
        Number of the step, `STEP` or `LATE`.
    edge : bool
        Whether projection and clip act in some of its outcomes; then a few outcomes are drawn at random.
    average : {'all', 'suffix', 'last'}
        Which iterates the learner's outputs average.
    first : int
        Examples of an earlier phase, whose iterates are averaged separately.
    fixed : tuple of pairs (int, float)
        Numbers drawn for the example that do not vary, see `outcomes`.
    """

    t: int = STEP
    edge: bool = False
    average: str = "last"
    first: int = 0
    fixed: tuple[tuple[int, float], ...] = ()

    @property
    def settings(self) -> Mapping[str, float]:
        """The learner's parameters."""
        return EDGE if self.edge else INSIDE

    def examples(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the examples X, (t+1, d), and targets; the step is that of the last but one."""
        rng = np.random.default_rng(3)
        # All steps have the same signs, so that the weights are similar and no attribute is drawn too rarely.
        X = rng.uniform(0.5, 1, (self.t + 1, d)) * rng.choice([-1, 1], d)
        y = rng.uniform(0.5, 1, self.t + 1)
        X[STEP : self.t - 1] = 0  # these steps take little time and change nothing
        if self.edge:
            X[self.t - 1] *= 2 * 4.0 ** np.arange(d)
            y[self.t - 1] = 20
        return X, y


@dataclass(frozen=True)
class Step:
    """All outcomes of one step, or some outcomes of a step at which projection and clip act.

    Attributes
    ----------
    place : Place
        The step.
    X, Y : ndarray of float, shapes (t+1, d) and (t+1,)
        All examples and targets.
    w : ndarray of shape (d,)
        The regressor before the step.
    probability : ndarray of shape (N,)
        Probability of each outcome.
    after : ndarray of shape (N, d)
        The regressor after each outcome.
    attributes : ndarray of int, shape (N, n)
        The attributes that each outcome saw, in order; -1 where it saw fewer than another outcome.
    earlier : list of ndarray of int
        The attributes that the learner saw of each earlier example, which are the same in all outcomes.
    """

    place: Place
    X: np.ndarray
    Y: np.ndarray
    w: np.ndarray
    probability: np.ndarray
    after: np.ndarray
    attributes: np.ndarray
    earlier: list[np.ndarray]

    @property
    def x(self) -> np.ndarray:
        """The example of the step, shape (d,)."""
        return np.asarray(self.X[self.place.t - 1])

    @property
    def y(self) -> float:
        """The target of the example."""
        return float(self.Y[self.place.t - 1])

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the expectation of values of the outcomes, shape (N, ...)."""
        return np.tensordot(self.probability, values, axes=1)

    def gradient(self, moves: ReferenceUpdate) -> np.ndarray:
        """Return the gradient that each outcome followed, (N, d), for a step without projection and clip."""
        return moves.gradient(self.w[None], self.after, self.place.t, self.place.settings)


@lru_cache(maxsize=8)
def enumerate_step(subject: LearnerUnderTest, d: int, k: int, place: Place) -> Step:
    """Enumerate a step.

    Parameters
    ----------
    subject : LearnerUnderTest
        An online learner.
    d, k : int
        Attributes and budget.
    place : Place
        The step.

    Raises
    ------
    CheckError
        If the regressor before the step depends on what is drawn for its example.
    """
    runs = ScriptedRuns(subject, *place.examples(d), k, place)
    rows, values, earlier = runs.probe()
    if place.edge:  # compared one by one: their probabilities do not matter
        scripts, probability = np.random.default_rng(4).random((_SOME, len(values))), np.full(_SOME, 1 / _SOME)
        for number, value in place.fixed:
            scripts[:, number] = value
    else:
        scripts, probability = outcomes(values, lambda scripts: runs.by_scripts(rows, scripts)[1], dict(place.fixed))
    before, after, attributes = runs.by_scripts(rows, scripts)
    same = np.allclose(before, before[0], rtol=0, atol=1e-12)  # iterates are recovered from averages up to rounding
    expect(same, "the regressor before a step depends on what is drawn for its example")
    return Step(place, runs.X, runs.y, before[0], probability, after, attributes, earlier)


def exact_gradient(subject: LearnerUnderTest, step: Step, moves: ReferenceUpdate) -> np.ndarray:
    """Return the gradient (d,) that a learner with full information follows at the same regressor and example.

    One constructed example leads the learner from ``w_1 = 0`` to the regressor: with the target -1, its gradient there
    is the example itself.
    """
    towards = moves.gradient(np.zeros((1, len(step.w))), step.w[None], 1, INSIDE)[0]
    table = Table(np.stack([towards, step.x, step.x]), np.array([-1.0, step.y, step.y]))
    settings = {name: [value] for name, value in INSIDE.items()}
    (before, after), _ = subject.run(table, np.arange(3)[None], [], len(step.w), settings, [2, 3])
    expect(np.allclose(before[0, :, 0], step.w, rtol=1e-9), f"{subject.name} does not reach the regressor of the step")
    gradient: np.ndarray = moves.gradient(before[:, :, 0], after[:, :, 0], 2, INSIDE)[0]
    return gradient


@dataclass(frozen=True)
class ScriptedRuns:
    """Runs of a learner on the examples of a step, along streams whose random numbers are scripted.

    Attributes
    ----------
    subject : LearnerUnderTest
    X, y : ndarray of float, shapes (t+1, d) and (t+1,)
        Examples and targets.
    k : int
        Budget.
    place : Place
        The step.
    """

    subject: LearnerUnderTest
    X: np.ndarray
    y: np.ndarray
    k: int
    place: Place

    def probe(self) -> tuple[list[int | None], list[int], list[np.ndarray]]:
        """Return the rows and the values of the numbers drawn for the step's example, see `Scripted`.

        Last are the attributes seen of each earlier example.
        """
        probe = Scripted(())
        opened: list[tuple[int, int]] = []
        self._run([probe], lambda stop: opened.append((probe.calls, stop)))
        rows = rows_of(self.place.t - 1, opened)
        probe = Scripted(rows)
        _, _, reveals = self._run([probe])
        return rows, probe.values, reveals.of(np.arange(self.place.t - 1))

    def by_scripts(self, rows: list[int | None], scripts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the regressors (N, d) before and after the step, and the attributes seen, by scripts (N, n)."""
        befores, afters, attributes = [], [], []
        for start in range(0, len(scripts), _STREAMS):
            rngs = [Scripted(rows, script) for script in scripts[start : start + _STREAMS]]
            before, after, reveals = self._run(rngs)
            befores.append(before)
            afters.append(after)
            attributes += reveals.of(np.arange(len(rngs)) * len(self.X) + self.place.t - 1)
        padded = np.full((len(scripts), max(map(len, attributes))), -1)
        for row, seen in zip(padded, attributes, strict=True):
            row[: len(seen)] = seen
        return np.concatenate(befores), np.concatenate(afters), padded

    def _run(
        self, rngs: list[Scripted], opened: Callable[[int], None] = lambda stop: None
    ) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return the regressors (F, d) before and after the step, and what was seen, m rows for each stream."""
        F, m = len(rngs), len(self.X)
        # Each stream has its own rows, so that the log distinguishes the streams.
        orders = np.arange(F * m).reshape(F, m)
        table = Table(np.tile(self.X, (F, 1)), np.tile(self.y, F))
        settings = {name: [value] for name, value in self.place.settings.items()}
        marks = [m - 1, m] if self.place.average == "last" else list(range(1, m + 1))
        outputs, reveals = self.subject.run(table, orders, rngs, self.k, settings, marks, opened)
        if self.place.average != "last":
            outputs = list(iterates(np.stack(outputs), self.place.average, self.place.first)[-2:])
        before, after = (W[:, :, 0] for W in outputs)
        return before, after, reveals


# The distribution of a gradient estimate ``phi~ x~``, a product of independent estimates, at one step.

D = 4
"""Attributes of an enumerated step, and its budget: the smallest that gives either estimate two draws."""

EXAMPLE = np.array([0.7, -1.1, 0.4, 0.2])
"""An example of D attributes, for estimates that do not depend on a regressor."""

_FEWER = 3
"""Budget of a step that is compared outcome by outcome."""


@dataclass(frozen=True)
class DrawProbabilities:
    """The probabilities with which a learner states that it draws attributes; they are not observed.

    Attributes
    ----------
    q, p : ndarray of float, shape (d,)
        Probabilities of each draw for the data point, and for the inner product.
    subset : bool
        Whether the data point's attributes are drawn without replacement, with equal probabilities.
    expected : ndarray of float, shape (d,), or None
        Expected attributes: the draws for the inner product estimate the difference from them.
    """

    q: np.ndarray
    p: np.ndarray
    subset: bool = False
    expected: np.ndarray | None = None


@dataclass(frozen=True)
class GradientOracle(Oracle):
    """Checks the steps of a learner that follows estimates of ``(<w, x> - y) x``.

    Attributes
    ----------
    moves : ReferenceUpdate
        How the learner moves.
    draws : callable or None
        ``draws(step, k_x)``: how attributes are drawn for a step; None if all are seen.
    counterpart : str or None
        The learner of ``conf/algo`` whose gradients are exact; None if there is none.
    average : {'all', 'suffix', 'last'}
        Which iterates the learner averages.
    late : bool
        Whether a step depends on what was seen in earlier blocks.
    first_phase : callable
        ``first_phase(m)``: examples of a phase whose iterates are averaged apart.
    """

    moves: ReferenceUpdate
    draws: Callable[[Step, int], DrawProbabilities] | None
    counterpart: str | None = None
    average: str = "last"
    late: bool = False
    first_phase: Callable[[int], int] = lambda m: 0

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Check that the estimated gradient has the mean ``(<w, x> - y) x``, where nothing clips or projects."""
        step = self._step(subject, D)
        mean = step.mean(step.gradient(self.moves))
        close("the gradient", mean, (step.w @ step.x - step.y) * step.x)

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare ``E |phi~ x~|^2 = E phi~^2 E |x~|^2`` with the formulas for the stated draws.

        With q of the data point and p of the inner product, all draws being independent,
        ``E |x~|^2 = (1/k_x) sum x_i^2/q_i + (1 - 1/k_x) |x|^2`` and, for z = x - mu with the expected attributes mu,
        ``E phi~^2 = (1/k_ip) sum w_j^2 z_j^2/p_j + (1 - 1/k_ip) <w, z>^2 + 2 u <w, z> + u^2``, ``u = <w, mu> - y``;
        for a subset, which has each attribute with probability ``k_x q_i``, ``E |x~|^2 = sum x_i^2/(k_x q_i)``.
        """
        assert self.draws is not None
        step, (k_x, k_ip) = self._step(subject, D), subject.draws_for(D, D)
        stated = self.draws(step, k_x)
        mu = np.zeros(D) if stated.expected is None else stated.expected
        product, u = step.w @ (step.x - mu), step.w @ mu - step.y
        single = sum_over(np.square(step.w * (step.x - mu)), stated.p)
        phi = single / k_ip + (1 - 1 / k_ip) * product**2 + 2 * u * product + u**2
        squares = np.square(step.gradient(self.moves)).sum(axis=1)
        close("the gradient's square", step.mean(squares), phi * point_square(step, stated, k_x))

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Check that the mean of the estimates at k = d is the gradient from full information."""
        step = self._step(subject, D)
        expected = (step.w @ step.x - step.y) * step.x
        if self.counterpart is not None:
            expected = exact_gradient(subject.other(self.counterpart), step, self.moves)
        close("the step", step.mean(step.gradient(self.moves)), expected)

    def boundary(self, subject: LearnerUnderTest) -> None:
        """Compare each outcome of a step at which clip and projection act with the paper's listing.

        The unbiased estimate g~, computed from the attributes seen and their stated probabilities, is clipped and
        projected: ``w_{t+1} = P(w_t - eta clip(g~))``, outcome by outcome. So the mean of ``w_{t+1}`` is not the point
        to which the mean gradient leads. This is all that the theorems require: the exact projection P
        moves no two points apart, and nothing is clipped at their step sizes.
        """
        step = self.edge_step(subject)
        if self.draws is None:
            gradient = np.outer(np.ones(len(step.after)), (step.w @ step.x - step.y) * step.x)
        else:
            k_x, _ = subject.draws_for(D, _FEWER)
            gradient = estimates(step, self.draws(step, k_x), k_x)
        compare_moves(step, self.moves, gradient)

    def edge_step(self, subject: LearnerUnderTest) -> Step:
        """Return a step with fewer draws than attributes, at which clip or projection acts."""
        return self._step(subject, _FEWER, edge=True)

    def _step(self, subject: LearnerUnderTest, k: int, edge: bool = False) -> Step:
        t = LATE if self.late else STEP
        return enumerate_step(subject, D, k, Place(t, edge, self.average, self.first_phase(t + 1)))


def estimates(step: Step, stated: DrawProbabilities, k_x: int) -> np.ndarray:
    """Return ``phi~ x~`` of each outcome, (N, d); its first k_x attributes are those of the data point."""
    mu = np.zeros(len(step.x)) if stated.expected is None else stated.expected
    coefficients = np.divide(step.w, stated.p, out=np.zeros_like(step.w), where=stated.p > 0)
    terms = (coefficients * (step.x - mu))[step.attributes[:, k_x:]]
    phi = terms.mean(axis=1) + step.w @ mu - step.y
    return np.asarray(phi[:, None] * points(step, stated.q, k_x))


def points(step: Step, q: np.ndarray, k_x: int) -> np.ndarray:
    """Return ``x~`` of each outcome, shape (N, d)."""
    drawn = step.attributes[:, :k_x, None] == np.arange(len(q))
    return np.asarray(drawn.mean(axis=1) * step.x / q)


def compare_moves(step: Step, moves: ReferenceUpdate, gradient: np.ndarray) -> None:
    """Compare the regressor after each outcome with that of the listing for the same gradient, (N, d)."""
    t, settings = step.place.t, step.place.settings
    expected = moves.step(step.w, gradient, t, settings)
    free = np.isclose(moves.gradient(step.w[None], expected, t, settings), gradient)
    none = "neither clip nor projection acts in the step of this check; if none can, say why in skipped_checks"
    expect(not free.all(), none)
    same("the regressor after a step that is clipped or projected", step.after, expected)


def sum_over(squares: np.ndarray, probability: np.ndarray) -> float:
    """Return the sum of squares over probabilities, both (d,), without what has probability 0."""
    possible = probability > 0
    return float((squares[possible] / probability[possible]).sum())


def point_square(step: Step, stated: DrawProbabilities, k_x: int) -> float:
    """Return the stated mean of ``|x~|^2``, for k_x draws or a subset of k_x attributes."""
    single = sum_over(np.square(step.x), stated.q) / k_x
    return single if stated.subset else single + (1 - 1 / k_x) * float(step.x @ step.x)

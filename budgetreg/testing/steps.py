"""All outcomes of one step of an online learner."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from budgetreg.metering.table import Table
from budgetreg.streams import BLOCK
from budgetreg.testing.expectations import LearnerUnderTest, expect
from budgetreg.testing.reference_updates import ReferenceUpdate, iterates
from budgetreg.testing.scripted_rng import Scripted, outcomes, rows_of

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
        Numbers drawn for the example that do not vary, see `budgetreg.testing.scripted_rng.outcomes`.
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

    def follow(self, moves: ReferenceUpdate, gradient: np.ndarray) -> np.ndarray:
        """Return the regressors to which gradients lead, both (N, d)."""
        return moves.step(self.w, gradient, self.place.t, self.place.settings)


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

    def regressors(scripts: np.ndarray) -> np.ndarray:
        return runs.by_scripts(rows, scripts)[1]

    if place.edge:  # compared one by one: their probabilities do not matter
        scripts, probability = np.random.default_rng(4).random((_SOME, len(values))), np.full(_SOME, 1 / _SOME)
        for number, value in place.fixed:
            scripts[:, number] = value
    else:
        scripts, probability = outcomes(values, regressors, dict(place.fixed))
    before, after, attributes = runs.by_scripts(rows, scripts)
    same = np.allclose(before, before[0], rtol=0, atol=1e-12)  # iterates are recovered from averages up to rounding
    expect(same, "the regressor before a step depends on what is drawn for its example")
    return Step(place, runs.X, runs.y, before[0], probability, after, attributes, earlier)


def exact_gradient(subject: LearnerUnderTest, step: Step, moves: ReferenceUpdate) -> np.ndarray:
    """Return the gradient (d,) that a learner with full information follows at the same regressor and example.

    One constructed example leads the learner from ``w_1 = 0`` to the regressor.
    """
    X = np.stack([moves.dual(step.w[None], INSIDE)[0] / INSIDE["eta"], step.x, step.x])
    table = Table(X, np.array([1.0, step.y, step.y]))
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
        orders = np.arange(F * m).reshape(
            F, m
        )  # each stream has its own rows, so that the log distinguishes the streams
        table = Table(np.tile(self.X, (F, 1)), np.tile(self.y, F))
        settings = {name: [value] for name, value in self.place.settings.items()}
        marks = [m - 1, m] if self.place.average == "last" else list(range(1, m + 1))
        outputs, reveals = self.subject.run(table, orders, rngs, self.k, settings, marks, opened)
        if self.place.average != "last":
            outputs = list(iterates(np.stack(outputs), self.place.average, self.place.first)[-2:])
        before, after = (W[:, :, 0] for W in outputs)
        return before, after, reveals

"""One step of an online learner in all ways that its draws allow, and the gradient that it followed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from budgetreg.enumeration.expectations import Subject, expect
from budgetreg.enumeration.scripts import Scripted, outcomes, rows_of
from budgetreg.metering.accessor import Table
from budgetreg.updates.retraced import Retraced

STEP = 9
"""The step that is looked at: by then every attribute has been drawn."""

INSIDE = {"B": 50.0, "eta": 0.005, "lambda": 20.0}
"""Parameters by which no step gets to the ball's boundary, nor to where exponentiated gradient clips."""

_STREAMS = 1024
"""Streams that run together."""


@dataclass(frozen=True)
class Step:
    """All outcomes of one step.

    Attributes
    ----------
    x, y : ndarray of shape (d,), float
        The example.
    w : ndarray of shape (d,)
        The regressor that meets it.
    probability : ndarray of shape (N,)
        Of each outcome.
    gradient : ndarray of shape (N, d)
        The estimate ``phi~ x~`` that the learner follows.
    attributes : ndarray of int, shape (N, n)
        The attributes that it saw, in order; -1 where it saw fewer than in another outcome.
    """

    x: np.ndarray
    y: float
    w: np.ndarray
    probability: np.ndarray
    gradient: np.ndarray
    attributes: np.ndarray

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the expectation of values of the outcomes, shape (N, ...)."""
        return np.tensordot(self.probability, values, axes=1)


@lru_cache(maxsize=8)
def enumerate_step(
    subject: Subject, d: int, k: int, moves: Retraced, fixed: tuple[tuple[int, float], ...] = ()
) -> Step:
    """Take a step in all ways.

    Parameters
    ----------
    subject : Subject
        An online learner.
    d, k : int
        Attributes and budget.
    moves : Retraced
        How it moves.
    fixed : tuple of pairs (int, float), optional
        Numbers drawn for the example that do not vary, see `scripts.outcomes`.

    Raises
    ------
    CheckError
        If the regressor that meets the example depends on what is drawn for it.
    """
    rng = np.random.default_rng(3)
    # All steps go the same way, so that the weights are alike and no attribute is drawn too seldom to be noticed.
    X = rng.uniform(0.5, 1, (STEP + 1, d)) * rng.choice([-1, 1], d)
    y = rng.uniform(0.5, 1, STEP + 1)
    probe = Scripted(())
    opened: list[tuple[int, int]] = []
    _run(subject, X, y, k, [probe], lambda stop: opened.append((probe.calls, stop)))
    rows = rows_of(STEP - 1, opened)
    probe = Scripted(rows)
    _run(subject, X, y, k, [probe])

    def regressors(scripts: np.ndarray) -> np.ndarray:
        return _take(subject, X, y, k, rows, scripts)[1]

    scripts, probability = outcomes(probe.values, regressors, dict(fixed))
    before, after, attributes = _take(subject, X, y, k, rows, scripts)
    expect((before == before[0]).all(), "the regressor that meets an example depends on what is drawn for it")
    gradient = moves.gradient(before, after, STEP, INSIDE)
    return Step(X[STEP - 1], float(y[STEP - 1]), before[0], probability, gradient, attributes)


def exact_gradient(subject: Subject, step: Step, moves: Retraced) -> np.ndarray:
    """Return the gradient (d,) that a learner with full information follows at the same regressor and example.

    From ``w_1 = 0``, one example made for it leads the learner to the regressor.
    """
    X = np.stack([moves.position(step.w[None], INSIDE)[0] / INSIDE["eta"], step.x, step.x])
    table = Table(X, np.array([1.0, step.y, step.y]))
    settings = {name: [value] for name, value in INSIDE.items()}
    (before, after), _ = subject.run(table, np.arange(3)[None], [], len(step.w), settings, [2, 3])
    expect(np.allclose(before[0, :, 0], step.w, rtol=1e-9), f"{subject.name} was not led to the regressor")
    gradient: np.ndarray = moves.gradient(before[:, :, 0], after[:, :, 0], 2, INSIDE)[0]
    return gradient


def _take(
    subject: Subject, X: np.ndarray, y: np.ndarray, k: int, rows: list[int | None], scripts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the regressors (N, d) before and after the step, and the attributes seen, by scripts (N, n)."""
    parts = []
    for start in range(0, len(scripts), _STREAMS):
        parts.append(_run(subject, X, y, k, [Scripted(rows, own) for own in scripts[start : start + _STREAMS]]))
    before, after, seen = zip(*parts, strict=True)
    most = max(own.shape[1] for own in seen)
    padded = [np.pad(own, ((0, 0), (0, most - own.shape[1])), constant_values=-1) for own in seen]
    return np.concatenate(before), np.concatenate(after), np.concatenate(padded)


def _run(
    subject: Subject,
    X: np.ndarray,
    y: np.ndarray,
    k: int,
    rngs: list[Scripted],
    opened: Callable[[int], None] = lambda stop: None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    F, m = len(rngs), len(X)
    orders = np.arange(F * m).reshape(F, m)  # rows of its own for each stream, by which the log tells them apart
    table = Table(np.tile(X, (F, 1)), np.tile(y, F))
    settings = {name: [value] for name, value in INSIDE.items()}
    (before, after), recorder = subject.run(table, orders, rngs, k, settings, [STEP, STEP + 1], opened)
    rows, attributes = recorder.seen()
    own = rows % m == STEP - 1
    stream, attributes = rows[own] // m, attributes[own]
    order = np.argsort(stream, kind="stable")
    counts = np.bincount(stream, minlength=F)
    seen = np.full((F, counts.max()), -1)
    seen[np.arange(counts.max()) < counts[:, None]] = attributes[order]
    return before[:, :, 0], after[:, :, 0], seen

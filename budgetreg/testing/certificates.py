"""What a learner is expected to do: expectations that raise, the base class of oracles, and certificates of outputs.

A certificate shows that an output is the best for the values shown, without the solver that computed it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from budgetreg.common.streams import generator
from budgetreg.metering.table import Table


class CheckError(AssertionError):
    """A learner fails a check; the message gives the reason."""


def close(what: str, mean: np.ndarray | float, expected: np.ndarray | float) -> None:
    """Expect a mean to equal its expected value, up to rounding."""
    same(f"the mean of {what}", mean, expected)


def same(what: str, actual: np.ndarray | float, expected: np.ndarray | float) -> None:
    """Expect numbers to equal other numbers, up to rounding."""
    off = float(np.abs(np.asarray(actual) - expected).max() / np.abs(expected).max())
    expect(off < 1e-8, f"{what} is off by {off:.2g} of its size")


def expect(holds: Any, otherwise: str) -> None:
    """Raise a `CheckError` with the message `otherwise` unless a condition holds."""
    if not holds:
        raise CheckError(otherwise)


class LearnerUnderTest(Protocol):
    """A learner that is checked, see `budgetreg.testing.checks.Subject`."""

    @property
    def name(self) -> str:
        """The learner's name."""

    def draws_for(self, d: int, k: int) -> tuple[int, int]:
        """Return the numbers of draws for the data point and for the inner product at a budget of k."""

    def run(
        self,
        table: Table,
        orders: np.ndarray,
        rngs: Sequence[Any],
        k: int,
        settings: Any,
        checkpoints: Sequence[int] | None = None,
        opened: Callable[[int], None] = ...,
    ) -> tuple[list[np.ndarray], Any]:
        """Run the learner along some streams; return its outputs at the checkpoints, and what it saw."""

    def other(self, name: str) -> LearnerUnderTest:
        """Return another learner of ``conf/algo``."""

    def __hash__(self) -> int:
        """Only the same object is equal, as enumerated steps are cached for each learner."""


class Oracle:
    """The expected behaviour of a learner; each method raises a `CheckError` if the learner differs.

    A learner needs only the comparisons that it does not list in `skipped_checks`.
    """

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Check that the expectation of what is estimated from one example, over all draws, equals its target."""
        self._undeclared(subject, "unbiased")

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Check that the mean square of the estimate equals its formula for the draws that the learner states."""
        self._undeclared(subject, "second moments")

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Check that the estimate at k = d agrees with full information."""
        self._undeclared(subject, "full at k=d")

    def boundary(self, subject: LearnerUnderTest) -> None:
        """Check steps at which something clips or projects against the same step of the unbiased estimate."""
        self._undeclared(subject, "boundary")

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Certify, at some checkpoints, that the output is the best for what was seen."""
        self._undeclared(subject, "minimiser")

    @staticmethod
    def _undeclared(subject: LearnerUnderTest, check: str) -> None:
        raise CheckError(
            f"the class of {subject.name} declares nothing to compare with: add the comparison to its oracle, or a "
            f"reason for '{check}' to its skipped_checks"
        )


D, K = 8, 6
"""Attributes and budget of checks that run a learner on all examples."""

ERRORS = 5
"""Largest deviation of a mean, in standard errors. Seeds are fixed, so a check that passes once always passes."""

CHECKPOINTS = (3, D, 40)
"""Numbers of examples at which outputs are certified: below, at and above the number of attributes."""

RADII = (0.01, 0.5, 100.0)
"""Two at which the ball binds, and one at which it does not."""

_TOLERANCE = 1e-9
"""Largest duality gap, as a share of the scale of what is minimised."""


@dataclass(frozen=True)
class Shown:
    """The values that a learner was shown up to a checkpoint, and its output.

    Attributes
    ----------
    attributes : list of ndarray of int
        The attributes seen of each example, in order.
    values : list of ndarray of float
        Their values.
    y : ndarray of float, shape (m,)
        Targets.
    output : ndarray of float
        Regressors (d, G), or subspaces (G, d, n).
    """

    attributes: list[np.ndarray]
    values: list[np.ndarray]
    y: np.ndarray
    output: np.ndarray

    @property
    def X(self) -> np.ndarray:  # noqa: N802
        """The values as rows (m, d), NaN where they were not shown."""
        X = np.full((len(self.y), D), np.nan)
        for row, attributes, values in zip(X, self.attributes, self.values, strict=True):
            row[attributes] = values
        return X


def run(subject: LearnerUnderTest, settings: Mapping[str, Sequence[float]]) -> list[Shown]:
    """Run a learner along two streams, the same examples in two orders; return each at each checkpoint.

    The attributes differ in size, two of them are equal, and one is always 0.
    """
    rng, m = generator("check certificates"), CHECKPOINTS[-1]
    X = rng.standard_normal((m, D)) * np.geomspace(0.1, 10, D) * (rng.random((m, D)) < 0.8)
    X[:, 3], X[:, 5] = X[:, 4], 0
    y = X @ np.linspace(-1, 1, D) + rng.standard_normal(m)
    orders = np.stack([np.arange(m), rng.permutation(m)])
    shown = []
    table = Table(X, y)
    rngs = [generator("check certificates", f) for f in range(2)]
    outputs, _ = subject.run(table, orders, rngs, K, settings, CHECKPOINTS)
    for f, order in enumerate(orders):
        # A run of this stream alone shows what it sees, as the rows of both streams are the same.
        again = [generator("check certificates", f)]
        _, reveals = subject.run(table, order[None], again, K, settings, CHECKPOINTS)
        for checkpoint, output in zip(CHECKPOINTS, outputs, strict=True):
            rows = order[:checkpoint]
            seen = reveals.of(rows)
            values = [X[row, each] for row, each in zip(rows, seen, strict=True)]
            shown.append(Shown(seen, values, y[rows], output[f]))
    return shown


def least(
    what: str,
    w: np.ndarray,
    B: float,
    gradient: np.ndarray,
    scale: float,
    norm: Callable[[np.ndarray], float],
    dual: Callable[[np.ndarray], float],
) -> None:
    """Expect a regressor to minimise a convex function f over the ball ``|w| <= B``.

    With the gradient g at w, no u in the ball has ``f(u) < f(w) - gap`` for the duality gap ``gap = <g, w> + B |g|_*``,
    which is the maximum of ``<g, w - u>`` (M. Jaggi, Revisiting Frank-Wolfe, ICML 2013).

    Parameters
    ----------
    what : str
        What is minimised, for messages.
    w, gradient : ndarray of float, shape (d,)
    B : float
    scale : float
        Scale of the function's values, of which a gap is a share.
    norm, dual : callable
        The norm of the ball, and the dual norm.
    """
    expect(norm(w) <= B * (1 + _TOLERANCE), f"a regressor of norm {norm(w):.6g} is returned for the radius {B:g}")
    gap = float(gradient @ w + B * dual(gradient))
    expect(gap <= _TOLERANCE * scale, f"{what} is up to {gap / scale:.2g} of its scale above its minimum at B={B:g}")


def one_norm(w: np.ndarray) -> float:
    """Return ``|w|_1``."""
    return float(np.abs(w).sum())


def two_norm(w: np.ndarray) -> float:
    """Return ``|w|_2``."""
    return float(np.linalg.norm(w))


def largest(w: np.ndarray) -> float:
    """Return ``|w|_inf``."""
    return float(np.abs(w).max())


NORMS = {1: (one_norm, largest), 2: (two_norm, two_norm)}
"""Norms and their dual ones, by what `Learner.norm` declares."""


@dataclass(frozen=True)
class BallOracle(Oracle):
    """Certifies that no regressor of a ball has a smaller loss ``|X w - y|^2 / 2``, from full rows.

    Attributes
    ----------
    norm, dual : callable
        The ball's norm, and the dual one.
    """

    norm: Callable[[np.ndarray], float]
    dual: Callable[[np.ndarray], float]

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Certify the minimisers by their duality gaps, in proportion to ``|y|^2 / 2``, the loss at 0."""
        for shown in run(subject, {"B": RADII}):
            expect(all(np.array_equal(seen, np.arange(D)) for seen in shown.attributes), "not all attributes were seen")
            X, y = np.stack(shown.values), shown.y
            for w, B in zip(shown.output.T, RADII, strict=True):
                what = f"the loss of {len(y)} examples"
                least(what, w, B, X.T @ (X @ w - y), y @ y / 2, self.norm, self.dual)


_FULL_D, _FULL_M = 6, 2000
"""Attributes and examples of the full rows."""

_OFF = 0.03
"""Share of what can be gained that a model may lose to its prior, to chance and to its few steps."""


class FullRowsOracle(Oracle):
    """Checks that full rows lead a learner of all second moments to least squares, or to the best subspace."""

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare with least squares, or the best subspace, at k = d on examples that one factor moves."""
        rng = generator("check factor models")
        X = np.outer(rng.standard_normal(_FULL_M), np.linspace(0.4, 1.5, _FULL_D))
        X += rng.standard_normal((_FULL_M, _FULL_D)) * np.linspace(1, 0.3, _FULL_D)
        y = X @ np.linspace(-1, 1, _FULL_D) + rng.standard_normal(_FULL_M)
        orders, rngs = np.arange(_FULL_M)[None], [generator("check factor draws")]
        (output,), _ = subject.run(Table(X, y), orders, rngs, _FULL_D, {})
        C = X.T @ X / _FULL_M
        if output.ndim == 3:
            best, w = np.linalg.solve(C, X.T @ y / _FULL_M), output[0, :, 0]
            lost, stake = float((w - best) @ C @ (w - best)), float(best @ C @ best)
        else:
            V = output[0, 0]
            stake = float(np.linalg.eigvalsh(C)[-V.shape[1] :].sum())
            lost = stake - float(np.vdot(V, C @ V))
        expect(lost <= _OFF * stake, f"on full rows {lost / stake:.2g} of the possible gain is lost")

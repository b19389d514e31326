"""The distribution of AESVR's gradient estimates: GenEst's, order by order of its series, and the plug-in's.

The n factors of order n have d^n outcomes. The data point is drawn with ``q = 1/d``, the inner product with
``p_j = w_j^2/|w|^2``.
"""

from dataclasses import dataclass

import numpy as np

from budgetreg.enumeration.expectations import LearnerUnderTest, Oracle, close
from budgetreg.enumeration.gradients import D, DrawProbabilities, compare_moves, point_square, points
from budgetreg.enumeration.steps import STEP, Place, Step, enumerate_step
from budgetreg.learners.svr import SupportVectorLearner
from budgetreg.learners.svr.core import GenEst
from budgetreg.updates.gen_est import WEIGHTS, smoothed_slope
from budgetreg.updates.reference_updates import REFERENCE_UPDATES

_ORDERS = (1, 3)
"""Orders of the series that are enumerated."""

_MOVES = REFERENCE_UPDATES["ogd"]


@dataclass(frozen=True)
class SlopeOracle(Oracle):
    """Enumerates the draws of one call of GenEst by order, and those of the plug-in."""

    learner: SupportVectorLearner

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Compare the estimate with its series, order by order, and the series with the slope of the smoothed loss."""
        for order in _ORDERS:
            call = _call(self.learner, subject, order)
            mean = call.step.mean(call.step.gradient(_MOVES))
            close("the gradient", mean, call.weight * call.theta**order * call.step.x)
        call.compare_series()

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare the mean square of a call's estimate with that of a product of independent factors."""
        for order in _ORDERS:
            call = _call(self.learner, subject, order)
            phi = call.weight**2 * (call.theta**2 + call.variance) ** order
            squares = np.square(call.step.gradient(_MOVES)).sum(axis=1)
            stated = DrawProbabilities(np.full(D, 1 / D), call.p)
            close("the gradient's square", call.step.mean(squares), phi * point_square(call.step, stated, call.k_x))

    def boundary(self, subject: LearnerUnderTest) -> None:
        """Compare the projected steps along the estimates with the paper's listing.

        The mean of the regressor is that of the projections, not the point to which the mean gradient leads.
        """
        if self.learner.residual == "gen_est":
            for order in _ORDERS:
                call = _call(self.learner, subject, order, edge=True)
                factors = call.factors()[:, :order] - call.step.y - call.delta
                phi = call.weight * (factors / call.eps).prod(axis=1)
                compare_moves(call.step, _MOVES, phi[:, None] * points(call.step, np.full(D, 1 / D), call.k_x))
        else:
            call = _call(self.learner, subject, None, edge=True)
            phi = smoothed_slope(call.factors().mean(axis=1) - call.step.y, call.delta, call.eps)
            compare_moves(call.step, _MOVES, phi[:, None] * points(call.step, np.full(D, 1 / D), call.k_x))


@dataclass(frozen=True)
class _Call:
    """A step in which the first of GenEst's two calls has a given order, and the second has order 0, which gives 0.

    The plug-in has no orders.
    """

    step: Step
    k_x: int
    delta: float
    eps: float
    weight: float

    @property
    def p(self) -> np.ndarray:
        """Return the probabilities of the inner product's draws."""
        return np.asarray(np.square(self.step.w) / (self.step.w @ self.step.w))

    def factors(self) -> np.ndarray:
        """Return the estimates ``w_j x_j / p_j`` of the inner product from each draw, shape (N, n)."""
        return np.asarray((self.step.w * self.step.x / self.p)[self.step.attributes[:, self.k_x :]])

    @property
    def theta(self) -> float:
        """Return the scaled residual that the factors estimate."""
        return float(self.step.w @ self.step.x - self.step.y - self.delta) / self.eps

    @property
    def variance(self) -> float:
        """Return the variance of a factor, for a draw with probabilities ``w_j^2/|w|^2``."""
        x, w = self.step.x, self.step.w
        return float(w @ w * (x @ x) - (w @ x) ** 2) / self.eps**2

    def compare_series(self) -> None:
        """Compare the mean over the orders, ``sum_n 2^{-(n+1)} E phi_n``, with the slope."""
        u = float(self.step.w @ self.step.x - self.step.y)
        n = np.arange(len(WEIGHTS))
        theta = (u + self.delta * np.array([-1.0, 1.0])[:, None]) / self.eps
        mean = (WEIGHTS * 0.5 ** (n + 1) * theta**n).sum() / 2
        close("the slope", mean, float(smoothed_slope(np.array(u), self.delta, self.eps)))


def _call(learner: SupportVectorLearner, subject: LearnerUnderTest, order: int | None, edge: bool = False) -> _Call:
    k_x, _ = subject.draws_for(D, D)
    fixed: tuple[tuple[int, float], ...] = ()
    if order is not None:
        # The data point is drawn, then two orders, n from a part 2^{-(n+1)} of the interval, then uniforms for either.
        first = k_x + 2
        unused = [(i, 0.5) for i in range(first + order, first + 2 * GenEst.AT_HAND)]
        fixed = ((k_x, 1 - 1.5 * 0.5 ** (order + 1)), (k_x + 1, 0.25), *unused)
    step = enumerate_step(subject, D, D, Place(STEP, edge, learner.average, fixed=fixed))
    return _Call(step, k_x, learner.delta, learner.eps, float(WEIGHTS[order or 0]) / 2)

"""The expected behaviour of learners that take a step for each example.

The probabilities with which attributes are drawn are stated here, apart from the learners' code.
"""

from dataclasses import dataclass, replace
from math import log

import numpy as np

from budgetreg.algorithms.comparison.sgd_impute import ImputedGradientLearner
from budgetreg.algorithms.full_rows import ExactGradientLearner
from budgetreg.algorithms.hazan_koren_2012 import aesvr as gen_est
from budgetreg.algorithms.hazan_koren_2012.aesvr import GenEst, SupportVectorLearner
from budgetreg.algorithms.hazan_koren_2012.gradients import COUNTERPARTS, GradientLearner, GuidedLearner
from budgetreg.algorithms.kukliansky_shamir_2015 import TwoPhaseLearner, estimated_moments
from budgetreg.streams import BLOCK
from budgetreg.testing.expectations import LearnerUnderTest, Oracle, close
from budgetreg.testing.gradients import D, DrawProbabilities, GradientOracle, compare_moves, point_square, points
from budgetreg.testing.reference_updates import REFERENCE_UPDATES
from budgetreg.testing.steps import STEP, Place, Step, enumerate_step, prices


def one_pass(learner: GradientLearner) -> GradientOracle:
    """State that attributes are drawn uniformly, or guided by the second moments of all examples and by prices."""

    def draws(step: Step, k_x: int) -> DrawProbabilities:
        stated = guided_draws(learner, step, np.square(step.X).mean(axis=0))
        slope = learner.control_variate == "label"
        mu = None if learner.control_variate == "none" else _expected(step, k_x, slope=slope)
        return replace(stated, subset=learner.data_point == "subset", expected=mu)

    return GradientOracle(
        REFERENCE_UPDATES[learner.update],
        draws,
        COUNTERPARTS.get(learner.update),
        learner.average,
        late=learner.control_variate != "none",
    )


def two_phases(learner: TwoPhaseLearner) -> GradientOracle:
    """State the draws of the second phase: their weights follow from moments ``A + 13 eps/6``, mixed with equal ones.

    ``A_i`` is the mean square of attribute i where the first phase's data points drew it, or the mean of the others
    if they never did; ``eps = min(1, d log(2d/0.05) / (k_x m_1))`` by theory (Kukliansky & Shamir 2015).
    """

    def first_phase(m: int) -> int:
        return max(1, int(learner.phase_one * m))

    def draws(step: Step, k_x: int) -> DrawProbabilities:
        d, m_1 = len(step.w), first_phase(len(step.X))
        seen = data_points(step, m_1, k_x)
        theory = learner.smoothing == "theory"
        eps = min(1, d * log(2 * d / 0.05) / (k_x * m_1)) if theory else float(learner.smoothing)
        return guided_draws(learner, step, estimated_moments(step.X[:m_1], seen, eps), learner.mix)

    return GradientOracle(
        REFERENCE_UPDATES[learner.update],
        draws,
        COUNTERPARTS[learner.update],
        learner.average,
        first_phase=first_phase,
    )


def all_attributes(learner: ExactGradientLearner) -> GradientOracle:
    """State that gradients are exact: nothing is drawn."""
    return GradientOracle(REFERENCE_UPDATES[learner.update], None, average=learner.average)


def imputed_steps(learner: ImputedGradientLearner) -> GradientOracle:
    """State the exact gradient at k = d, and the step along the gradient of the imputed example."""
    return _ImputedOracle(REFERENCE_UPDATES["ogd"], None, COUNTERPARTS["ogd"], learner.average)


def guided_draws(learner: GuidedLearner, step: Step, moments: np.ndarray, mix: float = 0.0) -> DrawProbabilities:
    """State the draws of a learner to which attributes have some second moments, (d,), mixed with equal weights.

    Data points: on the 2-ball, guided draws have the weights ``sqrt(E x_i^2 / c_i)``, with the prices c of the checks,
    or 1 where the learner ignores them; on the 1-ball ``E x_i^2`` (Kukliansky & Shamir 2015, Equation 2; for prices,
    see `budgetreg.algorithms.engine`). Inner product: ``|w_j| sqrt(E x_j^2 / c_j)`` if guided, else ``w_j^2``
    on the 2-ball and ``|w_j|`` on the 1-ball.
    """
    d, on_2_ball = len(step.w), learner.update == "ogd"
    root = np.sqrt(moments / (prices(d) if learner.prices == "aware" else np.ones(d)))

    def mixed(weights: np.ndarray) -> np.ndarray:
        return np.asarray((1 - mix) * weights / weights.sum() + mix / d)

    q = (root if on_2_ball else moments) if learner.data_point == "moment" else np.ones(d)
    p = np.square(step.w) if on_2_ball else np.abs(step.w)
    if learner.inner_product == "moment":
        p = np.abs(step.w) * mixed(root)
    return DrawProbabilities(mixed(q), p / p.sum())


def data_points(step: Step, n: int, k_x: int) -> np.ndarray:
    """Return the attributes drawn for the data points of the first n examples, shape (n, k_x)."""
    return np.stack([seen[:k_x] for seen in step.earlier[:n]])


def _expected(step: Step, k_x: int, *, slope: bool) -> np.ndarray:
    """Return the least-squares fit of the values seen in earlier blocks, at the example's target, shape (d,).

    The regressors are 1, and with a slope the target. One more value of 0 shrinks the fit: half of it at a typical
    target, half at its negative.
    """
    seen, d = data_points(step, BLOCK, k_x), len(step.w)
    example = np.repeat(np.arange(BLOCK), k_x)
    y, typical = step.Y[example], np.sqrt(np.square(step.Y[:BLOCK]).mean())
    mu = np.zeros(d)
    for i in range(d):
        drawn = seen.ravel() == i
        targets = np.concatenate([y[drawn], [typical, -typical]])
        weights = np.sqrt(np.concatenate([np.ones(drawn.sum()), [0.5, 0.5]]))
        design = np.column_stack([np.ones(len(targets)), targets][: 1 + slope])
        values = np.concatenate([step.X[example[drawn], i], [0.0, 0.0]])
        fit = np.linalg.lstsq(design * weights[:, None], values * weights, rcond=None)[0]
        mu[i] = fit @ [1, step.y][: 1 + slope]
    return mu


class _ImputedOracle(GradientOracle):
    def imputed(self, step: Step) -> np.ndarray:
        """Return the example as each outcome completes it, (N, d), by means of the values of earlier examples."""
        earlier = np.full((len(step.earlier), len(step.w)), np.nan)
        for row, example, seen in zip(earlier, step.X, step.earlier, strict=False):
            row[seen] = example[seen]
        drawn = (step.attributes[:, :, None] == np.arange(len(step.w))).any(axis=1)
        return np.where(drawn, step.x, np.nanmean(earlier, axis=0))

    def boundary(self, subject: LearnerUnderTest) -> None:
        """Compare each outcome of a step at which the projection acts with the projected step."""
        step = self.edge_step(subject)
        x = self.imputed(step)
        compare_moves(step, self.moves, (x @ step.w - step.y)[:, None] * x)


_ORDERS = (1, 3)
"""Orders of the series that are enumerated."""


_MOVES = REFERENCE_UPDATES["ogd"]


_Q = np.full(D, 1 / D)
"""Probabilities of the data point's draws."""


@dataclass(frozen=True)
class SlopeOracle(Oracle):
    """Enumerates the draws of one call of GenEst, order by order of its series, and those of the plug-in.

    The n factors of order n have d^n outcomes, which are drawn with ``p_j = w_j^2/|w|^2``.
    """

    learner: SupportVectorLearner

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Compare the estimate with its series, order by order, and the series with the slope of the smoothed loss."""
        delta, eps = self.learner.delta, self.learner.eps
        for order in _ORDERS:
            step, _ = self._step(subject, order)
            mean = step.mean(step.gradient(_MOVES))
            close("the gradient", mean, _weight(order) * self._theta(step) ** order * step.x)
        # The mean over the orders is sum_n 2^{-(n+1)} E phi_n.
        u = float(step.w @ step.x - step.y)
        n = np.arange(gen_est.ORDERS)
        theta = (u + delta * np.array([-1.0, 1.0])[:, None]) / eps
        series = (gen_est.WEIGHTS * 0.5 ** (n + 1) * theta**n).sum() / 2
        close("the slope", series, float(gen_est.smoothed_slope(np.array(u), delta, eps)))

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare the mean square of a call's estimate with that of a product of independent factors."""
        for order in _ORDERS:
            step, k_x = self._step(subject, order)
            x, w = step.x, step.w
            variance = float(w @ w * (x @ x) - (w @ x) ** 2) / self.learner.eps**2
            phi = _weight(order) ** 2 * (self._theta(step) ** 2 + variance) ** order
            squares = np.square(step.gradient(_MOVES)).sum(axis=1)
            stated = DrawProbabilities(_Q, _p(step))
            close("the gradient's square", step.mean(squares), phi * point_square(step, stated, k_x))

    def boundary(self, subject: LearnerUnderTest) -> None:
        """Compare the projected steps along the estimates with the paper's listing.

        The mean of the regressor is that of the projections, not the point to which the mean gradient leads.
        """
        delta, eps = self.learner.delta, self.learner.eps
        for order in _ORDERS if self.learner.residual == "gen_est" else (None,):
            step, k_x = self._step(subject, order, edge=True)
            factors = (step.w * step.x / _p(step))[step.attributes[:, k_x:]]
            if order is None:
                phi = gen_est.smoothed_slope(factors.mean(axis=1) - step.y, delta, eps)
            else:
                phi = _weight(order) * ((factors[:, :order] - step.y - delta) / eps).prod(axis=1)
            compare_moves(step, _MOVES, phi[:, None] * points(step, _Q, k_x))

    def _theta(self, step: Step) -> float:
        """Return the scaled residual that the factors estimate."""
        return float(step.w @ step.x - step.y - self.learner.delta) / self.learner.eps

    def _step(self, subject: LearnerUnderTest, order: int | None, edge: bool = False) -> tuple[Step, int]:
        """Return a step in which GenEst's first call has a given order, and its second one order 0, which gives 0.

        The plug-in has no orders. With it comes the number of draws for the data point.
        """
        k_x, _ = subject.draws_for(D, D)
        fixed: tuple[tuple[int, float], ...] = ()
        if order is not None:
            # The data point is drawn, then two orders, n from a part 2^{-(n+1)} of the interval, then uniforms for
            # either.
            first = k_x + 2
            unused = [(i, 0.5) for i in range(first + order, first + 2 * GenEst.AT_HAND)]
            fixed = ((k_x, 1 - 1.5 * 0.5 ** (order + 1)), (k_x + 1, 0.25), *unused)
        return enumerate_step(subject, D, D, Place(STEP, edge, self.learner.average, fixed=fixed)), k_x


def _weight(order: int) -> float:
    """Return the weight of one of two calls of GenEst with an order."""
    return float(gen_est.WEIGHTS[order]) / 2


def _p(step: Step) -> np.ndarray:
    """Return the probabilities of the inner product's draws."""
    return np.asarray(np.square(step.w) / (step.w @ step.w))

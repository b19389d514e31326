"""Checks of what a learner estimates, over all that it may draw: means, second moments, full information at k = d."""

from dataclasses import dataclass

import numpy as np

from budgetreg.checks import moments
from budgetreg.checks.learner import Learner, close, compose
from budgetreg.checks.scripts import Scripted, outcomes
from budgetreg.checks.steps import Step, enumerate_step, exact_gradient
from budgetreg.metering.accessor import Accessor, Table
from budgetreg.updates.gen_est import WEIGHTS, smoothed_slope

D = 4

_FULL_INFORMATION = {"ogd": "online_ridge", "eg": "online_lasso"}
"""By update, the learner whose gradients are exact."""

_ORDERS = (1, 3)
"""Orders of GenEst's series that are enumerated: n factors have d^n outcomes."""


def unbiased(learner: Learner) -> None:
    """Compare the mean of the estimated gradient with ``(<w, x> - y) x``; of pairs, the means of A and v; else of C.

    GenEst is compared order by order with its series, and the series with the slope of the smoothed loss.
    """
    core = learner.config.algo.core
    if not learner.config.algo.predicts:
        moments.unbiased(learner)
    elif core == "pairs":
        for k in (2, 3):
            _compare_pairs(k)
    elif core == "svr":
        for order in _ORDERS:
            call = _gen_est_call(learner, order)
            close("the gradient", call.step.mean(call.step.gradient), call.weight * call.theta**order * call.step.x)
        call.compare_series()
    else:
        step = enumerate_step(learner, D, 3)
        close("the gradient", step.mean(step.gradient), (step.w @ step.x - step.y) * step.x)


def second_moments(learner: Learner) -> None:
    """Compare ``E |phi~ x~|^2 = E phi~^2 E |x~|^2`` with the formulas for the distributions that are drawn from.

    With q of the data point and p of the inner product, all draws being independent,
    ``E |x~|^2 = (1/k_x) sum x_i^2/q_i + (1 - 1/k_x) |x|^2`` and
    ``E phi~^2 = (1/k_ip) sum w_j^2 x_j^2/p_j + (1 - 1/k_ip) <w, x>^2 - 2 y <w, x> + y^2``;
    for a subset, which has i with probability ``pi_i``, ``E |x~|^2 = sum x_i^2/pi_i``.
    """
    algo = learner.config.algo
    if not algo.predicts:
        moments.second_moments(learner)
    elif algo.core == "pairs":
        _compare_squares_of_pairs(4)
    elif algo.core == "svr":
        for order in _ORDERS:
            call = _gen_est_call(learner, order)
            phi = call.weight**2 * (call.theta**2 + call.variance) ** order
            close("the gradient's square", _square(call.step), phi * _point_square(call.step, call.k_x))
    else:
        for k in (3, D):
            plan, step = learner.plan(D, k), enumerate_step(learner, D, k)
            assert plan.k_x and plan.k_ip
            p, product = _frequencies(step, [plan.k_x]), step.w @ step.x
            single = _sum_over(np.square(step.w * step.x), p)
            phi = single / plan.k_ip + (1 - 1 / plan.k_ip) * product**2 - 2 * step.y * product + step.y**2
            point = _point_square(step, plan.k_x, subset=algo.data_point == "subset")
            close(f"the gradient's square at k={k}", _square(step), phi * point)


def full_information(learner: Learner) -> None:
    """Compare, at k = d, the mean of the estimates with what full information gives."""
    algo = learner.config.algo
    if not algo.predicts:
        moments.full_information(learner)
        return
    if algo.core == "pairs":
        _compare_pairs(D)
        return
    step = enumerate_step(learner, D, D)
    expected = (step.w @ step.x - step.y) * step.x
    if algo.update in _FULL_INFORMATION:
        expected = exact_gradient(compose(_FULL_INFORMATION[algo.update]), step)
    close("the step", step.mean(step.gradient), expected)


def _square(step: Step) -> float:
    return float(step.mean(np.square(step.gradient).sum(axis=1)))


def _frequencies(step: Step, draws: slice | list[int]) -> np.ndarray:
    """Return how often each attribute comes, per draw, among some of the draws of an outcome."""
    drawn = step.attributes[:, draws]
    return step.mean((drawn[:, :, None] == np.arange(len(step.x))).mean(axis=1))


def _sum_over(squares: np.ndarray, probability: np.ndarray) -> float:
    """Return the sum of squares over probabilities; what never comes is not in it."""
    comes = probability > 0
    return float((squares[comes] / probability[comes]).sum())


def _point_square(step: Step, k_x: int, subset: bool = False) -> float:
    single = _sum_over(np.square(step.x), _frequencies(step, slice(k_x))) / k_x
    return single if subset else single + (1 - 1 / k_x) * float(step.x @ step.x)


# AESVR with GenEst


@dataclass(frozen=True)
class _Call:
    """A step for which the first of GenEst's two calls has a given order, and the second order 0, which gives 0."""

    step: Step
    k_x: int
    delta: float
    eps: float
    weight: float

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
        """Compare the mean over the orders, ``sum_n 2^{-(n+1)} E phi_n``, with the slope that it is to estimate."""
        u = float(self.step.w @ self.step.x - self.step.y)
        n = np.arange(len(WEIGHTS))
        theta = (u + self.delta * np.array([-1.0, 1.0])[:, None]) / self.eps
        mean = (WEIGHTS * 0.5 ** (n + 1) * theta**n).sum() / 2
        close("the slope", mean, float(smoothed_slope(np.array(u), self.delta, self.eps)))


def _gen_est_call(learner: Learner, order: int) -> _Call:
    from budgetreg.learners.svr import GenEst  # here, as it needs scipy, which is slow to load

    algo = learner.config.algo
    plan = learner.plan(D, D)
    assert plan.k_x and algo.delta is not None and algo.eps
    # The data point is drawn, then two orders, n from a part 2^{-(n+1)} of the interval, then uniforms for either call.
    first = plan.k_x + 2
    unused = [(i, 0.5) for i in range(first + order, first + 2 * GenEst.AT_HAND)]
    fixed = ((plan.k_x, 1 - 1.5 * 0.5 ** (order + 1)), (plan.k_x + 1, 0.25), *unused)
    return _Call(enumerate_step(learner, D, D, fixed), plan.k_x, algo.delta, algo.eps, float(WEIGHTS[order]) / 2)


# Pairs

_X, _Y = np.array([0.7, -1.1, 0.4, 0.2]), -1.5


def _compare_pairs(k: int) -> None:
    """Compare means with ``x x'`` and ``2 y x``, which full information has."""
    A, v, probability = _pair_estimates(k)
    close("A", np.tensordot(probability, A, axes=1), np.outer(_X, _X))
    close("v", probability @ v, 2 * _Y * _X)


def _compare_squares_of_pairs(k: int) -> None:
    """Compare with the variance of a mean over n of d^2 pairs without replacement, known from survey sampling."""
    A, v, probability = _pair_estimates(k)
    n, pairs, norm = k // 2, D**2, float(_X @ _X)
    share = (pairs - n) / (n * (pairs - 1))
    single_A, single_v = pairs / 2 * (norm**2 + float((_X**4).sum())), 4 * _Y**2 * (D + 1) / 2 * norm
    mean_A, mean_v = norm**2, 4 * _Y**2 * norm
    close("A's square", probability @ np.square(A).sum(axis=(1, 2)), mean_A + share * (single_A - mean_A))
    close("v's square", probability @ np.square(v).sum(axis=1), mean_v + share * (single_v - mean_v))


def _pair_estimates(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A (N, d, d) and v (N, d) of one example for all outcomes, and these outcomes' probabilities."""
    rows = [0] * (k // 2)  # a call for each pair, all for the only example
    probe = Scripted(rows)
    _estimated(k, [probe])

    def act(scripts: np.ndarray) -> np.ndarray:
        return _estimated(k, [Scripted(rows, own) for own in scripts])[1]

    scripts, probability = outcomes(probe.values, act, {})
    A, v = _estimated(k, [Scripted(rows, own) for own in scripts])
    return A, v, probability


def _estimated(k: int, rngs: list[Scripted]) -> tuple[np.ndarray, np.ndarray]:
    from budgetreg.learners import pairs  # here, as it needs scipy, which is slow to load

    accessor = Accessor(Table(_X[None], np.array([_Y])), np.zeros((len(rngs), 1)), 1, k, [1])
    ((_, A, v),) = pairs.estimates(accessor, [1], rngs, k)  # type: ignore[arg-type]
    return A, v

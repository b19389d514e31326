"""The law of a gradient estimate ``phi~ x~``, the product of two independent estimates, at one step of a learner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.enumeration.expectations import Subject, close
from budgetreg.enumeration.steps import Step, enumerate_step, exact_gradient
from budgetreg.updates.retraced import Retraced

D = 4


@dataclass(frozen=True)
class GradientLaw:
    """What is expected of a learner that follows estimates of ``(<w, x> - y) x``.

    Attributes
    ----------
    moves : callable
        ``moves(options)``: how it moves.
    without_replacement : callable
        ``without_replacement(options)``: whether the data point's attributes are drawn so.
    counterpart : callable
        ``counterpart(options)``: the learner of ``conf/algo`` whose gradients are exact; None if there is none.
    """

    moves: Callable[[Any], Retraced]
    without_replacement: Callable[[Any], bool] = lambda options: False
    counterpart: Callable[[Any], str | None] = lambda options: None

    def unbiased(self, subject: Subject) -> None:
        """Compare the mean of the estimated gradient with ``(<w, x> - y) x``."""
        step = self._step(subject, 3)
        close("the gradient", step.mean(step.gradient), (step.w @ step.x - step.y) * step.x)

    def second_moments(self, subject: Subject) -> None:
        """Compare ``E |phi~ x~|^2 = E phi~^2 E |x~|^2`` with the formulas for the distributions that are drawn from.

        With q of the data point and p of the inner product, all draws being independent,
        ``E |x~|^2 = (1/k_x) sum x_i^2/q_i + (1 - 1/k_x) |x|^2`` and
        ``E phi~^2 = (1/k_ip) sum w_j^2 x_j^2/p_j + (1 - 1/k_ip) <w, x>^2 - 2 y <w, x> + y^2``;
        for a subset, which has i with probability ``pi_i``, ``E |x~|^2 = sum x_i^2/pi_i``.
        """
        for k in (3, D):
            step, (k_x, k_ip) = self._step(subject, k), subject.draws_for(D, k)
            p, product = frequencies(step, [k_x]), step.w @ step.x
            single = sum_over(np.square(step.w * step.x), p)
            phi = single / k_ip + (1 - 1 / k_ip) * product**2 - 2 * step.y * product + step.y**2
            point = point_square(step, k_x, subset=self.without_replacement(subject.options))
            close(f"the gradient's square at k={k}", gradient_square(step), phi * point)

    def full_information(self, subject: Subject) -> None:
        """Compare, at k = d, the mean of the estimates with what full information gives."""
        step = self._step(subject, D)
        expected = (step.w @ step.x - step.y) * step.x
        name = self.counterpart(subject.options)
        if name is not None:
            expected = exact_gradient(subject.other(name), step, self.moves(subject.options))
        close("the step", step.mean(step.gradient), expected)

    def _step(self, subject: Subject, k: int) -> Step:
        return enumerate_step(subject, D, k, self.moves(subject.options))


def gradient_square(step: Step) -> float:
    """Return the mean of ``|g~|^2``."""
    return float(step.mean(np.square(step.gradient).sum(axis=1)))


def frequencies(step: Step, draws: slice | list[int]) -> np.ndarray:
    """Return how often each attribute comes, per draw, among some of the draws of an outcome, shape (d,)."""
    drawn = step.attributes[:, draws]
    return step.mean((drawn[:, :, None] == np.arange(len(step.x))).mean(axis=1))


def sum_over(squares: np.ndarray, probability: np.ndarray) -> float:
    """Return the sum of squares over probabilities, both (d,); what never comes is not in it."""
    comes = probability > 0
    return float((squares[comes] / probability[comes]).sum())


def point_square(step: Step, k_x: int, subset: bool = False) -> float:
    """Return what the mean of ``|x~|^2`` must be, for k_x draws or a subset of k_x attributes."""
    single = sum_over(np.square(step.x), frequencies(step, slice(k_x))) / k_x
    return single if subset else single + (1 - 1 / k_x) * float(step.x @ step.x)

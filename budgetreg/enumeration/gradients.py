"""The law of a gradient estimate ``phi~ x~``, the product of two independent estimates, at one step of a learner."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from budgetreg.enumeration.expectations import LearnerUnderTest, Oracle, close, expect, same
from budgetreg.enumeration.steps import LATE, STEP, Place, Step, enumerate_step, exact_gradient
from budgetreg.updates.reference_updates import ReferenceUpdate

D = 4
"""Attributes of an enumerated step, and its budget: the least by which either estimate has two draws."""

_FEWER = 3
"""Budget of a step that is looked at outcome by outcome."""


@dataclass(frozen=True)
class DrawProbabilities:
    """How the attributes of an example are drawn, as a family states it; nothing of it is observed.

    Attributes
    ----------
    q, p : ndarray of float, shape (d,)
        Probabilities of each draw for the data point, and for the inner product.
    subset : bool
        Whether the data point's attributes are drawn without replacement, then with equal probabilities.
    expected : ndarray of float, shape (d,), or None
        What the attributes are expected to be: the inner product's draws estimate what differs from it.
    """

    q: np.ndarray
    p: np.ndarray
    subset: bool = False
    expected: np.ndarray | None = None


@dataclass(frozen=True)
class GradientOracle(Oracle):
    """What is expected of a learner that follows estimates of ``(<w, x> - y) x``.

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
        """Compare the mean of the estimated gradient with ``(<w, x> - y) x``, where nothing clips or projects."""
        step = self._step(subject, D)
        found = step.mean(step.gradient(self.moves))
        close("the gradient", found, (step.w @ step.x - step.y) * step.x)

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare ``E |phi~ x~|^2 = E phi~^2 E |x~|^2`` with the formulas for the draws that are stated.

        With q of the data point and p of the inner product, all draws being independent,
        ``E |x~|^2 = (1/k_x) sum x_i^2/q_i + (1 - 1/k_x) |x|^2`` and, for z = x - mu with the expected attributes mu,
        ``E phi~^2 = (1/k_ip) sum w_j^2 z_j^2/p_j + (1 - 1/k_ip) <w, z>^2 + 2 u <w, z> + u^2``, ``u = <w, mu> - y``;
        for a subset, which has each attribute with probability ``k_x q_i``, ``E |x~|^2 = sum x_i^2/(k_x q_i)``.
        """
        step, (k_x, k_ip) = self._step(subject, D), subject.draws_for(D, D)
        stated = self._draws(step, k_x)
        mu = np.zeros(D) if stated.expected is None else stated.expected
        product, u = step.w @ (step.x - mu), step.w @ mu - step.y
        single = sum_over(np.square(step.w * (step.x - mu)), stated.p)
        phi = single / k_ip + (1 - 1 / k_ip) * product**2 + 2 * u * product + u**2
        found = np.square(step.gradient(self.moves)).sum(axis=1)
        close("the gradient's square", step.mean(found), phi * point_square(step, stated, k_x))

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare, at k = d, the mean of the estimates with what full information gives."""
        step = self._step(subject, D)
        expected = (step.w @ step.x - step.y) * step.x
        if self.counterpart is not None:
            expected = exact_gradient(subject.other(self.counterpart), step, self.moves)
        close("the step", step.mean(step.gradient(self.moves)), expected)

    def boundary(self, subject: LearnerUnderTest) -> None:
        """Compare outcomes of a step at which clip and projection act, one by one, with the listing's.

        What is clipped and projected is the estimate that is unbiased, made of the attributes seen and their stated
        probabilities: ``w_{t+1} = P(w_t - eta clip(g~))``, outcome by outcome. The mean of ``w_{t+1}`` is that of these
        values, and not the one to which the mean gradient leads; theorems need no more, as P is the exact projection,
        hence brings no two points further apart, and as nothing is clipped where their step sizes hold.
        """
        step = self.edge_step(subject)
        if self.draws is None:
            gradient = np.outer(np.ones(len(step.after)), (step.w @ step.x - step.y) * step.x)
        else:
            k_x, _ = subject.draws_for(D, _FEWER)
            gradient = estimates(step, self._draws(step, k_x), k_x)
        compare_moves(step, self.moves, gradient)

    def edge_step(self, subject: LearnerUnderTest) -> Step:
        """Return a step with fewer draws than attributes, at which clip or projection act."""
        return self._step(subject, _FEWER, edge=True)

    def _step(self, subject: LearnerUnderTest, k: int, edge: bool = False) -> Step:
        t = LATE if self.late else STEP
        return enumerate_step(subject, D, k, Place(t, edge, self.average, self.first_phase(t + 1)))

    def _draws(self, step: Step, k_x: int) -> DrawProbabilities:
        assert self.draws is not None
        return self.draws(step, k_x)


def estimates(step: Step, stated: DrawProbabilities, k_x: int) -> np.ndarray:
    """Return ``phi~ x~`` of the attributes that each outcome saw, the first k_x of them for the data point: (N, d)."""
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
    """Compare where a learner has got to in each outcome with where gradients (N, d) lead by the listing."""
    expected = step.follow(moves, gradient)
    free = np.isclose(moves.gradient(step.w[None], expected, step.place.t, step.place.settings), gradient)
    expect(not free.all(), "neither clip nor projection acts where the check has them act")
    same("the regressor after a step that is clipped or projected", step.after, expected)


def sum_over(squares: np.ndarray, probability: np.ndarray) -> float:
    """Return the sum of squares over probabilities, both (d,); what never comes is not in it."""
    comes = probability > 0
    return float((squares[comes] / probability[comes]).sum())


def point_square(step: Step, stated: DrawProbabilities, k_x: int) -> float:
    """Return what the mean of ``|x~|^2`` must be, for k_x draws or a subset of k_x attributes."""
    single = sum_over(np.square(step.x), stated.q) / k_x
    return single if stated.subset else single + (1 - 1 / k_x) * float(step.x @ step.x)

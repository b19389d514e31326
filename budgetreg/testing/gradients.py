"""The distribution of a gradient estimate ``phi~ x~``, a product of independent estimates, at one step."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from budgetreg.testing.expectations import LearnerUnderTest, Oracle, close, expect, same
from budgetreg.testing.reference_updates import ReferenceUpdate
from budgetreg.testing.steps import LATE, STEP, Place, Step, enumerate_step, exact_gradient

D = 4
"""Attributes of an enumerated step, and its budget: the smallest that gives either estimate two draws."""

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
        to which the mean gradient leads. The theorems need no more: the exact projection P moves no two points apart,
        and nothing is clipped at their step sizes.
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
    expected = step.follow(moves, gradient)
    free = np.isclose(moves.gradient(step.w[None], expected, step.place.t, step.place.settings), gradient)
    expect(not free.all(), "neither clip nor projection acts in the step of this check")
    same("the regressor after a step that is clipped or projected", step.after, expected)


def sum_over(squares: np.ndarray, probability: np.ndarray) -> float:
    """Return the sum of squares over probabilities, both (d,), without what has probability 0."""
    possible = probability > 0
    return float((squares[possible] / probability[possible]).sum())


def point_square(step: Step, stated: DrawProbabilities, k_x: int) -> float:
    """Return the stated mean of ``|x~|^2``, for k_x draws or a subset of k_x attributes."""
    single = sum_over(np.square(step.x), stated.q) / k_x
    return single if stated.subset else single + (1 - 1 / k_x) * float(step.x @ step.x)

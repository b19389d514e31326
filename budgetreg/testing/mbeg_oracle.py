"""The distribution of MBEG's pairs, and of what they estimate."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.algorithms.gonen_2016.mbeg import ESTIMATES, MatrixGradientLearner, Weights
from budgetreg.metering.table import Table
from budgetreg.testing.expectations import LearnerUnderTest, Oracle, close, expect, same
from budgetreg.testing.scripted_rng import Scripted, distribution, outcomes

_X = np.array([0.7, -1.1, 0.4, 0.2])


D = len(_X)


_X_1 = np.array([0.5, 0.9, 1.2, -0.8])
"""The first example, which moves the weight matrix."""


_ALPHA, _W = 0.3, np.array([0.4, 0.3, 0.2, 0.1])
"""Share of uniform pairs, and the diagonal of a weight matrix over n, for estimates of one example."""


@dataclass(frozen=True)
class PairsOracle(Oracle):
    """Enumerates the pairs of one example, and those that follow a step."""

    learner: MatrixGradientLearner

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Compare the mean of the estimate with ``x x'``."""
        for k in (2, D):
            C, probability = self._estimates(k)
            close("C", np.tensordot(probability, C, axes=1), np.outer(_X, _X))

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare ``E |C^|^2`` with its formula, and the pairs that are drawn after a step with their probabilities."""
        for k in (2, D):
            C, probability = self._estimates(k)
            square = float(probability @ np.square(C).sum(axis=(1, 2)))
            close(f"C's square at k={k}", square, self._square(k))
        self._compare_pairs(subject, 0.02)

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare the mean with ``x x'`` also at k = d: draws may repeat attributes."""
        self.unbiased(subject)

    def boundary(self, subject: LearnerUnderTest) -> None:
        """Compare the pairs that are drawn after a step that is so long that eigenvalues of W are capped at 1.

        ``C^`` is unbiased; W is the projection of ``exp(log W + eta C^)`` in relative entropy, exactly: its
        eigenvectors stay, and its eigenvalues u become ``min(1, c u)``, of sum n. The mean of W is that of the
        projections.
        """
        self._compare_pairs(subject, 3.0)

    def _estimates(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimates from one example for all outcomes, at a weight matrix with the diagonal ``n _W``."""
        state = Weights(1, D, 1, np.array([_ALPHA]))
        state.move(np.array([0]), (np.diag(np.log(_W)) + np.log(D))[None] * np.eye(D), 1)
        pairs = k // 2

        def drawn(scripts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return state.draw(scripts[:, :pairs]), np.floor(D * scripts[:, pairs:]).astype(int)

        scripts, probability = outcomes([0] * pairs + [D] * pairs, lambda scripts: np.hstack(drawn(scripts)), {})
        s, q = drawn(scripts)
        N = len(scripts)
        w, alpha = np.tile(state.diagonal, (N, 1)), np.full(N, _ALPHA)
        return ESTIMATES[self.learner.update](s, q, _X[s], _X[q], w, alpha), probability

    def _square(self, k: int) -> float:
        """Return ``E |C^|^2`` of the mean of ``k/2`` independent pairs' estimates.

        One pair's, with the probabilities p and their row sums a: ``sum_{s!=q} (x_s x_q)^2 / (2 p_sq)``, and on the
        diagonal ``sum_s x_s^4 / p_ss``; from single attributes, ``sum_s (a_s + p_ss) x_s^4 / (2 a_s^2)``.
        """
        p = (1 - _ALPHA) * (_W[:, None] + _W) / (2 * D) + _ALPHA / D**2
        p_ss, a = np.diagonal(p), p.sum(axis=1)
        products = np.square(np.outer(_X, _X)) / (2 * p)
        diagonal = _X**4 / p_ss if self.learner.update == "pairs" else (a + p_ss) * _X**4 / (2 * a**2)
        single = products.sum() - np.trace(products) + diagonal.sum()
        pairs, mean = k // 2, float(_X @ _X) ** 2
        return float(single / pairs + (1 - 1 / pairs) * mean)

    def _compare_pairs(self, subject: LearnerUnderTest, eta: float) -> None:
        """Compare the pairs of a second example with their probabilities after the step of the first."""

        def shown(rngs: list[Any]) -> np.ndarray:
            F = len(rngs)
            table = Table(np.tile([_X_1, _X], (F, 1)), np.zeros(2 * F))
            _, reveals = subject.run(table, np.arange(2 * F).reshape(F, 2), rngs, 2, {"eta": [eta]})
            # An attribute that is seen alone is a pair with itself.
            return np.array([(seen[0], seen[-1]) for seen in reveals.of(np.arange(2 * F))]).reshape(F, 2, 2)

        rows = [1] * 3  # the second example, in the three calls for it
        first = shown([Scripted(rows)])[0, 0]
        alpha = min(eta * D**2, 0.5) if self.learner.alpha == "theory" else float(self.learner.alpha)
        w = np.diagonal(self._weights(eta, *first)) / self.learner.n_components
        p = (1 - alpha) * (w[:, None] + w) / (2 * D) + alpha / D**2
        second, probability = distribution(rows, lambda rngs: shown(rngs)[:, 1])
        pairs = np.zeros((D, D))
        np.add.at(pairs, tuple(second.T), probability)
        same("the probability of a pair after a step", pairs + pairs.T, 2 * p)

    def _weights(self, eta: float, s: int, q: int) -> np.ndarray:
        """Return W after the first step, from the attributes s and q; all pairs have ``p_sq = 1/d^2`` there."""
        expect(s != q, "the first pair has to have different attributes")
        n, C = self.learner.n_components, np.zeros((D, D))
        C[s, q] = C[q, s] = _X_1[s] * _X_1[q] * D**2 / 2
        if self.learner.update == "singles":
            C[s, s], C[q, q] = _X_1[s] ** 2 * D / 2, _X_1[q] ** 2 * D / 2
        theta, V = np.linalg.eigh(np.log(n / D) * np.eye(D) + eta * C)
        low, high = -theta.max() - np.log(D), -theta.min()  # of log c
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if np.exp(np.minimum(theta + middle, 0)).sum() < n else (low, middle)
        return np.asarray((V * np.exp(np.minimum(theta + high, 0))) @ V.T)

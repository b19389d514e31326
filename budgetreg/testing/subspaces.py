"""The expected behaviour of POPCA and MBEG: the distributions of estimates of ``x x'``, and of MBEG's pairs."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from budgetreg.algorithms import gonen_2016
from budgetreg.algorithms.gonen_2016 import MatrixGradientLearner, SecondMomentLearner
from budgetreg.common.streams import generator
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.revealed.designs import Draw, conditional_poisson
from budgetreg.testing import certificates
from budgetreg.testing.certificates import ERRORS, LearnerUnderTest, Oracle, close, expect, same
from budgetreg.testing.enumeration import EXAMPLE, D, Scripted, distribution, in_turn, outcomes

_P = np.array([0.9, 0.3, 0.6, 0.2])
"""Inclusion probabilities of attributes in a guided design."""


@dataclass(frozen=True)
class SecondMomentOracle(Oracle):
    """Enumerates the subsets of one example, and certifies the subspaces."""

    learner: SecondMomentLearner

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Compare the mean of the estimate with ``x x'``.

        Importance sampling is compared phase by phase, and its pooled phases by the mean over some streams.
        """
        learner = self.learner
        for k in (2, D):
            C, probability = _estimates(learner, k)
            close("C", np.tensordot(probability, C, axes=1), np.outer(EXAMPLE, EXAMPLE))
        if learner.update == "importance":
            for r in (2, 3):
                _compare_guided(r)
            _compare_pooled(learner)

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare ``E |C^|^2`` with its formula: ``sum_ij (x_i x_j)^2 / pi_ij``, pi_ii being pi_i."""
        learner = self.learner
        for k in (2, D):
            C, probability = _estimates(learner, k)
            square = float(probability @ np.square(C).sum(axis=(1, 2)))
            close(f"C's square at k={k}", square, _square(_inclusion(learner, k)))
        if learner.update == "importance":
            subsets = _subsets(2, _P)
            squares = _means_over(subsets, conditional_poisson(_P, 2).probability, power=2)
            close("C's square", squares.sum(), _square(_probabilities(subsets)))
            _compare_second_phase(subject, learner.mix)

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare the estimate at k = d with the mean of ``x x'``, or its mean if draws repeat attributes."""
        learner = self.learner
        if learner.replacement:
            C, probability = _estimates(learner, D)
            close("C", np.tensordot(probability, C, axes=1), np.outer(EXAMPLE, EXAMPLE))
        else:
            X = generator("check examples", D).standard_normal((12, D))
            C = _run(learner, Table(X, np.zeros(12)), [generator("check draws")], D)[0]
            close("C", C, X.T @ X / 12)

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Check that the subspace keeps the sum of C's largest eigenvalues, the most that any subspace keeps (Ky Fan).

        C is computed again from what was shown; for 'zero_filled' and 'full' products are not divided.
        """
        learner, d = self.learner, certificates.D
        plain = learner.update in ("zero_filled", "full")
        inclusion = np.ones((d, d)) if plain else _inclusion(learner, certificates.K, d)
        for shown in certificates.run(subject, {}):
            C = np.zeros((d, d))
            for attributes, x in zip(shown.attributes, shown.values, strict=True):
                seen = np.zeros(d)
                seen[attributes] = x
                C += np.outer(seen, seen) / inclusion / len(shown.y)
            (V,) = shown.output
            same("V'V", V.T @ V, np.eye(V.shape[1]))
            same("what the subspace keeps", np.trace(V.T @ C @ V), np.linalg.eigvalsh(C)[-V.shape[1] :].sum())


def _estimates(learner: SecondMomentLearner, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the estimates of one example, shape (N, d, d), for all outcomes, and these outcomes' probabilities."""
    table = Table(EXAMPLE[None], np.zeros(1))
    return distribution([0] * k, lambda rngs: _run(learner, table, rngs, k))


def _run(learner: SecondMomentLearner, table: Table, rngs: list[Any], k: int) -> np.ndarray:
    """Return the estimate (F, d, d) of each stream from all examples of a table."""
    m = len(table.y)
    accessor = Accessor(table, np.tile(np.arange(m), (len(rngs), 1)), 1, None, [m])
    ((_, C),) = gonen_2016.moment_estimates(learner, accessor, [m], rngs, k)
    return C


def _inclusion(learner: SecondMomentLearner, r: int, d: int = D) -> np.ndarray:
    """Return ``pi_ij``, and ``pi_i`` on the diagonal, by counting."""
    if learner.update == "passive":
        single, pair = r / d, (r / d) ** 2
    elif learner.replacement:
        single, pair = 1 - (1 - 1 / d) ** r, 1 - 2 * (1 - 1 / d) ** r + (1 - 2 / d) ** r
    else:
        single, pair = comb(d - 1, r - 1) / comb(d, r), comb(d - 2, r - 2) / comb(d, r)
    return np.where(np.eye(d, dtype=bool), single, pair)


def _square(inclusion: np.ndarray) -> float:
    return float((np.square(np.outer(EXAMPLE, EXAMPLE)) / inclusion).sum())


# Importance sampling


def _subsets(r: int, p: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Return all subsets of r attributes, as 0 and 1, with the probabilities of conditional Poisson sampling by p."""
    subsets = [np.isin(np.arange(D), attributes) for attributes in combinations(range(D), r)]
    weights = [float(np.where(seen, p, 1 - p).prod()) for seen in subsets]
    return [(seen.astype(float), weight / sum(weights)) for seen, weight in zip(subsets, weights, strict=True)]


def _probabilities(subsets: list[tuple[np.ndarray, float]]) -> np.ndarray:
    """Return ``pi_ij`` of a distribution of subsets."""
    return np.asarray(np.sum([p * np.outer(seen, seen) for seen, p in subsets], axis=0))


def _means_over(subsets: list[tuple[np.ndarray, float]], inclusion: np.ndarray, power: int) -> np.ndarray:
    """Return the mean over subsets of powers of the estimate's entries."""
    C = [np.outer(seen, seen) * np.outer(EXAMPLE, EXAMPLE) / inclusion for seen, _ in subsets]
    return np.tensordot([p for _, p in subsets], np.power(C, power), axes=1)


def _compare_guided(r: int) -> None:
    """Compare the draws with conditional Poisson sampling, and the mean of the estimate with ``x x'``."""
    design = conditional_poisson(_P, r)
    draw: Callable[[Any], Draw] = design.draw

    def act(scripts: np.ndarray) -> np.ndarray:
        return np.stack([draw(Scripted([0], script)).attributes[0] for script in scripts])

    subsets = _subsets(r, _P)
    _compare_subsets("the mean of a subset", r, act, subsets)
    close("C", _means_over(subsets, design.probability, power=1), np.outer(EXAMPLE, EXAMPLE))


def _compare_second_phase(subject: LearnerUnderTest, mix: float) -> None:
    """Compare the subsets drawn for the first example of the second phase with their stated probabilities.

    These are those of conditional Poisson sampling. The working probabilities are in proportion to ``sqrt(C_ii)`` of
    the first phase, have the sum k, are capped at 1, and are mixed with ``k/d``. The two examples of the first phase
    show two attributes each. One of these is so large that its probability is capped.
    """
    k, X = 2, np.tile(EXAMPLE * [1, 10, 1, 1], (3, 1))
    rows, shown = [0] * (2 * k + 1), [0.1, 0.3, 0.9, 0.9]  # numbers that choose 0 and 1, then 2 and 3

    def act(scripts: np.ndarray) -> np.ndarray:
        F = len(scripts)
        rngs = [Scripted(rows, [*shown, *script]) for script in scripts]
        table = Table(np.tile(X, (F, 1)), np.zeros(3 * F))
        _, reveals = subject.run(table, np.arange(3 * F).reshape(F, 3), rngs, k, {})
        return np.stack(reveals.of(3 * np.arange(F) + 2))

    w = np.abs(X[0])
    p = np.where(np.arange(D) == 1, 1, (k - 1) * w / (w.sum() - w[1]))
    subsets = _subsets(k, (1 - mix) * p + mix * k / D)
    _compare_subsets("the probability of a subset in the second phase", k, act, subsets)


def _compare_subsets(
    what: str, r: int, act: Callable[[np.ndarray], np.ndarray], subsets: list[tuple[np.ndarray, float]]
) -> None:
    """Compare how often r numbers lead to each subset with its stated probability; `act` maps scripts to attributes."""
    scripts, probability = in_turn(r, act)
    drawn = np.array([np.isin(np.arange(D), attributes) for attributes in act(scripts)], dtype=float)
    frequency = [probability[(drawn == seen).all(axis=1)].sum() for seen, _ in subsets]
    same(what, np.array(frequency), np.array([p for _, p in subsets]))


def _compare_pooled(learner: SecondMomentLearner) -> None:
    F, m, k = 300, 8, 2
    rngs = [generator("check", "pooled", f) for f in range(F)]
    C = _run(learner, Table(np.tile(EXAMPLE, (m, 1)), np.zeros(m)), rngs, k)
    off = np.abs(C.mean(axis=0) - np.outer(EXAMPLE, EXAMPLE))
    error = C.std(axis=0) / np.sqrt(F)
    expect((off <= ERRORS * error).all(), f"the mean of C is off by {off.max():.2g}, more than its standard errors")


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
            close("C", np.tensordot(probability, C, axes=1), np.outer(EXAMPLE, EXAMPLE))

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
        state = gonen_2016.Weights(1, D, 1, np.array([_ALPHA]))
        state.move(np.array([0]), (np.diag(np.log(_W)) + np.log(D))[None] * np.eye(D), 1)
        pairs = k // 2

        def drawn(scripts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return state.draw(scripts[:, :pairs]), np.floor(D * scripts[:, pairs:]).astype(int)

        scripts, probability = outcomes([0] * pairs + [D] * pairs, lambda scripts: np.hstack(drawn(scripts)), {})
        s, q = drawn(scripts)
        N = len(scripts)
        w, alpha = np.tile(state.diagonal, (N, 1)), np.full(N, _ALPHA)
        return gonen_2016.pair_estimates(self.learner.update, s, q, EXAMPLE[s], EXAMPLE[q], w, alpha), probability

    def _square(self, k: int) -> float:
        """Return ``E |C^|^2`` of the mean of ``k/2`` independent pairs' estimates.

        One pair's, with the probabilities p and their row sums a: ``sum_{s!=q} (x_s x_q)^2 / (2 p_sq)``, and on the
        diagonal ``sum_s x_s^4 / p_ss``; from single attributes, ``sum_s (a_s + p_ss) x_s^4 / (2 a_s^2)``.
        """
        p = (1 - _ALPHA) * (_W[:, None] + _W) / (2 * D) + _ALPHA / D**2
        p_ss, a = np.diagonal(p), p.sum(axis=1)
        products = np.square(np.outer(EXAMPLE, EXAMPLE)) / (2 * p)
        diagonal = EXAMPLE**4 / p_ss if self.learner.update == "pairs" else (a + p_ss) * EXAMPLE**4 / (2 * a**2)
        single = products.sum() - np.trace(products) + diagonal.sum()
        pairs, mean = k // 2, float(EXAMPLE @ EXAMPLE) ** 2
        return float(single / pairs + (1 - 1 / pairs) * mean)

    def _compare_pairs(self, subject: LearnerUnderTest, eta: float) -> None:
        """Compare the pairs of a second example with their probabilities after the step of the first."""

        def shown(rngs: list[Any]) -> np.ndarray:
            F = len(rngs)
            table = Table(np.tile([_X_1, EXAMPLE], (F, 1)), np.zeros(2 * F))
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

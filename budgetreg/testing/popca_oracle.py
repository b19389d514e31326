"""The distribution of estimates of ``x x'``: products of what is seen over their inclusion probabilities."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from budgetreg.algorithms.gonen_2016.popca import SecondMomentLearner, estimates
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.revealed.designs import Draw, conditional_poisson
from budgetreg.streams import generator
from budgetreg.testing import certificates
from budgetreg.testing.expectations import LearnerUnderTest, Oracle, close, expect, same
from budgetreg.testing.scripted_rng import Scripted, distribution, in_turn

_X = np.array([0.7, -1.1, 0.4, 0.2])
D = len(_X)
_P = np.array([0.9, 0.3, 0.6, 0.2])
"""Inclusion probabilities of attributes in a guided design."""

_ERRORS = 5
"""Largest deviation of a mean, in standard errors. Seeds are fixed, so a check that passes once always passes."""


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
            close("C", np.tensordot(probability, C, axes=1), np.outer(_X, _X))
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
            close("C", np.tensordot(probability, C, axes=1), np.outer(_X, _X))
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
    table = Table(_X[None], np.zeros(1))
    return distribution([0] * k, lambda rngs: _run(learner, table, rngs, k))


def _run(learner: SecondMomentLearner, table: Table, rngs: list[Any], k: int) -> np.ndarray:
    """Return the estimate (F, d, d) of each stream from all examples of a table."""
    m = len(table.y)
    accessor = Accessor(table, np.tile(np.arange(m), (len(rngs), 1)), 1, None, [m])
    ((_, C),) = estimates(learner, accessor, [m], rngs, k)
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
    return float((np.square(np.outer(_X, _X)) / inclusion).sum())


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
    C = [np.outer(seen, seen) * np.outer(_X, _X) / inclusion for seen, _ in subsets]
    return np.tensordot([p for _, p in subsets], np.power(C, power), axes=1)


def _compare_guided(r: int) -> None:
    """Compare the draws with conditional Poisson sampling, and the mean of the estimate with ``x x'``."""
    design = conditional_poisson(_P, r)
    draw: Callable[[Any], Draw] = design.draw

    def act(scripts: np.ndarray) -> np.ndarray:
        return np.stack([draw(Scripted([0], script)).attributes[0] for script in scripts])

    subsets = _subsets(r, _P)
    _compare_subsets("the mean of a subset", r, act, subsets)
    close("C", _means_over(subsets, design.probability, power=1), np.outer(_X, _X))


def _compare_second_phase(subject: LearnerUnderTest, mix: float) -> None:
    """Compare the subsets drawn for the first example of the second phase with their stated probabilities.

    These are those of conditional Poisson sampling. The working probabilities are in proportion to ``sqrt(C_ii)`` of
    the first phase, have the sum k, are capped at 1, and are mixed with ``k/d``. The two examples of the first phase
    show two attributes each. One of these is so large that its probability is capped.
    """
    k, X = 2, np.tile(_X * [1, 10, 1, 1], (3, 1))
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
    C = _run(learner, Table(np.tile(_X, (m, 1)), np.zeros(m)), rngs, k)
    off = np.abs(C.mean(axis=0) - np.outer(_X, _X))
    error = C.std(axis=0) / np.sqrt(F)
    expect((off <= _ERRORS * error).all(), f"the mean of C is off by {off.max():.2g}, more than its standard errors")

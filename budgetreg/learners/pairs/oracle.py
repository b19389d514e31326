"""The distribution of what pairs of attributes estimate of one example: A of ``x x'``, and v of ``2 y x``."""

from dataclasses import dataclass

import numpy as np

from budgetreg.enumeration import certificates
from budgetreg.enumeration.certificates import RADII, Shown, largest, one_norm
from budgetreg.enumeration.expectations import LearnerUnderTest, Oracle, close, same
from budgetreg.enumeration.scripted_rng import Scripted, outcomes
from budgetreg.learners.pairs import core
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table

D = 4
_X, _Y = np.array([0.7, -1.1, 0.4, 0.2]), -1.5


@dataclass(frozen=True)
class PairEstimatesOracle(Oracle):
    """Enumerates the pairs of one example, and certifies what is solved for."""

    update: str

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Compare the means with ``x x'`` and ``2 y x``."""
        for k in (2, 3):
            _compare_means(k)

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare with the variance of a mean over n of d^2 pairs without replacement, as in survey sampling."""
        k = 4
        A, v, probability = _estimates(k)
        n, pairs, norm = k // 2, D**2, float(_X @ _X)
        share = (pairs - n) / (n * (pairs - 1))
        single_A, single_v = pairs / 2 * (norm**2 + float((_X**4).sum())), 4 * _Y**2 * (D + 1) / 2 * norm
        mean_A, mean_v = norm**2, 4 * _Y**2 * norm
        close("A's square", probability @ np.square(A).sum(axis=(1, 2)), mean_A + share * (single_A - mean_A))
        close("v's square", probability @ np.square(v).sum(axis=1), mean_v + share * (single_v - mean_v))

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare the means at k = d with ``x x'`` and ``2 y x``."""
        _compare_means(D)

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Certify the program's minimisers over 1-balls by their duality gaps, or compare the scaled correlations.

        A and v are computed again from the pairs that were shown. A is unbiased. With its negative eigenvalues set to 0
        it is the nearest matrix that makes the program convex, and no longer unbiased.
        """
        for shown in certificates.run(subject, {"B": RADII}):
            A, v = _averages(shown)
            if self.update == "correlation":
                same("the regressors", shown.output, np.outer(v, RADII) / np.abs(v).sum())
                continue
            s, V = np.linalg.eigh(A)
            convex = (V * np.maximum(s, 0)) @ V.T
            for w, B in zip(shown.output.T, RADII, strict=True):
                what, gradient = f"the program of {len(shown.y)} examples", 2 * convex @ w - v
                certificates.least(what, w, B, gradient, B * largest(v), one_norm, largest)


def _compare_means(k: int) -> None:
    A, v, probability = _estimates(k)
    close("A", np.tensordot(probability, A, axes=1), np.outer(_X, _X))
    close("v", probability @ v, 2 * _Y * _X)


def _estimates(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A (N, d, d) and v (N, d) of one example for all outcomes, and these outcomes' probabilities."""
    rows = [0] * (k // 2)  # one call for each pair of the only example
    probe = Scripted(rows)
    _estimated(k, [probe])

    def act(scripts: np.ndarray) -> np.ndarray:
        return _estimated(k, [Scripted(rows, script) for script in scripts])[1]

    scripts, probability = outcomes(probe.values, act, {})
    A, v = _estimated(k, [Scripted(rows, script) for script in scripts])
    return A, v, probability


def _estimated(k: int, rngs: list[Scripted]) -> tuple[np.ndarray, np.ndarray]:
    accessor = Accessor(Table(_X[None], np.array([_Y])), np.zeros((len(rngs), 1)), 1, k, [1])
    ((_, A, v),) = core.estimates(accessor, [1], rngs, k)  # type: ignore[arg-type]
    return A, v


def _averages(shown: Shown) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of A and v by the paper's listing, from n pairs of each example."""
    d = certificates.D
    A, v = np.zeros((d, d)), np.zeros(d)
    for attributes, x, y in zip(shown.attributes, shown.values, shown.y, strict=True):
        n = len(attributes) // 2
        for (i, j), (x_i, x_j) in zip(attributes.reshape(n, 2), x.reshape(n, 2), strict=True):
            A[i, j] += d**2 / (2 * n) * x_i * x_j
            A[j, i] += d**2 / (2 * n) * x_i * x_j
            v[i] += 2 * y * d / (2 * n) * x_i
            v[j] += 2 * y * d / (2 * n) * x_j
    return A / len(shown.y), v / len(shown.y)

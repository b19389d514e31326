"""The expected behaviour of learners that solve for a regressor from what they have stored or added up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.algorithms.cesa_bianchi_2010 import baseline, estimates
from budgetreg.algorithms.comparison.cross_validated_ridge import folds, strengths
from budgetreg.algorithms.comparison.fixed_subset import SHARE
from budgetreg.algorithms.comparison.imputation import FOLDS
from budgetreg.algorithms.learner import first_phase
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.streams import generator
from budgetreg.testing import certificates
from budgetreg.testing.certificates import RADII, largest, one_norm
from budgetreg.testing.expectations import LearnerUnderTest, Oracle, close, expect, same
from budgetreg.testing.scripted_rng import distribution

_D, _M = 5, 40
"""Attributes and examples of the check at k = d."""


@dataclass(frozen=True)
class ImputationOracle(Oracle):
    """Ridge on imputed rows: refitted without one fold after the other, for each strength.

    Attributes
    ----------
    rescale : bool
        Whether the regressor is scaled for complete rows.
    """

    rescale: bool = False

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare with ridge on full rows at k = d, where there is nothing to impute."""
        rng = generator("check imputation")
        X = rng.standard_normal((_M, _D)) * np.linspace(0.5, 2, _D)
        y = X @ np.linspace(-1, 1, _D) + rng.standard_normal(_M)
        (W,), _ = subject.run(Table(X, y), np.arange(_M)[None], [generator("check imputation draws")], _D, {})
        same("the regressor at k = d", W[0, :, 0], _mean_ridge(X, y, _chosen(X, y)))

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Compare with ridge on rows in which the mean of what was shown of an attribute stands for what was not."""
        for shown in certificates.run(subject, {}):
            w = self.solved(shown_table(shown), shown.y)
            same(f"ridge on {len(shown.y)} imputed rows", shown.output[:, 0], w)

    def solved(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the regressor (d,) of rows X (n, d), NaN for unseen values, and targets (n,), neither centred."""
        seen, w = ~np.isnan(X).all(axis=0), np.zeros(X.shape[1])
        X = X[:, seen]
        filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        chosen = _chosen(filled, y)
        w[seen] = _mean_ridge(filled, y, chosen) * (_scale(X, filled, y, chosen) if self.rescale else 1)
        return w


def _ridge(X: np.ndarray, y: np.ndarray, strength: float) -> np.ndarray:
    return np.linalg.solve(X.T @ X + strength * np.eye(X.shape[1]), X.T @ y)


def _mean_ridge(X: np.ndarray, y: np.ndarray, strengths: Sequence[float]) -> np.ndarray:
    return np.mean([_ridge(X, y, strength) for strength in strengths], axis=0)


def _chosen(X: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the strength of ridge with which held-out rows are predicted best, for each repetition of the folds."""

    def error(strength: float, parts: Sequence[np.ndarray]) -> float:
        by_others = [_ridge(X[~part], y[~part], strength * np.mean(~part)) for part in parts]
        return sum(float(np.square(y[part] - X[part] @ w).sum()) for part, w in zip(parts, by_others, strict=True))

    return [float(min(strengths(X), key=lambda strength: error(strength, parts))) for parts in folds(len(y))]


def shown_table(shown: certificates.Shown) -> np.ndarray:
    """Return what a learner was shown as rows (m, d), NaN for what it was not."""
    X = np.full((len(shown.y), certificates.D), np.nan)
    for row, attributes, values in zip(X, shown.attributes, shown.values, strict=True):
        row[attributes] = values
    return X


def listed_moments(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return second moments (d, d), and products (d,) with the target, of complete rows: sums over values, one by one.

    They are those of `covariance`, about 0.
    """
    n, d = X.shape
    seen = ~np.isnan(X)
    p = [np.mean(seen[:, i]) for i in range(d)]
    means = [np.sum(X[seen[:, i], i]) / max(n * p[i], 1) for i in range(d)]
    pairs = [(i, j) for i in range(d) for j in range(d) if i != j]
    c = sum(np.mean(seen[:, i] & seen[:, j]) for i, j in pairs) / sum(p[i] * p[j] for i, j in pairs)
    C, products = np.zeros((d, d)), np.zeros(d)
    for i in range(d):
        mine = seen[:, i]
        if mine.any():
            C[i, i] = np.sum((X[mine, i] - means[i]) ** 2) / (n * p[i])
            products[i] = np.sum((X[mine, i] - means[i]) * y[mine]) / (n * p[i]) + means[i] * np.mean(y)
    for i, j in pairs:
        both = seen[:, i] & seen[:, j]
        if both.any():
            C[i, j] = np.sum((X[both, i] - means[i]) * (X[both, j] - means[j])) / (n * c * p[i] * p[j])
    _, values, vectors = np.linalg.svd(C)
    C = (C + (vectors.T * values) @ vectors) / 2  # the mean of C and |C|, which has no negative eigenvalue
    return C + np.outer(means, means), products


def _scale(X: np.ndarray, filled: np.ndarray, y: np.ndarray, strengths: Sequence[float]) -> float:
    """Return the factor of `full_row_scale` for values that are not centred."""
    n, d = X.shape
    if not np.isnan(X).any():
        return 1.0
    M, _ = listed_moments(X, y)
    means, seen = np.nanmean(X, axis=0), ~np.isnan(X)
    gain = size = 0.0
    for t in range(n):
        kept = np.arange(n) % FOLDS != t % FOLDS
        w = _mean_ridge(filled[kept], y[kept], strengths)
        p = seen.mean(axis=0)
        gain += y[t] * sum(w[i] * (means[i] + ((X[t, i] - means[i]) / p[i] if seen[t, i] else 0)) for i in range(d))
        size += w @ M @ w
    return min(max(gain / size, 0), 1)


@dataclass(frozen=True)
class FixedSubsetOracle(ImputationOracle):
    """Ridge on what was seen of the attributes that a greedy search finds, which solves for each set that it tries."""

    rescale: bool = True

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Compare the attributes with those of the greedy search, and the regressor with ridge on them."""
        D, K, m_1 = certificates.D, certificates.K, first_phase(SHARE, certificates.CHECKPOINTS[-1])
        for shown in certificates.run(subject, {}):
            X, w = shown_table(shown), np.zeros(D)
            first = X[:m_1]
            M, c = listed_moments(first, shown.y[:m_1])
            strength = K * first.size / np.count_nonzero(~np.isnan(first))
            best = _greedy(M, c, strength / len(first), K)
            if len(X) > m_1:
                same_for_all = np.flatnonzero(~np.isnan(X[m_1:]).any(axis=0))
                expect(same_for_all.size == K, "later examples show different attributes")
                expect(set(best) <= set(same_for_all.tolist()), "attributes were seen that forward selection rejects")
                best = same_for_all.tolist()
            w[best] = self.solved(X[:, best], shown.y)
            same(f"ridge on {K} attributes of {len(X)} examples", shown.output[:, 0], w)


def _greedy(M: np.ndarray, c: np.ndarray, strength: float, k: int) -> list[int]:
    """Return up to k attributes of positive use, of which each set is solved for."""
    A, chosen = M + strength * np.diag(np.diag(M)), list[int]()

    def use(attributes: list[int]) -> float:
        return float(c[attributes] @ np.linalg.solve(A[np.ix_(attributes, attributes)], c[attributes]))

    for _ in range(k):
        left = [j for j in range(len(c)) if j not in chosen and c[j] and M[j, j]]
        if left:
            chosen.append(max(left, key=lambda j: use([*chosen, j])))
    return chosen


D = 4


_X, _Y = np.array([0.7, -1.1, 0.4, 0.2]), -1.5


@dataclass(frozen=True)
class PairEstimatesOracle(Oracle):
    """Enumerates the pairs of one example, and certifies what is solved for."""

    update: str

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Compare the means with ``x x'`` and ``2 y x``."""
        for k in (2, 3, D):
            A, v, probability = _estimates(k)
            close("A", np.tensordot(probability, A, axes=1), np.outer(_X, _X))
            close("v", probability @ v, 2 * _Y * _X)

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
        """Compare the means with ``x x'`` and ``2 y x`` also at k = d."""
        self.unbiased(subject)

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Certify the program's minimisers over 1-balls by their duality gaps, or compare the scaled correlations.

        A and v are computed again from the pairs that were shown. A is unbiased. With its negative eigenvalues set to 0
        it is the nearest matrix that makes the program convex, and no longer unbiased.
        """
        for shown in certificates.run(subject, {"B": RADII}):
            A, v = baseline(shown_table(shown), shown.y, [seen.reshape(-1, 2) for seen in shown.attributes])
            if self.update == "correlation":
                same("the regressors", shown.output, np.outer(v, RADII) / np.abs(v).sum())
                continue
            s, V = np.linalg.eigh(A)
            convex = (V * np.maximum(s, 0)) @ V.T
            for w, B in zip(shown.output.T, RADII, strict=True):
                what, gradient = f"the program of {len(shown.y)} examples", 2 * convex @ w - v
                certificates.least(what, w, B, gradient, B * largest(v), one_norm, largest)


def _estimates(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A (N, d, d) and v (N, d) of one example for all outcomes, and these outcomes' probabilities."""

    def estimated(rngs: list[Any]) -> np.ndarray:
        accessor = Accessor(Table(_X[None], np.array([_Y])), np.zeros((len(rngs), 1)), 1, k, [1])
        ((_, A, v),) = estimates(accessor, [1], rngs, k)
        return np.concatenate([A, v[:, None]], axis=1)

    # The learner draws once for each pair of the only example.
    found, probability = distribution([0] * (k // 2), estimated)
    return found[:, :D], found[:, D], probability

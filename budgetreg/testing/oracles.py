"""The expected behaviour of each learner, by its class.

The probabilities with which attributes are drawn are stated here, apart from the learners' code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import log
from typing import Any

import numpy as np

from budgetreg.algorithms.aemr import TargetRegressionLearner
from budgetreg.algorithms.cesa_bianchi_2010 import Baseline, baseline, estimates
from budgetreg.algorithms.corrected_moments import CorrectedMoments, pair_sums, semidefinite_by
from budgetreg.algorithms.factors import FactorRegression, StreamingFactorAnalysis
from budgetreg.algorithms.fixed_subset import SHARE, FixedSubset
from budgetreg.algorithms.full_rows import ExactGradientLearner, OfflineLearner
from budgetreg.algorithms.gonen_2016 import MatrixGradientLearner, SecondMomentLearner
from budgetreg.algorithms.hazan_koren_2012 import aesvr
from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import GradientLearner, GuidedLearner
from budgetreg.algorithms.hazan_koren_2012.aesvr import GenEst, SupportVectorLearner
from budgetreg.algorithms.imputation import SCALE_FOLDS, ImputationLearner, ImputedGradientLearner, folds, strengths
from budgetreg.algorithms.kale_2017 import TwoPhaseSparse
from budgetreg.algorithms.kukliansky_shamir_2015 import TwoPhaseLearner, estimated_moments
from budgetreg.algorithms.learner import Learner, first_phase
from budgetreg.algorithms.normal_ml import NormalMaximumLikelihood
from budgetreg.algorithms.sportisse_2020 import DebiasedGradient, debiased_gradient
from budgetreg.algorithms.zhu_2022 import PrimePCA
from budgetreg.common.streams import BLOCK, generator
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.revealed.collection import collect
from budgetreg.testing import certificates
from budgetreg.testing.certificates import BallOracle, FullRowsOracle, LearnerUnderTest, Oracle, close, expect, same
from budgetreg.testing.enumeration import (
    EXAMPLE,
    REFERENCE_UPDATES,
    STEP,
    D,
    DrawProbabilities,
    GradientOracle,
    Place,
    Step,
    compare_moves,
    distribution,
    enumerate_step,
    point_square,
    points,
    prices,
)
from budgetreg.testing.subspaces import PairsOracle, SecondMomentOracle

# Learners that take a step for each example.

_MOVES = REFERENCE_UPDATES["ogd"]

_COUNTERPARTS = {"ogd": "online_ridge", "eg": "online_lasso"}
"""By update, the learner with exact gradients."""


def one_pass(learner: GradientLearner) -> GradientOracle:
    """State that attributes are drawn uniformly, or guided by the second moments of all examples and by prices."""

    def draws(step: Step, k_x: int) -> DrawProbabilities:
        stated = guided_draws(learner, step, np.square(step.X).mean(axis=0))
        slope = learner.control_variate == "label"
        mu = None if learner.control_variate == "none" else _expected(step, k_x, slope=slope)
        return replace(stated, subset=learner.data_point == "subset", expected=mu)

    return _following(learner, draws, late=learner.control_variate != "none")


def two_phases(learner: TwoPhaseLearner) -> GradientOracle:
    """State the draws of the second phase: their weights follow from moments ``A + 13 eps/6``, mixed with equal ones.

    ``A_i`` is the mean square of attribute i where the first phase's data points drew it, or the mean of the others
    if they never did; ``eps = min(1, d log(2d/0.05) / (k_x m_1))`` by theory (Kukliansky & Shamir 2015).
    """
    first = partial(first_phase, learner.phase_one)

    def draws(step: Step, k_x: int) -> DrawProbabilities:
        d, m_1 = len(step.w), first(len(step.X))
        seen = data_points(step, m_1, k_x)
        theory = learner.smoothing == "theory"
        eps = min(1, d * log(2 * d / 0.05) / (k_x * m_1)) if theory else float(learner.smoothing)
        return guided_draws(learner, step, estimated_moments(step.X[:m_1], seen, eps), learner.mix)

    return _following(learner, draws, first_phase=first)


def _following(learner: Any, draws: Callable[[Step, int], DrawProbabilities] | None, **more: Any) -> GradientOracle:
    """Return the oracle of a learner that follows estimates of gradients by draws; without any, they are exact."""
    exact = _COUNTERPARTS.get(learner.update)
    return GradientOracle(REFERENCE_UPDATES[learner.update], draws, exact, learner.average, **more)


def guided_draws(learner: GuidedLearner, step: Step, moments: np.ndarray, mix: float = 0.0) -> DrawProbabilities:
    """State the draws of a learner to which attributes have some second moments, (d,), mixed with equal weights.

    Data points: on the 2-ball, guided draws have the weights ``sqrt(E x_i^2 / c_i)``, with the prices c of the checks,
    or 1 where the learner ignores them; on the 1-ball ``E x_i^2`` (Kukliansky & Shamir 2015, Equation 2; for prices,
    see `budgetreg.algorithms.engine`). Inner product: ``|w_j| sqrt(E x_j^2 / c_j)`` if guided, else ``w_j^2``
    on the 2-ball and ``|w_j|`` on the 1-ball.
    """
    d, on_2_ball = len(step.w), learner.norm == 2
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
    """States the exact gradient at k = d, and the step along the gradient of the imputed example."""

    def boundary(self, subject: LearnerUnderTest) -> None:
        """Compare each outcome of a step at which the projection acts with the projected step.

        What an outcome did not draw of the example is the mean of the values of earlier examples.
        """
        step = self.edge_step(subject)
        earlier = np.full((len(step.earlier), len(step.w)), np.nan)
        for row, example, seen in zip(earlier, step.X, step.earlier, strict=False):
            row[seen] = example[seen]
        drawn = (step.attributes[:, :, None] == np.arange(len(step.w))).any(axis=1)
        x = np.where(drawn, step.x, np.nanmean(earlier, axis=0))
        compare_moves(step, self.moves, (x @ step.w - step.y)[:, None] * x)


@dataclass(frozen=True)
class DebiasedOracle(Oracle):
    """Enumerates the subsets that one step may see, for iterates that are recovered from their means."""

    mask: str

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Check that the gradient has the mean ``(<w, x> - y) x``."""
        for k in (2, 3):
            step = self._step(subject, k)
            close("the gradient", step.mean(step.gradient(_MOVES)), (step.w @ step.x - step.y) * step.x)

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare with the mean square of the paper's gradient over all subsets."""
        step = self._step(subject, 3)
        masks = [np.isin(np.arange(D), S) for S in combinations(range(D), 3)]
        listed = [debiased_gradient(step.x * seen, step.y, step.w, 3, self.mask) for seen in masks]
        squares = np.square(step.gradient(_MOVES)).sum(axis=1)
        close("the gradient's square", step.mean(squares), float(np.square(listed).sum(axis=1).mean()))

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare with the exact gradient at k = d."""
        GradientOracle(_MOVES, None, _COUNTERPARTS["ogd"], "all").full_information(subject)

    def _step(self, subject: LearnerUnderTest, k: int) -> Step:
        return enumerate_step(subject, D, k, Place(STEP, average="all"))


_ORDERS = (1, 3)
"""Orders of the series that are enumerated."""

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
        n = np.arange(aesvr.ORDERS)
        theta = (u + delta * np.array([-1.0, 1.0])[:, None]) / eps
        series = (aesvr.WEIGHTS * 0.5 ** (n + 1) * theta**n).sum() / 2
        close("the slope", series, float(aesvr.smoothed_slope(np.array(u), delta, eps)))

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
                phi = aesvr.smoothed_slope(factors.mean(axis=1) - step.y, delta, eps)
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
    return float(aesvr.WEIGHTS[order]) / 2


def _p(step: Step) -> np.ndarray:
    """Return the probabilities of the inner product's draws."""
    return np.asarray(np.square(step.w) / (step.w @ step.w))


# Learners that solve for a regressor from what they have stored or added up.

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
        same("the regressor at k = d", W[0, :, 0], _ridge(X, y, *_chosen(X, y)))

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Compare with ridge on rows in which the mean of what was shown of an attribute stands for what was not."""
        for shown in certificates.run(subject, {}):
            w = self.solved(shown.X, shown.y)
            same(f"ridge on {len(shown.y)} imputed rows", shown.output[:, 0], w)

    def solved(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the regressor (d,) of rows X (n, d), NaN for unseen values, and targets (n,), neither centred."""
        seen, w = ~np.isnan(X).all(axis=0), np.zeros(X.shape[1])
        X = X[:, seen]
        filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        chosen = _chosen(filled, y)
        w[seen] = _ridge(filled, y, *chosen) * (_scale(X, filled, y, chosen) if self.rescale else 1)
        return w


def _ridge(X: np.ndarray, y: np.ndarray, *strengths: float) -> np.ndarray:
    """Return the mean of the regressors of ridge (d,) for some strengths."""
    A, identity = X.T @ X, np.eye(X.shape[1])
    return np.mean([np.linalg.solve(A + strength * identity, X.T @ y) for strength in strengths], axis=0)


def _chosen(X: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the strength of ridge with which held-out rows are predicted best, for each repetition of the folds."""

    def error(strength: float, parts: Sequence[np.ndarray]) -> float:
        by_others = [_ridge(X[~part], y[~part], strength * np.mean(~part)) for part in parts]
        return sum(float(np.square(y[part] - X[part] @ w).sum()) for part, w in zip(parts, by_others, strict=True))

    return [float(min(strengths(X), key=lambda strength: error(strength, parts))) for parts in folds(len(y))]


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
        kept = np.arange(n) % SCALE_FOLDS != t % SCALE_FOLDS
        w = _ridge(filled[kept], y[kept], *strengths)
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
        K, m_1 = certificates.K, first_phase(SHARE, certificates.CHECKPOINTS[-1])
        for shown in certificates.run(subject, {}):
            X, w = shown.X, np.zeros(certificates.D)
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


@dataclass(frozen=True)
class TwoPhaseSparseOracle(ImputationOracle):
    """Ridge on the rows of the second phase, which all show the same attributes."""

    phase_one: float = 0.5

    def full_information(self, subject: LearnerUnderTest) -> None:
        """Compare with least squares on full rows."""
        FullRowsOracle().full_information(subject)

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Compare the last regressor with ridge; those of the first phase are checked for corrected moments."""
        m_1 = first_phase(self.phase_one, certificates.CHECKPOINTS[-1])
        for shown in certificates.run(subject, {}):
            if len(shown.y) == certificates.CHECKPOINTS[-1]:
                X, w = shown.X[m_1:], np.zeros(certificates.D)
                kept = np.flatnonzero(~np.isnan(X).any(axis=0))
                expect(kept.size == certificates.K, "examples of the second phase show different attributes")
                w[kept] = self.solved(X[:, kept], shown.y[m_1:])
                same(f"ridge on {len(X)} examples", shown.output[:, 0], w)


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


_Y = -1.5
"""The target of the example whose estimates are enumerated."""


@dataclass(frozen=True)
class PairEstimatesOracle(Oracle):
    """Enumerates the pairs of one example, and certifies what is solved for."""

    update: str

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Compare the means with ``x x'`` and ``2 y x``."""
        for k in (2, 3, D):
            A, v, probability = _estimates(k)
            close("A", np.tensordot(probability, A, axes=1), np.outer(EXAMPLE, EXAMPLE))
            close("v", probability @ v, 2 * _Y * EXAMPLE)

    def second_moments(self, subject: LearnerUnderTest) -> None:
        """Compare with the variance of a mean over n of d^2 pairs without replacement, as in survey sampling."""
        k = 4
        A, v, probability = _estimates(k)
        n, pairs, norm = k // 2, D**2, float(EXAMPLE @ EXAMPLE)
        share = (pairs - n) / (n * (pairs - 1))
        single_A, single_v = pairs / 2 * (norm**2 + float((EXAMPLE**4).sum())), 4 * _Y**2 * (D + 1) / 2 * norm
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
        for shown in certificates.run(subject, {"B": certificates.RADII}):
            A, v = baseline(shown.X, shown.y, [seen.reshape(-1, 2) for seen in shown.attributes])
            if self.update == "correlation":
                same("the regressors", shown.output, np.outer(v, certificates.RADII) / np.abs(v).sum())
                continue
            s, V = np.linalg.eigh(A)
            convex, (norm, dual) = (V * np.maximum(s, 0)) @ V.T, certificates.NORMS[1]
            for w, B in zip(shown.output.T, certificates.RADII, strict=True):
                what, gradient = f"the program of {len(shown.y)} examples", 2 * convex @ w - v
                certificates.least(what, w, B, gradient, B * dual(v), norm, dual)


def _estimates(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A (N, d, d) and v (N, d) of one example for all outcomes, and these outcomes' probabilities."""

    def estimated(rngs: list[Any]) -> np.ndarray:
        accessor = Accessor(Table(EXAMPLE[None], np.array([_Y])), np.zeros((len(rngs), 1)), 1, k, [1])
        ((_, A, v),) = estimates(accessor, [1], rngs, k)
        return np.concatenate([A, v[:, None]], axis=1)

    # The learner draws once for each pair of the only example.
    found, probability = distribution([0] * (k // 2), estimated)
    return found[:, :D], found[:, D], probability


_NEARLY = 0.01
"""Gap, in units of that at 0, that projected gradient may leave where attributes differ in size by a factor of 100."""


@dataclass(frozen=True)
class CorrectedMomentsOracle(FullRowsOracle):
    """Enumerates the subsets of one example, and certifies what is solved for."""

    learner: CorrectedMoments

    def unbiased(self, subject: LearnerUnderTest) -> None:
        """Compare the means of products with those of complete examples times the share of subsets that show both."""
        for k in range(2, D + 1):

            def estimated(rngs: list[Any], k: int = k) -> np.ndarray:
                accessor = Accessor(Table(EXAMPLE[None], np.array([_Y])), np.zeros((len(rngs), 1)), 1, k, [1])
                (collected,) = collect(accessor, [1], rngs, k)
                blocks = collected.entries.blocks()
                sums = [pair_sums(blocks, f, D, centred=False, intercept=False) for f in range(len(rngs))]
                return np.stack([np.concatenate([each.products, each.counts]) for each in sums])

            found, probability = distribution([0] * k, estimated)
            products, shares = np.tensordot(probability, found, axes=1)
            pi = np.full((D, D), k * (k - 1) / (D * (D - 1)))
            np.fill_diagonal(pi, k / D)
            close("the shares of examples that show both", shares[:-1, :-1], pi)
            joint = np.append(EXAMPLE, _Y)
            close("the products", products / shares, np.outer(joint, joint))

    def minimiser(self, subject: LearnerUnderTest) -> None:
        """Certify that no regressor of the same size has a smaller loss, or that the loss is stationary in its ball."""
        for shown in certificates.run(subject, {}):
            X, w, n = shown.X, shown.output[:, 0], len(shown.y)
            seen = ~np.isnan(X)
            Z, both = np.where(seen, X, 0.0), np.array([[np.sum(i & j) for i in seen.T] for j in seen.T])
            Gamma, gamma = Z.T @ Z / np.maximum(both, 1), shown.y @ Z / np.maximum(both.diagonal(), 1)
            live = np.flatnonzero(Gamma.diagonal() > 0)
            each = np.ix_(live, live)
            Gamma, gamma, w = self._convex(Gamma[each], both[each] / n), gamma[live], w[live]
            norm, dual = certificates.NORMS[self.learner.norm]
            gap = norm(w) * dual(Gamma @ w - gamma) + w @ (Gamma @ w - gamma)
            tolerance = 1e-8 if self.learner.convex else _NEARLY
            what = f"the regressor of {n} examples is not stationary: {gap / (norm(w) * dual(gamma)):.2g}"
            expect(gap <= tolerance * norm(w) * dual(gamma), what)

    def _convex(self, Gamma: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return the moments that the solver uses; tests certify that they are nearest."""
        if self.learner.norm == 1:
            return semidefinite_by(self.learner.solver, Gamma, shares)
        s, V = np.linalg.eigh(Gamma)
        return np.asarray((V * np.maximum(s, 0)) @ V.T)


# The oracle of each class.

_MODELS = (FactorRegression, NormalMaximumLikelihood, PrimePCA, StreamingFactorAnalysis, TargetRegressionLearner)
_ORACLES: Mapping[type[Learner], Callable[[Any], Oracle]] = {
    CorrectedMoments: CorrectedMomentsOracle,
    DebiasedGradient: lambda learner: DebiasedOracle(learner.mask),
    TwoPhaseSparse: lambda learner: TwoPhaseSparseOracle(phase_one=learner.phase_one),
    Baseline: lambda learner: PairEstimatesOracle(learner.update),
    GradientLearner: one_pass,
    SupportVectorLearner: SlopeOracle,
    TwoPhaseLearner: two_phases,
    SecondMomentLearner: SecondMomentOracle,
    MatrixGradientLearner: PairsOracle,
    ExactGradientLearner: lambda learner: _following(learner, None),
    OfflineLearner: lambda learner: BallOracle(*certificates.NORMS[learner.norm]),
    ImputedGradientLearner: lambda learner: _ImputedOracle(_MOVES, None, _COUNTERPARTS["ogd"], learner.average),
    ImputationLearner: lambda learner: ImputationOracle(learner.rescale),
    FixedSubset: lambda learner: FixedSubsetOracle(),
    **dict.fromkeys(_MODELS, lambda learner: FullRowsOracle()),
}


def oracle_of(learner: Learner) -> Oracle:
    """Return the expected behaviour of a learner: what its class declares, or what is stated here."""
    declared: Oracle | None = learner.oracle
    if declared is not None:
        return declared
    stated = (_ORACLES[parent] for parent in type(learner).__mro__ if parent in _ORACLES)
    return next(stated, lambda learner: Oracle())(learner)

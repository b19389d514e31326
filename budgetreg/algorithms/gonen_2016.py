"""POPCA, PCA and MBEG: the subspace that is closest to examples of which few attributes are seen.

POPCA and PCA take the leading eigenvectors of an estimate of the second moment ``C = E x x'``. MBEG is matrix
exponentiated gradient on pairs of attributes, which its weight matrix W chooses: (s, q) is drawn with probability
``p_sq = (1 - alpha) (w_s + w_q) / 2d + alpha / d^2``, where ``w = diag(W) / n`` sums to 1.

Notation: the paper's rank k is n here (``n_components``), and r attributes of each example are seen; by MBEG as ``r/2``
pairs.

References
----------
A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
Algorithms 1 to 3, and the footnote of Section 3. Importance sampling and MBEG+ are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from budgetreg.algorithms.learner import (
    ON_FULL_ROWS,
    ONE_PASS,
    STEP_SIZE,
    UNBOUNDED,
    Batching,
    BudgetSplit,
    Cost,
    Missing,
    Observation,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    SubspaceLearner,
    Theorem,
    Trajectory,
    first_phase,
    update_option,
)
from budgetreg.common.errors import ConfigError
from budgetreg.common.streams import BLOCK, blocks
from budgetreg.config.options import FLAG, FRACTION, ONE, ZERO, one_of, option
from budgetreg.revealed import designs

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

# The algorithms as printed, one example at a time.


def popca(X: np.ndarray, seen: Sequence[np.ndarray], pi_1: float, pi_2: float) -> np.ndarray:
    """Return the estimate of ``C = E x x'`` (d, d) whose leading eigenvectors Algorithm 1, POPCA, returns.

    With ``x^``, the example with 0 for what is not seen, it is the mean of ``x^ x^' / pi_2 + (1/pi_1 - 1/pi_2)
    diag(x^ x^')``. In the passive model of the paper ``pi_1 = p`` and ``pi_2 = p^2``.

    Parameters
    ----------
    X : ndarray of float, shape (m, d)
        Examples.
    seen : sequence of m ndarray of int
        The attributes seen of each.
    pi_1, pi_2 : float
        The probabilities that an attribute, and a pair of two, is seen.
    """
    m, d = X.shape
    C = np.zeros((d, d))
    for x, S in zip(X, seen, strict=True):
        x_ = np.where(np.isin(np.arange(d), S), x, 0.0)
        C += np.outer(x_, x_) / pi_2 + (1 / pi_1 - 1 / pi_2) * np.diag(x_**2)
    return C / m


def popca_bound(n: int, d: int, r: int, m: int, *, passive: bool = True) -> float:
    """Excess loss of POPCA for n dimensions: ``(d/r) sqrt(n / m)``; with r = d that of PCA.

    Gonen et al. 2016, Corollary 3, solved for eps, with ``|x|_2 <= 1``. It holds for attributes that are seen
    independently with probability r/d (`passive`). By the same proof it holds for any design, with the probability that
    a pair is seen instead of ``(r/d)^2``: for exactly r attributes, without replacement, ``r(r-1) / (d(d-1))``.
    """
    pair = (r / d) ** 2 if passive else r * (r - 1) / (d * (d - 1))
    return sqrt(n / (pair * m))


def mbeg(
    X: np.ndarray, uniforms: np.ndarray, second: np.ndarray, n: int, alpha: float, eta: float, update: str = "pairs"
) -> Iterator[tuple[np.ndarray, list[int]]]:
    """Yield the weight matrix W that meets each example, and the attributes seen of it, by Algorithm 2, MBEG.

    Parameters
    ----------
    X : ndarray of float, shape (m, d)
        Examples.
    uniforms : ndarray of float, shape (m, r/2)
        Numbers in [0, 1) that become the first attributes s of the pairs.
    second : ndarray of int, shape (m, r/2)
        The second attributes q, uniform.
    n, alpha, eta : int, float, float
        The dimension, the share of uniform pairs, and the step size.
    update : {'pairs', 'singles'}
        Whether the diagonal is estimated from pairs, as printed, or from single attributes: MBEG+.
    """
    from scipy.linalg import expm, logm
    from scipy.optimize import brentq

    d = X.shape[1]
    W = n / d * np.eye(d)
    for x, u, pairs_with in zip(X, uniforms, second, strict=True):
        w = np.diag(W) / n
        p = (1 - alpha) * (w[:, None] + w) / (2 * d) + alpha / d**2
        below = np.cumsum((1 - alpha) * w + alpha / d)
        C, seen = np.zeros((d, d)), []
        for number, q in zip(u, pairs_with.tolist(), strict=True):
            s = int(np.searchsorted(below / below[-1], number, side="right"))
            seen += [s] if s == q else [s, q]
            E = np.zeros((d, d))
            E[s, q] = x[s] * x[q] / (2 * p[s, q])
            if update == "singles":
                E[s, q] *= s != q
                for i in (s, q):
                    E[i, i] += x[i] ** 2 / (4 * p[i].sum())
            C += (E + E.T) / len(u)
        yield W, seen
        values, V = np.linalg.eigh(expm(np.real(logm(W)) + eta * C))
        # The projection in relative entropy: eigenvectors stay, and eigenvalues become min(1, c u), of sum n.
        c = brentq(lambda c, u=values: np.minimum(1, c * u).sum() - n, 0, 2 * n / values[0], xtol=1e-15, rtol=1e-14)
        W = (V * np.minimum(1, c * values)) @ V.T


def mbeg_step(r: int, d: int, m: int) -> float:
    """Step size of MBEG for r attributes per example: ``sqrt(r log(d) / (2 m (d + r)))``.

    Gonen et al. 2016, Algorithm 2.
    """
    return sqrt(r * log(d) / (2 * m * (d + r)))


def mbeg_least_examples(r: int, d: int) -> float:
    """Least m for which MBEG's ``alpha = eta d^2`` is at most 1/2: ``2 d^4 r log(d) / (d + r)``.

    Gonen et al. 2016, Theorem 7; its introduction prints a quarter of it.
    """
    return 2 * d**4 * r * log(d) / (d + r)


def mbeg_bound(n: int, d: int, r: int, m: int) -> float:
    """Excess loss of MBEG for n dimensions, in expectation: ``n sqrt(8 (d + r) log(d) / (r m))``.

    Gonen et al. 2016, Theorem 7, solved for eps, with ``|x|_2 <= 1``, for m of at least `mbeg_least_examples`. Its
    Lemma 9 misses a factor of 2 where both attributes of a pair are the same, by which the variance may be larger, and
    the bound by half as much.
    """
    return n * sqrt(8 * (d + r) * log(d) / (r * m))


# POPCA for designs of any kind, along all streams: products of values are summed as they come, few of them at a
# time, and divided once by the probabilities of being seen, which is the sum of the estimates of single examples.
#
# A sampling design (`budgetreg.revealed.designs`) decides which attributes of an example are seen. The products of the
# values seen, each divided by the probability of being seen, sum to unbiased estimates of C, which need not be positive
# semidefinite. With missing values, that is the probability of being drawn times the share of examples that have both
# attributes. Each stream needs O(d^2) memory for the sum, the estimate, and its eigenvectors.
#
# Importance sampling sees attributes with larger second moments more often. The first phase draws uniform subsets and
# estimates the diagonal of C. Then attributes are drawn in proportion to ``sqrt(C_ii)``, by conditional Poisson
# sampling.
#
# Both phases give unbiased estimates of C, and the precision of an entry grows with how often it was seen. So the first
# phase should have the weight ``m_1 pi'_ij / (m_1 pi'_ij + m_2 pi_ij)`` in entry (i, j), with the probabilities pi' and
# pi of the two phases. But pi depends on the first phase's values, so these weights would be correlated with them and
# bias the estimate. Therefore the weights of each half of the first phase use the pi that the other half gives, and the
# pooled estimate is unbiased.

_DESIGNS = {
    "active": "k attributes per example",
    "passive": "each attribute with probability k/d, k per example on average",
    "importance": "k attributes per example, after a first phase those with larger second moments the likelier",
    "zero_filled": "k attributes per example, the others taken for 0",
    "full": "all attributes",
}
_SEES = {"passive": Observation.K_ON_AVERAGE, "full": Observation.ALL}
_ZEROS = "zeros in place of what is not seen: biased, which is the comparison"
_POOLED = "the estimate is pooled from two phases, which 'unbiased' compares; the other designs share what follows"
_SKIPPED: Mapping[str, Mapping[str, str]] = {
    "full": ON_FULL_ROWS,
    "zero_filled": {"unbiased": _ZEROS, "second moments": _ZEROS},
    "importance": {"minimiser": _POOLED},
    "passive": {"small k": "at k=1 two attributes of an example are still seen now and then, and this learns"},
}

_CHUNK = 8192
"""Values whose products are computed together: enough to amortise the calls, few enough for the cache."""

_SPARSE_COST = 256
"""Cost of a product of two single values, relative to one within a dense matrix product, zeros included."""


def moment_estimates(
    learner: SecondMomentLearner, accessor: Accessor, checkpoints: Sequence[int], rngs: Rngs, k: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Estimate C along all streams of the accessor; the parameters are those of `Learner.fit`.

    Yields
    ------
    checkpoint : int
    C : ndarray of float64, shape (F, d, d)
        Symmetric, and unbiased except for 'zero_filled'.
    """
    d = accessor.d
    if learner.update == "importance":
        yield from _in_two_phases(learner, accessor, checkpoints, rngs, k)
        return
    if learner.update == "full":
        totals = full_product_sums(accessor, checkpoints)
    else:
        design = designs.with_replacement(d, k) if learner.replacement else designs.uniform_subset(d, k)
        if learner.update == "passive":
            design = designs.bernoulli(d, k)
        elif learner.update == "zero_filled":  # the zeros count as seen, so that nothing is divided by a probability
            design = designs.Design(design.draw, np.ones((d, d)))
        totals = product_sums(accessor, 0, checkpoints, rngs, [design] * len(rngs))
    for checkpoint, total in totals:
        yield checkpoint, total / checkpoint


def _in_two_phases(
    learner: SecondMomentLearner, accessor: Accessor, checkpoints: Sequence[int], rngs: Rngs, k: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Estimate C by importance sampling; parameters and results are those of `moment_estimates`."""

    def probabilities(moments: np.ndarray) -> list[np.ndarray]:
        return [designs.working_probabilities(np.sqrt(np.diagonal(C)), k, learner.mix) for C in moments]

    last, uniform = checkpoints[-1], designs.uniform_subset(accessor.d, k)
    m_1 = min(last, max(2, first_phase(learner.phase_one, last)))
    total = np.zeros((accessor.n_streams, accessor.d, accessor.d))
    halves = []
    for start, stop in ((0, m_1 // 2), (m_1 // 2, m_1)):
        half = total
        inner = [checkpoint for checkpoint in checkpoints if start < checkpoint < stop]
        for checkpoint, half in product_sums(accessor, start, [*inner, stop], rngs, [uniform] * len(rngs)):
            if checkpoint in checkpoints:
                yield checkpoint, (total + half) / checkpoint
        halves.append((stop - start, half / max(1, stop - start)))
        total = total + half
    late = [checkpoint for checkpoint in checkpoints if checkpoint > m_1]
    if not late:
        return
    guided = [designs.conditional_poisson(p, k) for p in probabilities(total / m_1)]
    inclusions = [np.stack([designs.joint_inclusion(p, k) for p in probabilities(C)]) for _, C in halves]
    for checkpoint, second in product_sums(accessor, m_1, late, rngs, guided):
        m_2 = checkpoint - m_1
        pooled = np.zeros_like(second)
        for (size, C), probability in zip(halves, reversed(inclusions), strict=True):
            share = m_1 * uniform.probability / (m_1 * uniform.probability + m_2 * probability)
            pooled += size / m_1 * (share * C + (1 - share) * (second / m_2))
        yield checkpoint, pooled


def product_sums(
    accessor: Accessor, first: int, checkpoints: Sequence[int], rngs: Rngs, stream_designs: Sequence[designs.Design]
) -> Iterator[tuple[int, np.ndarray]]:
    """Estimate the sum of ``x x'`` over the examples from `first` to each checkpoint, shape (F, d, d)."""
    F, d = accessor.n_streams, accessor.d
    products = [_Products(d) for _ in rngs]
    shares = np.ones(F) if accessor.complete else accessor.together(*np.ogrid[:F, :d, :d])
    for start, stop in blocks(first, checkpoints[-1]):
        draws = [design.draw(rng) for design, rng in zip(stream_designs, rngs, strict=True)]
        attributes, drawn, repeated = _stacked_draws(draws, stop - start)
        accessor.open(start, stop)
        values = accessor.reveal_block(attributes, drawn)
        if repeated is not None:
            values = np.where(repeated, 0.0, values)
        for begin, end in pairwise([start, *(c for c in checkpoints if start < c < stop), stop]):
            part = slice(begin - start, end - start)
            for f, stream_products in enumerate(products):
                stream_products.add(attributes[f, part], values[f, part])
            if end in checkpoints:
                streams = zip(products, stream_designs, shares, strict=True)
                totals = [product.total() / (design.probability * share) for product, design, share in streams]
                yield end, np.stack(totals)


def _stacked_draws(draws: Sequence[designs.Draw], T: int) -> designs.Draw:
    """Stack the streams' draws for T examples to (F, T, n), padded where streams draw different numbers."""
    width = max(draw.attributes.shape[1] for draw in draws)

    def stacked(arrays: Iterable[np.ndarray | None]) -> np.ndarray | None:
        padded = [np.pad(array[:T], ((0, 0), (0, width - array.shape[1]))) for array in arrays if array is not None]
        return np.stack(padded) if padded else None

    attributes, drawn, repeated = (stacked(arrays) for arrays in zip(*draws, strict=True))
    assert attributes is not None
    return designs.Draw(attributes, drawn, repeated)


class _Products:
    """The sum of ``x x'`` over examples of which few values are known, and fewer differ from 0."""

    def __init__(self, d: int) -> None:
        self._once = np.zeros((d, d))  # each pair in one of its two cells, and the diagonal
        self._flat = self._once.reshape(-1)
        self._pending: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Add examples: distinct attributes (T, n) and their values, 0 where unknown."""
        present = np.flatnonzero(values != 0)
        counts = np.bincount(present // values.shape[1], minlength=len(values))
        self._pending.append((counts, attributes.take(present), values.take(present)))
        if sum(i.size for _, i, _ in self._pending) >= _CHUNK:
            self._multiply()

    def total(self) -> np.ndarray:
        """Return the sum so far, shape (d, d)."""
        if self._pending:
            self._multiply()
        total = self._once + self._once.T
        np.fill_diagonal(total, self._once.diagonal())
        return total

    def _multiply(self) -> None:
        """Add the products of the pending values, as a dense or a sparse product, whichever is cheaper."""
        counts, i, x = (np.concatenate(arrays) for arrays in zip(*self._pending, strict=True))
        self._pending = []
        d, ends = len(self._once), np.cumsum(counts)
        later = np.repeat(ends, counts) - np.arange(1, i.size + 1)  # later values of the same example
        if later.sum() * _SPARSE_COST > counts.size * d**2:
            X = np.zeros((counts.size, d))
            X[np.repeat(np.arange(counts.size), counts), i] = x
            from scipy.linalg.blas import dsyrk  # here, as SciPy loads slowly

            dsyrk(1.0, X.T, beta=1.0, c=self._once.T, overwrite_c=True)  # in place, one triangle only
            return
        first = np.repeat(np.arange(i.size), later)
        second = np.arange(1, first.size + 1) + np.repeat(np.arange(i.size) - np.cumsum(later) + later, later)
        np.add.at(self._flat, i.take(first) * d + i.take(second), x.take(first) * x.take(second))
        np.add.at(self._flat, i * (d + 1), x * x)


def full_product_sums(accessor: Accessor, checkpoints: Sequence[int]) -> Iterator[tuple[int, np.ndarray]]:
    """Sum ``x x'`` over the examples up to each checkpoint, shape (F, d, d)."""
    total = np.zeros((accessor.n_streams, accessor.d, accessor.d))
    for start, stop in blocks(0, checkpoints[-1], checkpoints):
        X, _ = accessor.rows(start, stop)
        for stream_total, x in zip(total, X, strict=True):
            stream_total += x.T @ x
        if stop in checkpoints:
            yield stop, total.copy()


# MBEG for all F x G replicas, each of which is a row of the arrays. The state is ``L = log W``, never W itself,
# because rounding can make eigenvalues of W negative, which have no logarithm; ``L + eta C^`` then is what the listing
# projects.


def reveal_pairs(accessor: Accessor, position: int, s: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of pairs (R, r/2); a pair of an attribute with itself is charged once."""
    R, n = s.shape
    twice = s == q
    attributes, drawn = np.hstack([s, q]), np.hstack([np.ones_like(twice), ~twice])
    shape = accessor.n_streams, accessor.n_settings, 2 * n
    x = accessor.reveal_some(position, attributes.reshape(shape), drawn.reshape(shape)).reshape(R, 2 * n)
    return x[:, :n], np.where(twice, x[:, :n], x[:, n:])


class Weights:
    """The weight matrices W of R replicas, stored as L = log W, and the sums of their iterates.

    Parameters
    ----------
    R, d, n : int
        Numbers of replicas and attributes, and the trace of each W.
    alpha : ndarray of float, shape (R,)
        Shares of uniform pairs.

    Attributes
    ----------
    W : ndarray of float, shape (R, d, d)
        The weight matrices, ``(n/d) I`` at first.
    """

    def __init__(self, R: int, d: int, n: int, alpha: np.ndarray) -> None:
        self._n, self._alpha = n, alpha[:, None]
        self._L = np.tile(np.log(n / d) * np.eye(d), (R, 1, 1))
        self.W = np.tile(n / d * np.eye(d), (R, 1, 1))
        self._sum = np.zeros((R, d, d))
        self._since = np.zeros(R, dtype=np.int64)
        self._cumulative = np.empty((R, d))
        self._prepare(np.arange(R))

    @property
    def diagonal(self) -> np.ndarray:
        """``W_ii``, shape (R, d)."""
        return self.W.diagonal(axis1=1, axis2=2)

    def draw(self, uniforms: np.ndarray) -> np.ndarray:
        """Draw one attribute of each pair, (R, r/2), from as many uniforms; the other one is uniform.

        The estimates are symmetric in s and q, so only the half of the mixture with ``W_ss`` needs to be drawn.
        """
        thresholds = uniforms * self._cumulative[:, -1:]
        attributes = (self._cumulative[:, None, :] <= thresholds[:, :, None]).sum(axis=2)
        return np.minimum(attributes, self._cumulative.shape[1] - 1)

    def move(self, rows: np.ndarray, change: np.ndarray, step: int) -> None:
        """Move replicas, at a step, to the projection of ``exp(L + change)``, change (len(rows), d, d)."""
        self._sum[rows] += (step - self._since[rows])[:, None, None] * self.W[rows]
        self._since[rows] = step
        L = self._L[rows] + change
        theta, V = np.linalg.eigh(L)
        log_c = project(theta, self._n)[:, None]
        theta += log_c
        # At most n - 1 eigenvalues exceed 1. Only their excess is subtracted from L, which saves a matrix product.
        d = len(V[0])
        capped = V[:, :, d - self._n + 1 :]
        excess = np.maximum(theta[:, d - self._n + 1 :], 0.0)
        L -= (capped * excess[:, None, :]) @ capped.transpose(0, 2, 1)
        diagonal = np.arange(d)
        L[:, diagonal, diagonal] += log_c
        self._L[rows] = L
        self.W[rows] = (V * np.exp(np.minimum(theta, 0.0))[:, None, :]) @ V.transpose(0, 2, 1)
        self._prepare(rows)

    def average(self, step: int) -> np.ndarray:
        """Return the mean of the weight matrices at the beginnings of the first `step` steps, shape (R, d, d)."""
        return (self._sum + (step - self._since)[:, None, None] * self.W) / step

    def _prepare(self, rows: np.ndarray) -> None:
        """Compute the cumulative draw probabilities of some replicas."""
        alpha = self._alpha[rows]
        probabilities = (1 - alpha) * self.diagonal[rows] / self._n + alpha / self.W.shape[1]
        self._cumulative[rows] = np.cumsum(probabilities, axis=1)


def pair_estimates(
    update: str, s: np.ndarray, q: np.ndarray, x_s: np.ndarray, x_q: np.ndarray, w: np.ndarray, alpha: np.ndarray
) -> np.ndarray:
    """Estimate ``x x'`` by the mean over the pairs of ``x_s x_q (E_sq + E_qs) / (2 p_sq)``, Equations 7 and 8.

    MBEG+ estimates the diagonal by ``(x_s^2/a_s E_ss + x_q^2/a_q E_qq) / 2`` instead. The probability ``a_s`` that an
    attribute of a pair is s, the sum of p_sq over q, is much larger than p_ss.

    Parameters
    ----------
    update : {'pairs', 'singles'}
        'singles' for MBEG+.
    s, q : ndarray of int, shape (R, r/2)
        The pairs.
    x_s, x_q : ndarray of float, shape (R, r/2)
        Their values.
    w : ndarray of float, shape (R, d)
        ``W_ii / n``, which sum to 1.
    alpha : ndarray of float, shape (R,)
        Share of uniform pairs.

    Returns
    -------
    ndarray of float, shape (R, d, d)
    """
    d, alpha = w.shape[1], alpha[:, None]
    w_s, w_q = (np.take_along_axis(w, i, axis=1) for i in (s, q))
    terms = x_s * x_q / (2 * ((1 - alpha) * (w_s + w_q) / (2 * d) + alpha / d**2))
    if update == "pairs":
        return _scatter(s, q, terms, d)
    C = _scatter(s, q, np.where(s == q, 0.0, terms), d)
    for i, x, w_i in ((s, x_s, w_s), (q, x_q, w_q)):
        a = (1 - alpha) * (w_i + 1 / d) / 2 + alpha / d
        C += _scatter(i, i, x**2 / (4 * a), d)
    return C


def _scatter(s: np.ndarray, q: np.ndarray, terms: np.ndarray, d: int) -> np.ndarray:
    """Return the mean over the pairs of ``terms (E_sq + E_qs)``, shape (R, d, d)."""
    C, row = np.zeros((len(s), d, d)), np.arange(len(s))[:, None]
    np.add.at(C, (row, s, q), terms / s.shape[1])
    np.add.at(C, (row, q, s), terms / s.shape[1])
    return C


# Weight matrices between projections: eigenvalues in [0, 1] that sum to n, the convex hull of projections of rank n.
# All operations on a weight matrix act on its eigenvalues alone: the projection onto the hull in the relative entropy
# of matrices, ``tr(W log W - W log U - W + U)``, and the decomposition into projections of rank n.

LEFT_OVER = 1e-14
"""Sum of remaining eigenvalues at which a decomposition is complete; it is 0 in the listing, but for rounding."""


def project(theta: np.ndarray, n: int) -> np.ndarray:
    """Return log c of the projection ``min(1, c u)``, whose entries sum to n; exact, by sorting u.

    Sorted descending, the first j entries are capped at 1 and the others share ``n - j``, so that ``log c_j =
    log(n - j) - logsumexp(theta_{>j})``. The smallest j for which no entry beyond the first j would exceed 1 is the
    right one; for ``j = n - 1`` none ever does.

    Parameters
    ----------
    theta : ndarray of float, shape (..., d)
        ``log u`` of eigenvalues u, ascending along the last axis as `numpy.linalg.eigh` gives them.
    n : int
        The sum, from 1 to d.

    Returns
    -------
    ndarray of float, shape (...)
        The logarithms of the projection are ``min(0, theta + log c)``.

    References
    ----------
    M. K. Warmuth, D. Kuzmin. Randomized Online PCA Algorithms with Regret Bounds that are Logarithmic in the
    Dimension. JMLR 9, 2008, Section 4 (the projection by capping).
    """
    largest = theta[..., ::-1][..., :n]
    log_sum = np.logaddexp.accumulate(theta, axis=-1)[..., ::-1][..., :n]
    log_c = np.log(np.arange(n, 0, -1)) - log_sum
    j = (log_c + largest <= 0).argmax(axis=-1)
    return np.take_along_axis(log_c, j[..., None], axis=-1)[..., 0]


def decompose(eigenvalues: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a weight matrix, given by its eigenvalues, as a mean of at most d projections of rank n.

    Parameters
    ----------
    eigenvalues : ndarray of float, shape (d,)
        Numbers in [0, 1] that sum to n, both up to rounding.
    n : int
        The rank.

    Returns
    -------
    weights : ndarray of float, shape (K,)
        Positive, of sum 1; K is at most d.
    members : ndarray of int, shape (K, n)
        Positions of the eigenvalues 1 of each projection; the others are 0.

    References
    ----------
    A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
    Algorithm 3, after Warmuth & Kuzmin 2008. The listing continues until nothing is left, which may never happen in
    floating point.
    """
    left = np.clip(eigenvalues, 0.0, 1.0)
    weights: list[float] = []
    members: list[np.ndarray] = []
    while len(weights) < len(left) and (total := left.sum()) > LEFT_OVER:
        order = np.argsort(-left, kind="stable")
        chosen, others = order[:n], order[n:]
        # The weight ends where a chosen one is used up, or where another one reaches its largest valid value.
        beta = min(left[chosen[-1]], total / n - left[others].max(initial=0.0))
        if beta <= 0:
            break
        left[chosen] -= beta
        weights.append(beta)
        members.append(chosen)
    return np.array(weights) / sum(weights), np.array(members)


_UPDATES = {
    "pairs": "matrix exponentiated gradient",
    "singles": "matrix exponentiated gradient, the diagonal estimated from single attributes",
}


@dataclass(frozen=True)
class SecondMomentLearner(SubspaceLearner):
    """POPCA and its variants; the design chooses which attributes of an example are seen.

    Attributes
    ----------
    n_components : int
        Dimension of the subspace, below d.
    update : {'active', 'passive', 'importance', 'zero_filled', 'full'}
        'active' draws uniform subsets of k attributes; 'passive' each attribute with probability k/d; 'importance' k
        attributes, larger ones more often; 'zero_filled' as 'active', with 0 for unseen values; 'full' sees all.
    replacement : bool
        Whether 'active' draws with replacement.
    phase_one, mix : float
        For 'importance', see `moment_estimates`.
    """

    update: str = update_option(*_DESIGNS)
    replacement: bool = option("whether attributes are drawn with replacement", FLAG, only=("update", "active"))
    phase_one: float = option(
        "the first phase's share of the examples", FRACTION, only=("update", "importance"), tried=(0.5,)
    )
    mix: float = option(
        "the share of equal probabilities in the draws", FRACTION, only=("update", "importance"), tried=(0.5,)
    )

    core = "second_moment"
    version = 2

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Estimate C along all streams, and yield its leading eigenvectors; see `Learner.fit`.

        There is one setting and nothing to tune.
        """
        from budgetreg.algorithms.eigenspaces import leading  # here, as SciPy loads slowly

        for checkpoint, moment in moment_estimates(self, accessor, checkpoints, rngs, given.k):
            yield checkpoint, np.stack([leading(C, self.n_components) for C in moment])[:, None]

    @property
    def observation(self) -> Observation:
        """What the design sees."""
        return _SEES.get(self.update, Observation.K)

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse a budget of 1, except where two attributes of an example are still seen now and then."""
        return None if self.update in _SEES else super().split_budget(k)

    @property
    def continues(self) -> bool:
        """Whether there is no first phase, which is a share of all examples."""
        return self.update != "importance"

    @property
    def missing(self) -> Missing:
        """Estimates without bias are weighed."""
        return Missing.REFUSED if self.update in ("full", "zero_filled") else Missing.WEIGHED

    @property
    def words(self) -> Sequence[str]:
        """What it computes and sees."""
        return "leading eigenvectors of the estimated second moment", _DESIGNS.get(self.update, "")

    @property
    def theorem(self) -> Theorem | None:
        """Corollary 3 of Gonen et al. 2016, for designs without repetitions."""
        n, full, exact = self.n_components, self.update == "full", self.update == "active" and not self.replacement
        if not (full or exact or self.update == "passive"):
            return None
        return Theorem(lambda B, d, m, k: popca_bound(n, d, d if full else k, m, passive=not exact), "2-ball")

    @property
    def skipped_checks(self) -> Mapping[str, str]:
        """What does not apply to the design."""
        return {"boundary": UNBOUNDED, **_SKIPPED.get(self.update, {})}


@dataclass(frozen=True)
class MatrixGradientLearner(SubspaceLearner):
    """MBEG and MBEG+; the options choose the estimate of the diagonal, the mixing of pairs and the output.

    Attributes
    ----------
    n_components : int
        Dimension n of the subspace, from 1 to d.
    update : {'pairs', 'singles'}
        The estimate of the diagonal: from pairs of an attribute with itself (MBEG), or from every attribute seen
        (MBEG+), see `pair_estimates`.
    alpha : float or 'theory'
        Share of uniform pairs, in [0, 1]; 'theory': ``eta d^2``, at most 1/2.
    output : {'decompose', 'top'}
        How the average of the weight matrices becomes a subspace. 'decompose' writes it as a mixture of projections
        and draws one; 'top' takes its n leading eigenvectors.
    """

    update: str = update_option(*_UPDATES)
    alpha: float | str = option(
        "the share of uniform pairs", one_of("theory") | ZERO | FRACTION | ONE, tried=("theory", 0, 0.3, 1)
    )
    output: str = option("the treatment of the averaged weight matrices", one_of("decompose", "top"))

    core = "mbeg"
    version = 2
    continues = True
    parameters = (STEP_SIZE,)
    tuned = ("eta",)
    batching = Batching.IN_STEP
    k_multiple = 2
    missing = Missing.WEIGHED
    skipped_checks: ClassVar[Mapping[str, str]] = {"minimiser": ONE_PASS}

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run all settings along all streams, one pass; see `Learner.fit`. The setting is ``eta``.

        W starts at ``(n/d) I``. Each example's ``r/2`` pairs (s, q) are drawn with the probabilities

            p_sq = (1 - alpha) (W_ss + W_qq) / (2 d n) + alpha / d^2;

        a pair of an attribute with itself costs one attribute. C^ is the mean of the pairs' estimates of ``x x'``, and
        W becomes the projection of ``exp(log W + eta C^)`` onto the weight matrices. If all estimates are 0, W does not
        change and nothing is computed. With missing values, each entry of C^ is divided by the share of examples that
        have both attributes. A changed replica costs one eigendecomposition, O(d^3); memory is O(d^2) per replica.
        """
        F, G, d, n = accessor.n_streams, accessor.n_settings, accessor.d, self.n_components
        pairs = BLOCK, given.k // 2
        step_size = settings["eta"]
        uniform_share = np.minimum(step_size * d**2, 0.5) if self.alpha == "theory" else np.full(G, float(self.alpha))
        eta, uniform_share = np.tile(step_size, F), np.tile(uniform_share, F)
        state = Weights(F * G, d, n, uniform_share)
        for start, stop in blocks(0, checkpoints[-1]):
            # One more number per example chooses the projection, so that checkpoints do not change later draws.
            draws = [(rng.integers(0, d, pairs), rng.random(pairs), rng.random(BLOCK)) for rng in rngs]
            second, uniforms, choices = (np.stack(part).repeat(G, axis=0) for part in zip(*draws, strict=True))
            accessor.open(start, stop)
            for step in range(start + 1, stop + 1):
                position = step - 1 - start
                s, q = state.draw(uniforms[:, position]), second[:, position]
                x_s, x_q = reveal_pairs(accessor, position, s, q)
                nonzero = x_s * x_q != 0 if self.update == "pairs" else (x_s != 0) | (x_q != 0)
                moved = np.flatnonzero(nonzero.any(axis=1))
                if moved.size:
                    w = state.diagonal[moved] / n
                    seen = s[moved], q[moved], x_s[moved], x_q[moved]
                    C = pair_estimates(self.update, *seen, w, uniform_share[moved])
                    if not accessor.complete:
                        C /= accessor.together((moved // G)[:, None, None], *np.ogrid[:d, :d])
                    state.move(moved, eta[moved, None, None] * C, step)
                if step in checkpoints:
                    averages = zip(state.average(step), choices[:, position], strict=True)
                    yield step, np.stack([self._subspace(*each) for each in averages]).reshape(F, G, d, n)

    def _subspace(self, W: np.ndarray, choice: float) -> np.ndarray:
        """Return orthonormal columns (d, n): the leading ones of W, or those that a number in [0, 1) chooses."""
        from budgetreg.algorithms.eigenspaces import eigenspaces, leading  # here, as SciPy loads slowly

        if self.output == "top":
            return leading(W, self.n_components)
        eigenvalues, V = eigenspaces(W)
        weights, members = decompose(eigenvalues, self.n_components)
        drawn = int(np.searchsorted(np.cumsum(weights), choice, side="right"))
        return V[:, members[min(drawn, len(members) - 1)]]

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse budgets that are not made of pairs.

        Raises
        ------
        ConfigError
            If the budget is 1 or odd.
        """
        super().split_budget(k)
        if k % 2:
            raise ConfigError(f"k={k}: {self.name} sees attributes in pairs and needs an even budget")
        return None

    def cost(self, d: int, k: int, settings: Mapping[str, float]) -> Cost:
        """Return the mean cost: one of d pairs is an attribute with itself, whatever the weights, and costs 1."""
        mean = k - k / (2 * d)
        return Cost(mean, mean)

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return the step size of Gonen et al. 2016."""
        return {"eta": mbeg_step(run.k, run.d, run.m)}

    def notes(self, run: RunContext, settings: Mapping[str, Sequence[float]]) -> Sequence[str]:
        """Warn if the theorem does not hold, which needs ``alpha = eta d^2`` and at most 1/2."""
        eta = max(settings["eta"])
        if self.alpha != "theory" or eta * run.d**2 <= 1 / 2:
            return ()
        return (
            f"{self.name} is outside its theory: alpha = eta d^2 would be {eta * run.d**2:.2g} for eta up to "
            f"{eta:.2g}, and is set to 1/2; with theory's eta, it takes {mbeg_least_examples(run.k, run.d):.2g} "
            "examples to be inside",
        )

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return "k attributes per example, in pairs", _UPDATES.get(self.update, "")

    @property
    def theorem(self) -> Theorem | None:
        """Theorem 7 of Gonen et al. 2016."""
        if (self.update, self.alpha, self.output) != ("pairs", "theory", "decompose"):
            return None
        n = self.n_components
        return Theorem(
            lambda B, d, m, k: mbeg_bound(n, d, k, m) if m >= mbeg_least_examples(k, d) else np.nan, "2-ball"
        )

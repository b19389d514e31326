"""POPCA and PCA: the leading eigenvectors of an estimate of the second moment ``C = E x x'``.

Notation: the paper's rank k is n here (``n_components``), and r attributes of each example are seen.

References
----------
A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
Algorithm 1, and the footnote of Section 3. Importance sampling is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from budgetreg.algorithms.learner import (
    ON_FULL_ROWS,
    UNBOUNDED,
    BudgetSplit,
    Missing,
    Observation,
    Rngs,
    Settings,
    SideInformation,
    SubspaceLearner,
    Theorem,
    Trajectory,
    first_phase,
    update_option,
)
from budgetreg.common.streams import blocks
from budgetreg.config.options import FLAG, FRACTION, option
from budgetreg.revealed import designs

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor


# The algorithm as printed, one example at a time.


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

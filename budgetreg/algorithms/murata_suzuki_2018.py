"""Exploration and Hybrid: sparse regressors from exact residuals, as each example shows all attributes in use.

A regressor has at most s < k nonzeros. An example shows these, its *support*, so that its residual is known exactly,
and k - s further attributes, whose part of the gradient it then estimates without bias.

References
----------
T. Murata, T. Suzuki. Sample Efficient Stochastic Gradient Iterative Hard Thresholding Method for Stochastic Sparse
Linear Regression with Limited Attribute Observation. NeurIPS 2018, Algorithms 1 (Exploration) and 3 (Hybrid). The body
of the paper was not at hand. These constants are ours: the first B and its growth, the step size, that blocks leave the
support out and are filled up to k, the default of s; and in Hybrid that examples for refitting show k attributes,
and that ridge is fitted to them (the paper runs averaged SGD on the support).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from budgetreg.algorithms.imputation import regressor
from budgetreg.algorithms.learner import (
    UNBOUNDED,
    BudgetSplit,
    PairwiseLearner,
    Rngs,
    Settings,
    SideInformation,
    Trajectory,
)
from budgetreg.common.errors import ConfigError
from budgetreg.common.streams import blocks
from budgetreg.config.options import FLAG, NOTHING, option, whole
from budgetreg.metering.table import Outputs, WithIntercept

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

_FIRST, _GROWTH = 10, 1.5
"""Examples of each block in the first round, B, and the factor by which B grows from round to round."""

_LEAST_ROWS = 2
"""Examples, for each attribute shown, from which on a refit replaces the regressor before."""

# One gradient as printed.


def block_gradient(X: np.ndarray, y: np.ndarray, theta: np.ndarray, blocks: Sequence[np.ndarray], B: int) -> np.ndarray:
    """Return ``g_j = mean(r x_j)``, ``r = x'theta - y``, over the B examples of j's block; of the support, over all.

    Parameters
    ----------
    X, y : ndarray of float, shapes (len(blocks) B, d) and (len(blocks) B,)
        Examples, of which the support of theta and the example's block are seen.
    theta : ndarray of float, shape (d,)
        Its support is where it is not 0.
    blocks : sequence of ndarray of int
        A partition of the other attributes.
    B : int
        Examples of each block.
    """
    support = np.flatnonzero(theta)
    g = np.zeros(len(theta))
    r = X[:, support] @ theta[support] - y
    g[support] = (r[:, None] * X[:, support]).mean(axis=0)
    for b, block in enumerate(blocks):
        rows = slice(b * B, (b + 1) * B)
        g[block] = (r[rows, None] * X[rows][:, block]).mean(axis=0)
    return g


def largest(values: np.ndarray, s: int) -> np.ndarray:
    """Return the places of the s largest absolute values, sorted; of equal ones the first."""
    return np.sort(np.argsort(-np.abs(values), kind="stable")[:s])


class Search:
    """The state of one stream.

    Parameters
    ----------
    d : int
        Number of attributes.
    given : SideInformation
        Whether attributes and targets are centred on the means of what was seen.

    Attributes
    ----------
    support : ndarray of int
        The attributes in use, sorted.
    output : tuple of (ndarray of shape (d,), float)
        The regressor that is shown, and its prediction at 0.
    """

    def __init__(self, d: int, given: SideInformation) -> None:
        self.support, self.output = np.empty(0, dtype=np.intp), (np.zeros(d), 0.0)
        self._d, self._given, self._theta = d, given, np.zeros(d)
        self._sums, self._targets, self._n = np.zeros((3, d)), 0.0, 0
        self._round: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._alike: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, attributes: np.ndarray, values: np.ndarray, y: np.ndarray, *, alike: bool) -> None:
        """Add examples: attributes and values (T, n), targets (T,); whether all show the same, sorted attributes."""
        for row, numbers in zip(self._sums, (np.ones(values.shape), values, values**2), strict=True):
            row += np.bincount(attributes.reshape(-1), numbers.reshape(-1), self._d)
        self._targets, self._n = self._targets + float(y.sum()), self._n + len(y)
        (self._alike if alike else self._round).append((attributes, values, y))

    def blocks(self, rng: np.random.Generator, k: int) -> np.ndarray:
        """Partition the attributes outside the support at random: return what examples of each block show, (n, k).

        The last block is filled up with attributes of the first.
        """
        others = rng.permutation(np.setdiff1d(np.arange(self._d), self.support))
        size = k - self.support.size
        block = np.resize(others, (-(-others.size // size), size))
        return np.hstack([np.broadcast_to(self.support, (len(block), self.support.size)), block])

    def step(self, s: int) -> np.ndarray:
        """End a round: return ``theta - eta g`` for attributes in units of their deviations, whose s largest are kept.

        In these units eta is the inverse of the largest eigenvalue of the support's correlations. With B examples of
        each block it is at most ``B / (4 s log d)``: noise would make the norm of the next regressor grow otherwise.
        With s=0 nothing is kept and eta is as if B were large, for regressors that are refitted.
        """
        S, (mean, unit) = self.support, self._units()
        theta, sums, counts = self._theta * unit, np.zeros(self._d), np.zeros(self._d)
        products, rows = np.zeros((S.size, S.size)), 0
        for attributes, values, y in self._round:
            Z = np.zeros((len(y), self._d))
            np.put_along_axis(Z, attributes, (values - mean[attributes]) / unit[attributes], axis=1)
            r = Z[:, S] @ theta[S] - (y - self._target)
            sums += r @ Z
            counts += np.bincount(attributes.reshape(-1), minlength=self._d)
            products, rows = products + Z[:, S].T @ Z[:, S], rows + len(y)
        self._round.clear()
        eta = 1 / max(np.linalg.eigvalsh(products / rows).max(initial=0), 1.0)
        if s:
            eta *= min(1.0, np.delete(counts, S).mean() / (4 * s * np.log(max(self._d, 2))))
        moved = np.asarray(theta - eta * sums / np.maximum(counts, 1))
        if s:
            self._keep(largest(moved, s), moved / unit)
            self.output = self._theta, self._target - float(mean @ self._theta)
        return moved

    def refit(self, attributes: np.ndarray, s: int) -> None:
        """Fit ridge to all examples that show all these attributes, sorted; s of them become the support."""
        parts = []
        for shown, values, y in self._alike:
            if np.isin(attributes, shown[0]).all():
                parts.append((values[:, np.searchsorted(shown[0], attributes)], y))
        if sum(len(y) for _, y in parts) < _LEAST_ROWS * attributes.size:
            return
        X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
        w, of = np.zeros(self._d), {"centred": self._given.centred, "intercept": self._given.intercept}
        w[attributes], b = regressor(X, y, impute="mean", rescale=False, **of)
        self.output = w, b
        kept = largest(w * self._units()[1], s)
        if attributes.size > s and kept.size == s:
            of_kept = np.searchsorted(attributes, kept)
            w = np.zeros(self._d)
            w[kept], _ = regressor(X[:, of_kept], y, impute="mean", rescale=False, **of)
        self._keep(kept, w)

    @property
    def _target(self) -> float:
        """What is subtracted from targets."""
        return self._targets / max(self._n, 1) * self._given.intercept

    def _units(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what is subtracted from attributes, and what they are then divided by: 1 if unknown or 0."""
        _, sums, squares = self._sums / np.maximum(self._sums[0], 1)
        mean = sums * self._given.centred
        square = squares - mean**2
        return mean, np.sqrt(np.where(square > 1e-12 * squares, square, 1.0))

    def _keep(self, support: np.ndarray, w: np.ndarray) -> None:
        self.support, self._theta = support, np.zeros(self._d)
        self._theta[support] = w[support]


@dataclass(frozen=True)
class SparseExploration(PairwiseLearner):
    """Iterative hard thresholding with exact residuals.

    Attributes
    ----------
    refit : bool
        Whether each step is followed by as many examples that all show the same k attributes, and a refit (Hybrid).
    n_nonzero : int or None
        The number s of attributes in use while others are explored, below k; None: half of k.
    """

    refit: bool = option("whether steps are followed by refits", FLAG, tried=())
    n_nonzero: int | None = option("the number of attributes in use", whole(1) | NOTHING, default=None, tried=(1, 3))

    core = "sparse_exploration"
    continues = True
    centres_itself = True
    scales_itself = True
    check_streams = 100
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": "thresholding hides the gradient; tests enumerate the partitions",
        "second moments": "thresholding hides the gradient",
        "full at k=d": "at most half of the weights differ from 0 while others are explored",
        "boundary": UNBOUNDED,
        "minimiser": "each round leads to a step, none to a minimum",
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Search along all streams, whose rounds are in step; there is one setting, see `Learner.fit`.

        No values have to be scaled: all that is decided, is decided in units of the attributes' deviations.
        """
        d, s, last = accessor.d, self.used(given.k), checkpoints[-1]
        states, (X, y) = [Search(d, given) for _ in rngs], accessor.pilot()
        for state, rows, targets in zip(states, X, y, strict=True):
            if len(rows):
                state.add(np.broadcast_to(np.arange(d), rows.shape), rows, targets, alike=True)

        def shown(attributes: np.ndarray, start: int, shared: bool) -> Iterator[int]:
            """Show attributes (F, n, k) to all streams, by blocks of examples that end at checkpoints."""
            end = min(start + attributes.shape[1], last)
            ends = {end, *(c for c in checkpoints if start < c < end)}
            for begin, stop in blocks(start, end, ends):
                accessor.open(begin, stop)
                part = np.ascontiguousarray(attributes[:, begin - start : stop - start])
                values, y = accessor.reveal_block(part), accessor.targets()
                for state, *seen in zip(states, part, values, y, strict=True):
                    state.add(*seen, alike=shared)
                if stop in ends:
                    yield stop

        def outputs() -> Outputs:
            W = np.stack([state.output[0] for state in states])[:, :, None]
            b = np.array([[state.output[1]] for state in states])
            return WithIntercept(W, b) if given.centred or given.intercept else W

        start, B = 0, float(_FIRST)
        while start < last:
            shown_by_block = np.stack([state.blocks(rng, given.k) for state, rng in zip(states, rngs, strict=True)])
            attributes = np.repeat(shown_by_block, int(B), axis=1)
            B *= _GROWTH
            for stop in shown(attributes, start, shared=False):
                start = stop
                if stop in checkpoints:
                    yield stop, outputs()
            if start == last:
                return
            moved = [state.step(0 if self.refit else s) for state in states]
            if self.refit:
                chosen = np.stack([largest(each, given.k) for each in moved])
                for stop in shown(np.repeat(chosen[:, None], attributes.shape[1], axis=1), start, shared=True):
                    start = stop
                    for state, each in zip(states, chosen, strict=True):
                        state.refit(each, s)
                    if stop in checkpoints:
                        yield stop, outputs()

    def used(self, k: int) -> int:
        """Return the number of attributes in use while others are explored."""
        return self.n_nonzero or max(1, k // 2)

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse a budget that leaves nothing to explore with.

        Raises
        ------
        ConfigError
            If the budget is 1, or not above `n_nonzero`.
        """
        if self.used(k) >= k > 1:
            raise ConfigError(f"algo.n_nonzero={self.n_nonzero}: must be below k={k}, so that others can be explored")
        return super().split_budget(k)

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it learns."""
        turns = ", in turn with k of the largest weights" if self.refit else ""
        solved = "iterative hard thresholding" + (", refitted by ridge" if self.refit else "")
        return f"k attributes per example: those in use, and others{turns}", solved

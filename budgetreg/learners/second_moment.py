"""Learners that estimate ``C = E x x'`` and put out its leading eigenvectors: POPCA and PCA.

Of each example, a sampling design (`budgetreg.designs`) decides which attributes are seen.  The products of those seen,
each divided by the probability of being seen, sum up to unbiased estimates of C; these need not be positive
semidefinite.  A stream's memory is O(d^2): the sum, the estimate, and what its eigenvectors take.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from budgetreg.accessor import Accessor
from budgetreg.designs import Design, Draw, bernoulli, conditional_poisson, uniform_subset, with_replacement
from budgetreg.draws import BLOCK
from budgetreg.subspaces import top
from budgetreg.theory import first_phase

_TOGETHER = 16 * BLOCK
"""Examples whose products are summed at once."""


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    n_components: int,
    update: str,
    replacement: bool = False,
    phase_one: float | None = None,
    mix: float | None = None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Estimate C along all streams of the accessor; return its leading eigenvectors at the checkpoints.

    Parameters
    ----------
    accessor : Accessor
        F streams of examples, one setting, for there is nothing to tune.
    settings : mapping
        Empty.
    checkpoints : sequence of int
        Numbers of examples at which the output is wanted, increasing.
    rngs : sequence of numpy.random.Generator
        One per stream.
    k : int
        Attributes of an example that may be seen, the papers' r, at least 2.
    n_components : int
        Dimension of the subspace, below d.
    update : {'active', 'passive', 'importance', 'zero_filled', 'full'}
        k attributes, all subsets alike; each with probability k/d; k attributes, the larger ones more often; as
        'active', with 0 for what is not seen; all attributes.
    replacement : bool
        Whether 'active' draws with replacement.
    phase_one, mix : float, optional
        For 'importance', see `estimates`.

    Yields
    ------
    checkpoint : int
    V : ndarray of float64, shape (F, 1, d, n_components)
        Orthonormal columns.

    References
    ----------
    A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
    Algorithm 1 and the footnote of Section 3.  'importance' is ours.
    """
    del settings
    moments = estimates(
        accessor, checkpoints, rngs, k=k, update=update, replacement=replacement, phase_one=phase_one, mix=mix
    )
    for checkpoint, C in moments:
        yield checkpoint, np.stack([top(own, n_components) for own in C])[:, None]


def estimates(
    accessor: Accessor,
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    update: str,
    replacement: bool = False,
    phase_one: float | None = None,
    mix: float | None = None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Estimate C along all streams of the accessor.

    With 'importance', the first examples, a share `phase_one` of all, see uniform subsets and estimate the diagonal of
    C; then attributes are drawn in proportion to ``sqrt(C_ii)``, see `working_probabilities`.  What both phases
    estimate is pooled.

    Parameters
    ----------
    accessor, checkpoints, rngs, k, update, replacement
        As for `fit`.
    phase_one : float, optional
        For 'importance', the first phase's share of the examples up to the last checkpoint.
    mix : float, optional
        For 'importance', the share of equal probabilities in the second phase's draws.

    Yields
    ------
    checkpoint : int
    C : ndarray of float64, shape (F, d, d)
        Symmetric; unbiased but for 'zero_filled'.
    """
    d, last = accessor.d, checkpoints[-1]
    if update == "full":
        yield from _means(_rows(accessor, checkpoints))
        return
    if update != "importance":
        design = _design(update, d, k, replacement)
        yield from _means(_sums(accessor, 0, checkpoints, rngs, [design] * len(rngs)))
        return
    assert phase_one is not None and mix is not None
    first = first_phase(phase_one, last)
    early = sorted({*(checkpoint for checkpoint in checkpoints if checkpoint < first), first})
    for checkpoint, sums in _sums(accessor, 0, early, rngs, [uniform_subset(d, k)] * len(rngs)):
        before = sums
        if checkpoint in checkpoints:
            yield checkpoint, sums / checkpoint
    late = [checkpoint for checkpoint in checkpoints if checkpoint > first]
    if late:
        moments = np.diagonal(before, axis1=1, axis2=2)
        designs = [conditional_poisson(working_probabilities(np.sqrt(own), k, mix), k) for own in moments]
        for checkpoint, sums in _sums(accessor, first, late, rngs, designs):
            yield checkpoint, (before + sums) / checkpoint


def working_probabilities(weights: np.ndarray, r: int, mix: float) -> np.ndarray:
    """Share out r draws in proportion to weights, none more than 1, and mix in equal shares.

    Parameters
    ----------
    weights : ndarray of float, shape (d,)
        At least 0.
    r : int
        Sum of the probabilities, at most d.
    mix : float
        Share of ``r/d``, by which attributes of weight 0 are drawn, too.

    Returns
    -------
    ndarray of float, shape (d,)
    """
    capped = np.zeros(len(weights), dtype=bool)
    while True:
        rest = weights[~capped].sum()
        share = (r - np.count_nonzero(capped)) / rest if rest > 0 else 0.0
        p = np.where(capped, 1.0, share * weights)
        if (p <= 1).all():
            return (1 - mix) * p + mix * r / len(weights)
        capped |= p > 1


def _design(update: str, d: int, k: int, replacement: bool) -> Design:
    if update == "passive":
        return bernoulli(d, k)
    if update == "active" and replacement:
        return with_replacement(d, k)
    subset = uniform_subset(d, k)
    # As if what is not seen, and counts as 0, were seen.
    return replace(subset, singles=1.0, pairs=1.0) if update == "zero_filled" else subset


def _sums(
    accessor: Accessor,
    first: int,
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    designs: Sequence[Design],
) -> Iterator[tuple[int, np.ndarray]]:
    """Estimate the sum of ``x x'`` over the examples after the first ones up to each checkpoint, shape (F, d, d)."""
    products = [_Products(accessor.d) for _ in rngs]
    for start in range(first, checkpoints[-1], BLOCK):
        stop = min(start + BLOCK, checkpoints[-1])
        draws = [design.draw(rng) for design, rng in zip(designs, rngs, strict=True)]
        attributes, drawn, repeated = _joined(draws, stop - start)
        accessor.open(start, stop)
        values = accessor.reveal_block(attributes, drawn)
        if repeated is not None:
            values = np.where(repeated, 0.0, values)
        begin = start
        for end in [c for c in checkpoints if start < c < stop] + [stop]:
            part = slice(begin - start, end - start)
            for f, own in enumerate(products):
                own.add(attributes[f, part], values[f, part])
            begin = end
            if end in checkpoints:
                pairs = zip(designs, products, strict=True)
                yield end, np.stack([_weighted(own.total(), design) for design, own in pairs])


def _joined(draws: Sequence[Draw], T: int) -> Draw:
    """Put all streams' draws for T examples, of different widths if their number is random, into arrays (F, T, n)."""
    width = max(draw.attributes.shape[1] for draw in draws)

    def stacked(arrays: Iterable[np.ndarray | None]) -> np.ndarray | None:
        own = [np.pad(array[:T], ((0, 0), (0, width - array.shape[1]))) for array in arrays if array is not None]
        return np.stack(own) if own else None

    attributes, drawn, repeated = (stacked(arrays) for arrays in zip(*draws, strict=True))
    assert attributes is not None
    return Draw(attributes, drawn, repeated)


def _weighted(products: np.ndarray, design: Design) -> np.ndarray:
    result = products / design.pairs
    np.fill_diagonal(result, np.diagonal(products) / design.singles)
    return result


class _Products:
    """The sum of ``x x'`` over examples of which few values are known, and not all of these differ from 0.

    Values are gathered from some examples before their products are formed, each pair of those that are not 0: what a
    stream is left with does not depend on the other streams.
    """

    def __init__(self, d: int) -> None:
        self._total = np.zeros((d, d))
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._waiting = 0

    def add(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Add examples: distinct attributes (T, n) and their values, 0 for those that are not known."""
        present = values != 0
        self._parts.append((attributes[present], values[present], np.count_nonzero(present, axis=1)))
        self._waiting += len(values)
        if self._waiting >= _TOGETHER:
            self._sum()

    def total(self) -> np.ndarray:
        """Return the sum so far, shape (d, d)."""
        self._sum()
        return self._total

    def _sum(self) -> None:
        if not self._parts:
            return
        attributes, values, counts = (np.concatenate(arrays) for arrays in zip(*self._parts, strict=True))
        self._parts, self._waiting = [], 0
        ends = np.concatenate([[0], np.cumsum(counts)])
        X = csr_array((values, attributes, ends), shape=(counts.size, len(self._total)))
        products = (X.T @ X).tocoo()
        self._total[products.row, products.col] += products.data


def _rows(accessor: Accessor, checkpoints: Sequence[int]) -> Iterator[tuple[int, np.ndarray]]:
    """Sum ``x x'`` over the examples up to each checkpoint, shape (F, d, d)."""
    total = np.zeros((accessor.n_streams, accessor.d, accessor.d))
    marks = sorted({*range(0, checkpoints[-1], BLOCK), *checkpoints})
    for start, stop in pairwise(marks):
        X, _ = accessor.rows(start, stop)
        for own, x in zip(total, X, strict=True):
            own += x.T @ x
        if stop in checkpoints:
            yield stop, total.copy()


def _means(sums: Iterable[tuple[int, np.ndarray]]) -> Iterator[tuple[int, np.ndarray]]:
    for checkpoint, total in sums:
        yield checkpoint, total / checkpoint

"""Sums of ``x x'``, estimated from products of what is seen, each divided by the probability that it is seen.

Where values are missing, that is the probability to be drawn times the share of examples that have both attributes.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from scipy.linalg.blas import dsyrk

from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.designs import Design, Draw
from budgetreg.sampling.draws import BLOCK

_TOGETHER = 8192
"""Values whose products are formed at once: enough to keep the calls cheap, too few to leave the cache."""
_DEAR = 256
"""By how much a product of two values alone costs more than one within a product of matrices, zeros and all."""


def sums(
    accessor: Accessor,
    first: int,
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    designs: Sequence[Design],
) -> Iterator[tuple[int, np.ndarray]]:
    """Estimate the sum of ``x x'`` over the examples after the first ones up to each checkpoint, shape (F, d, d)."""
    products = [_Products(accessor.d) for _ in rngs]
    d = accessor.d
    shares = [
        1.0 if accessor.complete else accessor.together(*np.ogrid[f : f + 1, :d, :d])[0] for f in range(len(rngs))
    ]
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
                each = zip(products, designs, shares, strict=True)
                yield end, np.stack([own.total() / (design.probability * share) for own, design, share in each])


def _joined(draws: Sequence[Draw], T: int) -> Draw:
    """Put all streams' draws for T examples, of different widths if their number is random, into arrays (F, T, n)."""
    width = max(draw.attributes.shape[1] for draw in draws)

    def stacked(arrays: Iterable[np.ndarray | None]) -> np.ndarray | None:
        own = [np.pad(array[:T], ((0, 0), (0, width - array.shape[1]))) for array in arrays if array is not None]
        return np.stack(own) if own else None

    attributes, drawn, repeated = (stacked(arrays) for arrays in zip(*draws, strict=True))
    assert attributes is not None
    return Draw(attributes, drawn, repeated)


class _Products:
    """The sum of ``x x'`` over examples of which few values are known, and not all of these differ from 0."""

    def __init__(self, d: int) -> None:
        self._once = np.zeros((d, d))  # each pair in one of its two places, the diagonal in its own
        self._flat = self._once.reshape(-1)
        self._waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Add examples: distinct attributes (T, n) and their values, 0 for those that are not known."""
        present = np.flatnonzero(values != 0)
        counts = np.bincount(present // values.shape[1], minlength=len(values))
        self._waiting.append((counts, attributes.take(present), values.take(present)))
        if sum(i.size for _, i, _ in self._waiting) >= _TOGETHER:
            self._multiply()

    def total(self) -> np.ndarray:
        """Return the sum so far, shape (d, d)."""
        if self._waiting:
            self._multiply()
        total = self._once + self._once.T
        np.fill_diagonal(total, self._flat[:: len(total) + 1])
        return total

    def _multiply(self) -> None:
        counts, i, x = (np.concatenate(arrays) for arrays in zip(*self._waiting, strict=True))
        self._waiting = []
        d, ends = len(self._once), np.cumsum(counts)
        later = np.repeat(ends, counts) - np.arange(1, i.size + 1)  # values of the same example that follow
        if later.sum() * _DEAR > counts.size * d**2:
            X = np.zeros((counts.size, d))
            X[np.repeat(np.arange(counts.size), counts), i] = x
            dsyrk(1.0, X.T, beta=1.0, c=self._once.T, overwrite_c=True)  # in place, one triangle only
            return
        first = np.repeat(np.arange(i.size), later)
        second = np.arange(1, first.size + 1) + np.repeat(np.arange(i.size) - np.cumsum(later) + later, later)
        np.add.at(self._flat, i.take(first) * d + i.take(second), x.take(first) * x.take(second))
        np.add.at(self._flat, i * (d + 1), x * x)


def full_sums(accessor: Accessor, checkpoints: Sequence[int]) -> Iterator[tuple[int, np.ndarray]]:
    """Sum ``x x'`` over the examples up to each checkpoint, shape (F, d, d)."""
    total = np.zeros((accessor.n_streams, accessor.d, accessor.d))
    marks = sorted({*range(0, checkpoints[-1], BLOCK), *checkpoints})
    for start, stop in pairwise(marks):
        X, _ = accessor.rows(start, stop)
        for own, x in zip(total, X, strict=True):
            own += x.T @ x
        if stop in checkpoints:
            yield stop, total.copy()

"""Draws before any value is seen: attributes for the data point, uniforms for the inner product.

Draws come in fixed blocks of `BLOCK` examples per stream, whatever the checkpoints or the batch, so that the numbers of
a stream never depend on the batching.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

BLOCK = 256


def blocks(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the stop of each block of `BLOCK` examples from the first to the last."""
    return ((start, min(start + BLOCK, last)) for start in range(first, last, BLOCK))


DataPointSampler = Callable[[np.random.Generator, int, int], np.ndarray]


def uniform(rng: np.random.Generator, d: int, k_x: int) -> np.ndarray:
    """Draw attributes i.i.d. from the uniform distribution, shape (BLOCK, k_x) (AERR and AELR)."""
    return rng.integers(0, d, size=(BLOCK, k_x))


def subset(rng: np.random.Generator, d: int, k_x: int) -> np.ndarray:
    """Draw uniform subsets without replacement, shape (BLOCK, k_x) (AER)."""
    return np.ascontiguousarray(subset_by_position(rng, d, k_x).T)


def subset_by_position(rng: np.random.Generator, d: int, k: int) -> np.ndarray:
    """Draw uniform subsets without replacement, shape (k, BLOCK), by Floyd's algorithm.

    Bentley & Floyd, "A sample of brilliance", 1987: O(k) steps per example, with a flag for each attribute.
    """
    flags = np.zeros(BLOCK * d, dtype=bool)
    example = np.arange(BLOCK) * d
    chosen = np.empty((k, BLOCK), dtype=np.int64)
    for position, last in enumerate(range(d - k, d)):
        candidate = rng.integers(0, last + 1, size=BLOCK)
        chosen[position] = np.where(flags.take(example + candidate), last, candidate)
        flags[example + chosen[position]] = True
    return chosen


class Proportional:
    """Draw attributes i.i.d. in proportion to weights, shape (BLOCK, k_x) (DDAERR and DDAELR).

    Parameters
    ----------
    weights : ndarray of float, shape (d,)
        At least 0, and not all 0.
    """

    def __init__(self, weights: np.ndarray) -> None:
        self.q = weights / weights.sum()
        self._below = np.cumsum(self.q)
        self._last = int(np.flatnonzero(self.q)[-1])

    def __call__(self, rng: np.random.Generator, d: int, k_x: int) -> np.ndarray:
        """Draw by inverting the distribution function; ``side="right"`` skips attributes of weight 0."""
        u = rng.random((BLOCK, k_x)) * self._below[-1]
        return np.minimum(np.searchsorted(self._below, u, side="right"), self._last)


DATA_POINT_SAMPLERS: Mapping[str, DataPointSampler] = {"uniform": uniform, "subset": subset}
"""The samplers with ``q = 1/d``, by name."""


def next_block(
    rngs: Sequence[np.random.Generator], samplers: Sequence[DataPointSampler], d: int, k_x: int, k_ip: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the next block of every stream.

    Parameters
    ----------
    rngs : sequence of numpy.random.Generator
        One per stream.
    samplers : sequence of callable
        The sampler of the data point's attributes, for each stream.
    d, k_x, k_ip : int
        Attributes, draws for the data point, draws for the inner product.

    Returns
    -------
    attributes : ndarray of int, shape (F, BLOCK, k_x)
        Attributes drawn for the data point.
    uniforms : ndarray of float, shape (F, BLOCK, k_ip)
        Numbers in [0, 1), later turned into attributes by each replica's own distribution.
    """
    blocks = [(sampler(rng, d, k_x), rng.random((BLOCK, k_ip))) for rng, sampler in zip(rngs, samplers, strict=True)]
    attributes, uniforms = zip(*blocks, strict=True)
    return np.stack(attributes), np.stack(uniforms)

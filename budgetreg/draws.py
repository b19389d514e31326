"""What a learner draws before it sees anything: attributes for the data point, uniforms for the inner product.

Draws come in fixed blocks of `BLOCK` examples per stream, whatever the checkpoints or the batch, so that a stream's
numbers never depend on how its work was cut.
"""

from collections.abc import Callable, Mapping

import numpy as np

BLOCK = 256

DataPointSampler = Callable[[np.random.Generator, int, int], np.ndarray]


def uniform(rng: np.random.Generator, d: int, k_x: int) -> np.ndarray:
    """Draw attributes i.i.d. from the uniform distribution, shape (BLOCK, k_x) (AERR and AELR)."""
    return rng.integers(0, d, size=(BLOCK, k_x))


def subset(rng: np.random.Generator, d: int, k_x: int) -> np.ndarray:
    """Draw uniform subsets without replacement, shape (BLOCK, k_x) (AER), by Floyd's algorithm.

    Bentley & Floyd, "A sample of brilliance", 1987: O(k_x^2) per example, whatever d is.
    """
    chosen = np.empty((BLOCK, k_x), dtype=np.int64)
    for position, last in enumerate(range(d - k_x, d)):
        candidate = rng.integers(0, last + 1, size=BLOCK)
        repeated = (chosen[:, :position] == candidate[:, None]).any(axis=1)
        chosen[:, position] = np.where(repeated, last, candidate)
    return chosen


DATA_POINT_SAMPLERS: Mapping[str, DataPointSampler] = {"uniform": uniform, "subset": subset}


def next_block(
    rngs: list[np.random.Generator], sampler: DataPointSampler, d: int, k_x: int, k_ip: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the next block of every stream.

    Parameters
    ----------
    rngs : list of numpy.random.Generator
        One per stream.
    sampler : callable
        How the data point's attributes are drawn, see `DATA_POINT_SAMPLERS`.
    d, k_x, k_ip : int
        Attributes, draws for the data point, draws for the inner product.

    Returns
    -------
    attributes : ndarray of int, shape (F, BLOCK, k_x)
        Attributes drawn for the data point.
    uniforms : ndarray of float, shape (F, BLOCK, k_ip)
        Numbers in [0, 1), later turned into attributes by each replica's own distribution.
    """
    blocks = [(sampler(rng, d, k_x), rng.random((BLOCK, k_ip))) for rng in rngs]
    attributes, uniforms = zip(*blocks, strict=True)
    return np.stack(attributes), np.stack(uniforms)

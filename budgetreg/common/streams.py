"""Random streams keyed by what they are for, never by their position in a batch or a queue.

Splits, folds and the order of the examples are keyed by seed, data set and repetition; a learner's draws also by the
learner, the budget and the stage. Adding a repetition, a learner or a worker therefore changes no other number.

Attributes are drawn for fixed blocks of `BLOCK` examples per stream, before any value is seen, so that the numbers of a
stream never depend on the batching.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

Identity = str | int | float


def generator(*identity: Identity) -> np.random.Generator:
    """Return the random generator that belongs to an identity.

    Parameters
    ----------
    *identity : str, int or float
        What the stream is for, such as ``"order", seed, dataset, repetition``.

    Returns
    -------
    numpy.random.Generator
        The same stream for the same identity, an independent one for any other.
    """
    digest = hashlib.blake2b(json.dumps(identity).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64DXSM(int.from_bytes(digest, "little")))


BLOCK = 256
"""Examples of a stream for which attributes are drawn at a time, whatever the checkpoints or the batch."""


def blocks(first: int, last: int, ends: Iterable[int] = ()) -> Iterator[tuple[int, int]]:
    """Yield the start and the stop of each block of `BLOCK` examples from the first to the last, cut at some ends."""
    return pairwise(sorted({*range(first, last, BLOCK), *ends, last}))


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

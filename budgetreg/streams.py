"""Random streams keyed by what they are for, never by their position in a batch or a queue.

Splits, folds and the order of the examples are keyed by seed, data set and repetition; a learner's draws also by the
learner, the budget and the stage. Adding a repetition, a learner or a worker therefore changes no other number.
"""

import hashlib
import json

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

"""Streaming PCA: Oja, GROUSE and PETRELS, whose subspace moves with every example.

A uniform subset S of r attributes is seen of each example. Notation: the papers' rank k is n here (``n_components``); V
is the subspace as columns (d, n), and V_S are its rows at S. All F x G replicas take each step together; a replica's
result does not depend on the others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.draws import blocks, subset
from budgetreg.updates.streaming_subspaces import Grouse, Oja, Petrels


class SubspaceUpdate(Protocol):
    """State of all replicas of an update rule."""

    def step(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Update by one example of each stream: S as rows of the state (F, G, r), the values x_S (F, 1, r, 1)."""

    def subspace(self) -> np.ndarray:
        """Return orthonormal columns, shape (F, G, d, n)."""


UPDATES: Mapping[str, Callable[..., SubspaceUpdate]] = {"oja": Oja, "grouse": Grouse, "petrels": Petrels}


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    n_components: int,
    update: str,
) -> Iterator[tuple[int, np.ndarray]]:
    """Run all settings along all streams of the accessor, one pass, each stream from a uniformly random subspace.

    Memory is O(d n) per replica, and O(d n^2) for PETRELS.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Learner.fit`; the setting is the update's, ``eta`` or ``forgetting``.
    k : int
        Attributes r that may be seen of each example: at least 2, and more than n for GROUSE and PETRELS.
    n_components : int
        Dimension n of the subspace.
    update : {'oja', 'grouse', 'petrels'}
        The update rule.

    Yields
    ------
    checkpoint : int
    V : ndarray of float, shape (F, G, d, n)
        The subspaces, as orthonormal columns.
    """
    F, G, d = accessor.n_streams, accessor.n_settings, accessor.d
    initial = np.stack([np.linalg.qr(rng.normal(size=(d, n_components)))[0] for rng in rngs])
    state = UPDATES[update](np.repeat(initial[:, None], G, axis=1), k, settings)
    first_row = d * np.arange(F * G).reshape(F, G, 1)
    for start, stop in blocks(0, checkpoints[-1]):
        attributes = np.stack([subset(rng, d, k) for rng in rngs])[:, : stop - start]
        accessor.open(start, stop)
        x = accessor.reveal_block(attributes)
        for position in range(stop - start):
            state.step(first_row + attributes[:, None, position], x[:, None, position, :, None])
            if start + position + 1 in checkpoints:
                yield start + position + 1, state.subspace()

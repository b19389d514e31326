"""How often each attribute was revealed to each replica: the bill itemised, from which any price list makes money.

Numbers of reveals are whole: what they cost in the end depends neither on the order nor on the company of replicas.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


class Reveals:
    """Counts of F streams of G settings, apart for the examples between one checkpoint and the next.

    Parameters
    ----------
    n_streams, n_settings, d : int
        F, G and the number of attributes.
    checkpoints : sequence of int
        Numbers of examples, increasing.
    """

    def __init__(self, n_streams: int, n_settings: int, d: int, checkpoints: Sequence[int]) -> None:
        self._ends = np.asarray(checkpoints, dtype=np.intp)
        self._shape = (len(self._ends) + 1, n_streams, n_settings, d)
        self._shared = np.zeros((len(self._ends) + 1, n_streams, d), dtype=np.int64)
        self._own: np.ndarray | None = None

    def open(self, start: int, stop: int) -> None:
        """Make examples ``start <= t < stop`` the current block."""
        self._part = np.searchsorted(self._ends, np.arange(start, stop), side="right")

    def note_rows(self) -> None:
        """Count a full row of every example of the block, for all settings."""
        np.add.at(self._shared, self._part, 1)

    def note_block(self, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Count what all settings are shown of the block: attributes (F, T, n), and which of them are drawn."""
        F = len(attributes)
        places = np.broadcast_arrays(self._part[:, None], np.arange(F)[:, None, None], attributes)
        np.add.at(self._shared, tuple(place if drawn is None else place[drawn] for place in places), 1)

    def note(self, position: np.ndarray, attributes: np.ndarray, drawn: np.ndarray) -> None:
        """Count what each replica is shown of one example per stream.

        Parameters
        ----------
        position : ndarray of int, shape (F,)
            The example, as a position in the current block.
        attributes : ndarray of int, shape (F, G, n)
        drawn : ndarray of bool, shape (F, G, n)
            Which of them are drawn.
        """
        if self._own is None:  # learners that show all settings the same need none
            self._own = np.zeros(self._shape, dtype=np.int32)
        _, F, G, _ = self._shape
        places = (self._part[position][:, None, None], np.arange(F)[:, None, None], np.arange(G)[:, None], attributes)
        np.add.at(self._own, tuple(place[drawn] for place in np.broadcast_arrays(*places)), 1)

    def until(self, checkpoint: int) -> np.ndarray:
        """Return the counts up to a checkpoint, shape (F, G, d)."""
        return self._sum(int(np.searchsorted(self._ends, checkpoint)) + 1)

    def total(self) -> np.ndarray:
        """Return the counts of the whole pass, shape (F, G, d)."""
        return self._sum(len(self._ends) + 1)

    def _sum(self, parts: int) -> np.ndarray:
        _, F, G, d = self._shape
        total = np.broadcast_to(self._shared[:parts].sum(axis=0)[:, None], (F, G, d))
        return total if self._own is None else total + self._own[:parts].sum(axis=0, dtype=np.int64)


@dataclass(frozen=True)
class Bill:
    """What the replicas of a pass paid, in attributes.

    Attributes
    ----------
    at : dict of int to ndarray of shape (F, G)
        Attributes charged up to each checkpoint (a number of examples).
    total : ndarray of shape (F, G)
        Attributes charged over the whole pass.
    most : ndarray of shape (F, G)
        The most attributes charged for any one example.
    reveals : Reveals or None
        Which attributes these were, if that was asked for.
    """

    at: dict[int, np.ndarray]
    total: np.ndarray
    most: np.ndarray
    reveals: Reveals | None = None

"""Which coordinates of each stream were ever touched: all others are 0, and no sweep over the state needs them."""

import numpy as np

from budgetreg.sampling.rounds import Touched
from budgetreg.sampling.segment_trees import Layout


class AttributesShown:
    """The rows of state arrays, (F * padded, G), that are touched so far.

    Parameters
    ----------
    n_streams : int
        F.
    layout : Layout
        Which says how many rows a stream has.
    """

    def __init__(self, n_streams: int, layout: Layout) -> None:
        self._d, self._touched = layout.d, np.zeros((n_streams, layout.padded), dtype=bool)

    def note(self, points: Touched) -> None:
        """Add the coordinates of a block."""
        self._touched[points.stream, points.attribute] = True

    def note_all(self) -> None:
        """Add all coordinates."""
        self._touched[:, : self._d] = True

    def rows(self, stream: int) -> np.ndarray:
        """Return the rows of a stream, ascending."""
        return np.flatnonzero(self._touched[stream]) + stream * self._touched.shape[1]

    def by_stream(self, replicas: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """Return for each stream that has any of the replicas, (F, G) of bool: stream, its rows, their settings."""
        streams = np.flatnonzero(replicas.any(axis=1)).tolist()
        return [(f, self.rows(f), np.flatnonzero(replicas[f])) for f in streams]

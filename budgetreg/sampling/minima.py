"""The least of each replica's keys, and where it is, as keys change."""

import numpy as np

from budgetreg.sampling.segment_trees import Layout, SegmentTrees


class Minima(SegmentTrees):
    """Least keys, all infinite at first, in one tree for each of F x G replicas; the parameters are `SegmentTrees`'."""

    def __init__(self, n_streams: int, n_settings: int, layout: Layout) -> None:
        super().__init__(n_streams, n_settings, layout, np.inf)

    @property
    def least(self) -> np.ndarray:
        """Least key of each replica, shape (F, G)."""
        return self._values[-1]

    def reaching(
        self, stream: np.ndarray, setting: np.ndarray, bound: np.ndarray
    ) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Find the nodes below which K replicas (stream, setting) have a key of at most `bound` (K,), which all do.

        Returns
        -------
        replicas, nodes : tuple of ndarray of int
            Level by level from 1, the last being the replicas themselves: which of the K, and the node.
        """
        replicas, nodes = [np.arange(stream.size)], [stream]
        for level in range(self.layout.levels + 1, 1, -1):
            children, below = self.layout.below(level, nodes[0]), self._values[level - 2]
            keys = below.reshape(-1).take(children * below.shape[1] + setting[replicas[0]])
            child, at = np.nonzero(keys <= bound[replicas[0]])
            nodes.insert(0, children[child, at])
            replicas.insert(0, replicas[0][at])
        return tuple(replicas), tuple(nodes)

    def _combine(self, level: int, where: np.ndarray, block: np.ndarray, settings: object) -> np.ndarray:
        return block.min(axis=0)

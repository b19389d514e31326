"""The least of each replica's keys, and where it is, as keys change: trees of minima in the shape of the sampler's."""

from collections.abc import Sequence

import numpy as np

from budgetreg.sampling.prefix_sums import FAN, Layout, laid


class LeastTrees:
    """One tree for each of F x G replicas; all keys are infinite at first.

    Parameters
    ----------
    n_streams, n_settings : int
        F and G.
    layout : Layout
        The shape of the trees.
    """

    def __init__(self, n_streams: int, n_settings: int, layout: Layout) -> None:
        self.layout = layout
        nodes = [n_streams * layout.padded // FAN**level for level in range(1, layout.levels + 1)]
        self._least = [np.full((n, n_settings), np.inf) for n in (*nodes, n_streams)]

    @property
    def least(self) -> np.ndarray:
        """Least key of each replica, shape (F, G)."""
        return self._least[-1]

    def update(
        self,
        leaves: np.ndarray,
        nodes: Sequence[np.ndarray],
        streams: np.ndarray,
        settings: Sequence[np.ndarray] | None = None,
    ) -> None:
        """Make the nodes above changed keys anew; the arguments are those of `Layout.ascend`."""
        for level, where, block in self.layout.ascend(leaves, self._least, nodes, streams, settings):
            laid(self._least[level - 1], settings)[where] = block.min(axis=0)

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
            children, below = self.layout.below(level, nodes[0]), self._least[level - 2]
            keys = below.reshape(-1).take(children * below.shape[1] + setting[replicas[0]])
            child, at = np.nonzero(keys <= bound[replicas[0]])
            nodes.insert(0, children[child, at])
            replicas.insert(0, replicas[0][at])
        return tuple(replicas), tuple(nodes)

"""Prefix sums of weights, of which a few change per step, and draws of attributes proportional to the weights.

Each node of a segment tree holds the sums of its children's weights before each child, so that a draw, by inverse
transform, takes a few comparisons per level, one cache line each: O(log d).
"""

from collections.abc import Callable

import numpy as np

from budgetreg.sampling.segment_trees import FAN, Layout, SegmentTrees, flattened


class PrefixSums(SegmentTrees):
    """Sums of weights, all 0 at first, for each of F x G replicas; parameters as for `SegmentTrees`."""

    def __init__(self, n_streams: int, n_settings: int, layout: Layout, dtype: type = float) -> None:
        super().__init__(n_streams, n_settings, layout, 0.0, dtype)
        self._before = [
            np.zeros((width, *sums.shape), dtype) for width, sums in zip(layout.widths, self._values, strict=True)
        ]

    @property
    def total(self) -> np.ndarray:
        """Sum of all weights of each replica, shape (F, G)."""
        return self._values[-1]

    @property
    def root(self) -> np.ndarray:
        """Sums before each child of the roots, shape (W, F, G)."""
        return self._before[-1]

    def before(self, level: int, position: np.ndarray) -> np.ndarray:
        """Return the sums before each child, shape (n, K), of nodes at positions ``node * G + setting`` of a level."""
        sums = self._before[level - 1]
        return sums.reshape(len(sums), -1).take(position, axis=1)

    def _combine(self, level: int, where: np.ndarray, block: np.ndarray, settings: object) -> np.ndarray:
        for child in range(1, len(block)):
            block[child] += block[child - 1]
        flattened(self._before[level - 1], settings)[1:, where] = block[:-1]
        return block[-1]


class Inverter:
    """Turns uniforms into attributes by inverting each replica's distribution function.

    Parameters
    ----------
    n_streams, n_settings : int
        F and G.
    layout : Layout
        The shape of the trees.
    n_draws : int
        Draws n per replica.
    """

    def __init__(self, n_streams: int, n_settings: int, layout: Layout, n_draws: int) -> None:
        self._layout, self._n_settings = layout, n_settings
        self._shape = n_draws, n_streams, n_settings
        stream, setting = np.arange(n_streams)[:, None], np.arange(n_settings)
        # Arrays are flat, as the overhead of three axes in numpy exceeds the arithmetic of a small batch.
        *self._corner, self._replica = (
            np.tile((stream * (size * n_settings) + setting).ravel(), n_draws) for size in layout.sizes
        )
        self._draw = np.arange(self._corner[0].size)

    def __call__(
        self, target: np.ndarray, root: np.ndarray, before: Callable[[int, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Find the first leaves whose cumulative weights exceed the targets.

        Parameters
        ----------
        target : ndarray of float, shape (n, F, G)
            Uniforms times the total weight; overwritten.
        root : ndarray of float, shape (W, F, G)
            As `PrefixSums.root`.
        before : callable
            As `PrefixSums.before`.

        Returns
        -------
        ndarray of int, shape (n, F, G)
            Attributes. One of weight 0 occurs only by round-off at the edge of a node, or where all weights are 0.
        """
        node = _count(root[1:, None] <= target).reshape(-1)
        target = target.reshape(-1)
        target -= root.reshape(-1).take(node * root[0].size + self._replica)
        for level in range(self._layout.levels, 0, -1):
            sums = before(level, node * self._n_settings + self._corner[level])
            child = _count(sums[1:] <= target)
            target -= sums.reshape(-1).take(child * target.size + self._draw)
            node = node * FAN + child
        return np.minimum(node, self._layout.d - 1).reshape(self._shape)

    def values(self, state: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        """Return the entries of a state array, (F * padded, G), at each replica's attributes, (n, F, G)."""
        where = attributes.reshape(-1) * self._n_settings + self._corner[0]
        return state.reshape(-1).take(where).reshape(self._shape)


def _count(below: np.ndarray) -> np.ndarray:
    """Count along the first axis, at most 255; in the narrowest integers, as the draws spend most time here."""
    count: np.ndarray = np.add.reduce(below.view(np.uint8), axis=0, dtype=np.uint8)
    return count.astype(np.intp)

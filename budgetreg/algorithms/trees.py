"""Segment trees: sums or minima of the leaves below each node, updated while a few leaves change per step.

The attributes of a replica are the leaves of a tree of fan-out 8 below a root of at most 32 children. A changed leaf
changes one node per level: O(log d). A node is always the same function of the leaves below it, so that its value
neither drifts nor depends on the history of the leaves.

For sums of weights, each node also holds the sums of its children's weights before each child. A draw of an attribute
in proportion to the weights, by inverse transform, thus takes a few comparisons per level, one cache line each.
"""

from collections.abc import Callable, Sequence

import numpy as np

FAN = 8
"""Children of a node other than the root."""
MOST_AT_ROOT = 32
"""Largest number of children of the root."""

Levels = Sequence[np.ndarray]
"""Integers for each level of the trees from 1."""


class Layout:
    """The shape of the trees over d attributes, and of the state arrays from which their leaves are computed.

    Parameters
    ----------
    d : int
        Number of attributes.

    Attributes
    ----------
    levels : int
        Levels of nodes below the root: level 1 holds the nodes above the attributes.
    widths : tuple of int
        Children of a node of each level from 1, the root's last.
    sizes : tuple of int
        Nodes of a tree at each level from 0, which holds the leaves, to the root's.
    padded : int
        Number of leaves, at least d. State arrays have as many rows per stream, so that row ``r`` of all streams lies
        below node ``r // FAN**level``.
    """

    def __init__(self, d: int) -> None:
        self.d, self.levels, at_root = d, 0, d
        while at_root > MOST_AT_ROOT:
            at_root = -(-at_root // FAN)
            self.levels += 1
        self.widths = (*[FAN] * self.levels, at_root)
        self.sizes = (*(at_root * FAN**level for level in range(self.levels, -1, -1)), 1)
        self.padded = self.sizes[0]

    def pad(self, values: np.ndarray) -> np.ndarray:
        """Return values of all attributes, (F, d, G), as a new state array, (F * padded, G)."""
        F, d, G = values.shape
        state = np.zeros((F, self.padded, G), values.dtype)
        state[:, :d] = values
        return state.reshape(-1, G)

    def unpad(self, state: np.ndarray) -> np.ndarray:
        """Return the rows of attributes in a state array, (F * padded, G), as a view, (F, d, G)."""
        return state.reshape(-1, self.padded, state.shape[1])[:, : self.d]

    def nodes(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the nodes above sorted rows, level by level from 1, without repetition."""
        above = []
        for _ in range(self.levels):
            rows = rows // FAN
            rows = rows[np.flatnonzero(np.diff(rows, prepend=-1))]
            above.append(rows)
        return tuple(above)

    def below(self, level: int, nodes: np.ndarray) -> np.ndarray:
        """Return the children, shape (n, K), of K nodes of a level, the roots' level being ``levels + 1``."""
        width = self.widths[level - 1]
        return nodes * width + np.arange(width)[:, None]

    def leaves(self, nodes: Levels, streams: np.ndarray) -> np.ndarray:
        """Return the rows of state arrays, (n, K), below nodes of level 1, or below roots if there is no such level."""
        return self.below(1, (*nodes, streams)[0])


class SegmentTrees:
    """One tree for each of F x G replicas; a subclass combines the values of children to that of their parent.

    Parameters
    ----------
    n_streams, n_settings : int
        F and G.
    layout : Layout
        The shape of the trees.
    empty : float
        Initial value of all nodes.
    dtype : type
        Of the values.
    """

    def __init__(self, n_streams: int, n_settings: int, layout: Layout, empty: float, dtype: type = float) -> None:
        self.layout = layout
        # For each level from 1, the root's last: the nodes of all streams, and their settings.
        self._values = [np.full((n_streams * size, n_settings), empty, dtype) for size in layout.sizes[1:]]

    def update(self, leaves: np.ndarray, nodes: Levels, streams: np.ndarray, settings: Levels | None = None) -> None:
        """Recompute the nodes above changed leaves.

        Parameters
        ----------
        leaves : ndarray, shape (n, K, G)
            Values of the leaves at the rows `Layout.leaves`; may be overwritten.
        nodes : sequence of ndarray of int
            Changed nodes of each level, see `Layout.nodes`.
        streams : ndarray of int
            Changed streams.
        settings : sequence of ndarray of int, optional
            For each level, the root's last, one setting for each of the nodes instead of all; then `leaves` has shape
            (n, K).
        """
        block, n_settings = leaves, self._values[0].shape[1]
        for level, changed in enumerate((*nodes, streams), start=1):
            if level > 1:
                children = self.layout.below(level, changed)
                where = children if settings is None else children * n_settings + settings[level - 1]
                block = _flattened(self._values[level - 2], settings).take(where, axis=0)
            where = changed if settings is None else changed * n_settings + settings[level - 1]
            _flattened(self._values[level - 1], settings)[where] = self._combine(level, where, block, settings)

    def _combine(self, level: int, where: np.ndarray, block: np.ndarray, settings: object) -> np.ndarray:
        """Return the values of parents.

        Parameters
        ----------
        level : int
            Level of the parents, from 1.
        where : ndarray of int, shape (K,)
            The parents, as rows of the array of their level or, if there are settings, as positions in its
            flattened form (see `_flattened`).
        block : ndarray, shape (n, K, G) or (n, K)
            Values of their children; may be overwritten.
        settings : object
            None if there are no settings.

        Returns
        -------
        ndarray, shape (K, G) or (K,)
        """
        raise NotImplementedError


def _flattened(values: np.ndarray, settings: object) -> np.ndarray:
    """Return an array (..., nodes, G) as it is, or with its last two axes flattened if there are settings."""
    return values if settings is None else values.reshape(*values.shape[:-2], -1)


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
        _flattened(self._before[level - 1], settings)[1:, where] = block[:-1]
        return block[-1]


class Minima(SegmentTrees):
    """Minima of keys, all infinite at first, for each of F x G replicas; parameters as for `SegmentTrees`."""

    def __init__(self, n_streams: int, n_settings: int, layout: Layout) -> None:
        super().__init__(n_streams, n_settings, layout, np.inf)

    @property
    def least(self) -> np.ndarray:
        """Smallest key of each replica, shape (F, G)."""
        return self._values[-1]

    def reaching(
        self, stream: np.ndarray, setting: np.ndarray, bound: np.ndarray
    ) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Find the nodes above keys of at most `bound` (K,) of K replicas (stream, setting), which all have such keys.

        Returns
        -------
        replicas, nodes : tuple of ndarray of int
            For each level from 1, with the replicas themselves last: the index among the K, and the node.
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

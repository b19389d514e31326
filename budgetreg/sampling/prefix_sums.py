"""Sampling of attributes in proportion to weights that change by a few coordinates per step: trees of prefix sums.

The attributes of a replica are the leaves of a tree of fan-out 8 below a root of at most 32 children.  Each node holds
the sums of its children's weights before each child, so that a draw is a handful of comparisons per level, one cache
line each, and a changed weight makes one node per level anew: O(log d) both.  A node is always the same function of the
weights below it: nothing drifts, and no bit depends on how a weight came about.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

FAN = 8
"""Children of a node; MOST_AT_ROOT may be a root's."""
MOST_AT_ROOT = 32


class Layout:
    """The shape of the trees over d attributes.

    Parameters
    ----------
    d : int
        Number of attributes.

    Attributes
    ----------
    levels : int
        Levels of nodes below the root: level 1 holds the nodes above the attributes.
    root : int
        Children of the root.
    padded : int
        Leaves, ``root * FAN**levels``, at least d.  State arrays have as many rows per stream, so that row ``r`` of all
        streams lies below node ``r // FAN**level``.
    """

    def __init__(self, d: int) -> None:
        self.d, self.levels, self.root = d, 0, d
        while self.root > MOST_AT_ROOT:
            self.root = -(-self.root // FAN)
            self.levels += 1
        self.padded = self.root * FAN**self.levels

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
        width = self.root if level > self.levels else FAN
        return nodes * width + np.arange(width)[:, None]

    def leaves(self, nodes: Sequence[np.ndarray], streams: np.ndarray) -> np.ndarray:
        """Return the rows of state arrays, (n, K), below nodes of level 1, or below roots if there is no such level."""
        return self.below(1, (*nodes, streams)[0])

    def ascend(
        self,
        block: np.ndarray,
        values: Sequence[np.ndarray],
        nodes: Sequence[np.ndarray],
        streams: np.ndarray,
        settings: Sequence[np.ndarray] | None = None,
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Go from changed leaves up to the roots.

        Parameters
        ----------
        block : ndarray, shape (n, K, G)
            What there is at the rows `leaves`.
        values : sequence of ndarray, (nodes, G) each
            Values of the nodes of each level, the root's last.
        nodes : sequence of ndarray of int
            Changed nodes of each level, see `nodes`.
        streams : ndarray of int
            Changed streams.
        settings : sequence of ndarray of int, optional
            For each level, the root's last, one setting for each of the nodes instead of all; then `block` has shape
            (n, K).

        Yields
        ------
        level : int
            From 1, which is the level above the leaves.
        where : ndarray of int
            The changed nodes, as rows of ``values[level - 1]`` or, if there are settings, as places in it laid flat
            (see `laid`); the caller sets their values before it asks for more.
        block : ndarray, shape (n, K, G) or (n, K)
            Values of their children.
        """
        for level, changed in enumerate((*nodes, streams), start=1):
            if level > 1:
                below, children = values[level - 2], self.below(level, changed)
                where = children if settings is None else children * below.shape[1] + settings[level - 1]
                block = laid(below, settings).take(where, axis=0)
            yield level, changed if settings is None else changed * values[0].shape[1] + settings[level - 1], block


def laid(values: np.ndarray, settings: object) -> np.ndarray:
    """Return an array (..., nodes, G) as it is, or with its last axes laid flat if there are settings."""
    return values if settings is None else values.reshape(*values.shape[:-2], -1)


class PrefixTrees:
    """One tree for each of F x G replicas.

    Parameters
    ----------
    n_streams, n_settings : int
        F and G.
    layout : Layout
        The shape of the trees.

    """

    def __init__(self, n_streams: int, n_settings: int, layout: Layout, dtype: type = float) -> None:
        self.layout = layout
        nodes = [n_streams * layout.padded // FAN**level for level in range(1, layout.levels + 1)]
        self._sums = [np.zeros((n, n_settings), dtype) for n in (*nodes, n_streams)]
        self._before = [np.zeros((FAN, n, n_settings), dtype) for n in nodes]
        self._before.append(np.zeros((layout.root, n_streams, n_settings), dtype))

    @property
    def total(self) -> np.ndarray:
        """Sum of all weights of each replica, shape (F, G)."""
        return self._sums[-1]

    def update(
        self,
        leaves: np.ndarray,
        nodes: Sequence[np.ndarray],
        streams: np.ndarray,
        settings: Sequence[np.ndarray] | None = None,
    ) -> None:
        """Make the nodes above changed weights anew; the arguments are those of `Layout.ascend`, leaves overwritten."""
        for level, where, sums in self.layout.ascend(leaves, self._sums, nodes, streams, settings):
            for child in range(1, len(sums)):
                sums[child] += sums[child - 1]
            laid(self._before[level - 1], settings)[1:, where] = sums[:-1]
            laid(self._sums[level - 1], settings)[where] = sums[-1]

    @property
    def root(self) -> np.ndarray:
        """Sums before each child of the roots, shape (W, F, G)."""
        return self._before[-1]

    def before(self, level: int, position: np.ndarray) -> np.ndarray:
        """Return the sums before each child, shape (n, K), of nodes at positions ``node * G + setting`` of a level."""
        sums = self._before[level - 1]
        return sums.reshape(len(sums), -1).take(position, axis=1)


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
        sizes = [*(layout.padded // FAN**level for level in range(layout.levels + 1)), 1]
        # Flat arrays, as numpy spends more on the bookkeeping of three axes than on the numbers of a small batch.
        *self._corner, self._replica = (
            np.tile((stream * (size * n_settings) + setting).ravel(), n_draws) for size in sizes
        )
        self._draw = np.arange(self._corner[0].size)

    def __call__(
        self, target: np.ndarray, root: np.ndarray, before: Callable[[int, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Find the leaves whose weights reach over the targets.

        Parameters
        ----------
        target : ndarray of float, shape (n, F, G)
            Uniforms times the total weight; overwritten.
        root : ndarray of float, shape (W, F, G)
            As `PrefixTrees.root`.
        before : callable
            As `PrefixTrees.before`.

        Returns
        -------
        ndarray of int, shape (n, F, G)
            Attributes.  One of weight 0 comes only by round-off at the edge of a node, or where all weights are 0.
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
        """Return what a state array, (F * padded, G), holds at each replica's attributes, (n, F, G)."""
        where = attributes.reshape(-1) * self._n_settings + self._corner[0]
        return state.reshape(-1).take(where).reshape(self._shape)


def _count(below: np.ndarray) -> np.ndarray:
    """Count along the first axis, at most 255; in the narrowest integers, which is where the time goes."""
    count: np.ndarray = np.add.reduce(below.view(np.uint8), axis=0, dtype=np.uint8)
    return count.astype(np.intp)

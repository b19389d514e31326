"""Regressors of which a step changes few coordinates, and trees from which attributes are drawn by their weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Segment trees: sums or minima of the leaves below each node, updated while a few leaves change per step.
#
# The attributes of a replica are the leaves of a tree of fan-out 8 below a root of at most 32 children. A changed leaf
# changes one node per level: O(log d). A node is always the same function of the leaves below it, so that its value
# neither drifts nor depends on the history of the leaves.
#
# For sums of weights, each node also holds the sums of its children's weights before each child. A draw of an attribute
# in proportion to the weights, by inverse transform, thus takes a few comparisons per level, one cache line each.

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

    def update(self, leaves: np.ndarray, nodes: Levels, streams: np.ndarray, setting: np.ndarray | None = None) -> None:
        """Recompute the nodes above changed leaves.

        Parameters
        ----------
        leaves : ndarray, shape (n, K, G)
            Values of the leaves at the rows `Layout.leaves`; may be overwritten.
        nodes : sequence of ndarray of int
            Changed nodes of each level, see `Layout.nodes`.
        streams : ndarray of int
            Changed streams.
        setting : ndarray of int, shape (K,), optional
            One setting for each of the nodes instead of all; then all levels have K nodes, which may repeat, and
            `leaves` has shape (n, K).
        """
        block, of = leaves, () if setting is None else (setting,)
        for level, changed in enumerate((*nodes, streams), start=1):
            if level > 1:
                block = self._values[level - 2][self.layout.below(level, changed), *of]
            self._values[level - 1][changed, *of] = self._combine(level, (changed, *of), block)

    def _combine(self, level: int, where: tuple[Any, ...], block: np.ndarray) -> np.ndarray:
        """Return the values of parents.

        Parameters
        ----------
        level : int
            Level of the parents, from 1.
        where : tuple of ndarray of int, shape (K,)
            The parents, as rows of the array of their level, and the setting of each if there is one.
        block : ndarray, shape (n, K, G) or (n, K)
            Values of their children; may be overwritten.

        Returns
        -------
        ndarray, shape (K, G) or (K,)
        """
        raise NotImplementedError


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

    def _combine(self, level: int, where: tuple[Any, ...], block: np.ndarray) -> np.ndarray:
        for child in range(1, len(block)):
            block[child] += block[child - 1]
        self._before[level - 1][1:, *where] = block[:-1]
        return block[-1]


class Minima(SegmentTrees):
    """Minima of keys, all infinite at first, for each of F x G replicas; parameters as for `SegmentTrees`."""

    def __init__(self, n_streams: int, n_settings: int, layout: Layout) -> None:
        super().__init__(n_streams, n_settings, layout, np.inf)

    @property
    def least(self) -> np.ndarray:
        """Smallest key of each replica, shape (F, G)."""
        return self._values[-1]

    def reaching(self, stream: np.ndarray, setting: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find the nodes of level 1 above keys of at most `bound` (K,) of K replicas, which all have such keys.

        Returns
        -------
        replica, nodes : ndarray of int
            The index of each among the K, and the node.
        """
        replica, nodes = np.arange(stream.size), stream
        for level in range(self.layout.levels + 1, 1, -1):
            children, below = self.layout.below(level, nodes), self._values[level - 2]
            keys = below.reshape(-1).take(children * below.shape[1] + setting[replica])
            child, at = np.nonzero(keys <= bound[replica])
            replica, nodes = replica[at], children[child, at]
        return replica, nodes

    def _combine(self, level: int, where: tuple[Any, ...], block: np.ndarray) -> np.ndarray:
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


# Regressors stored as a factor times an array, and the sum of their iterates.
#
# Notation: ``w = c u`` with a factor c per replica, which may change at every step. ``C`` sums c over the steps since
# the last fold; a step that subtracts delta from u adds ``C delta`` to ``V``, so that ``V + C u`` is the sum of all
# iterates.
#
# Draws for the inner product come from trees of the probabilities p, and of the norm, which the update rule needs too.
# The plain probabilities are those of the listings, proportional to the terms of the norm: ``u_j^2`` on the 2-ball,
# ``|u_j|`` on the 1-ball. The improved ones (Kukliansky & Shamir 2015, Section 5) are proportional to
# ``|u_j| sqrt(E x_j^2)``, which minimises the second moment of the estimate; with prices c, to
# ``|u_j| sqrt(E x_j^2 / c_j)`` (`budgetreg.algorithms.engine`).

FOLD_RATIO = 1e3
"""Largest change of the factor before ``C u`` is added to ``V``; a larger one would cancel too many digits."""


@dataclass(frozen=True)
class SparsePoints:
    """Nonzero coordinates of the data point estimates of a block, sorted by (stream, position, attribute).

    Attributes
    ----------
    stream, position, attribute : ndarray of int, shape (N,)
        Indices of each coordinate; the position is that of the example in its block.
    value : ndarray of float, shape (N,)
        The coordinates of ``x~``, in which draws of the same attribute are summed.
    """

    stream: np.ndarray
    position: np.ndarray
    attribute: np.ndarray
    value: np.ndarray


class ActiveRows:
    """The rows of state arrays, (F * padded, G), that any step has changed; all others are 0.

    Parameters
    ----------
    n_streams : int
        F.
    layout : Layout
        The number of rows of a stream.
    """

    def __init__(self, n_streams: int, layout: Layout) -> None:
        self._d, self._active = layout.d, np.zeros((n_streams, layout.padded), dtype=bool)

    def add(self, points: SparsePoints) -> None:
        """Add the coordinates of a block."""
        self._active[points.stream, points.attribute] = True

    def add_all(self) -> None:
        """Add all coordinates."""
        self._active[:, : self._d] = True

    def by_stream(self, replicas: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """Return stream, rows and settings, ascending, for each stream with any of the replicas, bool (F, G)."""
        padded, streams = self._active.shape[1], np.flatnonzero(replicas.any(axis=1)).tolist()
        return [(f, np.flatnonzero(self._active[f]) + f * padded, np.flatnonzero(replicas[f])) for f in streams]


class ScaledRegressors:
    """F x G regressors, draws from them, and the sum of their iterates; 0 until an update rule changes them.

    Parameters
    ----------
    n_streams, d, k_ip : int
        Streams F, attributes d, and draws for the inner product.
    settings : mapping of str to ndarray of shape (G,)
        ``B``, radius; ``eta``, step size.
    root_moments : ndarray of float, shape (F, d), optional
        ``sqrt(E x_j^2)``, or ``sqrt(E x_j^2 / c_j)``, as each stream knows it, for the improved probabilities; without,
        draws have the plain ones.
    start : ndarray of float, shape (F, d, G), optional
        The regressors ``w_1``, 0 unless given.
    first : int
        Number of examples that were used before.

    Attributes
    ----------
    layout : Layout
        Shape of the trees.
    active : ActiveRows
        The coordinates that steps have changed, or are about to change.
    held : ndarray of int, shape (F,)
        Number of the iterate that each stream holds.
    """

    size: Callable[[np.ndarray], np.ndarray]
    """Returns the terms of the norm, which are the plain weights of draws for the inner product."""

    def __init__(
        self,
        n_streams: int,
        d: int,
        k_ip: int,
        settings: Mapping[str, np.ndarray],
        *,
        root_moments: np.ndarray | None = None,
        start: np.ndarray | None = None,
        first: int = 0,
    ) -> None:
        self.B, self.eta = settings["B"], settings["eta"]
        shape = n_streams, self.B.size
        self.layout = Layout(d)
        self.held = np.full(n_streams, first)
        self.active = ActiveRows(n_streams, self.layout)
        self._u, self._V = (np.zeros((n_streams * self.layout.padded, self.B.size)) for _ in range(2))
        self._c, self._C = np.ones(shape), np.zeros(shape)
        self._root_moments = None if root_moments is None else self.layout.pad(root_moments[:, :, None])
        # Improved probabilities are the imaginary part of the norm's terms: one tree instead of two.
        self._trees = PrefixSums(*shape, self.layout, float if root_moments is None else complex)
        self._inverter = Inverter(*shape, self.layout, k_ip)
        self._coefficients: np.ndarray | None = None
        self._prepare()
        if start is not None:
            self.active.add_all()
            self._begin(start)

    def _prepare(self) -> None:
        """Set what the update rule holds besides, for regressors that are 0."""
        raise NotImplementedError

    def _begin(self, start: np.ndarray) -> None:
        """Change the regressors from 0 to others."""
        raise NotImplementedError

    @property
    def nonzero(self) -> np.ndarray:
        """Replicas with an inner product to estimate, shape (F, G)."""
        return self._mass > 0

    @property
    def _norm(self) -> np.ndarray:
        """Sum of the plain weights of each replica, shape (F, G)."""
        return self._trees.total.real

    @property
    def _mass(self) -> np.ndarray:
        """Sum of the weights that p is proportional to, shape (F, G)."""
        return self._norm if self._root_moments is None else self._trees.total.imag

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (n, F, G), from (n, F)."""
        target = uniforms[:, :, None] * self._mass
        if self._root_moments is None:
            attributes = self._inverter(target, self._trees.root, self._trees.before)
            u = self._inverter.values(self._u, attributes)
            weight = self.size(u)
        else:
            attributes = self._inverter(target, self._trees.root.imag, lambda *node: self._trees.before(*node).imag)
            u = self._inverter.values(self._u, attributes)
            weight = np.abs(u) * self._at(self._root_moments, attributes)
        ratio = np.divide(u, weight, out=np.zeros_like(u), where=weight != 0) * self._mass
        return attributes, ratio * self._c

    def expect(self, coefficients: np.ndarray) -> None:
        """Maintain inner products with the attributes' expectations ``a`` or ``a + ib``, (F, d), from now on."""
        self._coefficients = self.layout.pad(coefficients[:, :, None])
        # Sums in a tree do not drift, and need nothing special when u is rescaled.
        self._products = PrefixSums(*self._c.shape, self.layout, coefficients.dtype.type)
        self._update_trees(self.layout.nodes(np.arange(len(self._u))), np.arange(len(self._c)))

    def expected(self, attributes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of attributes (n, F, G), and ``<w, a> + i <w, b>``, (F, G), of what is held."""
        assert self._coefficients is not None
        return self._at(self._coefficients, attributes), self._products.total * self._c

    def _at(self, values: np.ndarray, attributes: np.ndarray) -> np.ndarray:
        """Return the entries of padded values of attributes, (F * padded, 1), at attributes (n, F, G)."""
        return values.reshape(-1).take(attributes + np.arange(len(self._c))[:, None] * self.layout.padded)

    def _update_trees(self, nodes: Levels, streams: np.ndarray) -> None:
        """Recompute nodes and streams of the trees from u."""
        rows = self.layout.leaves(nodes, streams)
        u = self._u.take(rows, axis=0)
        weights = self.size(u)
        if self._root_moments is not None:
            weights = weights + 1j * (np.abs(u) * self._root_moments.take(rows, axis=0))
        self._trees.update(weights, nodes, streams)
        if self._coefficients is not None:
            self._products.update(u * self._coefficients.take(rows, axis=0), nodes, streams)

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""
        return self.layout.unpad(self._V) + self.layout.unpad(self._u) * self._C[:, None, :]

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `project_and_accumulate`."""
        return self.layout.unpad(self._u) * self._c[:, None, :]

    def _fold(self, replicas: np.ndarray) -> None:
        """Add ``C u`` to ``V`` and reset C for replicas, bool of shape (F, G); then u may be rescaled."""
        for f, rows, settings in self.active.by_stream(replicas):
            where = rows[:, None], settings
            self._V[where] += self._u[where] * self._C[f, settings]
        self._C[replicas] = 0.0

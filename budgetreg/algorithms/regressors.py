"""Regressors stored as a factor times an array, of which a step changes few coordinates, and the sum of their iterates.

Notation: ``w = c u`` with a factor c per replica, which may change at every step. ``C`` sums c over the steps since
the last fold; a step that subtracts delta from u adds ``C delta`` to ``V``, so that ``V + C u`` is the sum of all
iterates.

Draws for the inner product come from trees of the probabilities p, and of the norm, which the update rule needs too.
The plain probabilities are those of the listings, proportional to the terms of the norm: ``u_j^2`` on the 2-ball,
``|u_j|`` on the 1-ball. The improved ones (Kukliansky & Shamir 2015, Section 5) are proportional to
``|u_j| sqrt(E x_j^2)``, which minimises the second moment of the estimate; with prices c, to
``|u_j| sqrt(E x_j^2 / c_j)`` (`budgetreg.algorithms.engine`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from budgetreg.algorithms.trees import Inverter, Layout, Levels, PrefixSums

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

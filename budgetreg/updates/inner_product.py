"""Draws for the inner product: trees of the probabilities p and of the norm, which the update rule needs too.

Notation: ``w = c u`` with a factor c per replica. The plain probabilities are those of the listings, proportional to
the terms of the norm: ``u_j^2`` on the 2-ball, ``|u_j|`` on the 1-ball. The improved ones (Kukliansky & Shamir 2015,
Section 5) are proportional to ``|u_j| sqrt(E x_j^2)``, which minimises the second moment of the estimate; with prices,
to ``|u_j| sqrt(E x_j^2 / c_j)`` (`budgetreg.sampling.importance_weights`).
"""

from collections.abc import Callable, Sequence

import numpy as np

from budgetreg.sampling.segment_trees import Inverter, Layout, PrefixSums


class InnerProduct:
    """Sampler of F x G replicas whose regressors are proportional to the rows of a state array.

    Parameters
    ----------
    n_streams, n_settings, n_draws : int
        F, G and n.
    layout : Layout
        The shape of the trees.
    size : callable
        The plain weights, as a function of ``u``.
    root_moments : ndarray of float, shape (F, d), or None
        ``sqrt(E x_j^2)``, or ``sqrt(E x_j^2 / c_j)``, as each stream knows it, for the improved probabilities; None for
        the plain ones.
    """

    def __init__(
        self,
        n_streams: int,
        n_settings: int,
        n_draws: int,
        layout: Layout,
        size: Callable[[np.ndarray], np.ndarray],
        root_moments: np.ndarray | None,
    ) -> None:
        self._layout, self._size = layout, size
        self._root_moments = None if root_moments is None else layout.pad(root_moments[:, :, None])
        # Improved probabilities are the imaginary part of the norm's terms: one tree instead of two.
        dtype = float if root_moments is None else complex
        self._trees = PrefixSums(n_streams, n_settings, layout, dtype)
        self._inverter = Inverter(n_streams, n_settings, layout, n_draws)
        self._coefficients: np.ndarray | None = None

    @property
    def norm(self) -> np.ndarray:
        """Sum of the plain weights of each replica, shape (F, G)."""
        return self._trees.total.real

    @property
    def mass(self) -> np.ndarray:
        """Sum of the weights that p is proportional to, shape (F, G)."""
        return self._trees.total.real if self._root_moments is None else self._trees.total.imag

    def update(self, state: np.ndarray, nodes: Sequence[np.ndarray], streams: np.ndarray) -> None:
        """Recompute nodes and streams of the trees from the state array (F * padded, G)."""
        rows = self._layout.leaves(nodes, streams)
        u = state.take(rows, axis=0)
        weights = self._size(u)
        if self._root_moments is not None:
            weights = weights + 1j * (np.abs(u) * self._root_moments.take(rows, axis=0))
        self._trees.update(weights, nodes, streams)
        if self._coefficients is not None:
            self._products.update(u * self._coefficients.take(rows, axis=0), nodes, streams)

    def expect(self, coefficients: np.ndarray, state: np.ndarray) -> None:
        """Maintain the products ``<u, a>`` with coefficients a, (F, d), real or complex, from now on."""
        F = len(coefficients)
        self._coefficients = self._layout.pad(coefficients[:, :, None])
        # Sums in a tree do not drift, and need nothing special when the state is rescaled.
        self._products = PrefixSums(F, state.shape[1], self._layout, coefficients.dtype.type)
        self.update(state, self._layout.nodes(np.arange(len(state))), np.arange(F))

    def expected(self, attributes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of attributes (n, F, G), and the products, (F, G)."""
        assert self._coefficients is not None
        stream = np.arange(attributes.shape[1])[:, None] * self._layout.padded
        return self._coefficients.reshape(-1).take(attributes + stream), self._products.total

    def draw(self, uniforms: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw attributes j, (n, F, G), from uniforms (n, F); return them and ``u_j / p_j``, 0 where ``u_j`` is."""
        target = uniforms[:, :, None] * self.mass
        if self._root_moments is None:
            attributes = self._inverter(target, self._trees.root, self._trees.before)
        else:
            attributes = self._inverter(target, self._trees.root.imag, lambda *node: self._trees.before(*node).imag)
        u = self._inverter.values(state, attributes)
        if self._root_moments is None:
            weight = self._size(u)
        else:
            stream = np.arange(len(self.mass))[:, None] * self._layout.padded
            weight = np.abs(u) * self._root_moments.reshape(-1).take(attributes + stream)
        return attributes, np.divide(u, weight, out=np.zeros_like(u), where=weight != 0) * self.mass


def inner_products(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return ``<w, x>`` along the last axis; no number depends in any bit on the lengths of the other axes.

    Products of matrices and `numpy.einsum` group the terms by the shapes of all arrays, so that a replica's numbers
    would depend on how many others there are.

    Parameters
    ----------
    w, x : ndarray of float, shapes (..., d)
        Vectors, broadcast against each other, such as regressors (F, G, d) and examples (F, 1, d).

    Returns
    -------
    ndarray of float, shape (...)
    """
    return np.asarray(np.vecdot(w, x))


def sum_in_order(terms: np.ndarray) -> np.ndarray:
    """Return the sum over the first axis, term by term; the order of `numpy.sum` depends on the other axes' lengths."""
    total = terms[0].copy()
    for term in terms[1:]:
        total += term
    return np.asarray(total)

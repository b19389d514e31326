"""Regressors stored as a factor times an array, of which a step changes few coordinates, and the sum of their iterates.

Notation: ``w = c u`` with a factor c per replica, which may change at every step. ``C`` sums c over the steps since
the last fold; a step that subtracts delta from u adds ``C delta`` to ``V``, so that ``V + C u`` is the sum of all
iterates.
"""

from collections.abc import Callable, Mapping

import numpy as np

from budgetreg.sampling.rounds import SparsePoints
from budgetreg.sampling.segment_trees import Layout
from budgetreg.updates.inner_product import InnerProduct

FOLD_RATIO = 1e3
"""Largest change of the factor before ``C u`` is added to ``V``; a larger one would cancel too many digits."""


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

    def rows(self, stream: int) -> np.ndarray:
        """Return the rows of a stream, ascending."""
        return np.flatnonzero(self._active[stream]) + stream * self._active.shape[1]

    def by_stream(self, replicas: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """Return stream, rows and settings for each stream with any of the replicas, bool of shape (F, G)."""
        streams = np.flatnonzero(replicas.any(axis=1)).tolist()
        return [(f, self.rows(f), np.flatnonzero(replicas[f])) for f in streams]


class ScaledRegressors:
    """F x G regressors, draws from them, and the sum of their iterates; 0 until an update rule changes them.

    Parameters
    ----------
    n_streams, d, k_ip : int
        Streams F, attributes d, and draws for the inner product.
    settings : mapping of str to ndarray of shape (G,)
        ``B``, radius; ``eta``, step size.
    root_moments : ndarray of float, shape (F, d), optional
        See `InnerProduct`.
    start : ndarray of float, shape (F, d, G), optional
        The regressors ``w_1``, 0 unless given.

    Attributes
    ----------
    layout : Layout
        Shape of the sampler's trees.
    active : ActiveRows
        The coordinates that steps have changed, or are about to change.
    """

    size: Callable[[np.ndarray], np.ndarray]
    """Returns the weights of draws for the inner product, see `InnerProduct`."""

    def __init__(
        self,
        n_streams: int,
        d: int,
        k_ip: int,
        settings: Mapping[str, np.ndarray],
        *,
        root_moments: np.ndarray | None = None,
        start: np.ndarray | None = None,
    ) -> None:
        self.B, self.eta = settings["B"], settings["eta"]
        shape = n_streams, self.B.size
        self.layout = Layout(d)
        self.active = ActiveRows(n_streams, self.layout)
        self._u, self._V = (np.zeros((n_streams * self.layout.padded, self.B.size)) for _ in range(2))
        self._c, self._C = np.ones(shape), np.zeros(shape)
        self._sampler = InnerProduct(*shape, k_ip, self.layout, self.size, root_moments)
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
    def alive(self) -> np.ndarray:
        """Replicas with an inner product to estimate, shape (F, G)."""
        return self._sampler.mass > 0

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (n, F, G), from (n, F)."""
        attributes, ratio = self._sampler.draw(uniforms, self._u)
        return attributes, ratio * self._c

    def expect(self, coefficients: np.ndarray) -> None:
        """Maintain inner products with the attributes' expectations ``a`` or ``a + ib``, (F, d), from now on."""
        self._sampler.expect(coefficients, self._u)

    def expected(self, attributes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of attributes (n, F, G), and ``<w, a> + i <w, b>``, (F, G); valid after `settle`."""
        single, product = self._sampler.expected(attributes)
        return single, product * self._c

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""
        return self.layout.unpad(self._V) + self.layout.unpad(self._u) * self._C[:, None, :]

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `settle`."""
        return self.layout.unpad(self._u) * self._c[:, None, :]

    def _fold(self, replicas: np.ndarray) -> None:
        """Add ``C u`` to ``V`` and reset C for replicas, bool of shape (F, G); then u may be rescaled."""
        for f, rows, settings in self.active.by_stream(replicas):
            where = rows[:, None], settings
            self._V[where] += self._u[where] * self._C[f, settings]
        self._C[replicas] = 0.0

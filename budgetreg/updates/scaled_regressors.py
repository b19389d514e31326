"""Regressors that are a factor times an array of which a step touches few coordinates, and the sum of their iterates.

Notation: ``w = c u`` with a factor c per replica, which may change at every step.  ``C`` sums c over the steps since
the last fold; a step that takes delta from u adds ``C delta`` to ``V``, so that ``V + C u`` is the sum of all iterates.
"""

from collections.abc import Callable

import numpy as np

from budgetreg.sampling.segment_trees import Layout
from budgetreg.updates.inner_product import InnerProduct
from budgetreg.updates.seen import AttributesShown

FOLD_RATIO = 1e3
"""Largest change of the factor before ``C u`` is added to ``V``: later, they would cancel too many digits."""


class ScaledRegressors:
    """F x G regressors, what is drawn from them, and the sum of their iterates; all 0, until an update rule moves them.

    Parameters
    ----------
    n_streams, n_settings, d, k_ip : int
        Streams F, settings G, attributes d, and draws for the inner product.
    size, root_moments
        See `InnerProduct`.

    Attributes
    ----------
    layout : Layout
        Shape of the sampler's trees.
    seen : AttributesShown
        Which coordinates are touched, told before they are.
    """

    def __init__(
        self,
        n_streams: int,
        n_settings: int,
        d: int,
        k_ip: int,
        size: Callable[[np.ndarray], np.ndarray],
        root_moments: np.ndarray | None,
    ) -> None:
        shape = n_streams, n_settings
        self.layout = Layout(d)
        self.seen = AttributesShown(n_streams, self.layout)
        self._u, self._V = (np.zeros((n_streams * self.layout.padded, n_settings)) for _ in range(2))
        self._c, self._C = np.ones(shape), np.zeros(shape)
        self._sampler = InnerProduct(*shape, k_ip, self.layout, size, root_moments)

    @property
    def alive(self) -> np.ndarray:
        """Replicas with an inner product to estimate, shape (F, G)."""
        return self._sampler.mass > 0

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (n, F, G), from (n, F)."""
        attributes, ratio = self._sampler.draw(uniforms, self._u)
        return attributes, ratio * self._c

    def expect(self, coefficients: np.ndarray) -> None:
        """Keep inner products with what attributes are expected to be, see `control_variates.Expecting`."""
        self._sampler.expect(coefficients, self._u)

    def expected(self, attributes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients of attributes and the regressors' inner products with all; valid after `settle`."""
        single, product = self._sampler.expected(attributes)
        return single, product * self._c

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""
        return self.layout.unpad(self._V) + self.layout.unpad(self._u) * self._C[:, None, :]

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `settle`."""
        return self.layout.unpad(self._u) * self._c[:, None, :]

    def _fold(self, replicas: np.ndarray) -> None:
        """Add ``C u`` to ``V`` and begin C anew, where replicas (F, G) of bool are to; then u may be rescaled."""
        for f, rows, settings in self.seen.by_stream(replicas):
            where = rows[:, None], settings
            self._V[where] += self._u[where] * self._C[f, settings]
        self._C[replicas] = 0.0

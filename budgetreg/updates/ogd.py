"""Online gradient descent on the 2-ball (GAERR: AERR and its relatives), for F streams of G settings at once.

Notation: ``w = sigma U``, so that the projection is a change of the scale ``sigma``; ``C`` sums ``sigma`` over the
steps since the last fold, so that ``V + C U`` is the sum of all iterates although a step touches few coordinates.
"""

from collections.abc import Mapping

import numpy as np

from budgetreg.sampling.rounds import Round
from budgetreg.sampling.segment_trees import Layout
from budgetreg.updates.inner_product import InnerProduct
from budgetreg.updates.seen import Seen

FOLD_RATIO = 1e3
"""Largest fall of the scale before ``C U`` is added to ``V``: later, they would cancel too many digits."""
RESCALE_BELOW = 1e-60
"""Smallest scale that is let stand, lest ``U^2`` overflow."""


class OGD:
    """State of online gradient descent on the ball ``|w|_2 <= B``.

    Hazan & Koren 2012, Algorithm AERR; Kukliansky & Shamir 2015, GAERR.  ``w <- v B / max(|v|_2, B)``,
    ``v = w - eta g~``; inner product draws from ``p_j = w_j^2 / |w|_2^2``; ``w_1 = 0``.

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
    """

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
        self._d, self._shape = d, (n_streams, self.layout.padded, self.B.size)
        self._U, self._V = (np.zeros(self._shape).reshape(-1, self.B.size) for _ in range(2))
        self._sigma, self._sigma_folded, self._C = np.ones(shape), np.ones(shape), np.zeros(shape)
        # A projection moves the last bits even of what it has projected: once per step, however often one settles.
        self._moved = np.zeros(n_streams, dtype=bool)
        self._sampler = InnerProduct(*shape, k_ip, self.layout, np.square, root_moments)
        self.seen = Seen(n_streams, self.layout)
        if start is not None:
            self._U.reshape(self._shape)[:, :d] = start
            streams = np.arange(n_streams)
            self.seen.note_all()
            self._sampler.update(self._U, self.layout.nodes(np.arange(len(self._U))), streams)

    @property
    def alive(self) -> np.ndarray:
        """Replicas with an inner product to estimate, shape (F, G)."""
        return self._sampler.mass > 0

    def settle(self, before: np.ndarray, now: np.ndarray) -> None:
        """Project, then hold the regressors from step ``before + 1`` to step ``now`` (both of shape (F,))."""
        norm = self._sigma * np.sqrt(self._sampler.norm)
        self._sigma *= np.where(self._moved[:, None], self.B / np.maximum(norm, self.B), 1.0)
        self._moved[:] = False
        fallen = self._sigma * FOLD_RATIO < self._sigma_folded
        if fallen.any():
            self._fold(fallen)
        self._C += (now - before)[:, None] * self._sigma

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (n, F, G), from (n, F)."""
        attributes, ratio = self._sampler.draw(uniforms, self._U)
        return attributes, ratio * self._sigma

    def expect(self, coefficients: np.ndarray) -> None:
        """Keep inner products with what attributes are expected to be, see `control_variates.Expecting`."""
        self._sampler.expect(coefficients, self._U)

    def expected(self, attributes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients of attributes and the regressors' inner products with all; valid after `settle`."""
        single, product = self._sampler.expected(attributes)
        return single, product * self._sigma

    def step(self, coordinates: Round, residual: np.ndarray) -> None:
        """Take the gradient step ``w -= eta phi~ x~`` for residual estimates of shape (F, G)."""
        stream, row = coordinates.stream, coordinates.row
        self._moved[coordinates.streams] = True
        change = (residual * (self.eta / self._sigma)).take(stream, axis=0)
        change *= coordinates.value[:, None]
        self._U[row] = self._U.take(row, axis=0) - change
        change *= self._C.take(stream, axis=0)
        self._V[row] = self._V.take(row, axis=0) + change
        self._sampler.update(self._U, coordinates.nodes, coordinates.streams)

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""
        U, V = self._U.reshape(self._shape), self._V.reshape(self._shape)
        return V[:, : self._d] + U[:, : self._d] * self._C[:, None, :]

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `settle`."""
        return self._U.reshape(self._shape)[:, : self._d] * self._sigma[:, None, :]

    def _fold(self, replicas: np.ndarray) -> None:
        for f, rows, settings in self.seen.by_stream(replicas):
            where = rows[:, None], settings
            self._V[where] += self._U[where] * self._C[f, settings]
            low = replicas[f] & (self._sigma[f] < RESCALE_BELOW)
            if low.any():
                self._U[rows] *= np.where(low, self._sigma[f], 1.0)
                self._sigma[f, low] = 1.0
                self._sampler.update(self._U, self.layout.nodes(rows), np.array([f]))
        self._C[replicas] = 0.0
        self._sigma_folded[replicas] = self._sigma[replicas]

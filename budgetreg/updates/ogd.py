"""Online gradient descent on the 2-ball (GAERR: AERR and its relatives), for F streams of G settings at once.

Notation: ``w = sigma U``, so that the projection is a change of the scale ``sigma``; ``C`` sums ``sigma`` over the
steps since the last fold, so that ``V + C U`` is the sum of all iterates although a step touches few coordinates.
"""

from collections.abc import Mapping

import numpy as np

from budgetreg.rounds import Round
from budgetreg.sampling import Weights, corners

FOLD_BELOW = 1e-3
"""Smallest scale that is let stand: below, ``V`` and ``C U`` would cancel too many digits."""


class OGD:
    """State of online gradient descent on the ball ``|w|_2 <= B``.

    Hazan & Koren 2012, Algorithm AERR; Kukliansky & Shamir 2015, GAERR.  ``w <- v B / max(|v|_2, B)``,
    ``v = w - eta g~``; inner product draws from ``p_j = w_j^2 / |w|_2^2``; ``w_1 = 0``.

    Parameters
    ----------
    n_streams, d : int
        Streams F and attributes d.
    settings : mapping of str to ndarray of shape (G,)
        ``B``, radius; ``eta``, step size.
    """

    def __init__(self, n_streams: int, d: int, settings: Mapping[str, np.ndarray]) -> None:
        self.B, self.eta = settings["B"], settings["eta"]
        shape = (n_streams, self.B.size)
        self._shape = shape
        self._U, self._V = np.zeros((n_streams, d, shape[1])), np.zeros((n_streams, d, shape[1]))
        self._sigma, self._C = np.ones(shape), np.zeros(shape)
        # A projection moves the last bits even of what it has projected: once per step, however often one settles.
        self._moved = np.zeros(n_streams, dtype=bool)
        self._weights = Weights(*shape, d)
        self._prefix = self._weights.layout.prefix(self._weights.sums)
        self.width = self._weights.layout.width
        self._corner = corners(*self._shape, d)

    @property
    def alive(self) -> np.ndarray:
        """Replicas with ``w != 0``, shape (F, G); valid after `settle`."""
        return self._prefix[:, -1] > 0

    def settle(self, before: np.ndarray, now: np.ndarray) -> None:
        """Project, then hold the regressors from step ``before + 1`` to step ``now`` (both of shape (F,))."""
        self._prefix = self._weights.layout.prefix(self._weights.sums)
        norm = self._sigma * np.sqrt(np.maximum(self._prefix[:, -1], 0.0))
        self._sigma[self._moved] *= (self.B / np.maximum(norm, self.B))[self._moved]
        self._moved[:] = False
        if self._sigma.min() < FOLD_BELOW:
            self._fold(*np.nonzero(self._sigma < FOLD_BELOW))
            self._prefix = self._weights.layout.prefix(self._weights.sums)
        self._C += (now - before)[:, None] * self._sigma

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (F, G, n), from (F, n)."""
        attributes = self._weights.layout.invert(self._prefix, uniforms, self._weights.blocks)
        u = self._U.reshape(-1).take(attributes * self._shape[1] + self._corner)
        scale = (self._prefix[:, -1] * self._sigma)[:, :, None]
        return attributes, np.divide(scale, u, out=np.zeros_like(u), where=u != 0)

    def step(self, coordinates: Round, residual: np.ndarray) -> None:
        """Take the gradient step ``w -= eta phi~ x~`` for residual estimates of shape (F, G)."""
        self._moved[coordinates.stream] = True
        where = coordinates.stream, coordinates.attribute
        rate = residual * (self.eta / self._sigma)
        change = rate.take(coordinates.stream, axis=0) * coordinates.value[:, None]
        old = self._U[where]
        new = old - change
        self._U[where] = new
        self._V[where] += change * self._C.take(coordinates.stream, axis=0)
        square = new * new
        self._weights.assign(coordinates, square)
        self._weights.add(coordinates, square - old * old)

    def refresh(self) -> None:
        """Fold the scale into the state and sum everything afresh, against the drift of round-off."""
        self._V += self._U * self._C[:, None, :]
        self._U *= self._sigma[:, None, :]
        self._sigma[:], self._C[:] = 1.0, 0.0
        self._weights.rebuild_all(np.square(self._U))

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""
        return self._V + self._U * self._C[:, None, :]

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `settle`."""
        return self._U * self._sigma[:, None, :]

    def _fold(self, stream: np.ndarray, setting: np.ndarray) -> None:
        replicas = stream, slice(None), setting
        U, sigma, C = self._U[replicas], self._sigma[stream, setting], self._C[stream, setting]
        self._V[replicas] += U * C[:, None]
        U = U * sigma[:, None]
        self._U[replicas] = U
        self._sigma[stream, setting], self._C[stream, setting] = 1.0, 0.0
        self._weights.rebuild(stream, setting, U * U)

"""Exponentiated gradient on the 1-ball (GAELR: AELR and its relatives), for F streams of G settings at once.

Notation: ``w = B S / Z`` with ``S = exp(theta - M) - exp(-theta - M)`` and ``Z`` the sum of
``H = exp(theta - M) + exp(-theta - M)``; ``M`` is a reference exponent that keeps everything finite.  ``C`` sums
``B / Z`` over the steps since the last fold, so that ``V + C S`` is the sum of all iterates.
"""

from collections.abc import Mapping

import numpy as np

from budgetreg.rounds import Round
from budgetreg.sampling import Weights, corners

FOLD_RATIO = 1e3
"""Largest change of the normaliser Z, up or down, before a new reference exponent is chosen, lest sums lose digits."""


class EG:
    """State of the exponentiated gradient algorithm on the ball ``|w|_1 <= B``.

    Hazan & Koren 2012, Algorithm AELR; Kukliansky & Shamir 2015, GAELR.  ``g^- = clip(g~, 1/eta)``,
    ``theta -= eta g^-``, ``w = B sinh(theta) / sum(cosh(theta))``; inner product draws from
    ``p_j = |w_j| / |w|_1``; ``theta_1 = 0``, hence ``w_1 = 0``.

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
        self._theta, self._S, self._V = (np.zeros((n_streams, d, shape[1])) for _ in range(3))
        self._H = np.full((n_streams, d, shape[1]), 2.0)
        self._M, self._C = np.zeros(shape), np.zeros(shape)
        self._Z = np.full(shape, 2.0 * d)
        self._Z_folded = self._Z.copy()
        self._weights = Weights(*shape, d)
        self._prefix = self._weights.layout.prefix(self._weights.sums)
        self.width = self._weights.layout.width
        self._corner = corners(*self._shape, d)

    @property
    def alive(self) -> np.ndarray:
        """Replicas with ``w != 0``, shape (F, G); valid after `settle`."""
        return self._prefix[:, -1] > 0

    def settle(self, before: np.ndarray, now: np.ndarray) -> None:
        """Hold the regressors from step ``before + 1`` to step ``now`` (both of shape (F,))."""
        ratio = self._Z / self._Z_folded
        if ratio.max() > FOLD_RATIO or ratio.min() < 1 / FOLD_RATIO:
            self._fold(*np.nonzero((ratio > FOLD_RATIO) | (ratio < 1 / FOLD_RATIO)))
        self._prefix = self._weights.layout.prefix(self._weights.sums)
        self._C += (now - before)[:, None] * (self.B / self._Z)

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (F, G, n), from (F, n)."""
        attributes = self._weights.layout.invert(self._prefix, uniforms, self._weights.blocks)
        s = self._S.reshape(-1).take(attributes * self._shape[1] + self._corner)
        norm = self.B * self._prefix[:, -1] / self._Z
        return attributes, np.sign(s) * norm[:, :, None]

    def step(self, coordinates: Round, residual: np.ndarray) -> None:
        """Take the step ``theta -= eta clip(phi~ x~, 1/eta)`` for residual estimates of shape (F, G)."""
        where = coordinates.stream, coordinates.attribute
        rate = (residual * self.eta).take(coordinates.stream, axis=0)
        change = np.clip(rate * coordinates.value[:, None], -1.0, 1.0)
        theta = self._theta[where] - change
        self._theta[where] = theta
        M = self._M.take(coordinates.stream, axis=0)
        S, H = _sinh_cosh(theta, M)
        S_old, H_old = self._S[where], self._H[where]
        self._S[where], self._H[where] = S, H
        self._V[where] += (S_old - S) * self._C.take(coordinates.stream, axis=0)
        opens = coordinates.stream_start
        self._Z[coordinates.stream[opens]] += np.add.reduceat(H - H_old, opens, axis=0)
        weight = np.abs(S)
        self._weights.assign(coordinates, weight)
        self._weights.add(coordinates, weight - np.abs(S_old))

    def refresh(self) -> None:
        """Choose the reference exponents and sum everything afresh, against the drift of round-off."""
        self._V += self._S * self._C[:, None, :]
        self._M, self._C = np.abs(self._theta).max(axis=1), np.zeros(self._shape)
        self._S, self._H = _sinh_cosh(self._theta, self._M[:, None, :])
        self._Z = self._H.sum(axis=1)
        self._Z_folded = self._Z.copy()
        self._weights.rebuild_all(np.abs(self._S))

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""
        return self._V + self._S * self._C[:, None, :]

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `settle`."""
        return self._S * (self.B / self._Z)[:, None, :]

    def _fold(self, stream: np.ndarray, setting: np.ndarray) -> None:
        replicas = stream, slice(None), setting
        theta = np.ascontiguousarray(self._theta[replicas])
        self._V[replicas] += self._S[replicas] * self._C[stream, setting][:, None]
        M = np.abs(theta).max(axis=1)
        S, H = _sinh_cosh(theta, M[:, None])
        self._S[replicas], self._H[replicas] = S, H
        self._M[stream, setting], self._C[stream, setting] = M, 0.0
        self._Z[stream, setting] = self._Z_folded[stream, setting] = H.sum(axis=1)
        self._weights.rebuild(stream, setting, np.abs(S))


def _sinh_cosh(theta: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``2 exp(-M) sinh(theta)`` and ``2 exp(-M) cosh(theta)`` without overflow for ``M >= |theta|``."""
    up, down = np.exp(theta - M), np.exp(-theta - M)
    return up - down, up + down

"""Online gradient descent on the 2-ball (GAERR: AERR and its relatives), for F streams of G settings at once.

Notation: ``w = c u``, see `scaled_regressors`; the projection is a change of c.
"""

import numpy as np

from budgetreg.algorithms.regressors import FOLD_RATIO, ScaledRegressors
from budgetreg.algorithms.rounds import Round

RESCALE_BELOW = 1e-60
"""Smallest factor before u is rescaled, so that ``u^2`` cannot overflow."""


class OGD(ScaledRegressors):
    """State of online gradient descent on the ball ``|w|_2 <= B``.

    Hazan & Koren 2012, Algorithm AERR; Kukliansky & Shamir 2015, GAERR. ``w <- v B / max(|v|_2, B)``,
    ``v = w - eta g~``; inner product draws from ``p_j = w_j^2 / |w|_2^2``; ``w_1 = 0``.

    Parameters are those of `ScaledRegressors`.
    """

    size = np.square

    def _prepare(self) -> None:
        self._c_folded = self._c.copy()
        # Projecting twice would change the last bits: at most once per step, however often `settle` is called.
        self._moved = np.zeros(len(self._c), dtype=bool)

    def _begin(self, start: np.ndarray) -> None:
        self._u = self.layout.pad(start)
        self._update_trees(self.layout.nodes(np.arange(len(self._u))), np.arange(len(start)))

    def settle(self, before: np.ndarray, now: np.ndarray) -> None:
        """Project, then add the regressors to the sum for the steps ``before + 1`` to ``now`` (both of shape (F,))."""
        norm = self._c * np.sqrt(self._norm)
        self._c *= np.where(self._moved[:, None], self.B / np.maximum(norm, self.B), 1.0)
        self._moved[:] = False
        fallen = self._c * FOLD_RATIO < self._c_folded
        if fallen.any():
            self._fold(fallen)
            self._rescale(fallen & (self._c < RESCALE_BELOW))
            self._c_folded[fallen] = self._c[fallen]
        self._C += (now - before)[:, None] * self._c

    def step(self, coordinates: Round, residual: np.ndarray) -> None:
        """Take the gradient step ``w -= eta phi~ x~`` for residual estimates of shape (F, G)."""
        stream, row = coordinates.stream, coordinates.row
        self._moved[coordinates.streams] = True
        change = (residual * (self.eta / self._c)).take(stream, axis=0)
        change *= coordinates.values
        self._u[row] = self._u.take(row, axis=0) - change
        change *= self._C.take(stream, axis=0)
        self._V[row] = self._V.take(row, axis=0) + change
        self._update_trees(coordinates.nodes, coordinates.streams)

    def _rescale(self, replicas: np.ndarray) -> None:
        """Set c to 1 for replicas, bool of shape (F, G), so that u are their regressors."""
        for f, rows, _ in self.active.by_stream(replicas):
            self._u[rows] *= np.where(replicas[f], self._c[f], 1.0)
            self._update_trees(self.layout.nodes(rows), np.array([f]))
        self._c[replicas] = 1.0

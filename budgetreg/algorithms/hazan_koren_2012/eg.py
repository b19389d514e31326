"""Exponentiated gradient on the 1-ball (GAELR: AELR and its relatives), for F streams of G settings at once.

Notation: ``w = c u``, see `scaled_regressors`, with ``u = exp(theta - M) - exp(-theta - M)``, ``c = B / Z``, and ``Z``
the sum of ``exp(theta - M) + exp(-theta - M)``; ``M`` is a reference exponent that keeps everything finite. As the sum
of these two is ``|u| + 2 exp(-|theta| - M)``, ``Z = |u|_1 + 2 N``. The sampler maintains ``|u|_1``, and ``N`` is a sum
of terms of at most ``exp(-M)``, so that a coordinate that returns from a large exponent causes no cancellation.
"""

import numpy as np

from budgetreg.algorithms.regressors import FOLD_RATIO, ScaledRegressors
from budgetreg.algorithms.rounds import Round

RESCALE_RATIO = 1e100
"""Largest Z, or 1/Z, before a new reference exponent is chosen."""


class EG(ScaledRegressors):
    """State of the exponentiated gradient algorithm on the ball ``|w|_1 <= B``.

    Hazan & Koren 2012, Algorithm AELR; Kukliansky & Shamir 2015, GAELR. ``g^- = clip(g~, 1/eta)``,
    ``theta -= eta g^-``, ``w = B sinh(theta) / sum(cosh(theta))``; inner product draws from
    ``p_j = |w_j| / |w|_1``; ``theta_1 = 0``, hence ``w_1 = 0``.

    Parameters are those of `ScaledRegressors`; regressors to start from need a 1-norm below B.
    """

    size = np.abs

    def _prepare(self) -> None:
        self._theta = np.zeros_like(self._u)
        self._M, self._N = np.zeros_like(self._c), np.full_like(self._c, self.layout.d)
        self._Z, self._Z_folded = 2 * self._N, 2 * self._N

    def _begin(self, start: np.ndarray) -> None:
        self._theta = self.layout.pad(exponents(start / self.B))
        self._rescale(np.ones_like(self._c, dtype=bool))

    def settle(self, before: np.ndarray, now: np.ndarray) -> None:
        """Add the regressors to the sum for the steps ``before + 1`` to ``now`` (both of shape (F,))."""
        self._Z = self._norm + 2 * self._N
        ratio = self._Z / self._Z_folded
        if ratio.max() > FOLD_RATIO or ratio.min() * FOLD_RATIO < 1:
            changed = (ratio > FOLD_RATIO) | (ratio * FOLD_RATIO < 1)
            self._fold(changed)
            self._rescale(changed & ((self._Z > RESCALE_RATIO) | (self._Z * RESCALE_RATIO < 1)))
            self._Z_folded[changed] = self._Z[changed]
        self._c = self.B / self._Z
        self._C += (now - before)[:, None] * self._c

    def step(self, coordinates: Round, residual: np.ndarray) -> None:
        """Take the step ``theta -= eta clip(phi~ x~, 1/eta)`` for residual estimates of shape (F, G)."""
        stream, row = coordinates.stream, coordinates.row
        change = (residual * self.eta).take(stream, axis=0) * coordinates.values
        old = self._theta.take(row, axis=0)
        theta = old - np.minimum(np.maximum(change, -1.0), 1.0)
        M = self._M.take(stream, axis=0)
        u, small = _parts(theta, M)
        self._theta[row] = theta
        moved = (self._u.take(row, axis=0) - u) * self._C.take(stream, axis=0)
        self._V[row] = self._V.take(row, axis=0) + moved
        self._u[row] = u
        small -= np.exp(-np.abs(old) - M)
        self._N[coordinates.streams] += np.add.reduceat(small, coordinates.stream_start, axis=0)
        self._update_trees(coordinates.nodes, coordinates.streams)

    def _rescale(self, replicas: np.ndarray) -> None:
        """Set the references M of replicas, bool of shape (F, G), to their largest exponents."""
        for f, rows, settings in self.active.by_stream(replicas):
            where = rows[:, None], settings
            theta = self._theta[where]
            M = np.abs(theta).max(axis=0)
            self._u[where], small = _parts(theta, M)
            self._M[f, settings] = M
            untouched = self.layout.d - rows.size
            self._N[f, settings] = np.ascontiguousarray(small.T).sum(axis=1) + untouched * np.exp(-M)
            self._update_trees(self.layout.nodes(rows), np.array([f]))
            self._Z[f] = self._norm[f] + 2 * self._N[f]


def _parts(theta: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``2 exp(-M) sinh(theta)`` and ``exp(-|theta| - M)``, without overflow for ``|theta| <= M + 700``."""
    size = np.abs(theta)
    small = np.exp(-size - M)
    return np.copysign(np.exp(size - M) - small, theta), small


def exponents(v: np.ndarray) -> np.ndarray:
    """Return the exponents theta whose regressor ``sinh(theta) / sum(cosh(theta))`` is v, of 1-norm below 1.

    ``theta_j = asinh(C v_j)``, where ``C = sum(cosh(theta))`` is the root of ``sum_j sqrt(1 + (C v_j)^2) = C``. The
    difference of the two sides is convex and decreasing, so that Newton's method rises to the root from 0.

    Parameters
    ----------
    v : ndarray of float, shape (F, d, G)
        Regressors in the unit 1-ball; those on its surface, which no exponents reach, are first shrunk a little.

    Returns
    -------
    ndarray of float, shape (F, d, G)
    """
    rows = np.ascontiguousarray(v.transpose(0, 2, 1))  # so that a replica's sums do not depend on how many there are
    rows *= np.minimum(1, (1 - 1e-9) / np.maximum(np.abs(rows).sum(axis=2, keepdims=True), 1e-9))
    C = np.zeros((*rows.shape[:2], 1))
    unsettled = np.ones(C.shape, dtype=bool)
    while unsettled.any():
        cosh = np.sqrt(1 + np.square(C * rows))
        slope = (C * np.square(rows) / cosh).sum(axis=2, keepdims=True) - 1
        step = (C - cosh.sum(axis=2, keepdims=True)) / slope
        unsettled &= step > 1e-15 * C
        C += np.where(unsettled, step, 0)
    return np.arcsinh(C * rows).transpose(0, 2, 1)

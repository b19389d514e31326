"""Exponentiated gradient on the 1-ball (GAELR: AELR and its relatives), for F streams of G settings at once.

Notation: ``w = B S / Z`` with ``S = exp(theta - M) - exp(-theta - M)`` and ``Z`` the sum of
``exp(theta - M) + exp(-theta - M)``; ``M`` is a reference exponent that keeps everything finite.  As these two add up
to ``|S| + 2 exp(-|theta| - M)``, ``Z = |S|_1 + 2 N``, of which the sampler knows ``|S|_1`` and ``N`` is a sum of terms
of at most ``exp(-M)``: no coordinate that returns from a large exponent can spoil it.  ``C`` sums ``B / Z`` over the
steps since the last fold, so that ``V + C S`` is the sum of all iterates.
"""

from collections.abc import Mapping

import numpy as np

from budgetreg.sampling.rounds import Round
from budgetreg.sampling.segment_trees import Layout
from budgetreg.updates.inner_product import InnerProduct
from budgetreg.updates.seen import Seen

FOLD_RATIO = 1e3
"""Largest change of the normaliser Z, up or down, before ``C S`` is added to ``V``: later, they would cancel digits."""
RESCALE_RATIO = 1e100
"""Largest Z, or 1/Z, that is let stand before a new reference exponent is chosen."""


class EG:
    """State of the exponentiated gradient algorithm on the ball ``|w|_1 <= B``.

    Hazan & Koren 2012, Algorithm AELR; Kukliansky & Shamir 2015, GAELR.  ``g^- = clip(g~, 1/eta)``,
    ``theta -= eta g^-``, ``w = B sinh(theta) / sum(cosh(theta))``; inner product draws from
    ``p_j = |w_j| / |w|_1``; ``theta_1 = 0``, hence ``w_1 = 0``.

    Parameters
    ----------
    n_streams, d, k_ip : int
        Streams F, attributes d, and draws for the inner product.
    settings : mapping of str to ndarray of shape (G,)
        ``B``, radius; ``eta``, step size.
    root_moments : ndarray of float, shape (F, d), optional
        See `InnerProduct`.
    start : ndarray of float, shape (F, d, G), optional
        The regressors ``w_1``, of 1-norm below B; 0 unless given.
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
        self._theta, self._S, self._V = (np.zeros(self._shape).reshape(-1, self.B.size) for _ in range(3))
        self._M, self._C = np.zeros(shape), np.zeros(shape)
        self._N = np.full(shape, float(d))
        self._Z, self._Z_folded = 2 * self._N, 2 * self._N
        self._sampler = InnerProduct(*shape, k_ip, self.layout, np.abs, root_moments)
        self.seen = Seen(n_streams, self.layout)
        if start is not None:
            self._theta.reshape(self._shape)[:, :d] = exponents(start / self.B)
            self.seen.note_all()
            for f in range(n_streams):
                self._rescale(f, self.seen.rows(f), np.arange(self.B.size))

    @property
    def alive(self) -> np.ndarray:
        """Replicas with an inner product to estimate, shape (F, G)."""
        return self._sampler.mass > 0

    def settle(self, before: np.ndarray, now: np.ndarray) -> None:
        """Hold the regressors from step ``before + 1`` to step ``now`` (both of shape (F,))."""
        self._Z = self._sampler.norm + 2 * self._N
        ratio = self._Z / self._Z_folded
        if ratio.max() > FOLD_RATIO or ratio.min() * FOLD_RATIO < 1:
            self._fold((ratio > FOLD_RATIO) | (ratio * FOLD_RATIO < 1))
        self._C += (now - before)[:, None] * (self.B / self._Z)

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (n, F, G), from (n, F)."""
        attributes, ratio = self._sampler.draw(uniforms, self._S)
        return attributes, ratio * (self.B / self._Z)

    def expect(self, coefficients: np.ndarray) -> None:
        """Keep inner products with what attributes are expected to be, see `control_variates.Expecting`."""
        self._sampler.expect(coefficients, self._S)

    def expected(self, attributes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients of attributes and the regressors' inner products with all; valid after `settle`."""
        single, product = self._sampler.expected(attributes)
        return single, product * (self.B / self._Z)

    def step(self, coordinates: Round, residual: np.ndarray) -> None:
        """Take the step ``theta -= eta clip(phi~ x~, 1/eta)`` for residual estimates of shape (F, G)."""
        stream, row = coordinates.stream, coordinates.row
        change = (residual * self.eta).take(stream, axis=0) * coordinates.value[:, None]
        old = self._theta.take(row, axis=0)
        theta = old - np.minimum(np.maximum(change, -1.0), 1.0)
        M = self._M.take(stream, axis=0)
        S, small = _parts(theta, M)
        self._theta[row] = theta
        moved = (self._S.take(row, axis=0) - S) * self._C.take(stream, axis=0)
        self._V[row] = self._V.take(row, axis=0) + moved
        self._S[row] = S
        small -= np.exp(-np.abs(old) - M)
        self._N[coordinates.streams] += np.add.reduceat(small, coordinates.stream_start, axis=0)
        self._sampler.update(self._S, coordinates.nodes, coordinates.streams)

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""
        S, V = self._S.reshape(self._shape), self._V.reshape(self._shape)
        return V[:, : self._d] + S[:, : self._d] * self._C[:, None, :]

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `settle`."""
        return self._S.reshape(self._shape)[:, : self._d] * (self.B / self._Z)[:, None, :]

    def _fold(self, replicas: np.ndarray) -> None:
        for f, rows, settings in self.seen.by_stream(replicas):
            where = rows[:, None], settings
            self._V[where] += self._S[where] * self._C[f, settings]
            far = replicas[f] & ((self._Z[f] > RESCALE_RATIO) | (self._Z[f] * RESCALE_RATIO < 1))
            if far.any():
                self._rescale(f, rows, np.flatnonzero(far))
        self._C[replicas] = 0.0
        self._Z_folded = np.where(replicas, self._Z, self._Z_folded)

    def _rescale(self, stream: int, rows: np.ndarray, settings: np.ndarray) -> None:
        where = rows[:, None], settings
        theta = self._theta[where]
        M = np.abs(theta).max(axis=0)
        self._S[where], small = _parts(theta, M)
        self._M[stream, settings] = M
        self._N[stream, settings] = np.ascontiguousarray(small.T).sum(axis=1) + (self._d - rows.size) * np.exp(-M)
        self._sampler.update(self._S, self.layout.nodes(rows), np.array([stream]))
        self._Z[stream] = self._sampler.norm[stream] + 2 * self._N[stream]


def _parts(theta: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``2 exp(-M) sinh(theta)`` and ``exp(-|theta| - M)``, without overflow for ``|theta| <= M + 700``."""
    size = np.abs(theta)
    small = np.exp(-size - M)
    return np.copysign(np.exp(size - M) - small, theta), small


def exponents(v: np.ndarray) -> np.ndarray:
    """Return the exponents theta whose regressor ``sinh(theta) / sum(cosh(theta))`` is v, of 1-norm below 1.

    ``theta_j = asinh(C v_j)``, where ``C = sum(cosh(theta))`` is the root of ``sum_j sqrt(1 + (C v_j)^2) = C``.  The
    difference of the two sides is convex and falls, so that Newton's method rises to the root from 0.

    Parameters
    ----------
    v : ndarray of float, shape (F, d, G)
        Regressors in the unit 1-ball; on its surface, which no exponents reach, they are drawn back from it a little.

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

"""Pegasos on the 1-ball (AER), for F streams of G settings at once.

Notation: ``U = (t - 1) w_t``, which no step rescales. Its entries are stored as keys
``kappa = sign(U) (|U| + T)`` with one threshold ``T`` per replica, 0 where ``U = 0``. A projection onto the 1-ball
raises ``T`` and drops the coordinates whose keys it reaches; it changes no other. The sampler's weights are
``|kappa| - T`` for active coordinates. They are linear in ``T``: the trees hold the keys as real parts and the number
of active ones as imaginary parts, so that one ``T`` applies to any node. With ``h`` and ``P`` the sums of ``1/(t-1)``
and ``T/(t-1)`` over the steps since the last fold, ``V + h kappa - P sign(kappa)`` is the sum of all iterates.
"""

from collections.abc import Mapping

import numpy as np

from budgetreg.algorithms.regressors import ActiveRows
from budgetreg.algorithms.rounds import Round
from budgetreg.algorithms.trees import Inverter, Layout, Levels, Minima, PrefixSums

FOLD_RATIO = 1e3
"""Largest threshold before a fold, in multiples of the ball's radius; with larger ones keys would lose digits."""
LARGEST_STEP = 2.0**26
"""Largest coordinate of a step, in multiples of the radius of the projection.

Half of a double's digits remain for the result of the projection, and half for the order of the coordinates.
"""
HARMONIC_BLOCK = 4096
"""Number of terms by which the table of harmonic numbers grows."""


class Pegasos:
    """State of AER: Pegasos with a Euclidean projection onto the ball ``|w|_1 <= B``.

    Cesa-Bianchi, Shalev-Shwartz & Shamir 2010, Algorithm 2 (AER), whose loss has no factor 1/2:
    ``w <- (1 - 1/t) w - (2 / (lambda t)) phi~ x~``, then the projection of Duchi et al. 2008; inner product draws
    from ``p_j = |w_j| / |w|_1``; ``w_1 = 0``.

    Parameters
    ----------
    n_streams, d, k_ip : int
        Streams F, attributes d, and draws for the inner product.
    settings : mapping of str to ndarray of shape (G,)
        ``B``, radius; ``lambda``, regularisation.
    """

    def __init__(self, n_streams: int, d: int, k_ip: int, settings: Mapping[str, np.ndarray]) -> None:
        self.B, self.lam = settings["B"], settings["lambda"]
        self._short = LARGEST_STEP * self.B.min()  # a step of this size is bounded for no replica
        shape = n_streams, self.B.size
        self.layout = Layout(d)
        self._kappa, self._V = (np.zeros((n_streams * self.layout.padded, self.B.size)) for _ in range(2))
        self._T, self._P, self._h = (np.zeros(shape) for _ in range(3))
        self._trees = PrefixSums(*shape, self.layout, dtype=complex)
        self._least, self._inverter = Minima(*shape, self.layout), Inverter(*shape, self.layout, k_ip)
        self._norm = np.zeros(shape)
        self.active = ActiveRows(n_streams, self.layout)
        # Projecting twice would change the last bits: at most once per step, however often `settle` is called.
        self._moved = np.zeros(n_streams, dtype=bool)
        self._norm_factor = np.zeros(n_streams)
        self._harmonic_table = np.zeros(2, dtype=np.longdouble)

    @property
    def alive(self) -> np.ndarray:
        """Replicas with ``w != 0``, shape (F, G)."""
        return self._trees.total.imag > 0

    def settle(self, before: np.ndarray, now: np.ndarray) -> None:
        """Project, then add the iterates ``before + 1`` to ``now`` (both of shape (F,)) to their sum."""
        radius = before[:, None] * self.B
        self._project(radius)
        high = radius < self._T / FOLD_RATIO
        if high.any():
            self._fold(high)
        self._norm = np.maximum(self._trees.total.real - self._trees.total.imag * self._T, 0.0)
        elapsed = self._harmonic(now) - self._harmonic(before)
        self._h += elapsed[:, None]
        self._P += elapsed[:, None] * self._T
        self._norm_factor = 1.0 / np.maximum(now - 1, 1)

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (n, F, G), from (n, F)."""
        T = np.tile(self._T.reshape(-1), len(uniforms))

        def before(level: int, position: np.ndarray) -> np.ndarray:
            sums = self._trees.before(level, position)
            return np.asarray(sums.real - sums.imag * T)

        root = self._trees.root.real - self._trees.root.imag * self._T
        attributes = self._inverter(uniforms[:, :, None] * self._norm, root, before)
        kappa = self._inverter.values(self._kappa, attributes)
        return attributes, np.sign(kappa) * (self._norm * self._norm_factor[:, None])

    def step(self, coordinates: Round, residual: np.ndarray) -> None:
        """Take the step ``U -= (2 / lambda) phi~ x~`` for residual estimates of shape (F, G)."""
        stream, row = coordinates.stream, coordinates.row
        self._moved[coordinates.streams] = True
        T = self._T.take(stream, axis=0)
        rate = self._bounded(residual * (2.0 / self.lam), coordinates).take(stream, axis=0)
        old = self._kappa.take(row, axis=0)
        sign_old = np.sign(old)
        U = old - sign_old * T - rate * coordinates.values
        sign = np.sign(U)
        new = U + sign * T
        moved = (old - new) * self._h.take(stream, axis=0) - (sign_old - sign) * self._P.take(stream, axis=0)
        self._V[row] = self._V.take(row, axis=0) + moved
        self._kappa[row] = new
        nodes, streams = coordinates.nodes, coordinates.streams
        self._rekey(self._kappa.take(self.layout.leaves(nodes, streams), axis=0), nodes, streams)

    def _bounded(self, rate: np.ndarray, coordinates: Round) -> np.ndarray:
        """Shorten steps so large that rounding would lose the radius; their projection is nearly the same."""
        sizes = np.abs(coordinates.values)
        if np.abs(rate).max() * sizes.max() <= self._short:
            return rate
        largest = np.ones((len(rate), sizes.shape[1]))
        largest[coordinates.streams] = np.maximum.reduceat(sizes, coordinates.stream_start, axis=0)
        bound = LARGEST_STEP * coordinates.step[:, None] / largest * self.B
        return np.clip(rate, -bound, bound)

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""
        kappa = self.layout.unpad(self._kappa)
        return self.layout.unpad(self._V) + kappa * self._h[:, None, :] - np.sign(kappa) * self._P[:, None, :]

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `settle`."""
        kappa = self.layout.unpad(self._kappa)
        return (kappa - np.sign(kappa) * self._T[:, None, :]) * self._norm_factor[:, None, None]

    def _project(self, radius: np.ndarray) -> None:
        """Project onto ``|U|_1 <= radius`` (F, G), dropping the keys that the threshold reaches (Michelot 1986)."""
        total = self._trees.total
        excess = total.real - total.imag * self._T - radius
        stream, setting = np.nonzero((excess > 0) & self.alive & self._moved[:, None])
        self._moved[:] = False
        while stream.size:
            replicas = stream, setting
            T = (total.real[replicas] - radius[replicas]) / total.imag[replicas]
            self._T[replicas] = T
            passed = self._least.least[replicas] <= T
            stream, setting = stream[passed], setting[passed]
            if stream.size:
                self._drop(stream, setting, T[passed])

    def _drop(self, stream: np.ndarray, setting: np.ndarray, T: np.ndarray) -> None:
        """Set to 0 the coordinates of K replicas whose keys are at most T (K,)."""
        replicas, nodes = self._least.reaching(stream, setting, T)
        settings = [setting[of] for of in replicas]
        where = self.layout.below(1, nodes[0]) * self.B.size + settings[0]
        all_kappa, V = self._kappa.reshape(-1), self._V.reshape(-1)
        kappa = all_kappa.take(where)
        child, at = np.nonzero((np.abs(kappa) <= T[replicas[0]]) & (kappa != 0))
        dropped, gone = where[child, at], kappa[child, at]
        replica = stream[replicas[0][at]], settings[0][at]
        V[dropped] += gone * self._h[replica] - np.sign(gone) * self._P[replica]
        all_kappa[dropped] = kappa[child, at] = 0.0
        self._rekey(kappa, nodes[:-1], stream, settings)

    def _rekey(self, kappa: np.ndarray, nodes: Levels, streams: np.ndarray, settings: Levels | None = None) -> None:
        key = np.abs(kappa)
        active = key > 0
        self._trees.update(key + 1j * active, nodes, streams, settings)
        self._least.update(np.where(active, key, np.inf), nodes, streams, settings)

    def _fold(self, replicas: np.ndarray) -> None:
        """Set the thresholds of replicas, bool of shape (F, G), to 0."""
        for f, rows, settings in self.active.by_stream(replicas):
            where = rows[:, None], settings
            kappa = self._kappa[where]
            sign = np.sign(kappa)
            self._V[where] += kappa * self._h[f, settings] - sign * self._P[f, settings]
            self._kappa[where] = kappa - sign * self._T[f, settings]
            nodes, streams = self.layout.nodes(rows), np.array([f])
            self._rekey(self._kappa.take(self.layout.leaves(nodes, streams), axis=0), nodes, streams)
        self._T[replicas] = self._P[replicas] = self._h[replicas] = 0.0

    def _harmonic(self, t: np.ndarray) -> np.ndarray:
        """Return ``1/1 + ... + 1/(t - 1)`` in extended precision; its differences are the weights of the average."""
        while self._harmonic_table.size <= t.max():
            size = self._harmonic_table.size
            terms = 1 / np.arange(size - 1, size - 1 + HARMONIC_BLOCK, dtype=np.longdouble)
            terms[0] += self._harmonic_table[-1]
            self._harmonic_table = np.concatenate([self._harmonic_table, np.cumsum(terms)])
        return self._harmonic_table[t]

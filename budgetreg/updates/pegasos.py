"""Pegasos on the 1-ball (AER), for F streams of G settings at once.

Notation: ``U = (t - 1) w_t``, which no step rescales.  Its entries are stored as keys
``kappa = sign(U) (|U| + T)`` with one threshold ``T`` per replica, 0 where ``U = 0``: a projection onto the 1-ball
raises ``T`` and drops the coordinates whose keys it passes, touching no other.  With ``h`` and ``P`` the sums of
``1/(t-1)`` and ``T/(t-1)`` over the steps since the last fold, ``V + h kappa - P sign(kappa)`` is the sum of all
iterates.
"""

from collections.abc import Mapping

import numpy as np

from budgetreg.rounds import Round
from budgetreg.sampling import Weights, corners

HARMONIC_BLOCK = 4096


class Pegasos:
    """State of AER: Pegasos with a Euclidean projection onto the ball ``|w|_1 <= B``.

    Cesa-Bianchi, Shalev-Shwartz & Shamir 2010, Algorithm 2 (AER), whose loss has no factor 1/2:
    ``w <- (1 - 1/t) w - (2 / (lambda t)) phi~ x~``, then the projection of Duchi et al. 2008; inner product draws
    from ``p_j = |w_j| / |w|_1``; ``w_1 = 0``.

    Parameters
    ----------
    n_streams, d : int
        Streams F and attributes d.
    settings : mapping of str to ndarray of shape (G,)
        ``B``, radius; ``lambda``, regularisation.
    """

    def __init__(self, n_streams: int, d: int, settings: Mapping[str, np.ndarray]) -> None:
        self.B, self.lam = settings["B"], settings["lambda"]
        shape = (n_streams, self.B.size)
        self._shape = shape
        self._kappa, self._V = np.zeros((n_streams, d, shape[1])), np.zeros((n_streams, d, shape[1]))
        self._T, self._P, self._h = np.zeros(shape), np.zeros(shape), np.zeros(n_streams)
        self._keys = Weights(*shape, d)
        n_blocks = self._keys.layout.n_blocks
        self._active = np.zeros((n_streams, n_blocks, shape[1]))
        self._least = np.full((n_streams, n_blocks, shape[1]), np.inf)
        self._prefix = self._keys.layout.prefix(self._keys.sums)
        # A projection moves the last bits even of what it has projected: once per step, however often one settles.
        self._moved = np.zeros(n_streams, dtype=bool)
        self._norm_factor = np.zeros(n_streams)
        self._harmonic_table = np.zeros(2, dtype=np.longdouble)
        self.width = self._keys.layout.width
        self._corner = corners(*self._shape, d)

    @property
    def alive(self) -> np.ndarray:
        """Replicas with ``w != 0``, shape (F, G); valid after `settle`."""
        return np.asarray(self._active.any(axis=1))

    def settle(self, before: np.ndarray, now: np.ndarray) -> None:
        """Project, then hold ``U`` from step ``before + 1`` to step ``now`` (both of shape (F,))."""
        self._project(before[:, None] * self.B)
        sums = self._keys.sums - self._active * self._T[:, None, :]
        self._prefix = self._keys.layout.prefix(np.maximum(sums, 0.0))
        elapsed = self._harmonic(now) - self._harmonic(before)
        self._h += elapsed
        self._P += elapsed[:, None] * self._T
        self._norm_factor = 1.0 / np.maximum(now - 1, 1)

    def draw(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw for the inner product: attributes j and coefficients ``w_j / p_j``, both (F, G, n), from (F, n)."""
        threshold = self._T.repeat(uniforms.shape[1], axis=1)[:, :, None]
        attributes = self._keys.layout.invert(
            self._prefix, uniforms, lambda block: np.maximum(self._keys.blocks(block) - threshold, 0.0)
        )
        kappa = self._kappa.reshape(-1).take(attributes * self._shape[1] + self._corner)
        norm = self._prefix[:, -1] * self._norm_factor[:, None]
        return attributes, np.sign(kappa) * norm[:, :, None]

    def step(self, coordinates: Round, residual: np.ndarray) -> None:
        """Take the step ``U -= (2 / lambda) phi~ x~`` for residual estimates of shape (F, G)."""
        stream, attribute = coordinates.stream, coordinates.attribute
        self._moved[stream] = True
        T = self._T.take(stream, axis=0)
        rate = (residual * (2.0 / self.lam)).take(stream, axis=0)
        old = self._kappa[stream, attribute]
        sign_old = np.sign(old)
        U = old - sign_old * T - rate * coordinates.value[:, None]
        sign = np.sign(U)
        new = U + sign * T
        change = (old - new) * self._h[stream, None] - (sign_old - sign) * self._P.take(stream, axis=0)
        self._V[stream, attribute] += change
        self._kappa[stream, attribute] = new
        key, key_old = np.abs(new), np.abs(old)
        self._keys.assign(coordinates, key)
        self._keys.add(coordinates, key - key_old)
        starts = coordinates.block_start
        block = stream[starts], attribute[starts] // self.width
        is_active, was_active = sign != 0, sign_old != 0
        entered = is_active.astype(np.float64) - was_active
        self._active[block] += np.add.reduceat(entered, starts, axis=0)
        candidate = np.where(is_active, key, np.inf)
        self._least[block] = np.minimum(self._least[block], np.minimum.reduceat(candidate, starts, axis=0))

    def refresh(self) -> None:
        """Bring the thresholds to 0 and sum everything afresh, against the drift of round-off."""
        sign = np.sign(self._kappa)
        self._V += self._kappa * self._h[:, None, None] - sign * self._P[:, None, :]
        self._kappa -= sign * self._T[:, None, :]
        sign = np.sign(self._kappa)
        self._T[:], self._P[:], self._h[:] = 0.0, 0.0, 0.0
        self._keys.rebuild_all(np.abs(self._kappa))
        blocks = tuple(np.indices(self._active.shape).reshape(3, -1))
        self._recount(blocks, self._keys.rows(blocks))

    def running_sum(self) -> np.ndarray:
        """Return the sum of the iterates held so far, shape (F, d, G)."""
        return self._V + self._kappa * self._h[:, None, None] - np.sign(self._kappa) * self._P[:, None, :]

    def iterate(self) -> np.ndarray:
        """Return the regressors, shape (F, d, G); valid after `settle`."""
        U = self._kappa - np.sign(self._kappa) * self._T[:, None, :]
        return U * self._norm_factor[:, None, None]

    def _project(self, radius: np.ndarray) -> None:
        """Project onto ``|U|_1 <= radius`` (F, G): Michelot 1986, looking only into blocks that lose a coordinate."""
        excess = (self._keys.sums - self._active * self._T[:, None, :]).sum(axis=1) - radius
        stream, setting = np.nonzero((excess > 0) & self.alive & self._moved[:, None])
        self._moved[:] = False
        excess, radius = excess[stream, setting], radius[stream, setting]
        while stream.size:
            T = self._T[stream, setting] + excess / self._active[stream, :, setting].sum(axis=1)
            replica, block = np.nonzero(self._least[stream, :, setting] <= T[:, None])
            blocks = stream[replica], block, setting[replica]
            rows = self._keys.rows(blocks)
            dropped = (rows > 0) & (rows <= T[replica, None])
            self._recount(blocks, np.where(dropped, 0.0, rows))
            row, place = np.nonzero(dropped)
            where = blocks[0][row], block[row] * self.width + place, blocks[2][row]
            kappa = self._kappa[where]
            self._V[where] += kappa * self._h[where[0]] - np.sign(kappa) * self._P[where[0], where[2]]
            self._kappa[where] = 0.0

            shrunk = np.zeros(stream.size, dtype=bool)
            shrunk[replica[row]] = True
            self._T[stream[~shrunk], setting[~shrunk]] = T[~shrunk]
            stream, setting, radius = stream[shrunk], setting[shrunk], radius[shrunk]
            kept = (
                self._keys.sums[stream, :, setting] - self._active[stream, :, setting] * self._T[stream, setting, None]
            )
            excess = np.ascontiguousarray(kept).sum(axis=1) - radius

    def _recount(self, blocks: tuple[np.ndarray, ...], rows: np.ndarray) -> None:
        """Set the keys (K, width) of blocks (streams, blocks, settings), with their sums, counts and least keys."""
        self._keys.set_rows(blocks, rows)
        self._active[blocks] = (rows > 0).sum(axis=1)
        self._least[blocks] = np.where(rows > 0, rows, np.inf).min(axis=1, initial=np.inf)

    def _harmonic(self, t: np.ndarray) -> np.ndarray:
        """Return ``1/1 + ... + 1/(t - 1)`` in extended precision: differences of it are the weights of the average."""
        while self._harmonic_table.size <= t.max():
            size = self._harmonic_table.size
            terms = 1 / np.arange(size - 1, size - 1 + HARMONIC_BLOCK, dtype=np.longdouble)
            terms[0] += self._harmonic_table[-1]
            self._harmonic_table = np.concatenate([self._harmonic_table, np.cumsum(terms)])
        return self._harmonic_table[t]

"""PETRELS: recursive least squares for each attribute's row of the subspace, for F streams of G settings at once."""

from collections.abc import Mapping

import numpy as np

from budgetreg.updates.subspaces import Subspaces, weights

RIDGE = 0.1
"""Of the weights' least squares, in units of the mean eigenvalue r/d of V_S'V_S."""
ORTHONORMALISE = 256
"""Steps after which V is made orthonormal anew; the ridge presupposes that its columns have about that length."""


class Petrels(Subspaces):
    """State of PETRELS: row i of V is fitted to all values ``x_i`` seen so far, given the weights w of their examples.

    With weights w of the example at hand, ``R_i <- lambda R_i + w w'`` and ``V_i += (x_i - V_i w) R_i^{-1} w`` for the
    attributes i seen, and ``R_i <- lambda R_i`` for the others.  The inverses are kept, O(d n^2) numbers, and are made
    up to date when their attribute is seen.

    Two things keep what is less than certain from growing without end: the weights are fitted with a ridge, and no
    ``R_i^{-1}`` becomes larger by forgetting than it was at first, when it stood for one example.  The published least
    squares has no ridge; on data that are not of rank n, it fits noise with few attributes.  With or without, PETRELS
    is biased there, whatever the number of examples.

    Parameters
    ----------
    V : ndarray of float, shape (F, G, d, n)
        Orthonormal columns to start from.
    k : int
        Attributes r seen of each example, more than n.
    settings : mapping of str to ndarray of shape (G,)
        ``forgetting``, the factor lambda, in (0, 1]: ``1/(1 - lambda)`` examples are remembered, which should show each
        attribute more than n times.

    References
    ----------
    Y. Chi, Y. C. Eldar, R. Calderbank. PETRELS: Parallel Subspace Estimation and Tracking by Recursive Least Squares
    from Partial Observations. IEEE Trans. Signal Processing 61(23), 2013, Algorithm 1.
    """

    def __init__(self, V: np.ndarray, k: int, settings: Mapping[str, np.ndarray]) -> None:
        super().__init__(V)
        F, G, d, n = V.shape
        self._growth = 1 / settings["forgetting"][:, None]
        self._ridge = RIDGE * k / d
        self._P = np.tile(n * np.eye(n), (F * G * d, 1, 1))
        self._last = np.zeros(F * G * d, dtype=np.int64)
        self._unit = np.zeros((F, 1, 1, 1))
        self._steps = 0

    def step(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Learn from one example of each stream: S as rows of the state (F, G, r), the values x_S (F, 1, r, 1)."""
        self._steps += 1
        if self._steps % ORTHONORMALISE == 0:
            self._orthonormalise()
        d, n = self._V.shape[2:]
        x = self._scaled(x, d)
        all_rows = self._rows()
        V_S = all_rows.take(rows, axis=0)
        w = weights(V_S, x, self._ridge)
        P = self._P.take(rows, axis=0)
        trace = P.reshape(*rows.shape, n * n)[..., :: n + 1].sum(axis=-1)
        forgotten = self._growth ** (self._steps - self._last.take(rows))
        P *= np.maximum(np.minimum(forgotten, n * n / trace), 1.0)[..., None, None]
        P_w = (P.reshape(*rows.shape[:2], -1, n) @ w).reshape(*rows.shape, n)
        gain = P_w / (1 + P_w @ w)
        all_rows[rows] = V_S + (x - V_S @ w) * gain
        self._P[rows] = P - gain[..., :, None] * P_w[..., None, :]
        self._last[rows] = self._steps

    def _scaled(self, x: np.ndarray, d: int) -> np.ndarray:
        """Return values such that the first example of each stream has length 1, as far as it is seen."""
        length = np.sqrt(x.swapaxes(2, 3) @ x * (d / x.shape[2]))
        self._unit = np.where(self._unit == 0, length, self._unit)
        return x / np.where(self._unit == 0, 1.0, self._unit)

    def _orthonormalise(self) -> None:
        """Change the basis of V to an orthonormal one, and that of R with it."""
        F, G, d, n = self._V.shape
        self._V, basis = np.linalg.qr(self._V)
        inverse = np.linalg.inv(basis)[:, :, None]
        P = inverse.swapaxes(-1, -2) @ self._P.reshape(F, G, d, n, n) @ inverse
        self._P = (P + P.swapaxes(-1, -2)).reshape(-1, n, n) / 2

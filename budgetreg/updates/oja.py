"""Oja's algorithm on unbiased estimates of x x', for F streams of G settings at once."""

from collections.abc import Mapping

import numpy as np

from budgetreg.updates.subspaces import Subspaces


class Oja(Subspaces):
    """State of ``V <- orth(V + eta_t C^_t V)``, where C^ is an unbiased estimate of ``x x'``.

    From a uniform subset S of r attributes, ``C^_ij = d(d-1)/(r(r-1)) x_i x_j`` and ``C^_ii = (d/r) x_i^2``: only the
    rows V_S change before they are made orthonormal again.  The step size is AdaOja's, ``eta_t = eta / sqrt(sum_{s <=
    t} |C^_s V_s|_F^2)``, which knows neither the scale of the data nor the number of examples.

    Parameters
    ----------
    V : ndarray of float, shape (F, G, d, n)
        Orthonormal columns to start from.
    k : int
        Attributes r seen of each example, at least 2.
    settings : mapping of str to ndarray of shape (G,)
        ``eta``, the size of the first step, in radians roughly.

    References
    ----------
    E. Oja. A simplified neuron model as a principal component analyzer. J. Math. Biology 15, 1982.
    A. Henriksen, R. Ward. AdaOja: Adaptive Learning Rates for Streaming PCA. arXiv:1905.12115, 2019.
    """

    def __init__(self, V: np.ndarray, k: int, settings: Mapping[str, np.ndarray]) -> None:
        super().__init__(V)
        self._eta = settings["eta"]
        d = V.shape[2]
        self._pair, self._single = d * (d - 1) / (k * (k - 1)), d / k
        self._sum = np.zeros(V.shape[:2])

    def step(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Learn from one example of each stream: S as rows of the state (F, G, r), the values x_S (F, 1, r, 1)."""
        all_rows = self._rows()
        V_S = all_rows.take(rows, axis=0)
        change = self._pair * x * (x.swapaxes(2, 3) @ V_S) + (self._single - self._pair) * x**2 * V_S
        self._sum += np.square(change).reshape(*self._sum.shape, -1).sum(axis=2)
        eta = self._eta / np.sqrt(np.maximum(self._sum, np.finfo(float).tiny))
        all_rows[rows] = V_S + eta[:, :, None, None] * change
        # By Cholesky, QR of a matrix that is close to orthonormal costs a fifth; what it leaves, the next step mends.
        L = np.linalg.cholesky(self._V.swapaxes(2, 3) @ self._V)
        self._V = self._V @ np.linalg.inv(L).swapaxes(2, 3)

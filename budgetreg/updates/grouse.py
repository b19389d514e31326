"""GROUSE: gradient descent on the Grassmannian from partially seen examples, for F streams of G settings at once."""

from collections.abc import Mapping

import numpy as np

from budgetreg.updates.subspaces import Subspaces, weights

RIDGE = 1e-6
"""Of the least squares, in units of the mean eigenvalue r/d of V_S'V_S: enough for weights to exist always."""
ORTHONORMALISE = 256
"""Steps after which V is made orthonormal anew: each one leaves it so, but for rounding and the ridge."""


class Grouse(Subspaces):
    """State of GROUSE: V turns, in one plane, towards what it does not explain of the attributes S seen.

    With least-squares weights w, residual ``r = x_S - V_S w`` (0 where nothing is seen) and ``p = V w``,

        V += ((cos(theta) - 1) p/|p| + sin(theta) r/|r|) w'/|w|.

    The gradient has norm ``sigma = |r| |w|``.  Its step size is that of AdaGrad's norm, ``theta_t = eta sigma_t /
    sqrt(sum_{s <= t} sigma_s^2)``, at most a right angle: it knows neither the scale of the data nor the number of
    examples.

    Where the data are not of rank n, GROUSE is biased, whatever the number of examples: weights that are fitted to few
    attributes fit what V should not explain, too.

    Parameters
    ----------
    V : ndarray of float, shape (F, G, d, n)
        Orthonormal columns to start from.
    k : int
        Attributes r seen of each example, more than n.
    settings : mapping of str to ndarray of shape (G,)
        ``eta``.

    References
    ----------
    L. Balzano, R. Nowak, B. Recht. Online Identification and Tracking of Subspaces from Highly Incomplete Information.
    Allerton 2010, Algorithm 1.  Theirs is a constant step size, or one that falls as 1/t.
    R. Ward, X. Wu, L. Bottou. AdaGrad stepsizes: sharp convergence over nonconvex landscapes. ICML 2019.
    """

    def __init__(self, V: np.ndarray, k: int, settings: Mapping[str, np.ndarray]) -> None:
        super().__init__(V)
        self._eta = settings["eta"]
        self._ridge = RIDGE * k / V.shape[2]
        self._sum = np.zeros((*V.shape[:2], 1, 1))
        self._steps = 0

    def step(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Learn from one example of each stream: S as rows of the state (F, G, r), the values x_S (F, 1, r, 1)."""
        self._steps += 1
        if self._steps % ORTHONORMALISE == 0:
            self._V = self.subspace()
        all_rows = self._rows()
        V_S = all_rows.take(rows, axis=0)
        w = weights(V_S, x, self._ridge)
        residual = x - V_S @ w
        of_w, of_residual = _norm(w), _norm(residual)
        self._sum += np.square(of_w * of_residual)
        rate = self._eta[:, None, None] / np.sqrt(np.maximum(self._sum, np.finfo(float).tiny))
        theta = np.minimum(rate * of_w * of_residual, np.pi / 2)
        direction = (w / np.maximum(of_w, np.finfo(float).tiny)).swapaxes(2, 3)
        self._V += (np.cos(theta) - 1) * (self._V @ direction.swapaxes(2, 3)) @ direction
        turn = np.sin(theta) / np.maximum(of_residual, np.finfo(float).tiny)
        all_rows[rows] += (residual * turn) @ direction


def _norm(v: np.ndarray) -> np.ndarray:
    """Return the lengths of columns (F, G, n, 1), shape (F, G, 1, 1)."""
    return np.sqrt(v.swapaxes(2, 3) @ v)

"""Centring of estimates from pairs: the estimates for attributes and targets less their means.

The sum of ``(x_i - m_i)(x_j - m_j)`` over the pairs revealed is the sum of ``x_i x_j``, less ``m_j`` times the sum of
``x_i`` over the same pairs, and so on. Thus a constant added to an attribute or to the targets changes nothing.
Subtracting the means from the finished estimates would not achieve this, because their weights do not sum to 1.
"""

import numpy as np

from budgetreg.metering.centring import sums


class PairCentring:
    """The further sums that centred estimates need.

    Parameters
    ----------
    F, d : int
        Numbers of streams and attributes.
    together : ndarray of float, shape (F, d, d), or None
        Shares of examples that have both of two attributes, if values are missing.
    """

    def __init__(self, F: int, d: int, together: np.ndarray | None) -> None:
        self._together = together
        self._first, self._pairs = np.zeros((F, d, d)), np.zeros((F, d, d))
        self._x, self._y, self._count = np.zeros((F, d)), np.zeros((F, d)), np.zeros((F, d))
        self._targets, self._n, self._drawn = np.zeros(F), 0, 0

    def add(self, attributes: np.ndarray, x: np.ndarray, y: np.ndarray, available: np.ndarray) -> None:
        """Add pairs (F, T, n, 2), their values, targets (F, T), and which of the values are available."""
        F, d = self._x.shape
        both = available.all(axis=-1).reshape(F, 1, -1).astype(float)
        i, j = attributes[..., 0].reshape(F, 1, -1), attributes[..., 1].reshape(F, 1, -1)
        for first, second, values in ((i, j, x[..., 0]), (j, i, x[..., 1])):
            cell = first * d + second
            self._first += sums(cell, values.reshape(F, 1, -1) * both, d * d).reshape(F, d, d)
            self._pairs += sums(cell, both, d * d).reshape(F, d, d)
        singles = attributes.reshape(*y.shape, -1)
        single = available.reshape(singles.shape).astype(float)
        self._x += sums(singles, x.reshape(singles.shape), d)
        self._y += sums(singles, y[..., None] * single, d)
        self._count += sums(singles, single, d)
        self._targets += y.sum(axis=1)
        self._n += y.shape[1]
        self._drawn += attributes.shape[1] * attributes.shape[2]

    def origin(self, centred: bool, intercept: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return what is subtracted from attributes (F, d) and targets (F,): their means, or 0."""
        m, r = self._x / np.maximum(self._count, 1), self._targets / self._n
        return m if centred else np.zeros_like(m), r if intercept else np.zeros_like(r)

    def centre(self, A: np.ndarray, v: np.ndarray, m: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimates A (F, d, d) and v (F, d) for attributes less m (F, d) and targets less r (F,)."""
        d, r = A.shape[1], r[:, None]
        cross = self._first * m[:, None, :]
        products = self._pairs * (m[:, :, None] * m[:, None, :]) - cross - cross.transpose(0, 2, 1)
        singles = self._count * (r * m) - r * self._x - m * self._y
        if self._together is not None:
            products, singles = products / self._together, singles / self._together.diagonal(axis1=1, axis2=2)
        return A + products * (d**2 / (2 * self._drawn)), v + singles * (d / self._drawn)

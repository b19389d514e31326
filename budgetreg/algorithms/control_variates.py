"""Control variates: draws for the inner product estimate only the difference from the expected attributes.

With ``mu(y) = a`` or ``a + b y`` as the expectation of the attributes, the estimate of the residual becomes

    phi~ = <w, mu(y)> - y + mean_s (w_j / p_j) (x_j - mu_j(y)),    j drawn from p,

unbiased for any mu that does not depend on the draws for the same example. One draw has the second moment
``sum_j w_j^2 (x_j - mu_j)^2 / p_j`` about ``<w, mu>`` instead of ``sum_j w_j^2 x_j^2 / p_j`` about 0.

The estimate of the data point has no control variate: ``mu + (x - mu)~`` would change all d coordinates at every step,
where the plain estimate changes k_x of them.
"""

import numpy as np

from budgetreg.algorithms.regressors import ScaledRegressors
from budgetreg.metering.table import sums

PRIOR = 1.0
"""Number of draws of the value 0, at targets of either sign, that are added to those seen; they shrink mu to 0."""


class ControlVariate:
    """The control variate of all replicas of a state; mu is estimated for each stream from earlier blocks.

    Parameters
    ----------
    state : ScaledRegressors
        The replicas.
    n_streams, d : int
        F and d.
    slope : bool
        Whether mu depends on the target: ``a + b y``, else ``a``.
    """

    def __init__(self, state: ScaledRegressors, n_streams: int, d: int, *, slope: bool) -> None:
        self._state, self._slope = state, slope
        # Sums of 1, x, and with a slope also of y, y^2, x y, over the values seen of each attribute.
        self._sums = np.zeros((5 if slope else 2, n_streams, d))

    def open(self, attributes: np.ndarray, values: np.ndarray, y: np.ndarray) -> None:
        """Fix mu for a block, then add the values of its data points to the sums.

        Parameters
        ----------
        attributes : ndarray of int, shape (F, T, k_x)
            Attributes seen.
        values : ndarray of float, shape (F, T, k_x)
            Their values.
        y : ndarray of float, shape (F, T)
            Targets.
        """
        self._state.expect(self._coefficients())
        targets = np.broadcast_to(y[:, :, None], values.shape)
        terms = [np.ones(values.shape), values, targets, targets**2, values * targets][: len(self._sums)]
        self._sums += [sums(attributes, term, self._sums.shape[2]) for term in terms]

    def split(self, attributes: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the deviation of each draw from its expectation, and the expected inner product.

        Parameters
        ----------
        attributes : ndarray of int, shape (n, F, G)
            Draws of each replica.
        x : ndarray of float, shape (n, F, G)
            Their values.
        y : ndarray of float, shape (F,)
            Targets.

        Returns
        -------
        ndarray of float, shape (n, F, G)
            ``x_j - mu_j(y)``.
        ndarray of float, shape (F, G)
            ``<w, mu(y)>``.
        """
        single, product = self._state.expected(attributes)
        if not self._slope:
            return x - single, product
        y = y[:, None]
        return x - (single.real + y * single.imag), product.real + y * product.imag

    def _coefficients(self) -> np.ndarray:
        """Return ``a`` or ``a + ib``, shape (F, d): least squares, with `PRIOR` more draws of each attribute."""
        n, x = self._sums[0] + PRIOR, self._sums[1]
        if not self._slope:
            return x / n
        y, square, xy = self._sums[2:]
        typical = square.sum(axis=1, keepdims=True) / np.maximum(self._sums[0].sum(axis=1, keepdims=True), 1)
        square = square + PRIOR * np.where(typical > 0, typical, 1.0)
        return (x * square - xy * y + 1j * (n * xy - x * y)) / (n * square - y**2)

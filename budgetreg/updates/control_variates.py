"""Control variates: draws for the inner product estimate only what differs from the expected attributes.

With attributes expected to be ``mu(y) = a`` or ``a + b y``, the estimate of the residual becomes

    phi~ = <w, mu(y)> - y + mean_s (w_j / p_j) (x_j - mu_j(y)),    j drawn from p,

unbiased for any mu that the example's own draws do not decide.  One draw has the second moment
``sum_j w_j^2 (x_j - mu_j)^2 / p_j`` about ``<w, mu>`` instead of ``sum_j w_j^2 x_j^2 / p_j`` about 0.

The data point's estimate is left as it is: ``mu + (x - mu)~`` would move all d coordinates at every step, where the
plain estimate moves k_x of them.
"""

from typing import Protocol

import numpy as np

from budgetreg.metering.centring import sums

PRIOR = 1.0
"""Draws of the value 0, at targets of either sign, that are counted with those seen: few shrink mu towards 0."""


class Expecting(Protocol):
    """A state that keeps the inner products of its regressors with what the attributes are expected to be."""

    def expect(self, coefficients: np.ndarray) -> None:
        """Take ``a`` or ``a + ib``, (F, d), for the mu of what follows."""

    def expected(self, attributes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of attributes (n, F, G), and ``<w, a> + i <w, b>`` of each replica, (F, G)."""


class ControlVariate:
    """The control variate of all replicas of a state; mu is estimated for each stream, from blocks before the current.

    Parameters
    ----------
    state : Expecting
        The replicas.
    n_streams, d : int
        F and d.
    slope : bool
        Whether mu depends on the target: ``a + b y``, else ``a``.
    """

    def __init__(self, state: Expecting, n_streams: int, d: int, *, slope: bool) -> None:
        self._state, self._slope = state, slope
        # Of 1, x, and with a slope of y, y^2, x y, over the values seen of each attribute.
        self._sums = np.zeros((5 if slope else 2, n_streams, d))

    def open(self, attributes: np.ndarray, values: np.ndarray, y: np.ndarray) -> None:
        """Hold mu still for a block, then take in what its data points reveal.

        Parameters
        ----------
        attributes : ndarray of int, shape (F, T, k_x)
        values : ndarray of float, shape (F, T, k_x)
        y : ndarray of float, shape (F, T)
            Targets.
        """
        self._state.expect(self._coefficients())
        targets = np.broadcast_to(y[:, :, None], values.shape)
        terms = [np.ones(values.shape), values, targets, targets**2, values * targets][: len(self._sums)]
        self._sums += [sums(attributes, term, self._sums.shape[2]) for term in terms]

    def split(self, attributes: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Divide what is estimated into the unexpected part of each draw and the inner product that is expected.

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
        """Return ``a`` or ``a + ib``, shape (F, d): least squares, with `PRIOR` draws more of each attribute."""
        n, x = self._sums[0] + PRIOR, self._sums[1]
        if not self._slope:
            return x / n
        y, square, xy = self._sums[2:]
        typical = square.sum(axis=1, keepdims=True) / np.maximum(self._sums[0].sum(axis=1, keepdims=True), 1)
        square = square + PRIOR * np.where(typical > 0, typical, 1.0)
        return (x * square - xy * y + 1j * (n * xy - x * y)) / (n * square - y**2)

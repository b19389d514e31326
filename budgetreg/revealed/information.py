"""The expected information about a regressor in examples of which some attributes are seen.

The attributes x have the covariance S, and the target is ``w'x`` plus noise of variance s2. Of an example the set A is
seen, and V is the covariance of x given what is seen. Its target then has the variance ``s2 + w'V w`` about its
expectation, which is linear in w, and the example adds ``(S - V) / (s2 + w'V w)`` to the expected precision of w. The
expected error of predictions from complete rows is ``s2 + tr(S M^-1)``, where M is the precision from all examples and
the prior. This is the criterion of V-optimal designs (Chaloner & Verdinelli 1995).

The prior covariance of w is proportional to the square root of S: targets tend to depend on what attributes share.

An estimated s2 is mostly too large, because it contains the error of the estimated w. How large this error is expected
to be, the criterion knows: it is ``tr(S M^-1)`` after the examples that have been seen. So s2 can be corrected.

References
----------
K. Chaloner, I. Verdinelli. Bayesian experimental design: a review. Statistical Science 10, 1995.
"""

from typing import NamedTuple

import numpy as np

_LEAST_EXPLAINED = 0.2
"""Share of the target's variance that w explains a priori, at least."""

_POWER = 0.5
"""Power of S in the prior covariance of w."""

_NOISES = np.geomspace(1.0, 0.02, 14)
"""Shares of an estimated noise variance that the noise may have."""

_LEAST_EIGENVALUE = 1e-6
"""Lower bound of the eigenvalues of S, whose mean is 1."""


class Beliefs(NamedTuple):
    """Beliefs about the attributes and the target.

    Attributes
    ----------
    covariance : ndarray of float, shape (d, d)
        Covariance S of the attributes, positive semidefinite.
    w : ndarray of float, shape (d,)
        The regressor.
    noise : float
        Variance s2 of the target given all attributes.
    """

    covariance: np.ndarray
    w: np.ndarray
    noise: float


class Criterion:
    """Expected errors of designs, given what is known.

    Parameters
    ----------
    beliefs : Beliefs
        Attributes of variance 0 are taken to be independent of all others.

    Attributes
    ----------
    S : ndarray of float, shape (d, d)
        Correlations of the attributes.
    w : ndarray of float, shape (d,)
        The regressor of attributes of variance 1.
    noise : float
        As a share of the target's variance, like all errors.
    """

    def __init__(self, beliefs: Beliefs) -> None:
        S = beliefs.covariance
        units = np.sqrt(np.diagonal(S))
        scale = 1 / np.where(units > 0, units, 1.0)
        values, Q = np.linalg.eigh(S * np.outer(scale, scale) + np.diag(np.where(units > 0, 0.0, 1.0)))
        values = np.maximum(values, _LEAST_EIGENVALUE)
        self.S = (Q * values) @ Q.T
        w = np.where(units > 0, beliefs.w * units, 0.0)
        explained = float(w @ self.S @ w)
        self._values, self._Q = values, Q
        self._root = Q * np.sqrt(values)  # of S
        self._believe(w, explained / (explained + max(beliefs.noise, np.finfo(float).tiny)))

    def _believe(self, w: np.ndarray, explained: float) -> None:
        """Take w, but for its length, as the regressor, which explains the given share of the target's variance."""
        length = float(w @ self.S @ w)
        self.w, self.noise = w * np.sqrt(explained / length if length else 0.0), 1 - explained
        prior = max(explained, _LEAST_EXPLAINED) / (self._values ** (1 + _POWER)).sum()
        self._prior = self._Q.T / np.sqrt(prior * self._values**_POWER)[:, None]  # M_0 = _prior' _prior

    def correct(self, sets: np.ndarray, n: int) -> None:
        """Take away from the noise what is the error of an estimated regressor, and make the regressor longer.

        Among shares of the noise, the one is taken with which the expected error is nearest to the noise as it was.

        Parameters
        ----------
        sets : ndarray of int, shape (m, n)
            As in `information`: what some of the examples show that the regressor was estimated from.
        n : int
            How many examples these were.
        """
        w, noise = self.w, self.noise
        if not w.any():
            return
        gaps = []
        for share in _NOISES:
            self._believe(w, 1 - share * noise)
            gaps.append(abs(self.error(n * self.information(sets)) - noise))
        self._believe(w, 1 - _NOISES[np.argmin(gaps)] * noise)

    def information(self, sets: np.ndarray) -> np.ndarray:
        """Return the mean of what examples add to the precision of w, shape (d, d).

        Parameters
        ----------
        sets : ndarray of int, shape (m, n)
            Distinct attributes that each example shows; rows are filled up with d.
        """
        m, n = sets.shape
        d = len(self.w)
        S = np.zeros((d + 1, d))
        S[:d] = self.S
        rows = S[sets]
        filler = sets == d
        K = np.take_along_axis(rows, np.broadcast_to(np.minimum(sets, d - 1)[:, None], (m, n, n)), axis=2)
        K = np.where(filler[:, None], 0.0, K) + filler[:, :, None] * np.eye(n)
        known = np.linalg.solve(np.linalg.cholesky(K), rows)  # known' known = S - V
        shown = np.square(known @ self.w).sum(axis=1)
        unexplained = self.noise + np.maximum(self.w @ self.S @ self.w - shown, 0.0)
        flat = (known / np.sqrt(unexplained)[:, None, None]).reshape(m * n, d)
        return np.asarray(flat.T @ flat / m)

    def error(self, information: np.ndarray) -> float:
        """Return the expected error, given the information (d, d) of all examples together."""
        L = np.linalg.cholesky(self._prior.T @ self._prior + information)
        return float(self.noise + np.square(np.linalg.solve(L, self._root)).sum())

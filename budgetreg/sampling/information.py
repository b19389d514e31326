"""The expected information about a regressor in examples of which some attributes are seen.

The attributes x have the covariance S, and the target is ``w'x`` plus noise of variance s2. Of an example the set A is
seen, and V is the covariance of x given what is seen. Its target then has the variance ``s2 + w'V w`` about its
expectation, which is linear in w, and the example adds ``(S - V) / (s2 + w'V w)`` to the expected precision of w. The
expected error of predictions from complete rows is ``s2 + tr(S M^-1)``, where M is the precision from all examples and
the prior. This is the criterion of V-optimal designs (Chaloner & Verdinelli 1995).

The prior covariance of w is proportional to the square root of S: targets tend to depend on what attributes share.

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
        variance = explained + max(beliefs.noise, np.finfo(float).tiny)
        self.w, self.noise = w / np.sqrt(variance), 1 - explained / variance
        prior = max(explained / variance, _LEAST_EXPLAINED) / (values ** (1 + _POWER)).sum()
        self._root = Q * np.sqrt(values)  # of S
        self._prior = Q.T / np.sqrt(prior * values**_POWER)[:, None]  # M_0 = _prior' _prior

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

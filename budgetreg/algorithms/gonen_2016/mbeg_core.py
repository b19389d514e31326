"""MBEG: matrix exponentiated gradient, whose weight matrix W also decides which pairs are drawn.

Notation: the papers' rank k is n here (``n_components``); r attributes of each example are ``r/2`` pairs. All F x G
replicas take each step together; a replica is a row of the arrays. The state is ``L = log W``, never W itself, because
rounding can make eigenvalues of W negative, which have no logarithm. A pair (s, q) is drawn with probability
``p_sq = (1 - alpha) (w_s + w_q) / 2d + alpha / d^2``, where ``w = diag(W) / n`` sums to 1.
"""

from collections.abc import Callable, Mapping

import numpy as np

from budgetreg.algorithms.gonen_2016.bregman import decompose, project
from budgetreg.eigenspaces import eigenspaces, leading
from budgetreg.metering.accessor import Accessor


def reveal(accessor: Accessor, position: int, s: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of pairs (R, r/2); a pair of an attribute with itself is charged once."""
    R, n = s.shape
    twice = s == q
    attributes, drawn = np.hstack([s, q]), np.hstack([np.ones_like(twice), ~twice])
    shape = accessor.n_streams, accessor.n_settings, 2 * n
    x = accessor.reveal_some(position, attributes.reshape(shape), drawn.reshape(shape)).reshape(R, 2 * n)
    return x[:, :n], np.where(twice, x[:, :n], x[:, n:])


class Weights:
    """The weight matrices W of R replicas, stored as L = log W, and the sums of their iterates.

    Parameters
    ----------
    R, d, n : int
        Numbers of replicas and attributes, and the trace of each W.
    alpha : ndarray of float, shape (R,)
        Shares of uniform pairs.

    Attributes
    ----------
    W : ndarray of float, shape (R, d, d)
        The weight matrices, ``(n/d) I`` at first.
    """

    def __init__(self, R: int, d: int, n: int, alpha: np.ndarray) -> None:
        self._n, self._alpha = n, alpha[:, None]
        self._L = np.tile(np.log(n / d) * np.eye(d), (R, 1, 1))
        self.W = np.tile(n / d * np.eye(d), (R, 1, 1))
        self._sum = np.zeros((R, d, d))
        self._since = np.zeros(R, dtype=np.int64)
        self._cumulative = np.empty((R, d))
        self._prepare(np.arange(R))

    @property
    def diagonal(self) -> np.ndarray:
        """``W_ii``, shape (R, d)."""
        return self.W.diagonal(axis1=1, axis2=2)

    def draw(self, uniforms: np.ndarray) -> np.ndarray:
        """Draw one attribute of each pair, (R, r/2), from as many uniforms; the other one is uniform.

        The estimates are symmetric in s and q, so only the half of the mixture with ``W_ss`` needs to be drawn.
        """
        thresholds = uniforms * self._cumulative[:, -1:]
        attributes = (self._cumulative[:, None, :] <= thresholds[:, :, None]).sum(axis=2)
        return np.minimum(attributes, self._cumulative.shape[1] - 1)

    def move(self, rows: np.ndarray, change: np.ndarray, step: int) -> None:
        """Move replicas, at a step, to the projection of ``exp(L + change)``, change (len(rows), d, d)."""
        self._sum[rows] += (step - self._since[rows])[:, None, None] * self.W[rows]
        self._since[rows] = step
        L = self._L[rows] + change
        theta, V = np.linalg.eigh(L)
        log_c = project(theta, self._n)[:, None]
        theta += log_c
        # At most n - 1 eigenvalues exceed 1. Only their excess is subtracted from L, which saves a matrix product.
        d = len(V[0])
        capped = V[:, :, d - self._n + 1 :]
        excess = np.maximum(theta[:, d - self._n + 1 :], 0.0)
        L -= (capped * excess[:, None, :]) @ capped.transpose(0, 2, 1)
        diagonal = np.arange(d)
        L[:, diagonal, diagonal] += log_c
        self._L[rows] = L
        self.W[rows] = (V * np.exp(np.minimum(theta, 0.0))[:, None, :]) @ V.transpose(0, 2, 1)
        self._prepare(rows)

    def average(self, step: int) -> np.ndarray:
        """Return the mean of the weight matrices at the beginnings of the first `step` steps, shape (R, d, d)."""
        return (self._sum + (step - self._since)[:, None, None] * self.W) / step

    def _prepare(self, rows: np.ndarray) -> None:
        """Compute the cumulative draw probabilities of some replicas."""
        alpha = self._alpha[rows]
        probabilities = (1 - alpha) * self.diagonal[rows] / self._n + alpha / self.W.shape[1]
        self._cumulative[rows] = np.cumsum(probabilities, axis=1)


def output_subspace(W: np.ndarray, n: int, choice: float | None) -> np.ndarray:
    """Return orthonormal columns (d, n): the leading ones of W, or those that a number in [0, 1) chooses."""
    if choice is None:
        return leading(W, n)
    eigenvalues, V = eigenspaces(W)
    weights, members = decompose(eigenvalues, n)
    drawn = int(np.searchsorted(np.cumsum(weights), choice, side="right"))
    return V[:, members[min(drawn, len(members) - 1)]]


def from_pairs(
    s: np.ndarray, q: np.ndarray, x_s: np.ndarray, x_q: np.ndarray, w: np.ndarray, alpha: np.ndarray
) -> np.ndarray:
    """Estimate ``x x'`` by the mean over the pairs of ``x_s x_q (E_sq + E_qs) / (2 p_sq)``.

    Parameters
    ----------
    s, q : ndarray of int, shape (R, r/2)
        The pairs.
    x_s, x_q : ndarray of float, shape (R, r/2)
        Their values.
    w : ndarray of float, shape (R, d)
        ``W_ii / n``, which sum to 1.
    alpha : ndarray of float, shape (R,)
        Share of uniform pairs.

    Returns
    -------
    ndarray of float, shape (R, d, d)

    References
    ----------
    A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
    Equations 7 and 8.
    """
    return _scatter(s, q, x_s * x_q / (2 * _probability(s, q, w, alpha)), w)


def from_singles(
    s: np.ndarray, q: np.ndarray, x_s: np.ndarray, x_q: np.ndarray, w: np.ndarray, alpha: np.ndarray
) -> np.ndarray:
    """Estimate ``x x'`` as `from_pairs`, but the diagonal by ``(x_s^2/a_s E_ss + x_q^2/a_q E_qq) / 2``.

    ``a_s``, the sum of p_sq over q, is the probability that an attribute of a pair is s. It is much larger than p_ss.
    Parameters and return value are those of `from_pairs`.
    """
    d = w.shape[1]
    off_diagonal = np.where(s == q, 0.0, x_s * x_q / (2 * _probability(s, q, w, alpha)))
    C = _scatter(s, q, off_diagonal, w)
    alpha = alpha[:, None]
    for i, x in ((s, x_s), (q, x_q)):
        a = (1 - alpha) * (np.take_along_axis(w, i, axis=1) + 1 / d) / 2 + alpha / d
        C += _scatter(i, i, x**2 / (4 * a), w)
    return C


ESTIMATES: Mapping[str, Callable[..., np.ndarray]] = {"pairs": from_pairs, "singles": from_singles}
"""Unbiased estimates of ``x x'``, by name of the update."""


def _probability(s: np.ndarray, q: np.ndarray, w: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    d, alpha = w.shape[1], alpha[:, None]
    return (1 - alpha) * (np.take_along_axis(w, s, axis=1) + np.take_along_axis(w, q, axis=1)) / (2 * d) + alpha / d**2


def _scatter(s: np.ndarray, q: np.ndarray, terms: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the mean over the pairs of ``terms (E_sq + E_qs)``, shape (R, d, d)."""
    C = np.zeros((*w.shape, w.shape[1]))
    row = np.arange(len(w))[:, None]
    np.add.at(C, (row, s, q), terms / s.shape[1])
    np.add.at(C, (row, q, s), terms / s.shape[1])
    return C

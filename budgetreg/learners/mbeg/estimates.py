"""Unbiased estimates of ``x x'`` from the pairs of attributes that MBEG and MBEG+ draw.

A pair (s, q) is drawn with probability ``p_sq = (1 - alpha) (w_s + w_q) / 2d + alpha / d^2``, where w sums to 1.
"""

from collections.abc import Callable, Mapping

import numpy as np


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


Estimate = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]

ESTIMATES: Mapping[str, Estimate] = {"pairs": from_pairs, "singles": from_singles}


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

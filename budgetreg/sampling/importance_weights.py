"""Which draws are best, given second moments of the attributes and what these cost.

Notation: ``a_i = E x_i^2``; draws for the data point have probabilities q, those for the inner product p; a draw of
attribute i costs ``c_i > 0``, all the same where nobody says it. What a sum S of money buys is ``S / sum_i q_i c_i``
draws, and the bounds of the theorems fall with the number of steps as ``sqrt(second moment / steps)``. So what is to be
small is the second moment of an estimate times the expected price of a draw, each estimate on its own bill: the other's
draws are not in it, nor is what several draws for one example have in common (Kukliansky & Shamir 2015 leave it out,
too).

- *Data point, 2-ball.* A draw's estimate ``x_i / q_i e_i`` has the second moment ``sum_i a_i / q_i``. By Cauchy and
  Schwarz, ``(sum_i a_i / q_i) (sum_i q_i c_i) >= (sum_i sqrt(a_i c_i))^2``, with equality where ``a_i / q_i`` is in
  proportion to ``q_i c_i``: ``q_i ~ sqrt(a_i / c_i)``.
- *Inner product.* A draw's estimate ``w_j x_j / p_j`` has the second moment ``sum_j w_j^2 a_j / p_j``, whatever the
  ball is: with ``w_j^2 a_j`` in place of ``a_i``, ``p_j ~ |w_j| sqrt(a_j / c_j)``.
- *Data point, 1-ball.* Exponentiated gradient pays for ``M = max_i a_i / q_i``. As ``M q_i >= a_i`` for each i,
  ``M sum_i q_i c_i >= sum_i a_i c_i``, with equality where ``q_i ~ a_i`` and nowhere else: prices change nothing.

With equal prices these are the draws of Kukliansky & Shamir 2015 (Equation 2 and Section 5).
"""

from collections.abc import Mapping

import numpy as np

HEEDED: Mapping[str, bool] = {"ogd": True, "eg": False}
"""By update, whether the data point's draws depend on prices."""


def data_point(update: str, moments: np.ndarray, prices: np.ndarray | None) -> np.ndarray:
    """Return what q is in proportion to.

    Parameters
    ----------
    update : {'ogd', 'eg'}
        On the 2-ball or on the 1-ball.
    moments : ndarray of float, shape (F, d)
        ``E x_i^2`` as each stream knows it.
    prices : ndarray of float, shape (d,), or None
        What attributes cost, all above 0; None: all the same.

    Returns
    -------
    ndarray of float, shape (F, d)
    """
    return inner_product(moments, prices) if HEEDED[update] else moments


def inner_product(moments: np.ndarray, prices: np.ndarray | None) -> np.ndarray:
    """Return what p is in proportion to, divided by ``|w_j|``; parameters and return value as of `data_point`."""
    return np.sqrt(moments if prices is None else moments / prices)

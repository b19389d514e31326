"""Weights by which attributes are drawn, given their second moments, their prices and the regressor.

Notation: ``a_i = E x_i^2``; draws for the data point have probabilities q, those for the inner product p; a draw of
attribute i costs ``c_i > 0``, or 1 if there are no prices. A sum of money S pays for ``S / sum_i q_i c_i`` draws, and
the bounds of the theorems fall with the number of steps as ``sqrt(second moment / steps)``. The best probabilities thus
minimise the second moment of an estimate times the expected price of a draw. Each estimate is considered on its own:
without the draws for the other one, and without the part of the moment that several draws for one example share
(Kukliansky & Shamir 2015 omit it too).

- *Data point, 2-ball.* The estimate ``x_i / q_i e_i`` of a draw has the second moment ``sum_i a_i / q_i``. By the
  Cauchy-Schwarz inequality, ``(sum_i a_i / q_i) (sum_i q_i c_i) >= (sum_i sqrt(a_i c_i))^2``, with equality where
  ``a_i / q_i`` is proportional to ``q_i c_i``: ``q_i ~ sqrt(a_i / c_i)``.
- *Inner product.* The estimate ``w_j x_j / p_j`` of a draw has the second moment ``sum_j w_j^2 a_j / p_j`` for any
  ball: with ``w_j^2 a_j`` instead of ``a_i``, ``p_j ~ |w_j| sqrt(a_j / c_j)``.
- *Data point, 1-ball.* The bound of exponentiated gradient depends on ``M = max_i a_i / q_i``. As ``M q_i >= a_i`` for
  each i, ``M sum_i q_i c_i >= sum_i a_i c_i``, with equality only where ``q_i ~ a_i``: prices change nothing.

With equal prices these are the draws of Kukliansky & Shamir 2015 (Equation 2 and Section 5).

Learners that store what they see draw k *distinct* attributes of each example, a fixed number, and learn from products
of two of them. With ``sum_i q_i = 1``, attribute i is seen in a share of about ``k q_i`` of the examples, and the pair
(i, j) in ``k^2 q_i q_j``. So the variance of a mean product is about ``s_i^2 s_j^2 / (n k^2 q_i q_j)`` after n
examples, and a sum of such variances, with weights that are products too, is ``A B / (n k^2)`` with ``A = sum_i a_i /
q_i`` and ``B = sum_j b_j / q_j``. For the moments that a regression needs, ``a_i = s_i^2`` and ``b_j = w_j^2 s_j^2``. A
sum of money S pays for ``n = S / (k C)`` examples, where ``C = sum_i q_i c_i`` is the expected price of a draw.

- *Products of two attributes.* Minimise ``A B C`` subject to ``sum_i q_i = 1``. The constraint binds: as k is fixed, a
  cheaper attribute takes the place of another one. In ``log q_i`` the problem is convex, and where its Lagrangian is
  stationary ``a_i / (A q_i) + b_i / (B q_i) = q_i c_i / C + lambda q_i``. The sum over i gives ``2 = 1 + lambda``, so
  that ``q_i ~ v_i / sqrt(1 + c_i / C)`` with ``v_i^2 = a_i / A + b_i / B``. With equal prices ``q_i ~ v_i``: v are the
  weights that a design without prices has. Prices thus divide them by ``sqrt(1 + c_i / C)``, for any a and b with these
  v.
- For single values the same steps give ``q_i ~ v_i / sqrt(c_i / C)``, as for the data point above. For products, an
  expensive attribute also makes the others of its example useful, and prices count less.
"""

from collections.abc import Mapping

import numpy as np

PRICE_AWARE: Mapping[str, bool] = {"ogd": True, "eg": False}
"""By update, whether the data point's draws depend on prices."""

_POWER, _BY_REGRESSOR = 0.7, 0.5
_ROUNDS = 50
"""Fixed-point iterations for the mean price, whose error at least halves with each."""


def data_point(update: str, moments: np.ndarray, prices: np.ndarray | None) -> np.ndarray:
    """Return the weights that q is proportional to.

    Parameters
    ----------
    update : {'ogd', 'eg'}
        On the 2-ball or on the 1-ball.
    moments : ndarray of float, shape (F, d)
        ``E x_i^2`` as each stream knows it.
    prices : ndarray of float, shape (d,), or None
        Prices of the attributes, all above 0; None: all the same.

    Returns
    -------
    ndarray of float, shape (F, d)
    """
    return inner_product(moments, prices) if PRICE_AWARE[update] else moments


def inner_product(moments: np.ndarray, prices: np.ndarray | None) -> np.ndarray:
    """Return the weights that p is proportional to, divided by ``|w_j|``; parameters as for `data_point`."""
    return np.sqrt(moments if prices is None else moments / prices)


def regression_weights(spread: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return weights of attributes for a regression from what is known of it; a rule of this project.

    Half of the weight is proportional to ``s_i^.7`` and half to ``|w_i| s_i``: attributes that vary may hold
    information that is not known yet, and for those with a large part in the prediction errors cost most.

    Parameters
    ----------
    spread : ndarray of float, shape (d,)
        Residual standard deviations s of the attributes given the target, at least 0.
    w : ndarray of float, shape (d,)
        The regressor.

    Returns
    -------
    ndarray of float, shape (d,)
        At least 0.
    """
    total = np.zeros(len(spread))
    large = np.ldexp(spread, -np.frexp(spread.max())[1])  # exactly scaled, so that no product underflows
    for share, part in ((1 - _BY_REGRESSOR, spread**_POWER), (_BY_REGRESSOR, np.abs(w) * large)):
        if part.any():
            total += share * part / part.sum()
    return total


def per_money(weights: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """Return the weights ``v_i / sqrt(1 + c_i / C)`` of a design for products of two attributes, C its mean price.

    Parameters
    ----------
    weights : ndarray of float, shape (d,)
        The weights v without prices, at least 0.
    prices : ndarray of float, shape (d,)
        The prices c, all above 0. Equal prices change no weight.

    Returns
    -------
    ndarray of float, shape (d,)
        At least 0; proportional to the weights if prices are equal.
    """
    if not weights.any() or (prices == prices[0]).all():
        return weights
    q = weights
    for _ in range(_ROUNDS):
        q = weights / np.sqrt(1 + prices / ((q * prices).sum() / q.sum()))
    return q

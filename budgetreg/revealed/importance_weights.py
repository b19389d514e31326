"""Weights by which attributes are drawn, given their second moments, their prices and the regressor.

Those of learners that take a step for each example are derived in `budgetreg.algorithms.engine`. Attribute i has the
moment ``a_i``, and a draw of it costs ``c_i > 0``, or 1 if there are no prices.

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
- For single values the same steps give ``q_i ~ v_i / sqrt(c_i / C)``, as for the data point there. For products, an
  expensive attribute also makes the others of its example useful, and prices count less.
"""

import numpy as np

_POWER, _BY_REGRESSOR = 0.7, 0.5
_ROUNDS = 50
"""Fixed-point iterations for the mean price, whose error at least halves with each."""


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

"""The smoothed loss of support-vector regression, and the series by which GenEst estimates its slope.

The loss ``|u|_delta = max(|u| - delta, 0)`` of the residual ``u = <w, x> - y`` has a kink, where there is no unbiased
estimate of the slope. Smoothed at the scale eps it is within eps of

    f_eps(u) = (eps/2) rho((u - delta)/eps) + (eps/2) rho((u + delta)/eps) - delta
    rho(u) = u erf(u) + exp(-u^2)/sqrt(pi)

whose slope is a power series, as ``rho' = erf = sum_n a_n u^n``. GenEst draws an order n with probability
``2^{-(n+1)}``, then n independent unbiased estimates ``theta_r`` of u, each the mean of `draws_per_factor` draws, and
returns ``2^{n+1} a_n theta_1 ... theta_n``. As ``a_n = 0`` for even n, these orders need no draw.

References
----------
Hazan and Koren (2012), "Linear regression with limited observation", Section 4.
"""

from math import factorial, pi, sqrt

import numpy as np

ORDERS = 128
"""Number of orders in the tables; a higher one has probability 2^-128."""

COEFFICIENTS = np.zeros(ORDERS)
"""``a_n`` for n below `ORDERS`; ``a_{2i+1} = (2/sqrt(pi)) (-1)^i / (i! (2i+1))``, Hazan & Koren 2012, Eq. 7."""
COEFFICIENTS[1::2] = [2 / sqrt(pi) * (-1) ** i / (factorial(i) * (2 * i + 1)) for i in range(ORDERS // 2)]

WEIGHTS = COEFFICIENTS * 2.0 ** np.arange(1, ORDERS + 1)
"""``2^{n+1} a_n``, the weight of a product of n factors."""

INNER_PRODUCT_DRAWS = 3
"""Upper bound on the mean number of attributes for the two calls of GenEst per example, see `expected_draws`.

The paper says 6, as it draws for even orders too. The mean is at most 2.06 for any N, and 3 is the next whole number.
"""


def smoothed_slope(u: np.ndarray, delta: float, eps: float) -> np.ndarray:
    """Return ``f_eps'(u)``, between -1 and 1."""
    from scipy.special import erf  # here, as scipy is slow to load and plans do not need it

    return np.asarray(erf((u - delta) / eps) + erf((u + delta) / eps)) / 2


def averaged_draws(B: np.ndarray, eps: float) -> np.ndarray:
    """Return N, the number of draws per factor in products of many factors: ``ceil(16 B^2 / eps^2)``.

    GenEst needs ``ceil(4 B'^2)``, and AESVR calls it with ``x/eps`` and ``(y ± delta)/eps``: ``B' = 2B/eps``.
    """
    return np.ceil(np.round(np.square(4 * B / eps), 9)).astype(np.intp)


def draws_per_factor(n: np.ndarray, N: np.ndarray) -> np.ndarray:
    """Return the number of draws averaged in each of n factors: 1 if ``n <= 2 log2 N``, else N."""
    return np.where(n <= 2 * np.log2(N), 1, N)


def expected_draws(N: int) -> float:
    """Return the mean number of attributes for the two calls of GenEst per example."""
    n = np.arange(1, ORDERS, 2)
    return float(2 * (n * draws_per_factor(n, np.array(N)) * 0.5 ** (n + 1)).sum())


def second_moment(theta: float, variance: float, N: int) -> float:
    """Return the exact ``E phi^2`` of GenEst; infinite where it overflows.

    The bound ``exp(O(log^2 B))`` of Lemma 4.1 in the paper does not hold: averaging N draws reduces their variance, not
    their mean.

    Parameters
    ----------
    theta : float
        The scaled residual ``(<w, x> - y ± delta)/eps`` that is estimated.
    variance : float
        Variance of the estimate of theta from one draw.
    N : int
        See `averaged_draws`.
    """
    n = np.arange(1, ORDERS, 2)
    with np.errstate(over="ignore"):
        squares = np.power(theta**2 + variance / draws_per_factor(n, np.array(N)), n)
        return float((COEFFICIENTS[n] * WEIGHTS[n] * squares).sum())

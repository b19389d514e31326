"""The smoothed loss of support-vector regression, and AESVR's estimates of its slope: GenEst's and the plug-in's.

The loss ``|u|_delta = max(|u| - delta, 0)`` of the residual ``u = <w, x> - y`` has a kink, where there is no unbiased
estimate of the slope. Smoothed at the scale eps it is within eps of

    f_eps(u) = (eps/2) rho((u - delta)/eps) + (eps/2) rho((u + delta)/eps) - delta
    rho(u) = u erf(u) + exp(-u^2)/sqrt(pi)

whose slope is a power series, as ``rho' = erf = sum_n a_n u^n``. GenEst draws an order n with probability
``2^{-(n+1)}``, then n independent unbiased estimates ``theta_r`` of u, each the mean of `draws_per_factor` draws, and
returns ``2^{n+1} a_n theta_1 ... theta_n``. As ``a_n = 0`` for even n, these orders need no draw.

References
----------
Hazan and Koren (2012), "Linear regression with limited observation", Section 4, Procedure 3 and
Algorithm 4.
"""

from collections.abc import Sequence
from math import factorial, pi, sqrt

import numpy as np

from budgetreg.draws import BLOCK
from budgetreg.metering.accessor import Accessor

ORDERS = 128
"""Number of orders in the tables; a higher one has probability 2^-128."""

COEFFICIENTS = np.zeros(ORDERS)
"""``a_n`` for n below `ORDERS`; ``a_{2i+1} = (2/sqrt(pi)) (-1)^i / (i! (2i+1))``, Hazan & Koren 2012, Eq. 7."""
COEFFICIENTS[1::2] = [2 / sqrt(pi) * (-1) ** i / (factorial(i) * (2 * i + 1)) for i in range(ORDERS // 2)]

WEIGHTS = COEFFICIENTS * 2.0 ** np.arange(1, ORDERS + 1)
"""``2^{n+1} a_n``, the weight of a product of n factors."""

INNER_PRODUCT_DRAWS = 3
"""Upper bound on the mean number of attributes for the two calls of GenEst per example, see `expected_draws`.

The paper has 6, because it draws for even orders too. The mean is at most 2.06 for any N, and 3 is the next
whole number.
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


class PlugIn:
    """The slope at an estimate of the residual: at most 1, but biased if the loss is not quadratic.

    Parameters
    ----------
    delta, eps : float
        Parameters of the smoothed loss.
    k_ip : int
        Draws for the inner product.
    """

    def __init__(self, delta: float, eps: float, k_ip: int) -> None:
        self._delta, self._eps, self._k_ip = delta, eps, k_ip

    def next_block(self, rngs: Sequence[np.random.Generator]) -> None:
        """Draw what the next `BLOCK` examples of each stream need."""
        self._uniforms = np.stack([rng.random((BLOCK, self._k_ip)) for rng in rngs])

    def estimate(self, accessor: Accessor, position: int, w: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ``phi~``, shape (F, G); if ``w = 0`` the inner product is known and nothing is drawn."""
        cumulative = np.cumsum(np.square(w), axis=2)
        j, coefficient = _draw(w, cumulative, self._uniforms[:, position])
        nonzero = cumulative[:, :, -1] > 0
        x = accessor.reveal_some(position, j, np.broadcast_to(nonzero[:, :, None], j.shape))
        return smoothed_slope((coefficient * x).mean(axis=2) - y[:, None], self._delta, self._eps)


class GenEst:
    """The paper's unbiased estimate, whose second moment grows fast with ``1/eps``.

    Parameters
    ----------
    B : ndarray of float, shape (G,)
        Radii, which determine how many draws are averaged.
    delta, eps : float
        Parameters of the smoothed loss.
    rngs : sequence of numpy.random.Generator
        One per stream.
    """

    AT_HAND = 8
    """Uniforms drawn in advance for each call. A call that needs more, which is rare, reads them from a generator of
    its own, so that no replica's draws depend on how many another needs."""

    def __init__(self, B: np.ndarray, delta: float, eps: float, rngs: Sequence[np.random.Generator]) -> None:
        self._N = averaged_draws(B, eps)
        self._delta, self._eps = delta, eps
        self._keys = [rng.integers(2**64, size=2, dtype=np.uint64) for rng in rngs]
        self._block = -1

    def next_block(self, rngs: Sequence[np.random.Generator]) -> None:
        """Draw what the next `BLOCK` examples of each stream need."""
        self._block += 1
        orders = np.stack([rng.geometric(0.5, (BLOCK, 2)) - 1 for rng in rngs])
        self._orders = np.where(orders % 2, orders, 0)  # an even order gives 0 for any draws
        self._uniforms = np.stack([rng.random((BLOCK, 2, self.AT_HAND)) for rng in rngs])

    def estimate(self, accessor: Accessor, position: int, w: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ``phi~``, shape (F, G); if ``w = 0`` the slope is known and nothing is drawn."""
        cumulative = np.cumsum(np.square(w), axis=2)
        nonzero = cumulative[:, :, -1] > 0
        if not nonzero.any():
            return np.broadcast_to(smoothed_slope(-y[:, None], self._delta, self._eps), nonzero.shape)
        calls = []
        for call, target in enumerate((y + self._delta, y - self._delta)):
            n = self._orders[:, position, call]
            repeats = draws_per_factor(n[:, None], self._N)
            count = n[:, None] * repeats * nonzero
            if not count.any():
                calls.append(np.zeros(nonzero.shape))
                continue
            j, coefficient = _draw(w, cumulative, self._read(position, call, count.max(axis=1)))
            x = accessor.reveal_some(position, j, np.arange(j.shape[2]) < count[:, :, None])
            theta = (coefficient * x - target[:, None, None]) / self._eps
            calls.append(WEIGHTS[n][:, None] * _product(theta, count, repeats))
        return np.where(nonzero, (calls[0] + calls[1]) / 2, smoothed_slope(-y[:, None], self._delta, self._eps))

    def _read(self, position: int, call: int, count: np.ndarray) -> np.ndarray:
        """Return uniforms, shape (F, max(count)); those beyond a stream's count are 0 or unused."""
        uniforms = np.zeros((count.size, max(self.AT_HAND, int(count.max()))))
        uniforms[:, : self.AT_HAND] = self._uniforms[:, position, call]
        for f in np.flatnonzero(count > self.AT_HAND):
            # The lowest word counts the numbers read; the other words identify the call.
            counter = np.array([0, self._block, position, call], dtype=np.uint64)
            rng = np.random.Generator(np.random.Philox(key=self._keys[f], counter=counter))
            uniforms[f, self.AT_HAND : count[f]] = rng.random(count[f] - self.AT_HAND)
        return uniforms[:, : count.max()]


def _product(theta: np.ndarray, count: np.ndarray, repeats: np.ndarray) -> np.ndarray:
    """Return the product of factors, each the mean of `repeats` of the `count` estimates ``theta[f, g]``."""
    product = np.ones(count.shape)
    single = np.where(repeats == 1, count, 0)
    for r in range(single.max()):
        np.multiply(product, theta[:, :, r], out=product, where=r < single)
    for f, g in np.argwhere((repeats > 1) & (count > 0)):
        product[f, g] = theta[f, g, : count[f, g]].reshape(-1, repeats[f, g]).mean(axis=1).prod()
    return product


def _draw(w: np.ndarray, cumulative: np.ndarray, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draw attributes with probabilities ``w_j^2 / |w|^2``.

    Parameters
    ----------
    w, cumulative : ndarray of float, shape (F, G, d)
        Regressors, and the cumulative sums of their squares.
    uniforms : ndarray of float, shape (F, n)
        Numbers in [0, 1), shared by the settings of a stream.

    Returns
    -------
    attributes : ndarray of int, shape (F, G, n)
    coefficients : ndarray of float, shape (F, G, n)
        ``w_j / p_j = |w|^2 / w_j``; 0 where w is.
    """
    square = cumulative[:, :, -1]
    thresholds = square[:, :, None] * uniforms[:, None, :]
    n = thresholds.shape[2]
    below = [np.count_nonzero(cumulative <= thresholds[:, :, r, None], axis=2) for r in range(n)]
    attributes = np.minimum(np.stack(below, axis=2), w.shape[2] - 1)
    drawn = np.take_along_axis(w, attributes, axis=2)
    return attributes, np.divide(square[:, :, None], drawn, out=np.zeros_like(drawn), where=drawn != 0)

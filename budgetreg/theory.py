"""Step sizes and excess-risk bounds of the papers' theorems.

Notation: radius B, attributes d, examples m, budget k per example, of which k_x draws estimate the data point. The
theorems assume ``|y| <= B`` and ``|x|_2 <= 1`` (ridge) or ``|x|_inf <= 1`` (lasso).

Nearly all of them follow from one inequality. If gradient estimates have a second moment of at most G^2, the excess
risk of gradient descent is at most ``2 B^2 / (eta m) + eta G^2 / 2`` (Kukliansky & Shamir 2015, Theorem 3.1), and that
of exponentiated gradient ``B (log(2d) / (eta m) + 5 eta G^2)`` for ``eta <= 1/(2G)`` (Theorem 4.1, where G^2 bounds the
second moment of each coordinate). The step size eta minimises this, and the bound is the minimum. The inner product
alone contributes 4 B^2 to G^2. Sampling the data point multiplies this by the *spread* ``G^2 / (4 B^2)``: 1 with full
information, 2d/k_x for uniform draws, between the two for draws by the second moments of the attributes.

A bound is on the expectation of ``L(w) - L(w*)``, where w is the averaged iterate and w* the best regressor in the
ball. The loss is ``(<w, x> - y)^2 / 2`` (Hazan & Koren; Kukliansky & Shamir), so that the excess of the mean squared
error is at most twice the bound.

References
----------
Cesa-Bianchi, Shalev-Shwartz and Shamir (2010), "Efficient learning with partially observed attributes". Hazan and Koren
(2012), "Linear regression with limited observation". Kukliansky and Shamir (2015), "Attribute efficient linear
regression with distribution-dependent sampling". Gonen, Rosenbaum, Eldar and Shalev-Shwartz (2016), "Subspace learning
with partial information".
"""

from math import log, sqrt

import numpy as np


def ogd_step(d: int, m: int, k_x: int | None) -> float:
    """Step size of online gradient descent on the 2-ball.

    Hazan & Koren 2012, Theorem 3.1: ``sqrt(k_x / (2 d m))``. With the exact gradient (k_x None), whose norm is at
    most 2B instead of ``2B sqrt(2d/k_x)``, the same regret bound (Zinkevich 2003) gives ``1 / sqrt(m)``.
    """
    return sqrt(k_x / (2 * d * m)) if k_x else 1 / sqrt(m)


def aerr_bound(B: float, d: int, m: int, k_x: int | None) -> float:
    """Excess risk of AERR: ``4 B^2 sqrt(2d / (k_x m))``; k_x None: exact gradients.

    Hazan & Koren 2012, Theorem 3.1.
    """
    return 4 * B**2 * sqrt(_uniform_spread(d, k_x) / m)


def eg_step(B: float, d: int, m: int, k_x: int | None) -> float:
    """Step size of exponentiated gradient on the 1-ball.

    Hazan & Koren 2012, Theorem 3.4: ``sqrt(log(2d) / (5 m)) / G`` with ``G = 2B sqrt(2d/k_x)``, which is
    ``1/(4B) sqrt(2 k_x log(2d) / (5 m d))``: the theorem prints 1/(4B^2), its proof gives 1/(4B). With the exact
    gradient (k_x None), ``G = 2B``.
    """
    return _eg_step(B, _uniform_spread(d, k_x), d, m)


def aelr_bound(B: float, d: int, m: int, k_x: int | None) -> float:
    """Excess risk of AELR: ``4 B^2 sqrt(10 d log(2d) / (k_x m))``; k_x None: exact gradients.

    Hazan & Koren 2012, Theorem 3.4, for ``m >= log(2d)``.
    """
    return 4 * B**2 * sqrt(5 * log(2 * d) * _uniform_spread(d, k_x) / m)


def svr_step(B: float, d: int, m: int, k_x: int) -> float:
    """Step size of gradient descent for a loss of slope at most 1: ``2B sqrt(k_x / (2 d m))``.

    Hazan & Koren 2012 leave the step size of AESVR to tuning. This one minimises the excess risk for
    ``G = sqrt(2d/k_x)``, which holds for residual estimates of size at most 1. Those of GenEst are not bounded and need
    a smaller step size.
    """
    return 2 * B * ogd_step(d, m, k_x)


def pegasos_regularisation(B: float, d: int, m: int, k: int) -> float:
    """Regularisation lambda of AER.

    Cesa-Bianchi et al. 2010, Theorem 2: ``((B + 1) d / B_2) sqrt(log(m) / (m k))`` with ``|w*|_2 <= B_2``. B is such a
    bound, and taken for it.
    """
    return (B + 1) * d / B * sqrt(log(max(m, 2)) / (m * k))


def ddaerr_step(second_moments: np.ndarray, m: int, k_x: int, prices: np.ndarray | None = None) -> float:
    """Step size of DDAERR for known ``E x_i^2``, shape (d,): ``1 / sqrt(m (H/k_x + 1))``, H their 1/2-norm.

    Kukliansky & Shamir 2015, Theorem 3.3. For price-aware draws with prices c, shape (d,), ``H = sum_i E x_i^2 / q_i``
    is ``(sum_i sqrt(E x_i^2 c_i)) (sum_i sqrt(E x_i^2 / c_i))``.
    """
    if prices is None:
        H = _half_norm(second_moments)
    else:
        H = float(np.sqrt(second_moments * prices).sum() * np.sqrt(second_moments / prices).sum())
    return 1 / sqrt((H / k_x + 1) * m)


def ddaelr_step(B: float, second_moments: np.ndarray, m: int, k_x: int) -> float:
    """Step size of DDAELR for known ``E x_i^2``, shape (d,): ``1/(2B) sqrt(log(2d) / (5 m (H/k_x + 1)))``, H their sum.

    Kukliansky & Shamir 2015, Theorem 4.4.
    """
    return _eg_step(B, float(np.sum(second_moments)) / k_x + 1, len(second_moments), m)


def first_phase(share: float, m: int) -> int:
    """Return the number of examples in the first of two phases: a tenth (Kukliansky & Shamir 2015, Section 5)."""
    return max(1, int(share * m))


def moment_error(d: int, delta: float, k: int, m_1: int) -> float:
    """Half-width eps of the confidence interval of second moments estimated by uniform draws.

    ``min(1, d log(2d/delta) / (k m_1))`` for k draws (the paper's k + 1) from each of m_1 examples, with probability
    1 - delta. Kukliansky & Shamir 2015, Sections 3.2 and 4.2. They print the maximum of 1 for the lasso only, but no
    second moment in the unit range has a larger error.
    """
    return min(1.0, d * log(2 * d / delta) / (k * m_1))


def ddaerr_two_phase_step(estimates: np.ndarray, eps: float, m_2: int, k_x: int) -> float:
    """Step size of the second phase of two-phased DDAERR.

    Kukliansky & Shamir 2015, Theorem 3.4, in terms of `moment_error`: ``max(eta_1, eta_2)``, where eta_1 is valid for
    any estimates and eta_2 is larger for good ones.

    Parameters
    ----------
    estimates : ndarray of float, shape (d,)
        Second moments A estimated in the first phase.
    eps : float
        Their error, see `moment_error`.
    m_2, k_x : int
        Examples of the second phase, and draws for the data point of each.
    """
    d, H = len(estimates), _half_norm(2 * np.asarray(estimates) + 10 / 3 * eps)
    guided = (2 * H + 2 * d * sqrt(5 / 3 * eps * H)) / k_x + 1
    return 1 / sqrt(min(6 * d / k_x, guided) * m_2)


def ddaelr_two_phase_step(B: float, estimates: np.ndarray, eps: float, m_2: int, k_x: int) -> float:
    """Step size of the second phase of two-phased DDAELR; parameters as in `ddaerr_two_phase_step`.

    Kukliansky & Shamir 2015, Theorem 4.5.
    """
    d = len(estimates)
    return _eg_step(B, (8 * float(np.sum(estimates)) + 20 * d * eps) / k_x + 1, d, m_2)


def popca_bound(n: int, d: int, r: int, m: int, *, passive: bool = True) -> float:
    """Excess loss of POPCA for n dimensions: ``(d/r) sqrt(n / m)``; with r = d that of PCA.

    Gonen et al. 2016, Corollary 3, solved for eps, with ``|x|_2 <= 1``. It holds for attributes that are seen
    independently with probability r/d (`passive`). By the same proof it holds for any design, with the probability that
    a pair is seen instead of ``(r/d)^2``: for exactly r attributes, without replacement, ``r(r-1) / (d(d-1))``.
    """
    pair = (r / d) ** 2 if passive else r * (r - 1) / (d * (d - 1))
    return sqrt(n / (pair * m))


def mbeg_step(r: int, d: int, m: int) -> float:
    """Step size of MBEG for r attributes per example: ``sqrt(r log(d) / (2 m (d + r)))``.

    Gonen et al. 2016, Algorithm 2.
    """
    return sqrt(r * log(d) / (2 * m * (d + r)))


def mbeg_least_examples(r: int, d: int) -> float:
    """Least m for which MBEG's ``alpha = eta d^2`` is at most 1/2: ``2 d^4 r log(d) / (d + r)``.

    Gonen et al. 2016, Theorem 7; its introduction prints a quarter of it.
    """
    return 2 * d**4 * r * log(d) / (d + r)


def mbeg_bound(n: int, d: int, r: int, m: int) -> float:
    """Excess loss of MBEG for n dimensions, in expectation: ``n sqrt(8 (d + r) log(d) / (r m))``.

    Gonen et al. 2016, Theorem 7, solved for eps, with ``|x|_2 <= 1``, for m of at least `mbeg_least_examples`. Its
    Lemma 9 misses a factor of 2 where both attributes of a pair are the same, by which the variance may be larger, and
    the bound by half as much.
    """
    return n * sqrt(8 * (d + r) * log(d) / (r * m))


def _uniform_spread(d: int, k_x: int | None) -> float:
    """Return the spread of uniform draws; 1 with full information (k_x None)."""
    return 2 * d / k_x if k_x else 1.0


def _half_norm(values: np.ndarray) -> float:
    """Return the 1/2-norm ``(sum_i sqrt(v_i))^2``."""
    return float(np.sqrt(values).sum()) ** 2


def _eg_step(B: float, spread: float, d: int, m: int) -> float:
    G = 2 * B * sqrt(spread)
    return sqrt(log(2 * d) / (5 * m)) / G

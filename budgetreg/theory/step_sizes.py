"""Step sizes that the papers' theorems prescribe; notation as in `budgetreg.theory`."""

from math import log, sqrt

import numpy as np

from budgetreg.theory.spreads import half_norm, lasso_spread, ridge_spread, uniform_spread


def ogd_step(d: int, m: int, k_x: int | None) -> float:
    """Step size of online gradient descent on the 2-ball.

    Hazan & Koren 2012, Theorem 3.1: ``sqrt(k_x / (2 d m))``.  With the exact gradient (k_x None), whose norm is at
    most 2B instead of ``2B sqrt(2d/k_x)``, the same regret bound (Zinkevich 2003) gives ``1 / sqrt(m)``.
    """
    return sqrt(k_x / (2 * d * m)) if k_x else 1 / sqrt(m)


def eg_step(B: float, d: int, m: int, k_x: int | None) -> float:
    """Step size of exponentiated gradient on the 1-ball.

    Hazan & Koren 2012, Theorem 3.4: ``sqrt(log(2d) / (5 m)) / G`` with ``G = 2B sqrt(2d/k_x)``, which is
    ``1/(4B) sqrt(2 k_x log(2d) / (5 m d))``: the theorem prints 1/(4B^2), its proof gives 1/(4B).  With the exact
    gradient (k_x None), ``G = 2B``.
    """
    return _eg_step(B, uniform_spread(d, k_x), d, m)


def svr_step(B: float, d: int, m: int, k_x: int) -> float:
    """Step size of gradient descent for a loss of slope at most 1: ``2B sqrt(k_x / (2 d m))``.

    Hazan & Koren 2012 leave that of AESVR to tuning; this is the minimiser of `ogd_regret` with
    ``G = sqrt(2d/k_x)``, which a residual estimate bounded by 1 keeps to.  GenEst's is not bounded: it needs less.
    """
    return 2 * B * ogd_step(d, m, k_x)


def pegasos_regularisation(B: float, d: int, m: int, k: int, B_2: float | None = None) -> float:
    """Regularisation lambda of AER.

    Cesa-Bianchi et al. 2010, Theorem 2: ``((B + 1) d / B_2) sqrt(log(m) / (m k))`` with ``|w*|_2 <= B_2``, which B
    always is.
    """
    return (B + 1) * d / (B_2 or B) * sqrt(log(max(m, 2)) / (m * k))


def ddaerr_step(second_moments: np.ndarray, m: int, k_x: int, prices: np.ndarray | None = None) -> float:
    """Step size of DDAERR for known ``E x_i^2``, shape (d,): ``1 / sqrt(m (H/k_x + 1))``, H their 1/2-norm.

    Kukliansky & Shamir 2015, Theorem 3.3; with prices c (d,) that its draws heed, ``H = sum_i E x_i^2 / q_i`` is
    ``(sum_i sqrt(E x_i^2 c_i)) (sum_i sqrt(E x_i^2 / c_i))``.
    """
    return _ogd_step(ridge_spread(second_moments, k_x, prices), m)


def ddaelr_step(B: float, second_moments: np.ndarray, m: int, k_x: int) -> float:
    """Step size of DDAELR for known ``E x_i^2``, shape (d,): ``1/(2B) sqrt(log(2d) / (5 m (H/k_x + 1)))``, H their sum.

    Kukliansky & Shamir 2015, Theorem 4.4.
    """
    return _eg_step(B, lasso_spread(second_moments, k_x), len(second_moments), m)


def mbeg_step(r: int, d: int, m: int) -> float:
    """Step size of MBEG for r attributes per example: ``sqrt(r log(d) / (2 m (d + r)))``.

    Gonen et al. 2016, Algorithm 2.
    """
    return sqrt(r * log(d) / (2 * m * (d + r)))


def mbeg_least_examples(r: int, d: int) -> float:
    """Examples m from which on MBEG's ``alpha = eta d^2`` is at most 1/2: ``2 d^4 r log(d) / (d + r)``.

    Gonen et al. 2016, Theorem 7; its introduction prints a quarter of it.
    """
    return 2 * d**4 * r * log(d) / (d + r)


def first_phase(share: float, m: int) -> int:
    """Examples of the first of two phases (Kukliansky & Shamir 2015, Section 5: a tenth)."""
    return max(1, int(share * m))


def moment_error(d: int, delta: float, k: int, m_1: int) -> float:
    """Half-width eps of the confidence interval of second moments estimated by uniform draws.

    ``min(1, d log(2d/delta) / (k m_1))`` for k draws (the paper's k + 1) from each of m_1 examples, with probability
    1 - delta.  Kukliansky & Shamir 2015, Sections 3.2 and 4.2; they print the cap for the lasso only, but no second
    moment in the unit range is off by more than 1.
    """
    return min(1.0, d * log(2 * d / delta) / (k * m_1))


def ddaerr_two_phase_step(estimates: np.ndarray, eps: float, m_2: int, k_x: int) -> float:
    """Step size of the second phase of two-phased DDAERR.

    Kukliansky & Shamir 2015, Theorem 3.4, in terms of `moment_error`: ``max(eta_1, eta_2)``, where eta_1 needs no
    estimate to be good and eta_2 gains from estimates that are.

    Parameters
    ----------
    estimates : ndarray of float, shape (d,)
        Second moments A estimated in the first phase.
    eps : float
        Their error, see `moment_error`.
    m_2, k_x : int
        Examples of the second phase, and draws for the data point of each.
    """
    d, H = len(estimates), half_norm(2 * np.asarray(estimates) + 10 / 3 * eps)
    guided = (2 * H + 2 * d * sqrt(5 / 3 * eps * H)) / k_x + 1
    return _ogd_step(min(6 * d / k_x, guided), m_2)


def ddaelr_two_phase_step(B: float, estimates: np.ndarray, eps: float, m_2: int, k_x: int) -> float:
    """Step size of the second phase of two-phased DDAELR; parameters as in `ddaerr_two_phase_step`.

    Kukliansky & Shamir 2015, Theorem 4.5.
    """
    d = len(estimates)
    return _eg_step(B, (8 * float(np.sum(estimates)) + 20 * d * eps) / k_x + 1, d, m_2)


def _ogd_step(spread: float, m: int) -> float:
    return 1 / sqrt(spread * m)


def _eg_step(B: float, spread: float, d: int, m: int) -> float:
    G = 2 * B * sqrt(spread)
    return sqrt(log(2 * d) / (5 * m)) / G

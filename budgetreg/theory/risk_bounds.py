"""Bounds on the excess risk that the papers' theorems prove; notation as in `budgetreg.theory`."""

from math import log, sqrt

import numpy as np

from budgetreg.theory.spreads import half_norm, lasso_spread, ridge_spread, uniform_spread


def ogd_regret(eta: float, B: float, G: float, m: int) -> float:
    """Excess risk of gradient descent with step size eta: ``2 B^2 / (eta m) + eta G^2 / 2``.

    Kukliansky & Shamir 2015, Theorem 3.1, for gradient estimates with ``E|g~|_2^2 <= G^2``.
    """
    return 2 * B**2 / (eta * m) + eta * G**2 / 2


def eg_regret(eta: float, B: float, G: float, d: int, m: int) -> float:
    """Excess risk of exponentiated gradient with step size ``eta <= 1/(2G)``: ``B (log(2d) / (eta m) + 5 eta G^2)``.

    Kukliansky & Shamir 2015, Theorem 4.1, for gradient estimates with ``E g~_i^2 <= G^2`` for all i.
    """
    return B * (log(2 * d) / (eta * m) + 5 * eta * G**2)


def aerr_bound(B: float, d: int, m: int, k_x: int | None) -> float:
    """Excess risk of AERR: ``4 B^2 sqrt(2d / (k_x m))``; k_x None: exact gradients.

    Hazan & Koren 2012, Theorem 3.1.
    """
    return _ogd_bound(B, uniform_spread(d, k_x), m)


def aelr_bound(B: float, d: int, m: int, k_x: int | None) -> float:
    """Excess risk of AELR: ``4 B^2 sqrt(10 d log(2d) / (k_x m))``; k_x None: exact gradients.

    Hazan & Koren 2012, Theorem 3.4, for ``m >= log(2d)``.
    """
    return _eg_bound(B, uniform_spread(d, k_x), d, m)


def ddaerr_bound(B: float, second_moments: np.ndarray, m: int, k_x: int) -> float:
    """Excess risk of DDAERR: ``4 B^2 sqrt((H/k_x + 1) / m)``, H the 1/2-norm of ``E x_i^2``, shape (d,).

    Kukliansky & Shamir 2015, Theorem 3.3.
    """
    return _ogd_bound(B, ridge_spread(second_moments, k_x), m)


def ddaelr_bound(B: float, second_moments: np.ndarray, m: int, k_x: int) -> float:
    """Excess risk of DDAELR: ``4 B^2 sqrt(5 log(2d) (H/k_x + 1) / m)``, H the sum of ``E x_i^2``, shape (d,).

    Kukliansky & Shamir 2015, Theorem 4.4, for ``m >= log(2d)``.
    """
    return _eg_bound(B, lasso_spread(second_moments, k_x), len(second_moments), m)


def ddaerr_two_phase_bound(B: float, second_moments: np.ndarray, eps: float, m_2: int, k_x: int) -> float:
    """Excess risk of two-phased DDAERR, with probability 1 - delta over the first phase.

    Kukliansky & Shamir 2015, Theorem 3.4: the smaller of its two bounds, the first of which is certain.

    Parameters
    ----------
    B : float
        Radius.
    second_moments : ndarray of float, shape (d,)
        The true ``E x_i^2``.
    eps : float
        Error of their estimates at that delta, see `moment_error`.
    m_2, k_x : int
        Examples of the second phase, and draws for the data point of each.
    """
    d, H = len(second_moments), half_norm(second_moments)
    guided = 16 * ((sqrt(H) + d * sqrt(2 * eps)) ** 2 / k_x + 1)
    return _ogd_bound(B, min(6 * d / k_x, guided), m_2)


def ddaelr_two_phase_bound(B: float, second_moments: np.ndarray, eps: float, m_2: int, k_x: int) -> float:
    """Excess risk of two-phased DDAELR, with probability 1 - delta over the first phase.

    Kukliansky & Shamir 2015, Theorem 4.5, for ``m_2 >= log(2d)``: the smaller of its two bounds, the first of which
    is certain.  Parameters as in `ddaerr_two_phase_bound`.
    """
    d = len(second_moments)
    certain = 61 * B**2 * sqrt(d * log(2 * d) / (k_x * m_2))
    guided = (16 * float(np.sum(second_moments)) + 88 / 3 * d * eps) / k_x + 1
    return min(certain, _eg_bound(B, guided, d, m_2))


def aer_bound(B: float, d: int, m: int, k: int, B_2: float | None = None) -> float:
    """Excess squared error of AER, up to a constant: ``d (B + 1) B_2 / sqrt(k) sqrt(log(m) / m)``.

    Cesa-Bianchi et al. 2010, Theorem 2, with ``|w*|_2 <= B_2``, which B always is.
    """
    return d * (B + 1) * (B_2 or B) * sqrt(log(m) / (k * m))


def baseline_bound(B: float, d: int, m: int, k: int, delta: float) -> float:
    """Excess squared error of the baseline, up to a constant: ``(d B)^2 / k sqrt(log(d/delta) / m)``.

    Cesa-Bianchi et al. 2010, Theorem 1; not in expectation but with probability 1 - delta.
    """
    return (d * B) ** 2 / k * sqrt(log(d / delta) / m)


def popca_bound(n: int, d: int, r: int, m: int, *, passive: bool = True) -> float:
    """Excess loss of POPCA for n dimensions: ``(d/r) sqrt(n / m)``; with r = d that of PCA.

    Gonen et al. 2016, Corollary 3, solved for eps, with ``|x|_2 <= 1``.  It holds for each attribute seen with
    probability r/d.  By the same proof any design does, with the probability that a pair is seen in place of
    ``(r/d)^2``: for exactly r attributes, without replacement, ``r(r-1) / (d(d-1))``.
    """
    pair = (r / d) ** 2 if passive else r * (r - 1) / (d * (d - 1))
    return sqrt(n / (pair * m))


def mbeg_bound(n: int, d: int, r: int, m: int) -> float:
    """Excess loss of MBEG for n dimensions, in expectation: ``n sqrt(8 (d + r) log(d) / (r m))``.

    Gonen et al. 2016, Theorem 7, solved for eps, with ``|x|_2 <= 1``, for m of at least `mbeg_least_examples`.  Its
    Lemma 9 misses a factor of 2 where both attributes of a pair are the same, by which the variance, and half as much
    the bound, may be larger.
    """
    return n * sqrt(8 * (d + r) * log(d) / (r * m))


def _ogd_bound(B: float, spread: float, m: int) -> float:
    return 4 * B**2 * sqrt(spread / m)


def _eg_bound(B: float, spread: float, d: int, m: int) -> float:
    return 4 * B**2 * sqrt(5 * log(2 * d) * spread / m)

"""Step sizes that the papers' theorems prescribe; they assume attributes and targets in the unit range.

Notation: radius B, attributes d, draws k_x for the data point, examples m.
"""

from math import log, sqrt


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
    G = 2 * B * (sqrt(2 * d / k_x) if k_x else 1)
    return sqrt(log(2 * d) / (5 * m)) / G


def pegasos_regularisation(B: float, d: int, m: int, k: int, B_2: float | None = None) -> float:
    """Regularisation lambda of AER.

    Cesa-Bianchi et al. 2010, Theorem 2: ``((B + 1) d / B_2) sqrt(log(m) / (m k))`` with ``|w*|_2 <= B_2``, which B
    always is.
    """
    return (B + 1) * d / (B_2 or B) * sqrt(log(max(m, 2)) / (m * k))

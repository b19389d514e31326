"""Probabilities with which attributes are drawn by a design of fixed size whose probabilities are unequal."""

import numpy as np

_ALMOST_SURE = 1 - 2**-20
"""The largest working probability: conditional Poisson sampling is not defined for 1."""


def working_probabilities(weights: np.ndarray, r: int, mix: float) -> np.ndarray:
    """Return probabilities p of sum r that are proportional to weights, but at most nearly 1, and partly uniform.

    They are the p of `budgetreg.sampling.designs.conditional_poisson`.

    Parameters
    ----------
    weights : ndarray of float, shape (d,)
        At least 0.
    r : int
        Sum of the probabilities, at most d; a surplus above 1 is divided among the other attributes.
    mix : float
        Share of the uniform probability ``r/d``, by which attributes of weight 0 are drawn too.

    Returns
    -------
    ndarray of float, shape (d,)
    """
    weights = weights / max(weights.max(), np.finfo(float).tiny)  # so that their sum is not subnormal
    capped = np.zeros(len(weights), dtype=bool)
    while True:
        rest = np.where(capped, 0.0, weights)
        if not rest.any():  # all others have weight 0 and are thus equal
            rest = np.where(capped, 0.0, 1.0)
        total = rest.sum() or 1.0  # there are no others if all are capped
        p = np.where(capped, 1.0, (r - int(capped.sum())) * rest / total)
        if (p <= 1).all():
            return np.minimum((1 - mix) * p + mix * r / len(weights), _ALMOST_SURE)
        capped |= p > 1


def joint_inclusion(p: np.ndarray, r: int) -> np.ndarray:
    """Return the probabilities (d, d) that pairs of attributes, and single ones, are in a conditional Poisson sample.

    The generating function ``f(z) = prod_j (1 - p_j + p_j z)`` of the Poisson-binomial distribution has degree d, so
    that the mean of ``z^-r f(z)`` over N > d roots of unity is exactly the probability of r draws. Without the factor
    of i, times ``p_i z``, it is that of r draws with i among them. For odd N no factor vanishes at any p.

    Parameters
    ----------
    p : ndarray of float, shape (d,)
        Working probabilities: those of independent draws whose number is not fixed.
    r : int
        Size of the sample, near the sum of p: the relative rounding error is inversely proportional to the probability
        of r independent draws.
    """
    N = len(p) + 1 + len(p) % 2
    z = np.exp(2j * np.pi / N * np.arange(N // 2 + 1))  # the other roots give the conjugate terms
    factors = 1 - p + p * z[:, None]
    terms = np.where(np.arange(z.size) > 0, 2, 1) * z**-r * factors.prod(axis=1)
    ratios = p * z[:, None] / factors
    probability = (ratios.T @ (ratios * terms[:, None])).real
    probability = (probability + probability.T) / 2
    np.fill_diagonal(probability, (terms @ ratios).real)
    return probability / terms.sum().real

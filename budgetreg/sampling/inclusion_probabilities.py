"""In what shares attributes are drawn by those who draw a fixed number of them, guided by what was revealed."""

import numpy as np

_ALMOST_SURE = 1 - 2**-20
"""Conditional Poisson sampling has no use for certainty; the probabilities of its samples are exact all the same."""

_POWER, _BY_WEIGHT = 0.7, 0.5


def working_probabilities(weights: np.ndarray, r: int, mix: float) -> np.ndarray:
    """Share out r draws in proportion to weights, none more than nearly 1, and mix in equal shares.

    Parameters
    ----------
    weights : ndarray of float, shape (d,)
        At least 0.
    r : int
        Sum of the probabilities, at most d; what one has above 1 goes to the others.
    mix : float
        Share of ``r/d``, by which attributes of weight 0 are drawn, too.

    Returns
    -------
    ndarray of float, shape (d,)
    """
    weights = weights / max(weights.max(), np.finfo(float).tiny)  # whose sum is no denormal number
    capped = np.zeros(len(weights), dtype=bool)
    while True:
        rest = np.where(capped, 0.0, weights)
        if not rest.any():  # nothing tells those that are left apart
            rest = np.where(capped, 0.0, 1.0)
        total = rest.sum() or 1.0  # none is left where all are certain
        p = np.where(capped, 1.0, (r - int(capped.sum())) * rest / total)
        if (p <= 1).all():
            return np.minimum((1 - mix) * p + mix * r / len(weights), _ALMOST_SURE)
        capped |= p > 1


def regression_weights(spread: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return how much attributes matter to a regression, as far as one knows it: ours.

    Half of it is ``s_i^.7`` and half ``|w_i| s_i``, of the sum of each: those that vary are where anything may be
    learned, those with a large part in the prediction are where errors cost most.

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
    large = np.ldexp(spread, -np.frexp(spread.max())[1])  # exactly as many times larger: no product is too small
    for share, part in ((1 - _BY_WEIGHT, spread**_POWER), (_BY_WEIGHT, np.abs(w) * large)):
        if part.any():
            total += share * part / part.sum()
    return total

"""The algorithms as the papers print them, in numpy, one replica and one example at a time.

They are the oracles of the batched cores, given the same pre-drawn numbers, and the yardstick of the benchmarks.
Each yields, for t = 1..m, the iterate ``w_t`` that meets example t and the attributes paid for that example.
"""

from collections.abc import Iterator

import numpy as np

Steps = Iterator[tuple[np.ndarray, int]]


def invert(p: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Inverse distribution function of weights p at u."""
    cumulative = np.cumsum(p)
    return np.minimum(np.searchsorted(cumulative, u * cumulative[-1], side="right"), p.size - 1)


def data_point(x: np.ndarray, attributes: np.ndarray, q: np.ndarray | None = None) -> np.ndarray:
    """Unbiased estimate of x from draws of attributes with probabilities q, uniform unless given."""
    d = x.size
    if q is None:
        return np.bincount(attributes, x[attributes], minlength=d) * (d / attributes.size)
    return np.bincount(attributes, x[attributes] / q[attributes], minlength=d) / attributes.size


def inner_product(w: np.ndarray, x: np.ndarray, weights: np.ndarray, u: np.ndarray) -> float:
    """Unbiased estimate of <w, x> from draws in proportion to weights."""
    j = invert(weights, u)
    return float((w[j] * weights.sum() / weights[j] * x[j]).mean())


def project_l1(v: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """Project onto the 1-ball by soft thresholding.

    Duchi, Shalev-Shwartz, Singer & Chandra 2008, *Efficient projections onto the l1-ball for learning in high
    dimensions*, Fig. 1, by sorting.

    Parameters
    ----------
    v : ndarray of float, shape (..., d)
        Vectors along the last axis.
    radius : float or ndarray, broadcastable to shape (...)
        Radii, positive.

    Returns
    -------
    ndarray of float, shape (..., d)
        The nearest points of the balls; vectors inside their ball are returned as they are.
    """
    magnitude = np.abs(v)
    excess = np.sort(magnitude, axis=-1)[..., ::-1].cumsum(axis=-1) - np.expand_dims(radius, -1)
    # excess / rank grows while the rank-th largest magnitude exceeds it: its maximum is the threshold.
    threshold = (excess / np.arange(1, v.shape[-1] + 1)).max(axis=-1, keepdims=True)
    return np.copysign(np.maximum(magnitude - np.maximum(threshold, 0), 0), v)


def aerr(
    X: np.ndarray,
    y: np.ndarray,
    attributes: np.ndarray,
    uniforms: np.ndarray,
    B: float,
    eta: float,
    q: np.ndarray | None = None,
    s: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> Steps:
    """Hazan & Koren 2012, AERR; with q and s = sqrt(E x^2), Kukliansky & Shamir 2015, DDAERR with the improved p."""
    w = np.zeros(X.shape[1]) if start is None else start
    for x, target, drawn, u in zip(X, y, attributes, uniforms, strict=True):
        phi, cost = -target, drawn.size
        if w.any():
            phi += inner_product(w, x, w**2 if s is None else np.abs(w) * s, u)
            cost += u.size
        yield w, cost
        v = w - eta * phi * data_point(x, drawn, q)
        w = v * (B / max(np.sqrt(v @ v), B))


def aelr(
    X: np.ndarray,
    y: np.ndarray,
    attributes: np.ndarray,
    uniforms: np.ndarray,
    B: float,
    eta: float,
    q: np.ndarray | None = None,
    s: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> Steps:
    """Hazan & Koren 2012, AELR, in the exponents: the printed form overflows; with q and s, DDAELR as for `aerr`.

    The start is given in exponents.
    """
    theta = np.zeros(X.shape[1]) if start is None else start
    for x, target, drawn, u in zip(X, y, attributes, uniforms, strict=True):
        top = np.abs(theta).max()
        up, down = np.exp(theta - top), np.exp(-theta - top)
        w = B * (up - down) / (up.sum() + down.sum())
        phi, cost = -target, drawn.size
        if w.any():
            phi += inner_product(w, x, np.abs(w) if s is None else np.abs(w) * s, u)
            cost += u.size
        yield w, cost
        theta = theta - eta * np.clip(phi * data_point(x, drawn, q), -1 / eta, 1 / eta)


def aer(X: np.ndarray, y: np.ndarray, attributes: np.ndarray, uniforms: np.ndarray, B: float, lam: float) -> Steps:
    """Cesa-Bianchi et al. 2010, AER."""
    w = np.zeros(X.shape[1])
    for t, (x, target, drawn, u) in enumerate(zip(X, y, attributes, uniforms, strict=True), start=1):
        phi, cost = -target, drawn.size
        if w.any():
            phi += inner_product(w, x, np.abs(w), u)
            cost += u.size
        yield w, cost
        w = project_l1((1 - 1 / t) * w - 2 / (lam * t) * phi * data_point(x, drawn), B)

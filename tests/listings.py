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


def data_point(x: np.ndarray, attributes: np.ndarray) -> np.ndarray:
    """Unbiased estimate of x from uniform draws of attributes."""
    d = x.size
    return np.bincount(attributes, x[attributes], minlength=d) * (d / attributes.size)


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


def aerr(X: np.ndarray, y: np.ndarray, attributes: np.ndarray, uniforms: np.ndarray, B: float, eta: float) -> Steps:
    """Hazan & Koren 2012, AERR."""
    w = np.zeros(X.shape[1])
    for x, target, drawn, u in zip(X, y, attributes, uniforms, strict=True):
        phi, cost = -target, drawn.size
        if w.any():
            j = invert(w**2, u)
            phi += (w @ w / w[j] * x[j]).mean()
            cost += j.size
        yield w, cost
        v = w - eta * phi * data_point(x, drawn)
        w = v * (B / max(np.sqrt(v @ v), B))


def aelr(X: np.ndarray, y: np.ndarray, attributes: np.ndarray, uniforms: np.ndarray, B: float, eta: float) -> Steps:
    """Hazan & Koren 2012, AELR, in the exponents: the printed form overflows."""
    theta = np.zeros(X.shape[1])
    for x, target, drawn, u in zip(X, y, attributes, uniforms, strict=True):
        top = np.abs(theta).max()
        up, down = np.exp(theta - top), np.exp(-theta - top)
        w = B * (up - down) / (up.sum() + down.sum())
        phi, cost = -target, drawn.size
        if w.any():
            size = np.abs(w)
            j = invert(size, u)
            phi += (np.sign(w[j]) * size.sum() * x[j]).mean()
            cost += j.size
        yield w, cost
        theta = theta - eta * np.clip(phi * data_point(x, drawn), -1 / eta, 1 / eta)


def aer(X: np.ndarray, y: np.ndarray, attributes: np.ndarray, uniforms: np.ndarray, B: float, lam: float) -> Steps:
    """Cesa-Bianchi et al. 2010, AER."""
    w = np.zeros(X.shape[1])
    for t, (x, target, drawn, u) in enumerate(zip(X, y, attributes, uniforms, strict=True), start=1):
        phi, cost = -target, drawn.size
        if w.any():
            size = np.abs(w)
            j = invert(size, u)
            phi += (np.sign(w[j]) * size.sum() * x[j]).mean()
            cost += j.size
        yield w, cost
        w = project_l1((1 - 1 / t) * w - 2 / (lam * t) * phi * data_point(x, drawn), B)

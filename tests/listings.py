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


def project_l1(v: np.ndarray, radius: float) -> np.ndarray:
    """Euclidean projection onto the 1-ball (Duchi et al. 2008)."""
    size = np.abs(v)
    if size.sum() <= radius:
        return v
    u = np.sort(size)[::-1]
    theta = (np.cumsum(u) - radius) / np.arange(1, u.size + 1)
    tau = theta[np.flatnonzero(u > theta)[-1]]
    return np.sign(v) * np.maximum(size - tau, 0)


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

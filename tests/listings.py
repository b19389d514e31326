"""The algorithms as the papers print them, one replica and one example at a time: the oracles of the cores.

They take the same pre-drawn numbers as the batched cores and nothing else of them.
"""

import numpy as np


def invert(p, u):
    """Inverse distribution function of weights p at u."""
    cumulative = np.cumsum(p)
    return min(int(np.searchsorted(cumulative, u * cumulative[-1], side="right")), int(np.flatnonzero(p)[-1]))


def data_point(x, attributes, d):
    estimate = np.zeros(d)
    for i in attributes:
        estimate[i] += x[i] * d / len(attributes)
    return estimate


def project_l1(v, radius):
    if np.abs(v).sum() <= radius:
        return v
    u = np.sort(np.abs(v))[::-1]
    theta = (np.cumsum(u) - radius) / np.arange(1, u.size + 1)
    tau = theta[np.flatnonzero(u > theta)[-1]]
    return np.sign(v) * np.maximum(np.abs(v) - tau, 0)


def aerr(X, y, attributes, uniforms, B, eta):
    """Hazan & Koren 2012, AERR; returns the iterates w_1..w_m and the attributes paid per example."""
    m, d = X.shape
    w, iterates, paid = np.zeros(d), [], []
    for t in range(m):
        iterates.append(w)
        phi, cost = -y[t], len(attributes[t])
        if w.any():
            js = [invert(w**2, u) for u in uniforms[t]]
            phi += np.mean([(w @ w) / w[j] * X[t, j] for j in js])
            cost += len(js)
        v = w - eta * phi * data_point(X[t], attributes[t], d)
        w = v * B / max(np.linalg.norm(v), B)
        paid.append(cost)
    return np.array(iterates), np.array(paid)


def aelr(X, y, attributes, uniforms, B, eta):
    """Hazan & Koren 2012, AELR, in the exponents (the printed form overflows)."""
    m, d = X.shape
    theta, iterates, paid = np.zeros(d), [], []
    for t in range(m):
        top = np.abs(theta).max()
        up, down = np.exp(theta - top), np.exp(-theta - top)
        w = B * (up - down) / (up.sum() + down.sum())
        iterates.append(w)
        phi, cost = -y[t], len(attributes[t])
        if w.any():
            js = [invert(np.abs(w), u) for u in uniforms[t]]
            phi += np.mean([np.sign(w[j]) * np.abs(w).sum() * X[t, j] for j in js])
            cost += len(js)
        g = phi * data_point(X[t], attributes[t], d)
        theta = theta - eta * np.clip(g, -1 / eta, 1 / eta)
        paid.append(cost)
    return np.array(iterates), np.array(paid)


def aer(X, y, attributes, uniforms, B, lam):
    """Cesa-Bianchi et al. 2010, AER."""
    m, d = X.shape
    w, iterates, paid = np.zeros(d), [], []
    for t in range(1, m + 1):
        x = X[t - 1]
        iterates.append(w)
        phi, cost = -y[t - 1], len(attributes[t - 1])
        if w.any():
            js = [invert(np.abs(w), u) for u in uniforms[t - 1]]
            phi += np.mean([np.sign(w[j]) * np.abs(w).sum() * x[j] for j in js])
            cost += len(js)
        w = (1 - 1 / t) * w - 2 / (lam * t) * phi * data_point(x, attributes[t - 1], d)
        w = project_l1(w, B)
        paid.append(cost)
    return np.array(iterates), np.array(paid)


def average(iterates, rule):
    c = len(iterates)
    return {"all": iterates.mean(axis=0), "suffix": iterates[c // 2 :].mean(axis=0), "last": iterates[-1]}[rule]

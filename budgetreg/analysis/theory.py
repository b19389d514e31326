"""The least excess loss that is possible for normal data, in the limit of many examples.

Attributes and target are normal with mean 0 and joint covariance C, and an example shows a set S of attributes and the
target. The information of one example on the entries of ``C_SS`` is ``D'(P (x) P) D / 2`` with ``P = C_SS^-1`` and the
duplication matrix D; I is its mean over the sets that are drawn, for all entries of C. With ``w = Sigma^-1 sigma``, a
regular efficient estimator of w has after n examples the excess loss ``tr(Sigma J I^-1 J') / n``, where J has

    dw/dC_iy = Sigma^-1 e_i,    dw/dC_ij = -Sigma^-1 (e_i w_j + e_j w_i),  once if i = j.

References
----------
A. W. van der Vaart. Asymptotic Statistics. Cambridge University Press 1998, Chapter 8 (efficient estimators).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from budgetreg.common.streams import generator
from budgetreg.data.distributions import KeyedDistribution
from budgetreg.data.registry import kinds
from budgetreg.runs.series import Series

MOST_SUBSETS = 20_000
"""Uniform subsets are enumerated up to this number, and as many are drawn if there are more."""

_BATCH = 1 << 22


def excess_bound(C: np.ndarray, k: int, design: np.ndarray | None = None, tangent: np.ndarray | None = None) -> float:
    """Return n times the least excess loss after n examples, for large n; infinite if w cannot be learned.

    Parameters
    ----------
    C : ndarray of float, shape (d + 1, d + 1)
        Covariance of the attributes and, last, the target; positive definite.
    k : int
        Number of attributes seen of each example.
    design : ndarray of int, shape (N, k), optional
        The sets of attributes that are seen, equally often; by default all subsets of k.
    tangent : ndarray of float, shape (r, d + 1, d + 1), optional
        Directions in which C may vary, symmetric matrices, if its structure is known; by default all. See
        `known_covariance`.

    Returns
    -------
    float

    Examples
    --------
    >>> C = np.diag([1.0, 1.0, 1.0, 0.2])  # no attribute explains the target
    >>> round(excess_bound(C, 3), 6)  # full rows: the noise times d
    0.6
    """
    d = len(C) - 1
    subsets = uniform_subsets(d, k) if design is None else design
    i, j = np.triu_indices(d + 1)
    information = _information(C, np.column_stack([subsets, np.full(len(subsets), d)]))
    inverse = np.linalg.inv(C[:-1, :-1])
    w = inverse @ C[:-1, -1]
    J = np.zeros((d, len(i)))
    for column, (a, b) in enumerate(zip(i, j, strict=True)):
        if a < d:
            J[:, column] = inverse[:, a] if b == d else -inverse[:, a] * w[b] - (a != b) * inverse[:, b] * w[a]
    if tangent is not None:
        basis = tangent[:, i, j]
        information, J = basis @ information @ basis.T, J @ basis.T
    values, vectors = np.linalg.eigh(information)
    learned = values > len(values) * np.finfo(float).eps * values[-1]
    J = J @ vectors
    if np.abs(J[:, ~learned]).max(initial=0) > 1e-8 * np.abs(J).max():
        return float("inf")
    return float(((C[:-1, :-1] @ J[:, learned]) * J[:, learned] / values[learned]).sum())


def noise_and_bound(series: Series, k: int) -> tuple[float, float] | None:
    """Return the noise and n times the bound for uniform subsets of k, or None if the data are not normal.

    Both are means over the repetitions of a series, in units of the target's variance.
    """
    section = series.config["dataset"]
    kind = kinds()[section["kind"]]
    source = kind.parse({key: section[key] for key in kind.options if key in section})
    if not isinstance(source, KeyedDistribution):
        return None
    repetitions = sorted(set(series.points["repetition"]))
    each = [_noise_and_bound(source, series.config["seed"], repetition, k) for repetition in repetitions]
    known = [pair for pair in each if pair is not None]
    return tuple(np.mean(known, axis=0).tolist()) if known else None


@lru_cache(maxsize=256)
def _noise_and_bound(source: KeyedDistribution, seed: int, repetition: int, k: int) -> tuple[float, float] | None:
    C = source.covariance(seed, repetition)
    if C is None:
        return None
    noise = C[-1, -1] - C[-1, :-1] @ np.linalg.solve(C[:-1, :-1], C[:-1, -1])
    return noise / C[-1, -1], excess_bound(C, k) / C[-1, -1]


def known_covariance(d: int) -> np.ndarray:
    """Return the directions (d + 1, d + 1, d + 1) in which C varies if the covariance of d attributes is known."""
    directions = np.zeros((d + 1, d + 1, d + 1))
    each = np.arange(d + 1)
    directions[each, each, d] = directions[each, d, each] = 1
    return directions


def uniform_subsets(d: int, k: int) -> np.ndarray:
    """Return all subsets of k of d attributes, (N, k), or `MOST_SUBSETS` of them at random."""
    if comb(d, k) <= MOST_SUBSETS:
        return np.array(list(combinations(range(d), k)))
    rng = generator("subsets of the bound", d, k)
    return np.sort(rng.random((MOST_SUBSETS, d)).argsort(axis=1)[:, :k], axis=1)


def _information(C: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Return the mean information on the entries above and on the diagonal of C, for sets of columns (N, q)."""
    p, (N, q) = len(C), sets.shape
    a, b = np.triu_indices(q)
    size = p * (p + 1) // 2
    place = np.zeros((p, p), dtype=np.intp)
    place[np.triu_indices(p)] = np.arange(size)
    half, total = np.where(a == b, 0.5, 1.0), np.zeros(size * size)
    for start in range(0, N, max(1, _BATCH // len(a) ** 2)):
        S = sets[start : start + max(1, _BATCH // len(a) ** 2)]
        P = np.linalg.inv(C[S[:, :, None], S[:, None, :]])
        pairs = P[:, a][:, :, a] * P[:, b][:, :, b] + P[:, a][:, :, b] * P[:, b][:, :, a]
        cell = place[S[:, a], S[:, b]]
        cells = cell[:, :, None] * size + cell[:, None, :]
        total += np.bincount(cells.reshape(-1), (pairs * half[:, None] * half).reshape(-1), size * size)
    return total.reshape(size, size) / N

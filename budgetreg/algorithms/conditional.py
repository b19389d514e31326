"""Conditional means and covariances of a normal vector of which only some entries are known.

Rows that show the same entries share one pattern of holes, and so one system of equations, over the entries that are
known. Patterns with equally many are solved in batches.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

_BATCH = 1 << 22
"""Numbers of a batch of systems, which limits the memory: 32 MiB per array."""

_MANY = 32
"""Rows of one pattern from which on they are multiplied together."""

_JITTER = 1e-12
"""Added to the diagonal of correlations, so that attributes that determine each other can be conditioned on."""


class Conditional(NamedTuple):
    """The conditional distribution of incomplete rows.

    For a single row, shape (d,), `means` has shape (d,) and `pattern` is one number; ``covariances[pattern]`` is the
    covariance of a row in either case.
    """

    means: np.ndarray
    """``E[x | what is present]``, shape (n, d): the values that are present, and the expectation of the others."""
    pattern: np.ndarray
    """Index of each row's pattern, shape (n,)."""
    present: np.ndarray
    """The P patterns: which entries are present, bool of shape (P, d)."""
    covariances: np.ndarray
    """Covariance of x given what is present, by pattern, shape (P, d, d); 0 where an entry is present."""


def conditional(mean: np.ndarray, covariance: np.ndarray, X: np.ndarray) -> Conditional:
    """Return means and covariances given the entries that are present.

    Parameters
    ----------
    mean : ndarray of float, shape (d,)
    covariance : ndarray of float, shape (d, d)
        Positive semidefinite. An entry of variance 0 has no information on the others.
    X : ndarray of float, shape (n, d) or (d,)
        NaN marks what is unknown.

    Returns
    -------
    Conditional
    """
    rows = np.atleast_2d(X)
    present, pattern = patterns(rows)
    covariances = np.zeros((len(present), *covariance.shape))
    for some, known, inverse in _systems(covariance, present):
        shared, hidden = covariance[known], ~present[some]
        left = covariance - shared.swapaxes(1, 2) @ (inverse @ shared)
        covariances[some] = left * (hidden[:, :, None] & hidden[:, None, :])
    covariances = (covariances + covariances.swapaxes(1, 2)) / 2
    means = _means(mean, covariance, rows, present, pattern)
    return Conditional(means.reshape(X.shape), pattern.reshape(X.shape[:-1]), present, covariances)


def conditional_means(mean: np.ndarray, covariance: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return ``E[x | what is present]``, shape (n, d), see `conditional`; it needs no memory for covariances."""
    return _means(mean, covariance, X, *patterns(X))


def conditional_variances(covariance: np.ndarray, w: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return ``w'V w``, shape (n,), V the covariance of x given what is present in each row; see `conditional`."""
    present, pattern = patterns(X)
    variances = np.zeros(len(present))
    for some, known, inverse in _systems(covariance, present):
        # The attributes that are present have no variance left, so only the weights of the others count.
        hidden = np.where(present[some], 0.0, w)
        together = (hidden[:, None] @ covariance)[:, 0]
        shared = np.take_along_axis(together, known, axis=1)
        explained = (shared[:, None] @ inverse @ shared[:, :, None])[:, 0, 0]
        variances[some] = (together * hidden).sum(axis=1) - explained
    return np.maximum(variances, 0.0)[pattern]


def patterns(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct patterns of what is present, bool of shape (P, d), and each row's, int of shape (n,)."""
    packed, pattern = np.unique(np.packbits(~np.isnan(X), axis=1), axis=0, return_inverse=True)
    return np.unpackbits(packed, axis=1, count=X.shape[1]).astype(bool), pattern.reshape(-1)


def _means(
    mean: np.ndarray, covariance: np.ndarray, X: np.ndarray, present: np.ndarray, pattern: np.ndarray
) -> np.ndarray:
    means = np.where(np.isnan(X), mean, X)
    deviations = means - mean
    for some, known, inverse in _systems(covariance, present):
        gains = inverse @ covariance[known]
        place = np.full(len(present), -1)
        place[some] = np.arange(len(some))
        rows = np.flatnonzero(place[pattern] >= 0)
        at = place[pattern[rows]]
        expected = np.empty((len(rows), X.shape[1]))
        many = np.bincount(at, minlength=len(some)) >= _MANY
        for p in np.flatnonzero(many):
            same = at == p
            expected[same] = deviations[rows[same]][:, known[p]] @ gains[p]
        for part in _parts(np.flatnonzero(~many[at]), gains[0].size):
            own = np.take_along_axis(deviations[rows[part]], known[at[part]], axis=1)
            expected[part] = (own[:, None] @ gains[at[part]])[:, 0]
        means[rows] = np.where(present[pattern[rows]], means[rows], mean + expected)
    return means


def _systems(covariance: np.ndarray, present: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield patterns with equally many known entries, but for complete ones: which, these entries, and inverses.

    The entries have shape (P, n), and the inverses of their covariances (P, n, n).
    """
    deviations = np.sqrt(np.diagonal(covariance))
    units = np.where(deviations > 0, deviations, 1.0)
    correlations = covariance / np.outer(units, units) + _JITTER * np.eye(len(units))
    counts = present.sum(axis=1)
    for n in np.unique(counts[counts < len(units)]).tolist():
        for some in _parts(np.flatnonzero(counts == n), covariance.size):
            known = np.nonzero(present[some])[1].reshape(len(some), n)
            inverse = np.linalg.inv(correlations[known[:, :, None], known[:, None]])
            yield some, known, inverse / (units[known][:, :, None] * units[known][:, None])


def _parts(positions: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Yield parts of some positions, for each of which arrays have so many numbers."""
    step = max(1, _BATCH // max(size, 1))
    for start in range(0, len(positions), step):
        yield positions[start : start + step]

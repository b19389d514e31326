"""Conditional means and covariances of a normal vector of which only some entries are known.

Rows that show the same entries share one pattern of holes, and so one system of equations. The systems of all patterns
are solved in batches: where an entry is unknown, its row and column are those of the identity.
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
    covariances = np.empty((len(present), *covariance.shape))
    for part, inverse in _inverses(covariance, present):
        known = covariance * present[part, :, None]
        covariances[part] = covariance - known.swapaxes(1, 2) @ inverse @ known
        hidden = ~present[part]
        covariances[part] *= hidden[:, :, None] & hidden[:, None, :]
    covariances = (covariances + covariances.swapaxes(1, 2)) / 2
    means = _means(mean, covariance, rows, present, pattern)
    return Conditional(means.reshape(X.shape), pattern.reshape(X.shape[:-1]), present, covariances)


def conditional_means(mean: np.ndarray, covariance: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return ``E[x | what is present]``, shape (n, d), see `conditional`; it needs no memory for covariances."""
    return _means(mean, covariance, X, *patterns(X))


def conditional_variances(covariance: np.ndarray, w: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return ``w'V w``, shape (n,), V the covariance of x given what is present in each row; see `conditional`."""
    present, pattern = patterns(X)
    variances = np.empty(len(present))
    for part, inverse in _inverses(covariance, present):
        # The attributes that are present have no variance left, so only the weights of the others count.
        hidden = np.where(present[part], 0.0, w)
        shared = np.where(present[part], hidden @ covariance, 0.0)
        explained = (shared[:, None, :] @ inverse @ shared[:, :, None])[:, 0, 0]
        variances[part] = ((hidden @ covariance) * hidden).sum(axis=1) - explained
    return np.maximum(variances, 0.0)[pattern]


def patterns(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct patterns of what is present, bool of shape (P, d), and each row's, int of shape (n,)."""
    packed, pattern = np.unique(np.packbits(~np.isnan(X), axis=1), axis=0, return_inverse=True)
    return np.unpackbits(packed, axis=1, count=X.shape[1]).astype(bool), pattern.reshape(-1)


def _means(
    mean: np.ndarray, covariance: np.ndarray, X: np.ndarray, present: np.ndarray, pattern: np.ndarray
) -> np.ndarray:
    means = np.where(np.isnan(X), mean, X)
    deviations = means - mean  # 0 where unknown
    by_pattern = np.argsort(pattern, kind="stable")
    ends = np.cumsum(np.bincount(pattern, minlength=len(present)))
    d, full = X.shape[1], np.asarray(present.all(axis=1))
    for part, inverse in _inverses(covariance, present):
        gains = inverse @ covariance
        rows = by_pattern[(ends[part.start - 1] if part.start else 0) : ends[part.stop - 1]]
        rows = rows[~full[pattern[rows]]]
        counts = np.bincount(pattern[rows] - part.start, minlength=len(gains))
        expected = np.empty((len(rows), d))
        few = counts[pattern[rows] - part.start] < _MANY
        for begin in range(0, np.count_nonzero(few), max(1, _BATCH // d**2)):
            some = np.flatnonzero(few)[begin : begin + max(1, _BATCH // d**2)]
            expected[some] = (deviations[rows[some], None] @ gains[pattern[rows[some]] - part.start])[:, 0]
        for p in np.flatnonzero(counts >= _MANY):
            same = pattern[rows] == part.start + p
            expected[same] = deviations[rows[same]] @ gains[p]
        means[rows] = np.where(present[pattern[rows]], means[rows], mean + expected)
    return means


def _inverses(covariance: np.ndarray, present: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of the patterns with the inverses of the covariances of what is present; 0 for all other entries."""
    d = len(covariance)
    deviations = np.sqrt(np.diagonal(covariance))
    units = np.where(deviations > 0, deviations, 1.0)
    correlations = covariance / np.outer(units, units) + _JITTER * np.eye(d)
    step = max(1, _BATCH // d**2)
    for start in range(0, len(present), step):
        part = slice(start, min(start + step, len(present)))
        known = present[part] & (deviations > 0)
        both = known[:, :, None] & known[:, None, :]
        inverse = np.linalg.inv(np.where(both, correlations, np.eye(d)))
        yield part, np.where(both, inverse, 0.0) / np.outer(units, units)

"""Sums and means of products over pairs of attributes that were seen together.

The products are of residuals, from which the regression on the target is subtracted. Attributes are scaled by
``c_i = sqrt(n_i / v_i)``, n_i being the number of values. A pair is seen about in proportion to ``n_i n_j``, so all
entries of the scaled mean products have about the same noise, and no rotation changes its distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import dawsn

from budgetreg.learners.moments.label import LabelRegression
from budgetreg.revealed.collection import Block, rows_by_column

FOLDS = 5
"""Folds of the examples; each is held out from the sums of the others."""


@dataclass(frozen=True)
class Pairs:
    """Sums over the examples that show both attributes of a pair, for the p live attributes of one stream.

    Attributes
    ----------
    live : ndarray of int, shape (p,)
        Indices of the live attributes.
    scale : ndarray of float, shape (p,)
        ``c``, normalised so that the mean of ``c_i^2 v_i`` is 1.
    diagonal : ndarray of float, shape (p,)
        ``c_i^2 v_i``.
    sums, counts : ndarray of float, shape (folds, p, p)
        Sums of products of scaled residuals, and numbers of products; 0 on the diagonals.
    expected : ndarray of float, shape (p, p)
        Expected number of products of each pair, given the counts of attributes; 0 on the diagonal.
    """

    live: np.ndarray
    scale: np.ndarray
    diagonal: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    expected: np.ndarray

    def without(self, fold: int) -> tuple[np.ndarray, np.ndarray]:
        """Return sums and counts over all folds but one."""
        others = np.arange(FOLDS) != fold
        return self.sums[others].sum(axis=0), self.counts[others].sum(axis=0)


def collected_pairs(
    blocks: Sequence[Block], f: int, phases: Sequence[int], label: LabelRegression, mean: float
) -> Pairs:
    """Sum the products of one stream.

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed; the last value of each example is its target.
    f : int
        The stream.
    phases : sequence of int
        Numbers of examples at which the draw probabilities changed; the last is the number of all examples.
    label : LabelRegression
        The stream's regression on the target.
    mean : float
        Mean target.
    """
    live = np.flatnonzero(label.live)
    d, p = len(label.live), len(live)
    position = np.full(d + 2, p)
    position[live] = np.arange(p)
    c = np.sqrt(label.counts[live] / label.v[live])
    c /= np.sqrt(np.mean(np.square(c) * label.v[live]))
    a, b, scale = (np.append(parameter, 0.0) for parameter in (label.a[live], label.b[live], c))
    sums, counts, expected = np.zeros((FOLDS, p, p)), np.zeros((FOLDS, p, p)), np.zeros((p, p))
    start = 0
    for block in blocks:
        attributes, values = position[block.attributes[f, :, :-1]], block.values[f, :, :-1]
        u = block.values[f, :, -1:] - mean
        T, n = attributes.shape
        e = (values - a[attributes] - b[attributes] * u) * scale[attributes]
        for fold in range(FOLDS):
            part = slice((fold - start) % FOLDS, T, FOLDS)
            seen, residuals = rows_by_column(attributes[part], e[part], p + 1)
            sums[fold] += (residuals.T @ residuals).toarray()[:p, :p]
            counts[fold] += (seen.T @ seen).toarray()[:p, :p]
        for begin, end in zip([0, *phases[:-1]], phases, strict=True):
            in_phase = attributes[max(begin - start, 0) : max(end - start, 0)]
            if in_phase.size:
                times = np.bincount(in_phase.reshape(-1), minlength=p + 1)[:p]
                expected += np.outer(times, times) * ((1 - 1 / n) / len(in_phase))
        start += T
    for matrix in (*sums, *counts, expected):
        np.fill_diagonal(matrix, 0.0)
    if expected.any():
        expected *= counts.sum() / expected.sum()
    return Pairs(live, c, np.square(c) * label.v[live], sums, counts, expected)


def shrunk(pairs: Pairs, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return mean products shrunk by half a pseudo-product per pair, which helps for rare pairs."""
    return _with_diagonal(sums / (counts + 0.5), pairs)


def debiased(pairs: Pairs, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return mean products with one pseudo-product per pair, divided by their mean shrinkage."""
    total = pairs.counts.sum()
    share = counts.sum() / total if total else 0.0
    return _with_diagonal(
        sums / (counts + 1) / np.maximum(_debiased_share(pairs.expected * share), np.finfo(float).tiny), pairs
    )


def shrunk_share(expected: np.ndarray) -> np.ndarray:
    """Return ``E N / (N + 1/2)`` for Poisson numbers N of these means; 1 on the diagonal."""
    root = np.sqrt(np.maximum(expected, np.finfo(float).tiny))
    share = 1 - dawsn(root) / root
    np.fill_diagonal(share, 1.0)
    return np.asarray(share)


def _debiased_share(expected: np.ndarray) -> np.ndarray:
    """Return ``E N / (N + 1)`` for Poisson numbers N of these means."""
    small = expected < 1e-4
    mean = np.where(small, 1.0, expected)
    return np.where(small, expected / 2, 1 + np.expm1(-mean) / mean)


def _with_diagonal(matrix: np.ndarray, pairs: Pairs) -> np.ndarray:
    np.fill_diagonal(matrix, pairs.diagonal)
    return matrix

"""What pairs of attributes that were seen together tell of what the target leaves of their second moments.

Attributes are scaled by ``c_i = sqrt(n_i / v_i)``: a pair is seen about in proportion to ``n_i n_j``, so that every
entry then carries the same noise, and the noise of the whole matrix turns with no rotation of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import dawsn

from budgetreg.learners.factors.entries import Block
from budgetreg.learners.moments.label import LabelRegression

FOLDS = 5
"""Parts of the examples, each of which is held out from what the others say."""


@dataclass(frozen=True)
class Pairs:
    """Sums over examples that saw both attributes of a pair, for p live attributes of one stream.

    Attributes
    ----------
    live : ndarray of int, shape (p,)
        Which.
    scale : ndarray of float, shape (p,)
        ``c``, such that the mean of ``c_i^2 v_i`` is 1.
    diagonal : ndarray of float, shape (p,)
        ``c_i^2 v_i``.
    sums, counts : ndarray of float, shape (folds, p, p)
        Of products of residuals, scaled; and how many there are. 0 on the diagonals.
    expected : ndarray of float, shape (p, p)
        How many of a pair were to be expected in all, given how often each attribute was seen. 0 on the diagonal.
    """

    live: np.ndarray
    scale: np.ndarray
    diagonal: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    expected: np.ndarray

    def without(self, fold: int) -> tuple[np.ndarray, np.ndarray]:
        """Return sums and counts of all folds but one."""
        others = np.arange(FOLDS) != fold
        return self.sums[others].sum(axis=0), self.counts[others].sum(axis=0)


def collected_pairs(
    blocks: Sequence[Block], f: int, phases: Sequence[int], label: LabelRegression, mean: float
) -> Pairs:
    """Sum up the products of a stream.

    Parameters
    ----------
    blocks : sequence of Block
        All that was revealed; the last attribute of each example is the target.
    f : int
        The stream.
    phases : sequence of int
        Examples, counted from the first, before each of which the probabilities of draws changed; the last: of all.
    label : LabelRegression
        Of the stream.
    mean : float
        Of the targets.
    """
    live = np.flatnonzero(label.live)
    d, p = len(label.live), len(live)
    place = np.full(d + 2, p)
    place[live] = np.arange(p)
    c = np.sqrt(label.counts[live] / label.v[live])
    c /= np.sqrt(np.mean(np.square(c) * label.v[live]))
    a, b, scale = (np.append(own, 0.0) for own in (label.a[live], label.b[live], c))
    sums, counts, expected = np.zeros((FOLDS, p, p)), np.zeros((FOLDS, p, p)), np.zeros((p, p))
    start = 0
    for block in blocks:
        attributes, values = place[block.attributes[f, :, :-1]], block.values[f, :, :-1]
        u = block.values[f, :, -1:] - mean
        T, n = attributes.shape
        e = (values - a[attributes] - b[attributes] * u) * scale[attributes]
        for fold in range(FOLDS):
            part = slice((fold - start) % FOLDS, T, FOLDS)
            seen, known = (_rows(attributes[part], own[part], p) for own in (np.ones(e.shape), e))
            sums[fold] += (known.T @ known).toarray()[:p, :p]
            counts[fold] += (seen.T @ seen).toarray()[:p, :p]
        for begin, end in zip([0, *phases[:-1]], phases, strict=True):
            own = attributes[max(begin - start, 0) : max(end - start, 0)]
            if own.size:
                often = np.bincount(own.reshape(-1), minlength=p + 1)[:p]
                expected += np.outer(often, often) * ((1 - 1 / n) / len(own))
        start += T
    for matrix in (*sums, *counts, expected):
        np.fill_diagonal(matrix, 0.0)
    if expected.any():
        expected *= counts.sum() / expected.sum()
    return Pairs(live, c, np.square(c) * label.v[live], sums, counts, expected)


def _rows(attributes: np.ndarray, values: np.ndarray, p: int) -> csr_array:
    starts = np.arange(0, attributes.size + 1, attributes.shape[1])
    return csr_array((values.reshape(-1), attributes.reshape(-1), starts), (len(attributes), p + 1))


def shrunk(pairs: Pairs, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return mean products, half a product of 0 supposed of each pair: better as long as few were seen."""
    return _with_diagonal(sums / (counts + 0.5), pairs)


def debiased(pairs: Pairs, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return mean products, a product of 0 supposed of each pair and what that takes away given back on average."""
    total = pairs.counts.sum()
    share = counts.sum() / total if total else 0.0
    return _with_diagonal(
        sums / (counts + 1) / np.maximum(_debiased_share(pairs.expected * share), np.finfo(float).tiny), pairs
    )


def shrunk_share(expected: np.ndarray) -> np.ndarray:
    """Return the mean of ``N / (N + 1/2)`` for Poisson numbers N of these means; 1 on the diagonal."""
    root = np.sqrt(np.maximum(expected, np.finfo(float).tiny))
    share = 1 - dawsn(root) / root
    np.fill_diagonal(share, 1.0)
    return np.asarray(share)


def _debiased_share(expected: np.ndarray) -> np.ndarray:
    """Return the mean of ``N / (N + 1)`` for Poisson numbers N of these means."""
    few = expected < 1e-4
    large = np.where(few, 1.0, expected)
    return np.where(few, expected / 2, 1 + np.expm1(-large) / large)


def _with_diagonal(matrix: np.ndarray, pairs: Pairs) -> np.ndarray:
    np.fill_diagonal(matrix, pairs.diagonal)
    return matrix

"""Baseline and Naive: the loss, or its linear part alone, is estimated from pairs of attributes.

Of each example, ``n = floor(k/2)`` ordered pairs (i, j), uniform and without replacement from ``[d] x [d]`` (i = j
included), add to estimates of ``x x'`` and of ``x``:

    A_ij += (d^2 / 2n) x_i x_j,  A_ji += the same;   v_i += (d / 2n) x_i,  v_j += (d / 2n) x_j,

which is unbiased. With the averages A and ``v = mean(2 y v)``, the empirical loss is estimated by
``w'A w - w'v + mean(y^2)``; the paper's Algorithm 1 prints ``+ w'v``.

With values missing completely at random, missing values count as 0. Products are divided by the share of examples that
have both attributes, and single values by the share that has the attribute, which makes the estimates unbiased again.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from budgetreg.algorithms.full_rows.lasso import lasso
from budgetreg.algorithms.signature import Rngs
from budgetreg.draws import blocks, subset
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.centring import sums
from budgetreg.revealed.units import units


class PairCentring:
    """The further sums that centred and scaled estimates need: for attributes and targets less their means.

    The sum of ``(x_i - m_i)(x_j - m_j)`` over the pairs revealed is the sum of ``x_i x_j``, less ``m_j`` times the sum
    of ``x_i`` over the same pairs, and so on. Thus a constant added to an attribute or to the targets changes nothing.
    Subtracting the means from the finished estimates would not achieve this, because their weights do not sum to 1.

    Parameters
    ----------
    accessor : Accessor
        The streams along which pairs are drawn.
    """

    def __init__(self, accessor: Accessor) -> None:
        F, d = accessor.n_streams, accessor.d
        self._together = together(accessor)
        self._first, self._pairs = np.zeros((F, d, d)), np.zeros((F, d, d))
        self._x, self._y, self._count = np.zeros((F, d)), np.zeros((F, d)), np.zeros((F, d))
        self._targets, self._n, self._drawn = np.zeros(F), 0, 0
        X, _ = accessor.pilot()
        self._known, self._values, self._squares = X.shape[1], X.sum(axis=1), np.square(X).sum(axis=1)

    def add(self, attributes: np.ndarray, x: np.ndarray, y: np.ndarray, available: np.ndarray) -> None:
        """Add pairs (F, T, n, 2), their values, targets (F, T), and which of the values are available."""
        F, d = self._x.shape
        both = available.all(axis=-1).reshape(F, 1, -1).astype(float)
        i, j = attributes[..., 0].reshape(F, 1, -1), attributes[..., 1].reshape(F, 1, -1)
        for first, second, values in ((i, j, x[..., 0]), (j, i, x[..., 1])):
            cell = first * d + second
            self._first += sums(cell, values.reshape(F, 1, -1) * both, d * d).reshape(F, d, d)
            self._pairs += sums(cell, both, d * d).reshape(F, d, d)
        singles = attributes.reshape(*y.shape, -1)
        single = available.reshape(singles.shape).astype(float)
        self._x += sums(singles, x.reshape(singles.shape), d)
        self._squares += sums(singles, np.square(x).reshape(singles.shape), d)
        self._y += sums(singles, y[..., None] * single, d)
        self._count += sums(singles, single, d)
        self._targets += y.sum(axis=1)
        self._n += y.shape[1]
        self._drawn += attributes.shape[1] * attributes.shape[2]

    def origin(self, centred: bool, intercept: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return what is subtracted from attributes (F, d) and targets (F,): their means, or 0."""
        m, r = self._x / np.maximum(self._count, 1), self._targets / self._n
        return m if centred else np.zeros_like(m), r if intercept else np.zeros_like(r)

    def scale(self, centred: bool) -> np.ndarray:
        """Return the inverse standard deviations (F, d) of what was seen, the pilot and repeated draws included.

        Attributes that are constant have 0 if they are centred, because then nothing but rounding errors is left.
        """
        counts, values = self._known + self._count, self._values + self._x
        unit, varies = units(counts, self._squares, self._squares - np.square(values) / np.maximum(counts, 1))
        return np.where(varies, 1 / unit, 0.0) if centred else 1 / unit

    def centre(self, A: np.ndarray, v: np.ndarray, m: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimates A (F, d, d) and v (F, d) for attributes less m (F, d) and targets less r (F,)."""
        d, r = A.shape[1], r[:, None]
        cross = self._first * m[:, None, :]
        products = self._pairs * (m[:, :, None] * m[:, None, :]) - cross - cross.transpose(0, 2, 1)
        singles = self._count * (r * m) - r * self._x - m * self._y
        if self._together is not None:
            products, singles = products / self._together, singles / self._together.diagonal(axis1=1, axis2=2)
        return A + products * (d**2 / (2 * self._drawn)), v + singles * (d / self._drawn)


def estimates(
    accessor: Accessor, checkpoints: Sequence[int], rngs: Rngs, k: int, centring: PairCentring | None = None
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Estimate the loss along all streams of the accessor; the parameters are those of `Learner.fit`.

    A `centring` is given the same pairs.

    Yields
    ------
    checkpoint : int
    A : ndarray of float, shape (F, d, d)
        Estimates of ``mean(x x')``.
    v : ndarray of float, shape (F, d)
        Estimates of ``mean(2 y x)``.
    """
    F, d = accessor.n_streams, accessor.d
    A, v = np.zeros((F, d, d)), np.zeros((F, d))
    shares = together(accessor)
    for start, stop in blocks(0, checkpoints[-1]):
        pairs = np.stack([subset(rng, d * d, k // 2) for rng in rngs])[:, : stop - start]
        attributes = np.stack(np.divmod(pairs, d), axis=-1)
        accessor.open(start, stop)
        y = accessor.targets()
        x = accessor.reveal_block(attributes.reshape(F, stop - start, -1)).reshape(attributes.shape)
        for first, last in pairwise([start, *(c for c in checkpoints if start < c < stop), stop]):
            part = slice(first - start, last - start)
            _add(A, v, attributes[:, part], x[:, part], y[:, part])
            if centring:
                available = accessor.available(attributes.reshape(F, stop - start, -1)).reshape(attributes.shape)
                centring.add(attributes[:, part], x[:, part], y[:, part], available[:, part])
            if last in checkpoints:
                # At the last checkpoint A is overwritten, because allocating F d x d more numbers is slow.
                means = np.multiply(A, d**2 / (2 * (k // 2) * last), out=A if last == checkpoints[-1] else None)
                singles = v * (d / ((k // 2) * last))
                if shares is not None:
                    means, singles = means / shares, singles / shares.diagonal(axis1=1, axis2=2)
                yield last, means, singles


def together(accessor: Accessor) -> np.ndarray | None:
    """Return the shares (F, d, d) of examples that have two attributes; None if all have all."""
    if accessor.complete:
        return None
    return accessor.together(*np.ogrid[: accessor.n_streams, : accessor.d, : accessor.d])


def _add(A: np.ndarray, v: np.ndarray, attributes: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Add ``x_i x_j`` of pairs (F, T, n, 2) to A, symmetrically, and ``y x_i`` and ``y x_j`` to v."""
    products = x.prod(axis=-1)
    d = v.shape[1]
    pairs = np.nonzero(products)
    i, j = attributes[pairs].T
    np.add.at(A.reshape(-1), (pairs[0] * d + i) * d + j, products[pairs])
    np.add.at(A.reshape(-1), (pairs[0] * d + j) * d + i, products[pairs])
    singles = np.nonzero(x)
    np.add.at(v.reshape(-1), singles[0] * d + attributes[singles], x[singles] * y[singles[:2]])


def minimisers(A: np.ndarray, v: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Minimise ``w'A w - w'v`` over 1-balls, with the negative eigenvalues of A set to 0.

    The estimate A is symmetric but rarely positive semidefinite, and then the program is not convex.

    Parameters
    ----------
    A : ndarray of float, shape (d, d)
        Estimate of ``mean(x x')``.
    v : ndarray of float, shape (d,)
        Estimate of ``mean(2 y x)``.
    radii : ndarray of float, shape (G,)
        Radii B of the balls.

    Returns
    -------
    ndarray of float, shape (d, G)
    """
    W = np.zeros((len(v), len(radii)))
    known = np.flatnonzero(A.any(axis=0) | (v != 0))
    W[known] = lasso(_clipped(A[np.ix_(known, known)]), v[known] / 2, radii)
    return W


def _clipped(A: np.ndarray) -> np.ndarray:
    """Return a symmetric matrix with negative eigenvalues, and those that are 0 up to rounding, set to 0."""
    result = np.zeros_like(A)
    seen = np.flatnonzero(A.any(axis=0))
    s, V = np.linalg.eigh(A[np.ix_(seen, seen)])
    rounding = np.finfo(float).eps * len(s) * np.abs(s).max(initial=0)
    roots = V[:, s > rounding] * np.sqrt(s[s > rounding])
    roots[(roots**2).sum(axis=1) <= rounding] = 0
    result[np.ix_(seen, seen)] = roots @ roots.T
    return result


def correlation(A: np.ndarray, v: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Return ``w = B v / |v|_1``, the direction of the minimiser for uncorrelated attributes.

    Parameters and return value are those of `minimisers`; the estimate A is not used.
    """
    del A
    return np.outer(v, norms) / max(np.abs(v).sum(), np.finfo(float).tiny)

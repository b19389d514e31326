"""Learners that estimate the loss itself from pairs of attributes: Baseline, and what it becomes without its matrix.

Of each example, ``n = floor(k/2)`` ordered pairs (i, j), uniform and without replacement from ``[d] x [d]`` (i = j
included), add to estimates of ``x x'`` and of ``x``:

    A_ij += (d^2 / 2n) x_i x_j,  A_ji += the same;   v_i += (d / 2n) x_i,  v_j += (d / 2n) x_j,

which is unbiased. With the averages A and ``v = mean(2 y v)``, the empirical loss is estimated by
``w'A w - w'v + mean(y^2)``; the paper's Algorithm 1 prints ``+ w'v``.

Where values are missing completely at random, products are divided by the share of examples that have both attributes,
and single values by that of those that have the one: as what is missing counts as 0, this is unbiased again.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from budgetreg.learners.declaration import Outputs, WithIntercept
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.centring import sums
from budgetreg.sampling.draws import BLOCK, subset
from budgetreg.solvers.lasso_path import lasso


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    problem: str,
    centred: bool = False,
    intercept: bool = False,
) -> Iterator[tuple[int, Outputs]]:
    """Estimate the loss along all streams of the accessor and minimise it at the checkpoints.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Fit`: a pair is charged 2 attributes, also if they are the same;
        the setting is ``B``, the 1-norm at most.
    k : int
        Attributes of an example that may be seen, at least 2; the last one of an odd number is not.
    problem : {'program', 'correlation'}
        How the output follows from the estimates, see `minimisers` and `correlation`.
    centred, intercept : bool
        Whether attributes count from the means of what was revealed of them, and whether the mean of the targets is
        predicted there. Each value goes into its own mean, so that the estimates are biased in proportion to 1/m.

    Yields
    ------
    checkpoint : int
    W : ndarray of float, shape (F, d, G); or WithIntercept
        Output regressors.

    References
    ----------
    N. Cesa-Bianchi, S. Shalev-Shwartz, O. Shamir. Efficient Learning with Partially Observed Attributes. ICML 2010,
    Algorithm 1 and footnote 2.
    """
    solve = {"program": minimisers, "correlation": correlation}[problem]
    both = None if accessor.complete else _together(accessor)
    moves = _Moves(accessor.n_streams, accessor.d, both) if centred or intercept else None
    for checkpoint, A, v in estimates(accessor, checkpoints, rngs, k, moves):
        if moves is None:
            yield checkpoint, np.stack([solve(*own, settings["B"]) for own in zip(A, v, strict=True)])
            continue
        m, r = moves.origin(centred, intercept)
        moved = zip(*moves.moved(A, v, m, r), strict=True)
        W = np.stack([solve(*own, settings["B"]) for own in moved])
        yield checkpoint, WithIntercept(W, r[:, None] - np.einsum("fd,fdg->fg", m, W))


def estimates(
    accessor: Accessor,
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    k: int,
    moves: "_Moves | None" = None,
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Estimate the loss along all streams of the accessor; the parameters are those of `fit`, and moves to prepare.

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
    both = None if accessor.complete else _together(accessor)
    for start in range(0, checkpoints[-1], BLOCK):
        stop = min(start + BLOCK, checkpoints[-1])
        pairs = np.stack([subset(rng, d * d, k // 2) for rng in rngs])[:, : stop - start]
        attributes = np.stack(np.divmod(pairs, d), axis=-1)
        accessor.open(start, stop)
        x = accessor.reveal_block(attributes.reshape(F, stop - start, -1)).reshape(attributes.shape)
        first = start
        for last in [c for c in checkpoints if start < c < stop] + [stop]:
            part = slice(first - start, last - start)
            _add(A, v, attributes[:, part], x[:, part], accessor.targets()[:, part])
            if moves:
                there = accessor.available(attributes.reshape(F, stop - start, -1)).reshape(attributes.shape)
                moves.add(attributes[:, part], x[:, part], accessor.targets()[:, part], there[:, part])
            first = last
            if last in checkpoints:
                # After the last one the sums are not needed: memory for F d x d more numbers is slow to come by.
                means = np.multiply(A, d**2 / (2 * (k // 2) * last), out=A if last == checkpoints[-1] else None)
                singles = v * (d / ((k // 2) * last))
                if both is not None:
                    means, singles = means / both, singles / both.diagonal(axis1=1, axis2=2)
                yield last, means, singles


def _together(accessor: Accessor) -> np.ndarray:
    """Return the share of each stream's examples that have both of two attributes, shape (F, d, d)."""
    return accessor.together(*np.ogrid[: accessor.n_streams, : accessor.d, : accessor.d])


def _add(A: np.ndarray, v: np.ndarray, attributes: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Add ``x_i x_j`` of pairs (F, T, n, 2) to A (F, d, d), symmetrically, and ``y x_i``, ``y x_j`` to v (F, d)."""
    products = x.prod(axis=-1)
    d = v.shape[1]
    pairs = np.nonzero(products)
    i, j = attributes[pairs].T
    np.add.at(A.reshape(-1), (pairs[0] * d + i) * d + j, products[pairs])
    np.add.at(A.reshape(-1), (pairs[0] * d + j) * d + i, products[pairs])
    singles = np.nonzero(x)
    np.add.at(v.reshape(-1), singles[0] * d + attributes[singles], x[singles] * y[singles[:2]])


class _Moves:
    """What else has to be summed up for the estimates to be those of attributes and targets that count from others.

    The sum of ``(x_i - m_i)(x_j - m_j)`` over the pairs revealed is that of ``x_i x_j``, less ``m_j`` times that of
    ``x_i`` over the same pairs, and so on. So a constant that is added to an attribute or to the targets changes
    nothing, which it would if the means were taken off estimates whose weights do not sum up to 1.

    Parameters
    ----------
    F, d : int
        Streams and attributes.
    together : ndarray of float, shape (F, d, d), or None
        By what estimates are divided where values are missing.
    """

    def __init__(self, F: int, d: int, together: np.ndarray | None) -> None:
        self._together = together
        self._first, self._pairs = np.zeros((F, d, d)), np.zeros((F, d, d))
        self._x, self._y, self._count = np.zeros((F, d)), np.zeros((F, d)), np.zeros((F, d))
        self._targets, self._n, self._drawn = np.zeros(F), 0, 0

    def add(self, attributes: np.ndarray, x: np.ndarray, y: np.ndarray, there: np.ndarray) -> None:
        """Take in pairs (F, T, n, 2), their values, targets (F, T), and which of the values are there."""
        F, d = self._x.shape
        both = there.all(axis=-1).reshape(F, 1, -1).astype(float)
        i, j = attributes[..., 0].reshape(F, 1, -1), attributes[..., 1].reshape(F, 1, -1)
        for one, other, own in ((i, j, x[..., 0]), (j, i, x[..., 1])):
            place, values = one * d + other, own.reshape(F, 1, -1) * both
            self._first += sums(place, values, d * d).reshape(F, d, d)
            self._pairs += sums(place, both, d * d).reshape(F, d, d)
        singles = attributes.reshape(*y.shape, -1)
        single = there.reshape(singles.shape).astype(float)
        self._x += sums(singles, x.reshape(singles.shape), d)
        self._y += sums(singles, y[..., None] * single, d)
        self._count += sums(singles, single, d)
        self._targets += y.sum(axis=1)
        self._n += y.shape[1]
        self._drawn += attributes.shape[1] * attributes.shape[2]

    def origin(self, centred: bool, intercept: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return what attributes (F, d) and targets (F,) count from: their means, or 0."""
        m, r = self._x / np.maximum(self._count, 1), self._targets / self._n
        return m if centred else np.zeros_like(m), r if intercept else np.zeros_like(r)

    def moved(self, A: np.ndarray, v: np.ndarray, m: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimates A (F, d, d) and v (F, d) for attributes less m (F, d) and targets less r (F,)."""
        d, r = A.shape[1], r[:, None]
        cross = self._first * m[:, None, :]
        products = self._pairs * (m[:, :, None] * m[:, None, :]) - cross - cross.transpose(0, 2, 1)
        singles = self._count * (r * m) - r * self._x - m * self._y
        if self._together is not None:
            products, singles = products / self._together, singles / self._together.diagonal(axis1=1, axis2=2)
        return A + products * (d**2 / (2 * self._drawn)), v + singles * (d / self._drawn)


def minimisers(A: np.ndarray, v: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Minimise ``w'A w - w'v`` over 1-balls, with the negative eigenvalues of A set to 0.

    The estimate A is symmetric, but hardly ever positive semidefinite: as it is, the program is not convex.

    Parameters
    ----------
    A : ndarray of float, shape (d, d)
        Estimate of ``mean(x x')``.
    v : ndarray of float, shape (d,)
        Estimate of ``mean(2 y x)``.
    radii : ndarray of float, shape (G,)
        Radii B.

    Returns
    -------
    ndarray of float, shape (d, G)
    """
    W = np.zeros((len(v), len(radii)))
    known = np.flatnonzero(A.any(axis=0) | (v != 0))
    clipped = _clipped(A[np.ix_(known, known)])
    W[known] = lasso(clipped, v[known] / 2, radii)
    return W


def _clipped(A: np.ndarray) -> np.ndarray:
    """Set the negative eigenvalues of a symmetric matrix to 0; what is 0 but for rounding becomes 0 too."""
    result = np.zeros_like(A)
    seen = np.flatnonzero(A.any(axis=0))
    s, V = np.linalg.eigh(A[np.ix_(seen, seen)])
    rounding = np.finfo(float).eps * len(s) * np.abs(s).max(initial=0)
    roots = V[:, s > rounding] * np.sqrt(s[s > rounding])
    roots[(roots**2).sum(axis=1) <= rounding] = 0
    result[np.ix_(seen, seen)] = roots @ roots.T
    return result


def correlation(A: np.ndarray, v: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Return ``w = B v / |v|_1``: the direction that minimises ``w'w - w'v``, as if attributes were uncorrelated.

    Parameters and return value are those of `minimisers`; the estimate A is not used.
    """
    del A
    return np.outer(v, norms) / max(np.abs(v).sum(), np.finfo(float).tiny)

"""Offline ridge and lasso: the empirical squared loss minimised exactly over balls of several radii.

For F streams, at each checkpoint, on the examples up to it. Rows are kept while they are no more than the attributes;
from then on ``X'X`` and ``X'y`` stand for them. The training parts of a cross-validation share most of their examples,
whose products are computed once and added up: which streams run together decides the order of these sums, so that the
configuration has to decide it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.linalg.lapack import dormqr, dpttrf, dpttrs, dsytrd, dsytrd_lwork
from scipy.sparse import csr_array

from budgetreg.accessor import Accessor
from budgetreg.learners.homotopy import lasso, lasso_path

_EXAMPLES = 2**14
"""Examples of each stream opened at a time."""

_SELDOM = 0.1
"""Fraction of examples, below which an attribute's values other than 0 are multiplied one by one."""

_MOST_NEWTON_STEPS = 200

_LEAST_MULTIPLIER = 1e-10
"""Relative to the trace of X'X: from this lambda on, ``X'X + lambda`` is safely positive definite."""


def fit(
    accessor: Accessor, settings: Mapping[str, np.ndarray], checkpoints: Sequence[int], problem: str
) -> Iterator[tuple[int, np.ndarray]]:
    """Minimise ``|X w - y|_2^2`` over a ball at each checkpoint; no intercept.

    Where least-squares solutions lie inside the ball, the one of smallest norm (the ball's norm) is returned.

    Parameters
    ----------
    accessor : Accessor
        Source of F streams of examples; d attributes of each example are charged.
    settings : mapping of str to ndarray, shape (G,)
        ``B``, radius of the ball.
    checkpoints : sequence of int
        Numbers of examples, at least 1.
    problem : {'ridge', 'lasso'}
        The ball: ``|w|_2 <= B`` or ``|w|_1 <= B``.

    Yields
    ------
    checkpoint : int
        In increasing order.
    W : ndarray of float, shape (F, d, G)
        The minimisers.
    """
    solve = {"ridge": _ridge, "lasso": _lasso}[problem]
    streams = [_LeastSquares(accessor.d) for _ in range(accessor.n_streams)]
    start = 0
    for checkpoint in sorted(set(checkpoints)):
        many = checkpoint > accessor.d
        if many:
            for stream in streams:
                stream.sum_up()
        while start < checkpoint:
            stop = min(start + _EXAMPLES, checkpoint)
            for members, X, y in accessor.distinct_rows(start, stop):
                b, gram = y @ X, _gram(X) if many else None
                for f in members:
                    streams[f].append(X, y, b, gram)
            start = stop
        yield checkpoint, np.stack([stream.solved(solve, settings["B"]) for stream in streams])


def _gram(X: np.ndarray) -> np.ndarray:
    """Return X'X; attributes that are seldom other than 0 (the margins of images) are multiplied as sparse ones."""
    nonzero = np.count_nonzero(X, axis=0)
    seldom = np.flatnonzero((nonzero > 0) & (nonzero < _SELDOM * len(X)))
    often = np.flatnonzero((nonzero > 0) & (nonzero >= _SELDOM * len(X)))
    gram = np.zeros((X.shape[1], X.shape[1]))
    part = X if len(often) == X.shape[1] else X.take(often, axis=1)
    gram[np.ix_(often, often)] = part.T @ part
    if len(seldom):
        products = csr_array(X.take(seldom, axis=1).T) @ X
        gram[seldom], gram[:, seldom] = products, products.T
    return gram


class _LeastSquares:
    """One stream's examples so far: ``b = X'y``; ``X`` and ``y``, or ``gram = X'X`` instead."""

    def __init__(self, d: int) -> None:
        self.X: np.ndarray | None = np.empty((0, d))
        self.y = np.empty(0)
        self.gram = np.empty((0, 0))
        self.b = np.zeros(d)

    def append(self, X: np.ndarray, y: np.ndarray, b: np.ndarray, gram: np.ndarray | None) -> None:
        """Add examples; their products b and gram, or b alone while rows are kept."""
        self.b += b
        if gram is not None:
            self.gram += gram
        else:
            assert self.X is not None
            self.X, self.y = np.concatenate([self.X, X]), np.concatenate([self.y, y])

    def sum_up(self) -> None:
        """Go over from rows to their products."""
        if self.X is not None:
            self.gram, self.X = _gram(self.X), None

    def solved(self, solve: Callable[["_LeastSquares", np.ndarray], np.ndarray], radii: np.ndarray) -> np.ndarray:
        """Solve for the attributes that are not 0 throughout; the others have weight 0."""
        seen = np.flatnonzero(self.squares())
        W = np.zeros((len(self.b), len(radii)))
        part = _LeastSquares(len(seen))
        part.y, part.b = self.y, self.b[seen]
        if self.X is None:
            part.gram, part.X = self.gram.take(seen, axis=0).take(seen, axis=1), None
        else:
            part.X = self.X[:, seen]
        W[seen] = solve(part, radii)
        return W

    def squares(self) -> np.ndarray:
        """Return the squared lengths of the columns, shape (d,)."""
        return self.gram.diagonal() if self.X is None else (self.X**2).sum(axis=0)


def _lasso(examples: _LeastSquares, radii: np.ndarray) -> np.ndarray:
    if examples.X is None:
        return lasso(examples.gram, examples.b, radii)
    X = examples.X
    return lasso_path(lambda j: X[:, j] @ X, examples.squares(), examples.b, radii)


def _ridge(examples: _LeastSquares, radii: np.ndarray) -> np.ndarray:
    """Solve ``(X'X + lambda) w = X'y`` for the smallest lambda >= 0 with ``|w|_2 <= B``.

    Newton's method on ``1/|w(lambda)| = 1/B`` (Moré & Sorensen 1983, Sec. 3): the left side is concave in
    lambda, so that the iteration rises to the root from any start below it.
    """
    if not examples.b.any():
        return np.zeros((len(examples.b), len(radii)))
    if examples.X is None:
        return _ridge_of_products(examples.gram, examples.b, radii)
    U, sigma, basis = np.linalg.svd(examples.X, full_matrices=False)
    kept = sigma > np.finfo(float).eps * max(examples.X.shape) * sigma[0]
    return basis.T @ _ridge_of_spectrum(sigma**2, sigma * (examples.y @ U), kept, radii)


def _ridge_of_products(gram: np.ndarray, b: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Solve with ``gram = Q T Q'``, T tridiagonal: for one lambda that takes no longer than to write w down.

    Only radii that are reached at lambda = 0, or so close to it that T may be singular, take T's eigenvectors too.
    """
    d = len(b)
    reflectors, diagonal, above, factors, _ = dsytrd(
        np.array(gram, order="F"), lower=1, lwork=int(dsytrd_lwork(d, lower=1)[0]), overwrite_a=1
    )

    def turn(vectors: np.ndarray, trans: str) -> np.ndarray:
        turned = vectors.copy()
        if d > 1:
            turned[1:] = dormqr("L", trans, reflectors[1:, :-1], factors, vectors[1:], 64 * vectors.shape[1])[0]
        return turned

    right = turn(b[:, None], "T")[:, 0]
    coordinates = np.empty((d, len(radii)))
    order = np.argsort(-radii, kind="stable")
    lam = least = _LEAST_MULTIPLIER * diagonal.sum()
    outer = []
    for i in order:
        lam, coordinates[:, i] = _on_the_sphere(diagonal, above, right, radii[i], lam)
        if lam == least:
            outer.append(i)
    if outer:
        s, S = eigh_tridiagonal(diagonal, above, lapack_driver="stevd", check_finite=False)
        kept = s > np.finfo(float).eps * d * s.max()
        coordinates[:, outer] = S @ _ridge_of_spectrum(s, right @ S, kept, radii[outer])
    return turn(coordinates, "N")


def _on_the_sphere(
    diagonal: np.ndarray, above: np.ndarray, right: np.ndarray, radius: float, lam: float
) -> tuple[float, np.ndarray]:
    """Raise lambda until the solution of ``(T + lambda) z = right`` has the radius as its norm; return both."""
    for _ in range(_MOST_NEWTON_STEPS):
        pivots, factors, _ = dpttrf(diagonal + lam, above)
        z = dpttrs(pivots, factors, right)[0]
        norm = np.linalg.norm(z)
        slope = z @ dpttrs(pivots, factors, z)[0]
        higher = lam + max(norm**2 * (norm - radius) / (radius * slope), 0)
        if higher == lam:
            break
        lam = higher
    return lam, z * min(1, radius / norm)


def _ridge_of_spectrum(s: np.ndarray, b: np.ndarray, kept: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Solve with eigenvalues s of X'X and X'y = b in the basis of their eigenvectors; return w in that basis, (r, G).

    Where eigenvalues are 0 but for rounding, i.e. not kept, X'y is 0 and the largest eigenvalue stands for them.
    """
    s, b = np.where(kept, s, s.max()), np.where(kept, b, 0)
    lam = np.maximum(np.linalg.norm(b) / radii - s.max(), 0)
    for _ in range(_MOST_NEWTON_STEPS):
        coordinates = b / (s + lam[:, None])
        norm = np.linalg.norm(coordinates, axis=1)
        slope = (coordinates**2 / (s + lam[:, None])).sum(axis=1)
        higher = lam + np.where(norm > radii, norm**2 * (norm - radii) / (radii * slope), 0)
        if not (higher > lam).any():
            break
        lam = higher
    coordinates *= np.minimum(1, radii / np.maximum(norm, radii))[:, None]
    return coordinates.T

"""Offline ridge and lasso: the empirical squared loss minimised exactly over balls of several radii.

For F streams, at each checkpoint, on the examples up to it. Rows are kept while they are no more than the
attributes; from then on ``X'X`` and ``X'y`` stand for them.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from budgetreg.accessor import Accessor
from budgetreg.learners.homotopy import lasso_path

_BLOCK = 2**18
"""Attribute values of one stream read at a time; whatever F is, as it decides the order of sums."""

_MOST_NEWTON_STEPS = 200


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
    block = max(1, _BLOCK // accessor.d)
    start = 0
    for checkpoint in sorted(set(checkpoints)):
        while start < checkpoint:
            stop = min(start + block, checkpoint)
            X, y = accessor.rows(start, stop)
            for f, stream in enumerate(streams):
                stream.append(X[f], y[f])
            start = stop
        yield checkpoint, np.stack([solve(stream, settings["B"]) for stream in streams])


class _LeastSquares:
    """One stream's examples so far: ``b = X'y``; ``X`` and ``y`` while n <= d, ``gram = X'X`` afterwards."""

    def __init__(self, d: int) -> None:
        self.X: np.ndarray | None = np.empty((0, d))
        self.y = np.empty(0)
        self.gram = np.empty((0, 0))
        self.b = np.zeros(d)

    def append(self, X: np.ndarray, y: np.ndarray) -> None:
        self.b += y @ X
        if self.X is None:
            self.gram += X.T @ X
            return
        self.X, self.y = np.concatenate([self.X, X]), np.concatenate([self.y, y])
        if len(self.X) > self.X.shape[1]:
            self.gram, self.X = self.X.T @ self.X, None

    def gram_row(self, j: int) -> np.ndarray:
        return self.gram[j] if self.X is None else self.X[:, j] @ self.X

    def squares(self) -> np.ndarray:
        """Return the squared lengths of the columns, shape (d,)."""
        return self.gram.diagonal() if self.X is None else (self.X**2).sum(axis=0)

    def spectrum(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the positive eigenvalues of X'X, their eigenvectors as rows, (r, d), and X'y in it."""
        precision = np.finfo(float).eps
        if self.X is None:
            s, V = np.linalg.eigh(self.gram)
            kept = s > precision * len(s) * s[-1]
            return s[kept], V.T[kept], (self.b @ V)[kept]
        U, sigma, basis = np.linalg.svd(self.X, full_matrices=False)
        kept = sigma > precision * max(self.X.shape) * sigma[0]
        return sigma[kept] ** 2, basis[kept], (sigma * (self.y @ U))[kept]


def _lasso(examples: _LeastSquares, radii: np.ndarray) -> np.ndarray:
    return lasso_path(examples.gram_row, examples.squares(), examples.b, radii)


def _ridge(examples: _LeastSquares, radii: np.ndarray) -> np.ndarray:
    """Solve ``(X'X + lambda) w = X'y`` for the smallest lambda >= 0 with ``|w|_2 <= B``.

    Newton's method on ``1/|w(lambda)| = 1/B`` (Moré & Sorensen 1983, Sec. 3): the left side is concave in
    lambda, so that the iteration rises to the root from any start below it.
    """
    s, basis, b = examples.spectrum()
    if not len(s):
        return np.zeros((len(examples.b), len(radii)))
    lam = np.maximum(np.linalg.norm(b) / radii - s.max(), 0)
    for _ in range(_MOST_NEWTON_STEPS):
        coordinates = b / (s + lam[:, None])
        norm = np.linalg.norm(coordinates, axis=1)
        slope = (coordinates**2 / (s + lam[:, None])).sum(axis=1)
        with np.errstate(invalid="ignore"):  # 0/0 where b = 0, hence w = 0
            higher = lam + np.where(norm > radii, norm**2 * (norm - radii) / (radii * slope), 0)
        if not (higher > lam).any():
            break
        lam = higher
    coordinates *= np.minimum(1, radii / np.maximum(norm, radii))[:, None]
    return basis.T @ coordinates.T

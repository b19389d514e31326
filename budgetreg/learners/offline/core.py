"""Offline ridge and lasso: exact minimisers of the squared loss over balls of several radii.

Rows are stored while there are at most as many as attributes; later ``X'X`` and ``X'y`` replace them. The training
parts of a cross-validation share most of their examples, and the products of shared examples are computed once. So the
streams that run together determine the order of the sums, and the configuration must determine these streams.
"""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from budgetreg.solvers.lasso import lasso
from budgetreg.solvers.lasso_path import lasso_path
from budgetreg.solvers.shrinkage import ridge, ridge_of_rows

_SPARSE = 0.1
"""Fraction of nonzero values below which an attribute is multiplied as a sparse column."""


def gram_matrix(X: np.ndarray) -> np.ndarray:
    """Return X'X; attributes that are mostly 0 (margins of images) are multiplied as sparse columns."""
    nonzero = np.count_nonzero(X, axis=0)
    sparse = np.flatnonzero((nonzero > 0) & (nonzero < _SPARSE * len(X)))
    dense = np.flatnonzero((nonzero > 0) & (nonzero >= _SPARSE * len(X)))
    gram = np.zeros((X.shape[1], X.shape[1]))
    part = X if len(dense) == X.shape[1] else X.take(dense, axis=1)
    gram[np.ix_(dense, dense)] = part.T @ part
    if len(sparse):
        products = csr_array(X.take(sparse, axis=1).T) @ X
        gram[sparse], gram[:, sparse] = products, products.T
    return gram


class LeastSquares:
    """One stream's examples: ``b = X'y``; ``X`` and ``y``, or ``gram = X'X``; a guess of the weights.

    For the means, also their number n and the sums of their attributes and, last, of their targets.
    """

    def __init__(self, d: int) -> None:
        self.X: np.ndarray | None = np.empty((0, d))
        self.y = np.empty(0)
        self.gram = np.empty((0, 0))
        self.b = np.zeros(d)
        self.guess: np.ndarray | None = None
        self.n, self.sums = 0, np.zeros(d + 1)

    def append(
        self, X: np.ndarray, y: np.ndarray, b: np.ndarray, gram: np.ndarray | None, sums: np.ndarray | None
    ) -> None:
        """Add examples, their products b and gram (None while rows are stored), and their sums."""
        self.b += b
        self.n += len(X)
        if sums is not None:
            self.sums += sums
        if gram is not None:
            self.gram += gram
        else:
            assert self.X is not None
            self.X, self.y = np.concatenate([self.X, X]), np.concatenate([self.y, y])

    def drop_rows(self) -> None:
        """Replace the rows by their products."""
        if self.X is not None:
            self.gram, self.X = gram_matrix(self.X), None

    def origin(self, centred: bool, intercept: bool) -> tuple[np.ndarray, float]:
        """Return what is subtracted from attributes (d,) and targets."""
        means = self.sums / self.n
        return means[:-1] if centred else np.zeros(len(self.b)), float(means[-1]) if intercept else 0.0

    def centred(self, centred: bool, intercept: bool) -> "LeastSquares":
        """Return the same examples with attributes and targets less their origin."""
        if not (centred or intercept):
            return self
        m, r = self.origin(centred, intercept)
        x, y = self.sums[:-1], self.sums[-1]
        examples = LeastSquares(len(m))
        examples.b = self.b - r * x - m * (y - self.n * r)
        if self.X is None:
            # x m' = m x' = n m m' if attributes are centred, else 0: two are subtracted, and one is added.
            examples.gram, examples.X = self.gram - self.n * np.outer(m, m), None
        else:
            examples.X, examples.y = self.X - m, self.y - r
        return examples

    def solved(
        self,
        solve: Callable[["LeastSquares", np.ndarray], np.ndarray],
        radii: np.ndarray,
        guess: np.ndarray | None,
    ) -> np.ndarray:
        """Return the solutions (d, G); attributes that are 0 in all examples have weight 0."""
        live = np.flatnonzero(self.squares())
        W = np.zeros((len(self.b), len(radii)))
        part = LeastSquares(len(live))
        part.y, part.b, part.guess = self.y, self.b[live], None if guess is None else guess[live]
        if self.X is None:
            part.gram, part.X = self.gram.take(live, axis=0).take(live, axis=1), None
        else:
            part.X = self.X[:, live]
        W[live] = solve(part, radii)
        return W

    def squares(self) -> np.ndarray:
        """Return the squared lengths of the columns, shape (d,)."""
        return self.gram.diagonal() if self.X is None else (self.X**2).sum(axis=0)


def solve_lasso(examples: LeastSquares, radii: np.ndarray) -> np.ndarray:
    """Return the minimisers (d, G) over 1-balls."""
    if examples.X is None:
        return lasso(examples.gram, examples.b, radii, examples.guess)
    X = examples.X
    return lasso_path(lambda j: X[:, j] @ X, examples.squares(), examples.b, radii)


def solve_ridge(examples: LeastSquares, radii: np.ndarray) -> np.ndarray:
    """Return the minimisers (d, G) over 2-balls."""
    if not examples.b.any():
        return np.zeros((len(examples.b), len(radii)))
    if examples.X is None:
        return ridge(examples.gram, examples.b, radii)
    return ridge_of_rows(examples.X, examples.y, radii)

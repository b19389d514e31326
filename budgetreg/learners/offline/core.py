"""Offline ridge and lasso: the empirical squared loss minimised exactly over balls of several radii.

For F streams, at each checkpoint, on the examples up to it. Rows are kept while they are no more than the attributes;
from then on ``X'X`` and ``X'y`` stand for them. The training parts of a cross-validation share most of their examples,
whose products are computed once and added up: which streams run together decides the order of these sums, so that the
configuration has to decide it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array

from budgetreg.learners.declaration import Outputs, WithIntercept
from budgetreg.metering.accessor import Accessor
from budgetreg.solvers.homotopy import lasso_path
from budgetreg.solvers.lasso_path import lasso
from budgetreg.solvers.shrinkage import ridge, ridge_of_rows

_EXAMPLES = 2**14
"""Examples of each stream opened at a time."""

_SELDOM = 0.1
"""Fraction of examples, below which an attribute's values other than 0 are multiplied one by one."""


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator] = (),
    *,
    problem: str,
    centred: bool = False,
    intercept: bool = False,
) -> Iterator[tuple[int, Outputs]]:
    """Minimise ``|X w - y|_2^2`` over a ball at each checkpoint, X and y less the means of the examples up to it if so.

    Where least-squares solutions lie inside the ball, the one of smallest norm (the ball's norm) is returned.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Fit`: d attributes of each example are charged; the setting is
        ``B``, nothing is drawn.
    problem : {'ridge', 'lasso'}
        The ball: ``|w|_2 <= B`` or ``|w|_1 <= B``.
    centred, intercept : bool
        Whether attributes count from their means, and whether the mean of the targets is predicted there.

    Yields
    ------
    checkpoint : int
        In increasing order.
    W : ndarray of float, shape (F, d, G); or WithIntercept
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
                sums = np.append(X.sum(axis=0), y.sum()) if centred or intercept else None
                for f in members:
                    streams[f].append(X, y, b, gram, sums)
            start = stop
        W: list[np.ndarray] = []
        for stream in streams:
            W.append(stream.about(centred, intercept).solved(solve, settings["B"], W[-1] if W else None))
        found = np.stack(W)
        if not (centred or intercept):
            yield checkpoint, found
            continue
        means = [stream.origin(centred, intercept) for stream in streams]
        yield checkpoint, WithIntercept(found, np.stack([r - m @ own for (m, r), own in zip(means, W, strict=True)]))


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
    """One stream's examples so far: ``b = X'y``; ``X`` and ``y``, or ``gram = X'X`` instead; a guess of the weights.

    Their number, and the sums of their attributes and of their targets, are kept if the means are wanted.
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
        """Add examples; their products b and gram, or b alone while rows are kept; sums of attributes and targets."""
        self.b += b
        self.n += len(X)
        if sums is not None:
            self.sums += sums
        if gram is not None:
            self.gram += gram
        else:
            assert self.X is not None
            self.X, self.y = np.concatenate([self.X, X]), np.concatenate([self.y, y])

    def sum_up(self) -> None:
        """Go over from rows to their products."""
        if self.X is not None:
            self.gram, self.X = _gram(self.X), None

    def origin(self, centred: bool, intercept: bool) -> tuple[np.ndarray, float]:
        """Return what attributes (d,) and targets count from."""
        means = self.sums / self.n
        return means[:-1] if centred else np.zeros(len(self.b)), float(means[-1]) if intercept else 0.0

    def about(self, centred: bool, intercept: bool) -> "_LeastSquares":
        """Return the same examples, attributes and targets less what they count from."""
        if not (centred or intercept):
            return self
        m, r = self.origin(centred, intercept)
        x, y = self.sums[:-1], self.sums[-1]
        there = _LeastSquares(len(m))
        there.b = self.b - r * x - m * (y - self.n * r)
        if self.X is None:
            # Less two of these products and plus one, which are the same where attributes are centred, and else 0.
            there.gram, there.X = self.gram - self.n * np.outer(m, m), None
        else:
            there.X, there.y = self.X - m, self.y - r
        return there

    def solved(
        self,
        solve: Callable[["_LeastSquares", np.ndarray], np.ndarray],
        radii: np.ndarray,
        guess: np.ndarray | None,
    ) -> np.ndarray:
        """Solve for the attributes that are not 0 throughout; the others have weight 0."""
        seen = np.flatnonzero(self.squares())
        W = np.zeros((len(self.b), len(radii)))
        part = _LeastSquares(len(seen))
        part.y, part.b, part.guess = self.y, self.b[seen], None if guess is None else guess[seen]
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
        return lasso(examples.gram, examples.b, radii, examples.guess)
    X = examples.X
    return lasso_path(lambda j: X[:, j] @ X, examples.squares(), examples.b, radii)


def _ridge(examples: _LeastSquares, radii: np.ndarray) -> np.ndarray:
    if not examples.b.any():
        return np.zeros((len(examples.b), len(radii)))
    if examples.X is None:
        return ridge(examples.gram, examples.b, radii)
    return ridge_of_rows(examples.X, examples.y, radii)

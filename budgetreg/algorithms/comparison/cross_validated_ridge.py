"""Ridge on rows that were paid for, its strength by repeated cross-validation on the same rows.

Leave-one-out errors are unstable where there are about as many rows as columns: each fit sees nearly all rows, so that
all errors share their mistakes, and a strength near 0 passes by chance. So a fifth of the rows is held out at a time.
The random folds are repeated for few rows, and the regressors of the strengths that repetitions choose are averaged.

No choice uses rows beyond these. `ridge` and `lasso` choose better because tuning has them judged by the held-out folds
of all training examples, in full, which no budget pays for.
"""

from collections.abc import Iterator

import numpy as np

from budgetreg.streams import generator

_STRENGTHS = np.geomspace(1e4, 1e-4, 17)
"""Strengths tried, in units of the mean squared length of the columns; of equally good ones the first counts."""

_FOLDS = 5

_HELD_OUT, _MOST_REPETITIONS = 500, 10
"""Folds are repeated until as many rows as the first were held out in all, and at most as often as the second."""


class RidgeRows:
    """Rows of a ridge regression, which is solved for several strengths at once, with and without a part of the rows.

    Parameters
    ----------
    Z : ndarray of float, shape (n, p)
        Rows.
    y : ndarray of float, shape (n,)
        Targets.
    free : bool
        Whether an intercept is fitted that is not shrunk: the rows that are used, and their targets, are centred.
    """

    def __init__(self, Z: np.ndarray, y: np.ndarray, free: bool) -> None:
        self._Z, self._y, self._free = Z, y, free
        wide = Z.shape[1] > len(Z)
        self._products = None if wide else (Z.T @ Z, y @ Z)

    def solved(self, strengths: np.ndarray, without: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the minimisers of ``|y - Z w|^2 + strength |w|^2``.

        Parameters
        ----------
        strengths : ndarray of float, shape (S,)
            All above 0.
        without : ndarray of bool, shape (n,), optional
            The rows that are left out.

        Returns
        -------
        regressors : ndarray of float, shape (p, S)
        intercepts : ndarray of float, shape (S,)
            0 without a free intercept.
        """
        Z, y = (self._Z, self._y) if without is None else (self._Z[~without], self._y[~without])
        free = self._free and len(y) > 0
        mean, r = (Z.mean(axis=0), y.mean()) if free else (np.zeros(Z.shape[1]), 0.0)
        if self._products is None:
            Z = Z - mean
            W = Z.T @ _solutions(Z @ Z.T, y - r, strengths)  # w = Z'a with (ZZ' + strength) a = y
        else:
            gram, b = self._products
            if without is not None:
                left_out = self._Z[without]
                gram, b = gram - left_out.T @ left_out, b - self._y[without] @ left_out
            W = _solutions(gram - len(y) * np.outer(mean, mean), b - len(y) * r * mean, strengths)
        return W, r - mean @ W

    def chosen(self) -> np.ndarray:
        """Return the strength with the least held-out error in each repetition of the folds, shape (repetitions,)."""
        n = len(self._y)
        tried = strengths(self._Z)
        choices = []
        for parts in folds(n):
            errors = np.zeros(len(tried))
            for part in parts:
                # For fewer rows, the same strength per row.
                W, b = self.solved(tried * (1 - part.mean()), part)
                errors += np.square(self._y[part, None] - b - self._Z[part] @ W).sum(axis=0)
            choices.append(tried[errors.argmin()])
        return np.array(choices)


def strengths(Z: np.ndarray) -> np.ndarray:
    """Return the strengths of ridge that are tried on rows (n, p), not all of which are 0; descending."""
    return _STRENGTHS * np.square(Z).sum(axis=0).mean()


def folds(n: int) -> Iterator[list[np.ndarray]]:
    """Yield the folds of n rows, at least 2, for each repetition: masks (n,) of the rows that are held out.

    They depend on n alone.
    """
    rng, parts = generator("folds of ridge"), min(_FOLDS, n)
    for _ in range(min(_MOST_REPETITIONS, -(-_HELD_OUT // n))):
        part = rng.permutation(n) % parts
        yield [part == each for each in range(parts)]


def _solutions(matrix: np.ndarray, right: np.ndarray, strengths: np.ndarray) -> np.ndarray:
    """Return the solutions (p, S) of ``(matrix + strength) w = right``, for a positive semidefinite matrix (p, p)."""
    values, basis = np.linalg.eigh(matrix)
    values = np.maximum(values, 0.0)  # negative ones are rounding errors
    return np.asarray(basis @ ((right @ basis)[:, None] / (values[:, None] + strengths)))

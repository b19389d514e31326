"""Ridge regression on balls of several radii: one tridiagonal matrix, and a Lagrange multiplier for each radius.

The least-squares loss over ``|w|_2 <= B`` is minimal where ``(X'X + lambda) w = X'y`` with the smallest lambda >= 0 for
which ``|w|_2 <= B``. Newton's method finds it on ``1/|w(lambda)| = 1/B`` (Moré & Sorensen 1983, Sec. 3): the left side
is concave in lambda, so that the iteration rises to the root from any start below it.
"""

import numpy as np
from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal
from scipy.linalg.lapack import dormqr, dpttrf, dpttrs, dsytrd, dsytrd_lwork

_MOST_NEWTON_STEPS = 200

_LEAST_MULTIPLIER = 1e-10
"""Smallest lambda, relative to the trace of X'X, for which ``X'X + lambda`` is safely positive definite."""

_LEAST_EIGENVALUE = 1e-8
"""Smallest eigenvalue, relative to the largest one of XX', for which XX' is safely inverted."""

_LARGE_MULTIPLIER = 2.0**24
"""Lambda, relative to the trace of XX', from which differences whose result is XX' would lose its digits."""

_CHEAPER_BY_PRODUCTS = 3
"""Largest ratio d/n for which tridiagonalising X'X is faster than the singular values of X."""


def ridge(gram: np.ndarray, b: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Minimise over balls, given products; among minimisers inside a ball, return the one of smallest norm.

    Parameters
    ----------
    gram : ndarray of float, shape (d, d)
        ``X'X``.
    b : ndarray of float, shape (d,)
        ``X'y``, not 0 throughout.
    radii : ndarray of float, shape (G,)
        Radii B.

    Returns
    -------
    ndarray of float, shape (d, G)
    """
    T = _Tridiagonal(gram)
    right = T.turn(b[:, None], "T")[:, 0]
    coordinates, outer = T.solutions(right, radii, _LEAST_MULTIPLIER)
    if outer:
        s, S = eigh_tridiagonal(T.diagonal, T.above, lapack_driver="stevd", check_finite=False)
        kept = s > np.finfo(float).eps * len(b) * s.max()
        coordinates[:, outer] = S @ _of_spectrum(s, right @ S, kept, radii[outer])
    return T.turn(coordinates, "N")


def ridge_of_rows(X: np.ndarray, y: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Minimise over balls, given at most as many examples as attributes; otherwise as `ridge`.

    Parameters
    ----------
    X : ndarray of float, shape (n, d)
        Examples, n at most d.
    y : ndarray of float, shape (n,)
        Targets; ``X'y`` is not 0 throughout.
    radii : ndarray of float, shape (G,)
        Radii B.

    Returns
    -------
    ndarray of float, shape (d, G)
    """
    rows = _Tridiagonal(X @ X.T, of_rows=True)
    s = eigvalsh_tridiagonal(rows.diagonal, rows.above, check_finite=False)
    if s[0] > _LEAST_EIGENVALUE * s[-1]:
        # w = X'a with (XX' + lambda) a = y, so that |w|^2 = a'XX'a.
        coordinates, _ = rows.solutions(rows.turn(y[:, None], "T")[:, 0], radii, 0.0)
        return np.asarray(X.T @ rows.turn(coordinates, "N"))
    W, outer = np.empty((X.shape[1], len(radii))), list(range(len(radii)))
    if _CHEAPER_BY_PRODUCTS * len(X) > X.shape[1]:
        T = _Tridiagonal(X.T @ X)
        coordinates, outer = T.solutions(T.turn((y @ X)[:, None], "T")[:, 0], radii, _LEAST_MULTIPLIER)
        W = T.turn(coordinates, "N")
    if outer:
        U, sigma, basis = np.linalg.svd(X, full_matrices=False)
        kept = sigma > np.finfo(float).eps * max(X.shape) * sigma[0]
        W[:, outer] = basis.T @ _of_spectrum(sigma**2, sigma * (y @ U), kept, radii[outer])
    return W


class _Tridiagonal:
    """A symmetric matrix as ``Q T Q'``, T tridiagonal: a solution for one lambda takes O(n).

    Parameters
    ----------
    matrix : ndarray of float, shape (n, n)
        Positive semidefinite.
    of_rows : bool
        Whether the matrix is ``XX'`` instead of ``X'X``, and a solution z has a coordinate per example.
    """

    def __init__(self, matrix: np.ndarray, of_rows: bool = False) -> None:
        self._of_rows = of_rows
        self._reflectors, self.diagonal, self.above, self._factors, _ = dsytrd(
            np.array(matrix, order="F"), lower=1, lwork=int(dsytrd_lwork(len(matrix), lower=1)[0]), overwrite_a=1
        )

    def turn(self, vectors: np.ndarray, trans: str) -> np.ndarray:
        """Multiply by Q ('N') or by Q' ('T')."""
        turned = vectors.copy()
        if len(vectors) > 1:
            work = 64 * vectors.shape[1]
            turned[1:] = dormqr("L", trans, self._reflectors[1:, :-1], self._factors, vectors[1:], work)[0]
        return turned

    def solutions(self, right: np.ndarray, radii: np.ndarray, least: float) -> tuple[np.ndarray, list[int]]:
        """Solve ``(T + lambda) z = right`` for each radius, with lambda at least `least` times the trace.

        The radius bounds ``sqrt(z'z)``, or ``sqrt(z'Tz)`` if T is of rows.

        Returns
        -------
        ndarray of float, shape (n, G)
            The solutions z.
        list of int
            The radii whose solution needs a smaller lambda.
        """
        coordinates = np.empty((len(right), len(radii)))
        lam = smallest = least * self.diagonal.sum()
        outer = []
        for i in np.argsort(-radii, kind="stable"):
            lam, coordinates[:, i] = self._on_the_sphere(right, radii[i], lam)
            if lam == smallest:
                outer.append(int(i))
        return coordinates, outer

    def _on_the_sphere(self, right: np.ndarray, radius: float, lam: float) -> tuple[float, np.ndarray]:
        """Increase lambda until the norm of the solution is the radius; return both."""
        above = self.above if self.above.size else np.zeros(1)  # LAPACK's interface has no empty arrays
        large = _LARGE_MULTIPLIER * self.diagonal.sum()
        for _ in range(_MOST_NEWTON_STEPS):
            pivots, factors, _ = dpttrf(self.diagonal + lam, above)
            z = dpttrs(pivots, factors, right)[0]
            square, slope = z @ z, z @ dpttrs(pivots, factors, z)[0]
            if self._of_rows and lam > large:
                Tz = self._times(z)
                square, slope = z @ Tz, Tz @ dpttrs(pivots, factors, z)[0]
            elif self._of_rows:
                square, slope = right @ z - lam * square, square - lam * slope
            norm = np.sqrt(square)
            higher = lam + max(square * (norm - radius) / (radius * slope), 0)
            if higher == lam:
                break
            lam = higher
        return lam, z * min(1, radius / norm)

    def _times(self, z: np.ndarray) -> np.ndarray:
        """Return T z."""
        product = self.diagonal * z
        product[:-1] += self.above * z[1:]
        product[1:] += self.above * z[:-1]
        return product


def _of_spectrum(s: np.ndarray, b: np.ndarray, kept: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Solve with eigenvalues s of X'X and X'y = b in the basis of their eigenvectors; return w in that basis, (r, G).

    Where eigenvalues are 0 but for rounding, i.e. not kept, X'y is 0, and the largest eigenvalue replaces them.
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

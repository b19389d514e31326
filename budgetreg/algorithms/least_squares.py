"""Least squares on balls of several radii: ridge on 2-balls, and the lasso on 1-balls.

For ridge there is one tridiagonal matrix, and a Lagrange multiplier for each radius. The least-squares loss over
``|w|_2 <= B`` is minimal where ``(X'X + lambda) w = X'y`` with the smallest lambda >= 0 for which ``|w|_2 <= B``.
Newton's method finds it on ``1/|w(lambda)| = 1/B`` (Moré & Sorensen 1983, Sec. 3): the left side is concave in lambda,
so that the iteration rises to the root from any start below it.

References
----------
J. J. Júdice, F. M. Pires. A block principal pivoting algorithm for large-scale strictly monotone linear
complementarity problems. Computers & Operations Research 21(5), 1994 (block pivoting).
M. R. Osborne, B. Presnell, B. A. Turlach. A new approach to variable selection in least squares problems.
IMA Journal of Numerical Analysis 20(3), 2000.
K. G. Murty. Note on a Bard-type scheme for solving the complementarity problem. Opsearch 11, 1974 (the
least-index rule).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dormqr, dpotrf, dpotrs, dpttrf, dpttrs, dsytrd, dsytrd_lwork

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


# The lasso on 1-balls of growing radius, by block pivoting from one radius to the next. Between radii far apart the
# path (`lasso_path`) has hundreds of breakpoints, each of which costs a pass through the active columns. Block pivoting
# instead guesses the active set at the next radius and corrects it by the optimality conditions until they hold, with
# one Cholesky decomposition per correction. Where it does not converge, the path is followed.

_TOLERANCE = 1e-10
"""A solution is rejected if its equations fail by more than this, relative to the largest ``|b|``."""

_CORRECTIONS = 40
"""Largest number of corrections of the active set for a radius; more than ten are rare."""

_STRIDE = 0.4
"""Smallest factor by which lambda falls at once: further away too many attributes seem to join."""


def lasso(gram: np.ndarray, b: np.ndarray, radii: np.ndarray, guess: np.ndarray | None = None) -> np.ndarray:
    """Minimise ``w'G w / 2 - b'w`` over 1-balls as `lasso_path` does, but faster; it needs the whole of G.

    Parameters
    ----------
    gram : ndarray, shape (d, d)
        G, symmetric and positive semidefinite.
    b, radii : ndarray
        As for `lasso_path`.
    guess : ndarray, shape (d, G), optional
        Minimisers of a similar problem, whose signs are tried first: the more similar, the faster.

    Returns
    -------
    ndarray, shape (d, G)
        The minimisers.

    Raises
    ------
    ArithmeticError
        As `lasso_path`.
    """
    W = np.zeros((len(b), len(radii)))
    order = np.argsort(radii, kind="stable")
    guesses = [None] * len(order) if guess is None else [np.sign(guess[:, i]) for i in order]
    solved = list(_minimisers(gram, b, radii[order], guesses))
    for i, w in zip(order, solved, strict=False):
        W[:, i] = w
    rest = order[len(solved) :]
    if len(rest):
        W[:, rest] = lasso_path(gram.__getitem__, gram.diagonal(), b, radii[rest])
    return W


def _minimisers(
    gram: np.ndarray, b: np.ndarray, radii: np.ndarray, guesses: Sequence[np.ndarray | None]
) -> Iterator[np.ndarray]:
    """Yield the minimisers for increasing radii, until pivoting fails; each satisfies all optimality conditions."""
    start = np.abs(b).max(initial=0.0)
    if not start:
        return
    sign = np.where(np.arange(len(b)) == np.abs(b).argmax(), np.sign(b), 0)
    before = lam = start
    for B, guess in zip(radii, guesses, strict=True):
        stride = max(_STRIDE, (lam / before) ** 2) if lam < before else _STRIDE
        solution = None if guess is None else _pivot(gram, b, B, guess, start, 0.0)
        solution = solution or _pivot(gram, b, B, sign, lam, stride)
        if solution is None:
            return
        before, (sign, lam, w) = lam, solution
        result = np.zeros(len(b))
        result[sign != 0] = w * (B / max(np.abs(w).sum(), B))
        yield result


def _pivot(
    gram: np.ndarray, b: np.ndarray, B: float, sign: np.ndarray, lam: float, stride: float
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Correct the signs of all weights, beginning with those at lambda, until they are those of a radius' minimiser.

    Lambda falls at most by the factor `stride` at once.

    Returns
    -------
    tuple or None
        Signs (d,), lambda, and the active weights; None if pivoting does not converge.
    """
    start = np.abs(b).max()
    tie = TIE * start
    floor, last_good = lam * stride, (sign, lam)
    for _ in range(_CORRECTIONS):
        index = np.flatnonzero(sign)
        s, rows = sign[index], gram.take(index, axis=0)
        if not len(index):
            return None
        factor, failure = dpotrf(rows.take(index, axis=1).T, clean=0, overwrite_a=1)
        if failure:  # too many joined at once to be independent
            if not stride:
                return None
            sign, lam = last_good
            stride = np.sqrt(stride)
            floor = lam * stride
            continue
        u, v = dpotrs(factor, np.array([b[index], s]).T)[0].T
        end = (s @ u - B) / (s @ v)
        lam = max(end, floor)
        if lam <= END * start:
            return None
        w = u - lam * v
        left = b - w @ rows
        corrected = np.where(np.abs(left) > lam + tie, np.sign(left), 0)
        corrected[index] = np.where(s * w > 0, s, 0)
        wrong = np.count_nonzero(corrected != sign)
        if not wrong and lam == end:
            equations_hold = np.abs(left[index] - lam * s).max() <= _TOLERANCE * start
            return (sign, lam, w) if equations_hold else None
        if wrong <= 0.1 * len(index):
            last_good = corrected, lam
            floor *= stride
        sign = corrected
    return None


# The exact path of the lasso, a convex quadratic over 1-balls of growing radius. The minimisers of
# ``w'G w / 2 - b'w + lambda |w|_1`` form, as lambda falls from ``max |b|`` to 0, a path that is linear between
# breakpoints; its point of norm ``|w|_1 = B`` minimises ``w'G w / 2 - b'w`` over the 1-ball of radius B. Least squares
# have ``G = X'X`` and ``b = X'y``. With A the active attributes and s their signs,
#
#     w_A(lambda) = u - lambda v,   G_AA u = b_A,   G_AA v = s_A,
#
# until an attribute of A reaches 0 and leaves, or the correlation ``b_j - G_j w`` of another one reaches +-lambda and
# it joins. Ties (integer data, duplicated or collinear columns) cause several events at one lambda. There attributes
# join and leave one at a time, smallest index first, until all weights and correlations move in a valid direction.
#
# If b is not in the range of G, which never happens in least squares, a column may reach lambda while it lies in the
# span of the active ones. The minimisers at this lambda are then a segment along which the 1-norm grows: the column
# replaces the first attribute that reaches 0. If none does, the objective is unbounded, and so is the end of the path.
#
# The result is exact to rounding, also with columns that are zero, duplicated or collinear. Columns that are collinear
# except for 1e-9 to 1e-4 of their length cannot be resolved by ``X'X`` in double precision. They may be treated as
# collinear, or the diagonal is raised a little, which costs some 1e-5 of ``|y|_2^2`` in the loss (more if the lengths
# of the columns differ by many orders of magnitude). The result is always in the ball.

TIE = 1e-11
"""Largest difference of equal numbers, relative to the largest ``|b|``."""

END = 1e-10
"""Lambda at which the path ends, relative to the largest ``|b|``; it counts as 0."""

_SLOPE = 1e-9
"""Relative slopes below this are rounding errors."""

_SPAN = 1e-10
"""Squared distance to the span of others, relative to the squared length, below which a column lies in it."""

_ROUNDING = 1e-13
"""Relative error of that distance: the error of the sums in it, some hundred units of rounding."""

_WRONG_SIGN = 1e-8
"""A path is abandoned if weights have the wrong sign by more than this, relative to the largest weight."""

_OUTSIDE = 1e-9
"""Largest rounding error of b outside the range of G, relative to the largest ``|b|``."""

_DRIFT = 1e-12
"""The current segment is refined if its equations fail by more than this, relative to their right sides."""

_CHUNK = 64
"""Number of active attributes by which buffers grow."""

_DAMPING = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
"""Values added to the diagonal of G, relative to its largest element, in turn until a path is not abandoned."""


class _Column(NamedTuple):
    """A column of G and its projection on the active columns."""

    row: np.ndarray
    """Its row of G, shape (d,)."""
    h: np.ndarray
    """Coefficients of its projection on the active columns, shape (|A|,)."""
    rest: np.ndarray
    """``row - G_A h``: inner products with its residual, shape (d,)."""
    distance: float
    """Squared length of its residual, 0 if that is within rounding."""


class _Path:
    """The path as far as it was followed: the active attributes, and the current segment.

    On the segment ``w_A = u - lambda v``, and the correlations are ``b - G w = p + lambda q``. The inverse of G_AA and
    the rows of G are stored in larger buffers, whose unused part is 0. The solutions for waiting radii, given by their
    indices in ascending order of the radii, are written to W once they are reached, and wait no longer.
    """

    def __init__(self, gram_row: Callable[[int], np.ndarray], b: np.ndarray, radii: np.ndarray) -> None:
        self._gram_row, self._b, self.radii = gram_row, b, radii
        self.W = np.zeros((len(b), len(radii)))
        self.waiting = [int(i) for i in np.argsort(radii, kind="stable")]
        self._start = np.abs(b).max(initial=0.0)

    def follow(self, damping: float) -> None:
        """Follow the path of G with a raised diagonal from the largest lambda, until no radius waits."""
        self._damping = damping
        self._rows, self._inverse = np.zeros((0, len(self._b))), np.zeros((0, 0))
        self.index = np.empty(0, dtype=np.intp)
        self.sign, self.u, self.v = np.empty(0), np.empty(0), np.empty(0)
        self.p, self.q = self._b.copy(), np.zeros(len(self._b))
        start, waiting = self._start, self.waiting
        lam, tie = start, TIE * start
        stuck: list[int] = []
        exchanges = 0
        while waiting and lam > 0:
            breakpoints = self._breakpoints(lam, tie)
            breakpoints[stuck] = 0
            j = int(np.argmax(breakpoints))
            exchanges = 0 if breakpoints[j] < lam - tie else exchanges + 1
            if exchanges > 100 * len(self.W):
                raise ArithmeticError(f"the lasso path stalled at lambda = {lam:.3g} (largest: {start:.3g})")
            lam = breakpoints[j] if breakpoints[j] > END * start else 0.0
            self._record(lam)
            if not waiting:
                return
            if j in self.index:
                self._leave(int(np.flatnonzero(self.index == j)[0]))
                stuck = []
                continue
            column = self._column(j)
            sign = float(np.sign(self.p[j] + lam * self.q[j]))
            if column.distance:
                self._join(j, sign, column)
            elif abs(self.p[j]) > _OUTSIDE * start:
                self._replace(lam, j, sign, column)
            # A column in the span of the active ones cannot join until one of those has left.
            stuck = [] if j in self.index else [*stuck, j]

    def _record(self, lam: float) -> None:
        """Write the solutions for the radii reached before the segment ends at lambda; for all radii if lambda is 0."""
        W, radii, waiting = self.W, self.radii, self.waiting
        if lam and radii[waiting[0]] > self.sign @ (self.u - lam * self.v):
            return
        self._refine()
        intercept, slope = self.sign @ self.u, self.sign @ self.v
        while waiting and (lam == 0 or radii[waiting[0]] <= intercept - lam * slope):
            i = waiting[0]
            at = max((intercept - radii[i]) / slope, lam)
            w = self.u - at * self.v
            if (self.sign * w).min() < -_WRONG_SIGN * np.abs(w).max():
                raise ArithmeticError(f"weights of the wrong sign on the lasso path at lambda = {at:.3g}")
            # w may be a difference of large numbers: make sure that it is in the ball.
            W[self.index, i] = w * (radii[i] / max(np.abs(w).sum(), radii[i]))
            waiting.pop(0)

    def _replace(self, lam: float, j: int, sign: float, column: _Column) -> None:
        """Let attribute j, whose column is spanned, grow at constant lambda until it replaces an active one."""
        W, radii, waiting = self.W, self.radii, self.waiting
        self._refine()
        w, change = self.u - lam * self.v, -sign * column.h
        norm, rate = self.sign @ w, 1 + self.sign @ change
        falling = self.sign * change < -_SLOPE * np.abs(change).max(initial=0)
        reach = np.full(len(w), np.inf)
        reach[falling] = np.maximum(-w[falling] / change[falling], 0)
        length = reach.min(initial=np.inf)
        while waiting and radii[waiting[0]] <= norm + length * rate:
            i = waiting.pop(0)
            step = max((radii[i] - norm) / rate, 0)
            W[self.index, i], W[j, i] = w + step * change, sign * step
        if waiting:
            self._leave(int(reach.argmin()))
            column = self._column(j)
            if not column.distance:
                raise ArithmeticError(f"the lasso path has dependent columns at lambda = {lam:.3g}")
            self._join(j, sign, column)

    def _breakpoints(self, lam: float, tie: float) -> np.ndarray:
        """Return the lambda at which each attribute leaves or joins, 0 if it never does; shape (d,)."""
        u, v, p, q = self.u, self.v, self.p, self.q
        result = np.zeros(len(p))
        with np.errstate(divide="ignore", invalid="ignore"):
            for side in (1, -1):
                distance, speed = lam - side * (p + lam * q), 1 - side * q
                meets = np.where(distance > tie, side * p / speed, lam)
                result = np.maximum(result, np.where(speed > _SLOPE, meets, 0))
            falling = self.sign * v < -_SLOPE * np.abs(v).max(initial=0)
            result[self.index] = np.where(falling, u / v, 0)
        return np.minimum(result, lam)

    def _column(self, j: int) -> _Column:
        """Project column j on the active columns."""
        row = self._gram_row(j).copy()
        row[j] += self._damping
        h = self._solve(row[self.index])
        rest = row - self._combine(h)
        if np.abs(rest[self.index]).max(initial=0.0) > 0.1 * _DRIFT * row[j]:
            h += self._solve(rest[self.index])
            rest = row - self._combine(h)
        lengths = self._rows[np.arange(len(h)), self.index]
        spanned = rest[j] <= _SPAN * row[j] + _ROUNDING * (h**2 @ lengths)
        return _Column(row, h, rest, 0.0 if spanned else float(rest[j]))

    def _join(self, j: int, sign: float, column: _Column) -> None:
        """Add attribute j, whose column is not in the span of the active ones."""
        n = len(self.index)
        if n == len(self._rows):
            self._rows = np.pad(self._rows, ((0, _CHUNK), (0, 0)))
            self._inverse = np.pad(self._inverse, (0, _CHUNK))
        self._rows[n] = column.row
        self._add_to_inverse(1 / column.distance, np.append(-column.h, 1.0))
        u_j, v_j = self.p[j] / column.distance, (sign - self.q[j]) / column.distance
        self.u, self.v = np.append(self.u - u_j * column.h, u_j), np.append(self.v - v_j * column.h, v_j)
        self.p -= u_j * column.rest
        self.q += v_j * column.rest
        self.index, self.sign = np.append(self.index, j), np.append(self.sign, sign)
        self._refine_if_needed()

    def _leave(self, position: int) -> None:
        """Remove the attribute at a position of `index`; the last one moves to its place."""
        last = len(self.index) - 1
        pivot = self._inverse[position, position]
        column = self._inverse[: last + 1, position] / pivot
        combined = self._combine(column)
        self.p += self.u[position] * combined
        self.q -= self.v[position] * combined
        self.u -= self.u[position] * column
        self.v -= self.v[position] * column
        self._add_to_inverse(-pivot, column)
        for rows in (self._inverse, self._inverse.T, self._rows):
            rows[position] = rows[last]
            rows[last] = 0
        for vector in (self.index, self.sign, self.u, self.v):
            vector[position] = vector[last]
        self.index, self.sign, self.u, self.v = self.index[:last], self.sign[:last], self.u[:last], self.v[:last]
        self._refine_if_needed()

    def _refine(self) -> None:
        """Correct u and v by the residuals of their equations."""
        self.u += self._solve(self.p[self.index])
        self.v += self._solve(self.sign - self.q[self.index])
        self.p, self.q = self._b - self._combine(self.u), self._combine(self.v)

    def _refine_if_needed(self) -> None:
        left = np.abs(self.p[self.index]).max(initial=0.0), np.abs(self.q[self.index] - self.sign).max(initial=0.0)
        if left[0] > _DRIFT * self._start or left[1] > _DRIFT:
            self._refine()

    def _solve(self, right: np.ndarray) -> np.ndarray:
        return self._inverse[: len(right), : len(right)] @ right

    def _combine(self, coefficients: np.ndarray) -> np.ndarray:
        """Return a linear combination of the active rows of G."""
        return coefficients @ self._rows[: len(coefficients)]

    def _add_to_inverse(self, factor: float, vector: np.ndarray) -> None:
        border = np.zeros(len(self._rows))
        border[: len(vector)] = vector
        dger(factor, border, border, a=self._inverse.T, overwrite_a=True)


def lasso_path(
    gram_row: Callable[[int], np.ndarray], squares: np.ndarray, b: np.ndarray, radii: np.ndarray
) -> np.ndarray:
    """Minimise ``w'G w / 2 - b'w`` over the 1-balls of several radii; least squares have ``G = X'X`` and ``b = X'y``.

    Where minimisers of the whole space lie inside a ball, the end of the path is returned, the one of smallest 1-norm.

    Parameters
    ----------
    gram_row : callable
        Row j of G, symmetric and positive semidefinite, shape (d,).
    squares : ndarray, shape (d,)
        The diagonal of G.
    b : ndarray, shape (d,)
        The linear part; it need not be in the range of G.
    radii : ndarray, shape (G,)
        Radii B > 0, in any order.

    Returns
    -------
    ndarray, shape (d, G)
        The minimisers. The path is followed no further than the largest radius.

    Raises
    ------
    ArithmeticError
        If rounding defeats the path even with the diagonal of G raised.
    """
    path = _Path(gram_row, b, radii)
    for damping in _DAMPING:
        try:
            path.follow(damping * squares.max(initial=0.0))
            return path.W
        except ArithmeticError as error:
            failure = error
    raise failure

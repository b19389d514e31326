"""Exact path of the lasso: a convex quadratic over 1-balls of growing radius.

The minimisers of ``w'G w / 2 - b'w + lambda |w|_1`` form, as lambda falls from ``max |b|`` to 0, a path that is linear
between breakpoints; its point of norm ``|w|_1 = B`` minimises ``w'G w / 2 - b'w`` over the 1-ball of radius B. Least
squares have ``G = X'X`` and ``b = X'y``. With A the active attributes and s their signs,

    w_A(lambda) = u - lambda v,   G_AA u = b_A,   G_AA v = s_A,

until an attribute of A reaches 0 and leaves, or the correlation ``b_j - G_j w`` of another one reaches +-lambda and it
joins. Ties (integer data, duplicated or collinear columns) cause several events at one lambda. There attributes join
and leave one at a time, smallest index first, until all weights and correlations move in a valid direction.

If b is not in the range of G, which never happens in least squares, a column may reach lambda while it lies in the span
of the active ones. The minimisers at this lambda are then a segment along which the 1-norm grows: the column replaces
the first attribute that reaches 0. If none does, the objective is unbounded, and so is the end of the path.

The result is exact to rounding, also with columns that are zero, duplicated or collinear. Columns that are collinear
except for 1e-9 to 1e-4 of their length cannot be resolved by ``X'X`` in double precision. They may be treated as
collinear, or the diagonal is raised a little, which costs some 1e-5 of ``|y|_2^2`` in the loss (more if the lengths of
the columns differ by many orders of magnitude). The result is always in the ball.

References
----------
M. R. Osborne, B. Presnell, B. A. Turlach. A new approach to variable selection in least squares problems.
IMA Journal of Numerical Analysis 20(3), 2000.

K. G. Murty. Note on a Bard-type scheme for solving the complementarity problem. Opsearch 11, 1974 (the
least-index rule).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

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
        from scipy.linalg.blas import dger  # here, as SciPy loads slowly

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

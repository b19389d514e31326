"""Exact path of the lasso: least squares over 1-balls of growing radius.

The minimisers of ``|X w - y|_2^2 / 2 + lambda |w|_1`` form, as lambda falls from ``max |X'y|`` to 0, a path
that is linear between breakpoints; its point of norm ``|w|_1 = B`` minimises ``|X w - y|_2^2`` over the
1-ball of radius B. With A the attributes in use, s their signs, ``G = X'X`` and ``b = X'y``,

    w_A(lambda) = u - lambda v,   G_AA u = b_A,   G_AA v = s_A,

until an attribute of A reaches 0 and leaves, or the correlation ``X_j'(y - X w)`` of another one reaches
+-lambda and it joins. Ties (integer data, duplicated or collinear columns) let several events fall on one
lambda; there attributes join and leave one at a time, smallest index first, until all move the right way.

The result is exact to rounding, also with columns that are zero, duplicated or collinear. Columns that are
collinear but for 1e-9 to 1e-4 of their length are beyond what ``X'X`` holds in double precision: they may be
treated as collinear, or the diagonal is raised a little, which costs some 1e-5 of ``|y|_2^2`` in the loss
(more if the lengths of the columns differ by many orders of magnitude). The result is in the ball always.

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

_TIE = 1e-11
"""Relative to the largest ``|X'y|``: what is closer than this is equal."""

_END = 1e-10
"""Relative to the largest ``|X'y|``: a path that gets this low is at its end, lambda = 0."""

_SLOPE = 1e-9
"""Relative slopes below this are rounding."""

_SPAN = 1e-10
"""Squared distance to the span of others, relative to the squared length, below which a column lies in it."""

_ROUNDING = 1e-13
"""Relative error of that distance: that of the sums behind it, some hundred units of rounding."""

_WRONG_SIGN = 1e-8
"""A path is given up if weights have the wrong sign by more than this, relative to the largest weight."""

_DAMPING = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
"""Added to the diagonal of X'X, relative to its largest element, in turn until a path is not given up."""


class _Segment(NamedTuple):
    """A piece of the path: ``w_A = u - lambda v``, correlations ``X'(y - X w) = p + lambda q``."""

    u: np.ndarray
    v: np.ndarray
    p: np.ndarray
    q: np.ndarray


class _ActiveSet:
    """The attributes in use, their signs, their rows of X'X, and the inverse of their Gram matrix."""

    def __init__(self, gram_row: Callable[[int], np.ndarray], b: np.ndarray, damping: float) -> None:
        self._gram_row = gram_row
        self._b = b
        self._damping = damping
        self.index = np.empty(0, dtype=np.intp)
        self.sign = np.empty(0)
        self._rows = np.empty((0, len(b)))
        self._gram = np.empty((0, 0))
        self._inverse = np.empty((0, 0))

    def exchange(self, j: int, correlation: float) -> bool:
        """Remove attribute j if it is in use, else add it; False if it lies in the span of the others."""
        position = np.flatnonzero(self.index == j)
        if len(position):
            self._leave(int(position[0]))
            return True
        return self._join(j, np.sign(correlation))

    def _join(self, j: int, sign: float) -> bool:
        row = self._gram_row(j).copy()
        row[j] += self._damping
        cross = row[self.index]
        h = self._inverse @ cross
        h += self._inverse @ (cross - self._gram @ h)
        distance = row[j] - cross @ h
        if distance <= _SPAN * row[j] + _ROUNDING * (h**2 @ self._gram.diagonal()):
            return False
        self._gram = _bordered(self._gram, cross, row[j])
        self._inverse = _bordered(self._inverse + np.outer(h, h / distance), -h / distance, 1 / distance)
        self._rows = np.vstack([self._rows, row])
        self.index = np.append(self.index, j)
        self.sign = np.append(self.sign, sign)
        return True

    def _leave(self, position: int) -> None:
        others = np.delete(np.arange(len(self.index)), position)
        square = np.ix_(others, others)
        column = self._inverse[others, position]
        self._gram = self._gram[square]
        self._inverse = self._inverse[square] - np.outer(column, column / self._inverse[position, position])
        self._rows = self._rows[others]
        self.index = self.index[others]
        self.sign = self.sign[others]

    def segment(self) -> _Segment:
        """Return the piece of the path along which these attributes are in use."""
        right = np.column_stack([self._b[self.index], self.sign])
        solution = self._inverse @ right
        solution += self._inverse @ (right - self._gram @ solution)
        product = solution.T @ self._rows
        return _Segment(solution[:, 0], solution[:, 1], self._b - product[0], product[1])


def _bordered(matrix: np.ndarray, border: np.ndarray, corner: float) -> np.ndarray:
    """Append a row and the same column to a symmetric matrix."""
    return np.block([[matrix, border[:, None]], [border, corner]])


def _breakpoints(active: _ActiveSet, lam: float, tie: float, line: _Segment) -> np.ndarray:
    """For each attribute the lambda at which it leaves or joins, 0 if it never does; shape (d,)."""
    u, v, p, q = line
    result = np.zeros(len(p))
    with np.errstate(divide="ignore", invalid="ignore"):
        for side in (1, -1):
            distance, speed = lam - side * (p + lam * q), 1 - side * q
            meets = np.where(distance > tie, side * p / speed, lam)
            result = np.maximum(result, np.where(speed > _SLOPE, meets, 0))
        falling = active.sign * v < -_SLOPE * np.abs(v).max(initial=0)
        result[active.index] = np.where(falling, u / v, 0)
    return np.minimum(result, lam)


def lasso_path(
    gram_row: Callable[[int], np.ndarray], squares: np.ndarray, b: np.ndarray, radii: np.ndarray
) -> np.ndarray:
    """Minimise |X w - y|_2^2 over the 1-balls of several radii.

    Where least-squares solutions lie inside a ball, the end of the path is returned, the one of smallest
    1-norm.

    Parameters
    ----------
    gram_row : callable
        Row j of X'X, shape (d,).
    squares : ndarray, shape (d,)
        Squared lengths of the columns, the diagonal of X'X.
    b : ndarray, shape (d,)
        X'y.
    radii : ndarray, shape (G,)
        Radii B > 0, in any order.

    Returns
    -------
    ndarray, shape (d, G)
        The minimisers. The path is followed no further than the largest radius.

    Raises
    ------
    ArithmeticError
        If rounding defeats the path even with the diagonal of X'X raised.
    """
    W = np.zeros((len(b), len(radii)))
    waiting = [int(i) for i in np.argsort(radii, kind="stable")]
    for damping in _DAMPING:
        try:
            active = _ActiveSet(gram_row, b, damping * squares.max(initial=0.0))
            _follow(W, waiting, radii, active, np.abs(b).max(initial=0.0))
            return W
        except ArithmeticError as error:
            failure = error
    raise failure


def _follow(W: np.ndarray, waiting: list[int], radii: np.ndarray, active: _ActiveSet, start: float) -> None:
    """Follow the path from lambda = start; write the solutions of waiting radii to W and strike them off."""
    lam, tie = start, _TIE * start
    stuck: list[int] = []
    exchanges = 0
    while waiting and lam > 0:
        line = active.segment()
        breakpoints = _breakpoints(active, lam, tie, line)
        breakpoints[stuck] = 0
        j = int(np.argmax(breakpoints))
        exchanges = 0 if breakpoints[j] < lam - tie else exchanges + 1
        if exchanges > 100 * len(W):
            raise ArithmeticError(f"the lasso path stalled at lambda = {lam:.3g} (largest: {start:.3g})")
        lam = breakpoints[j] if breakpoints[j] > _END * start else 0.0
        _record(W, waiting, radii, active, lam, line)
        # A column in the span of the active ones cannot join until one of those has left.
        stuck = [] if active.exchange(j, line.p[j] + lam * line.q[j]) else [*stuck, j]


def _record(
    W: np.ndarray, waiting: list[int], radii: np.ndarray, active: _ActiveSet, lam: float, line: _Segment
) -> None:
    """Write the solutions for the radii reached before the segment ends at lambda; for all, if that is 0."""
    intercept, slope = active.sign @ line.u, active.sign @ line.v
    while waiting and (lam == 0 or radii[waiting[0]] <= intercept - lam * slope):
        i = waiting[0]
        at = max((intercept - radii[i]) / slope, lam)
        w = line.u - at * line.v
        if (active.sign * w).min() < -_WRONG_SIGN * np.abs(w).max():
            raise ArithmeticError(f"weights of the wrong sign on the lasso path at lambda = {at:.3g}")
        W[active.index, i] = w
        waiting.pop(0)

"""The lasso on 1-balls of growing radius, in leaps from one to the next.

Between radii far apart the path (`budgetreg.solvers.homotopy`) has hundreds of breakpoints, each of which costs a pass
through the columns in use. A leap guesses the attributes in use beyond them instead, and corrects the guess by the
optimality conditions until they hold, at a Cholesky decomposition each time. What this does not settle is left to the
path.

References
----------
J. J. Júdice, F. M. Pires. A block principal pivoting algorithm for large-scale strictly monotone linear
complementarity problems. Computers & Operations Research 21(5), 1994 (all attributes corrected at once).
"""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from budgetreg.solvers.homotopy import END, TIE, lasso_path

_SETTLED = 1e-10
"""A leap is taken back if its equations fail by more than this, relative to the largest ``|b|``."""

_CORRECTIONS = 40
"""Most corrections of the attributes in use for a radius; it rarely takes more than ten."""

_STRIDE = 0.4
"""Least factor by which lambda falls at once: from further away too many attributes seem to join."""


def lasso(gram: np.ndarray, b: np.ndarray, radii: np.ndarray, guess: np.ndarray | None = None) -> np.ndarray:
    """Minimise ``w'G w / 2 - b'w`` over 1-balls as `lasso_path` does, faster where G is at hand.

    Parameters
    ----------
    gram : ndarray, shape (d, d)
        G, symmetric and positive semidefinite.
    b, radii : ndarray
        As for `lasso_path`.
    guess : ndarray, shape (d, G), optional
        Minimisers of a similar problem, whose signs are tried first: the nearer, the faster.

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
    reached = 0
    guesses = [None] * len(order) if guess is None else [np.sign(guess[:, i]) for i in order]
    for i, w in zip(order, _leaps(gram, b, radii[order], guesses), strict=False):
        W[:, i] = w
        reached += 1
    rest = order[reached:]
    if len(rest):
        W[:, rest] = lasso_path(gram.__getitem__, gram.diagonal(), b, radii[rest])
    return W


def _leaps(
    gram: np.ndarray, b: np.ndarray, radii: np.ndarray, guesses: Sequence[np.ndarray | None]
) -> Iterator[np.ndarray]:
    """Yield the minimisers for increasing radii, up to the first that is not found; each has passed all conditions."""
    start = np.abs(b).max(initial=0.0)
    if not start:
        return
    sign = np.where(np.arange(len(b)) == np.abs(b).argmax(), np.sign(b), 0)
    before = lam = start
    for B, guess in zip(radii, guesses, strict=True):
        stride = max(_STRIDE, (lam / before) ** 2) if lam < before else _STRIDE
        found = None if guess is None else _leap(gram, b, B, guess, start, 0.0)
        found = found or _leap(gram, b, B, sign, lam, stride)
        if found is None:
            return
        before, (sign, lam, w) = lam, found
        result = np.zeros(len(b))
        result[sign != 0] = w * (B / max(np.abs(w).sum(), B))
        yield result


def _leap(
    gram: np.ndarray, b: np.ndarray, B: float, sign: np.ndarray, lam: float, stride: float
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Correct the signs of all weights, from those at lambda on, until they are those of the minimiser for a radius.

    Lambda falls by no more than the factor `stride` at once.

    Returns
    -------
    tuple or None
        Signs (d,), lambda, and the weights in use; None if they are not found.
    """
    start = np.abs(b).max()
    tie = TIE * start
    floor, settled = lam * stride, (sign, lam)
    for _ in range(_CORRECTIONS):
        index = np.flatnonzero(sign)
        s, rows = sign[index], gram.take(index, axis=0)
        if not len(index):
            return None
        factor, failure = dpotrf(rows.take(index, axis=1).T, clean=0, overwrite_a=1)
        if failure:  # too many joined at once to be independent
            if not stride:
                return None
            sign, lam = settled
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
            equations_hold = np.abs(left[index] - lam * s).max() <= _SETTLED * start
            return (sign, lam, w) if equations_hold else None
        if wrong <= 0.1 * len(index):
            settled = corrected, lam
            floor *= stride
        sign = corrected
    return None

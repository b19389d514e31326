"""The lasso on 1-balls of growing radius, by block pivoting from one radius to the next.

Between radii far apart the path (`lasso_path`) has hundreds of breakpoints, each of which costs a pass through the
active columns. Block pivoting instead guesses the active set at the next radius and corrects it by the
optimality conditions until they hold, with one Cholesky decomposition per correction. Where it does not converge, the
path is followed.

References
----------
J. J. Júdice, F. M. Pires. A block principal pivoting algorithm for large-scale strictly monotone linear
complementarity problems. Computers & Operations Research 21(5), 1994 (block pivoting).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from budgetreg.algorithms.lasso_path import END, TIE, lasso_path

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
    from scipy.linalg.lapack import dpotrf, dpotrs  # here, as SciPy loads slowly

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

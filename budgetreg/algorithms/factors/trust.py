"""How far the correlations of a factor model count: as far as they predict what is revealed after them.

Where few values are seen, a factor model finds correlations in noise, and examples that it was fitted to cannot tell.
Examples that are revealed later can. So the correlations R that the model had then are tried on them, by the log
likelihood of ``(1 - a) I + a R`` with shares a from 0 to 1. If the best share is clearly better than 1, the
correlations of attributes count by that share from now on, and fully otherwise. Whether an example is seen depends on
no unseen value, so that later examples are as good as any (Rubin 1976).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

_SHARES = np.linspace(0, 1, 11)[:, None, None]
"""Shares that are tried."""

_ERRORS = 2.0
"""Standard errors by which a share must be better than 1."""

_MORE = 1.5
"""Correlations are tried on later examples, and replaced by new ones, as soon as there are so many times as many."""

_WORK, _EIGENVALUES, _CHUNK = 2_000_000_000, 10, 2**21
"""Multiplications for one trial, for which the last examples that fit are used; those for eigenvalues of a matrix (n,
n), in n^3; and numbers in the matrices that are decomposed at a time."""


class Trust:
    """The share by which the correlations of a stream's attributes count.

    Parameters
    ----------
    columns : int
        Columns c, the last of which is the target.
    """

    def __init__(self, columns: int) -> None:
        self._columns, self._share = columns, 1.0
        self._examples, self._correlations = 0, np.zeros((0, 0))

    def trusted(
        self, seen: Sequence[tuple[np.ndarray, np.ndarray]], live: np.ndarray, covariance: np.ndarray
    ) -> np.ndarray:
        """Return a covariance (p, p) whose correlations of attributes count by the share.

        Those of the target stay, unless they would explain more of it than they did.

        Parameters
        ----------
        seen : sequence of tuple of ndarray
            Positions among the live columns and values (T, n) of all examples so far, as for
            `budgetreg.algorithms.factors.covariance.revised`.
        live : ndarray of int, shape (p,)
            The columns, in ascending order.
        covariance : ndarray of float, shape (p, p)
            Their covariance, positive definite.
        """
        deviations, examples = np.sqrt(np.diagonal(covariance)), sum(len(values) for _, values in seen)
        attributes = int((live < self._columns - 1).sum())
        if examples >= _MORE * self._examples:
            if self._examples:
                self._try(seen, live[:attributes], deviations)
            self._correlations = np.eye(self._columns)
            self._correlations[np.ix_(live, live)] = covariance / np.outer(deviations, deviations)
            self._examples = examples
        if self._share == 1:
            return covariance
        result = covariance.copy()
        result[:attributes, :attributes] *= self._share
        np.einsum("ii->i", result)[:] = np.square(deviations)
        if attributes < live.size:
            with_target = covariance[:attributes, -1]
            before, now = (
                float(with_target @ np.linalg.solve(of[:attributes, :attributes], with_target))
                for of in (covariance, result)
            )
            if now > before:
                result[:-1, -1] = result[-1, :-1] = with_target * np.sqrt(before / now)
        return result

    def _try(self, seen: Sequence[tuple[np.ndarray, np.ndarray]], live: np.ndarray, deviations: np.ndarray) -> None:
        """Find the share by which the earlier correlations predict later examples best."""
        R = np.eye(len(live) + 1)
        R[:-1, :-1] = self._correlations[np.ix_(live, live)]
        densities = [_densities(R, *part) for part in self._later(seen, len(live), deviations)]
        if densities:
            every = np.concatenate(densities, axis=1)
            best = int(every.sum(axis=1).argmax())
            better = every[best] - every[-1]
            clear = better.sum() > _ERRORS * np.sqrt(better.size) * better.std()
            self._share = float(_SHARES[best, 0, 0]) if clear else 1.0

    def _later(
        self, seen: Sequence[tuple[np.ndarray, np.ndarray]], p: int, deviations: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield positions, p if there is no attribute, and values in deviations, of examples after the earlier ones."""
        work, scale = _WORK, np.append(1 / deviations[:p], np.zeros(len(deviations) - p + 1))
        stop = sum(len(values) for _, values in seen)
        for positions, values in reversed(seen):
            n, start = positions.shape[1], stop - len(values)
            fitting = min(stop - max(start, self._examples), work // (_EIGENVALUES * n**3))
            step = max(1, _CHUNK // n**2)
            for i in range(len(values) - max(fitting, 0), len(values), step):
                yield np.minimum(positions[i : i + step], p), values[i : i + step] * scale[positions[i : i + step]]
            work -= max(fitting, 0) * _EIGENVALUES * n**3
            stop = start


def _densities(R: np.ndarray, positions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return log densities of examples (shares, T) but for constants; the last column of R stands for no attribute."""
    absent, n = positions == len(R) - 1, positions.shape[1]
    K = R[positions[:, :, None], positions[:, None, :]] * ~(absent[:, :, None] & absent[:, None, :])
    K[:, np.arange(n), np.arange(n)] = 1.0
    eigenvalues, vectors = np.linalg.eigh(K)
    squares = np.square((values[:, None, :] @ vectors)[:, 0])
    variances = 1 - _SHARES + _SHARES * np.maximum(eigenvalues, np.finfo(float).tiny)
    return np.asarray(-(np.log(variances) + squares / variances).sum(axis=2) / 2)

"""Whether the correlations of a factor model count: not if they predict what is revealed later worse than the mean.

Where few values are seen, a factor model finds correlations in noise, and examples that it was fitted to cannot tell.
Examples that are revealed later can. So the correlations that the model had then are tried on them: each value is
predicted from the others of its example. If the predictions are clearly worse than the mean, the correlations of
attributes count for nothing until later examples show otherwise, unless later examples also show that this would be
worse. Without correlations, the weight of an attribute is in proportion to its correlation r_i with the target, and
weights of attributes that share what they tell add up. That shows in products ``r_i z_i r_j z_j`` of standardised
values of an example, whose mean would be 0. Likelihoods would not do: where values are far from normal, as those of
pixels, correlations that predict well can have the smaller one. Which examples are seen depends on no unseen value, so
that later ones are as good as any (Rubin 1976).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

_ERRORS = 3.0
"""Standard errors by which predictions must be worse than the mean, and by which the products must be positive."""

_MORE = 1.5
"""The number of examples, as a multiple of that at the last trial, at which correlations are tried again."""

_WORK, _CHUNK = 2_000_000_000, 2**21
"""Multiplications for one trial, n^3 for an example with n values, for which the last examples that fit are used; and
numbers in the matrices that are inverted at a time."""


class Trust:
    """Whether the correlations of a stream's attributes count.

    Parameters
    ----------
    columns : int
        Columns c, the last of which is the target.
    """

    def __init__(self, columns: int) -> None:
        self._columns, self._counts = columns, True
        self._examples, self._correlations = 0, np.zeros((0, 0))

    def trusted(
        self, seen: Sequence[tuple[np.ndarray, np.ndarray]], live: np.ndarray, covariance: np.ndarray
    ) -> np.ndarray:
        """Return a covariance (p, p) whose attributes have no correlations if these do not count.

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
        if self._counts:
            return covariance
        result = np.diag(np.square(deviations))
        if attributes < live.size:
            with_target = covariance[:-1, -1]
            before = float(with_target @ np.linalg.solve(covariance[:-1, :-1], with_target))
            now = float(np.square(with_target / deviations[:-1]).sum())
            result[:-1, -1] = result[-1, :-1] = with_target * np.sqrt(min(1.0, before / now) if now else 1.0)
        return result

    def _try(self, seen: Sequence[tuple[np.ndarray, np.ndarray]], live: np.ndarray, deviations: np.ndarray) -> None:
        """Find out whether the earlier correlations predict values of later examples."""
        R = np.eye(len(live) + 1)
        R[:-1, :-1] = self._correlations[np.ix_(live, live)]
        with_target = np.append(self._correlations[live, -1], 0.0)
        losses = [_losses(R, with_target, *part) for part in self._later(seen, len(live), deviations)]
        if losses:
            worse, shared = np.concatenate(losses, axis=1)
            clearly = _ERRORS * np.sqrt(worse.size)
            self._counts = bool(worse.sum() <= clearly * worse.std() or shared.sum() > clearly * shared.std())

    def _later(
        self, seen: Sequence[tuple[np.ndarray, np.ndarray]], p: int, deviations: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield positions, p if there is no attribute, and values in deviations, of examples after the earlier ones."""
        work, scale = _WORK, np.append(1 / deviations[:p], np.zeros(len(deviations) - p + 1))
        stop = sum(len(values) for _, values in seen)
        for positions, values in reversed(seen):
            n, start = positions.shape[1], stop - len(values)
            fitting = max(0, min(stop - max(start, self._examples), work // n**3))
            step = max(1, _CHUNK // n**2)
            for i in range(len(values) - fitting, len(values), step):
                yield np.minimum(positions[i : i + step], p), values[i : i + step] * scale[positions[i : i + step]]
            work, stop = work - fitting * n**3, start


def _losses(R: np.ndarray, with_target: np.ndarray, positions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return by how much predictions err more than the mean, and the sum of products of different attributes, (2, T).

    Errors are sums over the values of an example (T, n), each predicted from the others; the last column is absent.
    """
    absent, n = positions == len(R) - 1, positions.shape[1]
    K = R[positions[:, :, None], positions[:, None, :]] * ~(absent[:, :, None] & absent[:, None, :])
    K[:, np.arange(n), np.arange(n)] = 1.0
    inverse = np.linalg.inv(K)
    errors = (inverse @ values[:, :, None])[..., 0] / np.diagonal(inverse, axis1=1, axis2=2)
    worse = (np.square(errors) - np.square(values)).sum(axis=1)
    parts = with_target[positions] * values
    return np.stack([worse, np.square(parts.sum(axis=1)) - np.square(parts).sum(axis=1)])

"""What examples say of the factor model's covariance, of which each shows some columns.

*Whether the correlations of attributes count.* Where few values are seen, a factor model finds correlations in noise,
and examples that it was fitted to cannot tell. Examples that are revealed later can. So the correlations that the model
had then are tried on them: each value is predicted from the others of its example. If the predictions are clearly worse
than the mean, the correlations of attributes count for nothing until later examples show otherwise, unless later
examples also show that this would be worse. Without correlations, the weight of an attribute is in proportion to its
correlation r_i with the target, and weights of attributes that share what they tell add up. That shows in products
``r_i z_i r_j z_j`` of standardised values of an example, whose mean would be 0. Likelihoods would not do: where values
are far from normal, as those of pixels, correlations that predict well can have the smaller one. Which examples are
seen depends on no unseen value, so that later ones are as good as any (Rubin 1976).

*The covariance with the factor model's as its prior.* A factor model with q factors cannot hold every covariance, and
its chain is slow to find those that need all q. So its posterior mean S0 is not the last word, but counts as much as nu
examples: the estimate S maximises

    l(S) - nu / 2 (log|S| + tr S^-1 S0),

l the log likelihood of what was seen under ``N(m, S)``; nu is 3 examples per column, and more if tails are heavy. With
few examples this is S0, and with more and more it becomes the maximum likelihood estimate, which is efficient whatever
the covariance is.

References
----------
D. B. Rubin. Inference and missing data. Biometrika 63, 1976.
A. P. Dempster, N. M. Laird, D. B. Rubin. Maximum likelihood from incomplete data via the EM algorithm. Journal of the
Royal Statistical Society B 39, 1977.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from budgetreg.revealed.collection import dense_rows, sum_by_columns

_CHUNK = 2**21
"""Numbers in the matrices that are inverted at a time."""

# Whether the correlations of attributes count.

_ERRORS = 3.0
"""Standard errors by which predictions must be worse than the mean, and by which the products must be positive."""

_NEXT_TRIAL = 1.5
"""The number of examples, as a multiple of that at the last trial, at which correlations are tried again."""

_TRIAL_WORK = 2_000_000_000
"""Multiplications for one trial, n^3 for an example with n values, for which the last examples that fit are used."""


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
            Positions among the live columns and values (T, n) of all examples so far, as for `revised`.
        live : ndarray of int, shape (p,)
            The columns, in ascending order.
        covariance : ndarray of float, shape (p, p)
            Their covariance, positive definite.
        """
        deviations, examples = np.sqrt(np.diagonal(covariance)), sum(len(values) for _, values in seen)
        attributes = int((live < self._columns - 1).sum())
        if examples >= _NEXT_TRIAL * self._examples:
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
        work, scale = _TRIAL_WORK, np.append(1 / deviations[:p], np.zeros(len(deviations) - p + 1))
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


# The covariance with the factor model's as its prior.

_PRIOR_EXAMPLES = 3
"""nu, in examples per column."""

_STEPS, _GAIN = 60, 0.03
"""Most steps; and the gain of the objective, a log density, at which they end."""

_WORK, _MATRIX_WORK = 2_000_000_000, 8
"""Work of all steps, in multiplications; and that of a step for matrices (p, p), in those of a product of two. Where
one step is more, columns are so many that hardly any pair is seen often enough to move S from S0."""

_CAUTION, _MORE, _LESS = 0.1, 3.0, 0.7
"""Share of the unseen examples that the first step counts as seen; and factors of it after a step that went down, and
after one that went up."""


def revised(seen: Sequence[tuple[np.ndarray, np.ndarray]], prior: np.ndarray, times: float = 1.0) -> np.ndarray:
    """Return the covariance of p columns given what examples show of them.

    A step of EM adds ``(nu (S0 - S) + S G S) / (nu + T)`` to S, where G sums ``A (x x' - S_SS) A``, ``A = S_SS^-1``,
    over the T examples. It is short where columns are seldom seen together. Here the divisor counts the examples that
    show both columns, and a share of the others, which grows when a step goes down.

    Parameters
    ----------
    seen : sequence of tuple of ndarray
        Columns and values (T, n) of examples: the numbers of the columns, p if a value is missing, and what they
        exceed their means by.
    prior : ndarray of float, shape (p, p)
        S0, positive definite.
    times : float
        How many times as many examples the prior counts as.
    """
    p = len(prior)
    data = _Seen(seen, p)
    nu, S, best, caution = times * _PRIOR_EXAMPLES * p, prior, -np.inf, _CAUTION
    step = np.zeros((p, p))
    for _ in range(min(_STEPS, _WORK // data.work)):
        tried = S + step
        try:
            G, objective = data.score(tried)
        except np.linalg.LinAlgError:
            objective = -np.inf
        else:
            inverse = np.linalg.inv(tried)
            objective -= nu / 2 * (float(np.linalg.slogdet(tried)[1]) + float((inverse * prior).sum()))
        if objective > best:
            gained, S, best, caution = objective - best, tried, objective, caution * _LESS
            gradient = nu * (prior - S) + S @ G @ S
            if gained < _GAIN:
                break
        else:
            caution = min(1.0, caution * _MORE)
        step = gradient / (nu + data.together + caution * (data.examples - data.together))
        step = (step + step.T) / 2
    return S


class _Seen:
    """What examples show, arranged for sums over them; parameters as for `revised`.

    Attributes
    ----------
    examples : int
    together : ndarray of float, shape (p, p)
        How many of them show both of two columns.
    work : int
        Multiplications of a step.
    """

    def __init__(self, seen: Sequence[tuple[np.ndarray, np.ndarray]], p: int) -> None:
        self._p, self._chunks, self._products = p, [], np.zeros((p, p))
        self.examples, self._whole, self.together, self.work = 0, 0, np.zeros((p, p)), _MATRIX_WORK * p**3
        for columns, values in seen:
            n = columns.shape[1]
            whole = (columns < p).sum(axis=1) == p
            x = dense_rows(columns[whole], values[whole], p)
            self._products += x.T @ x
            self._whole += len(x)
            columns, values = columns[~whole], values[~whole]
            for i in range(0, len(columns), step := max(1, _CHUNK // n**2)):
                self._chunks.append((columns[i : i + step], values[i : i + step]))
            self.work += len(columns) * n**3
            self.examples += len(whole)
        self.together += self._whole
        for columns, _ in self._chunks:
            self.together += sum_by_columns(columns, np.ones((*columns.shape, columns.shape[1])), p)

    def score(self, S: np.ndarray) -> tuple[np.ndarray, float]:
        """Return G, see `revised`, and the log likelihood but for constants.

        Raises
        ------
        numpy.linalg.LinAlgError
            If S is not positive definite.
        """
        p = self._p
        padded = np.eye(p + 1)
        padded[:p, :p] = S
        root, inverse = np.linalg.cholesky(S), np.linalg.inv(S)
        explained = inverse @ self._products
        G = explained @ inverse - self._whole * inverse
        density = -self._whole * np.log(np.diagonal(root)).sum() - np.trace(explained) / 2
        for columns, values in self._chunks:
            missing = columns == p
            x = np.where(missing, 0.0, values)
            K = padded[columns[:, :, None], columns[:, None, :]] * ~(missing[:, :, None] & missing[:, None, :])
            K[:, np.arange(K.shape[1]), np.arange(K.shape[1])] += missing
            A = np.linalg.inv(K)
            z = (A @ x[:, :, None])[..., 0]
            density -= np.log(np.einsum("tnn->tn", np.linalg.cholesky(K))).sum() + (z * x).sum() / 2
            G += sum_by_columns(columns, z[:, :, None] * z[:, None, :] - A, p)
        return G, float(density)

"""Maximum likelihood of a normal distribution of attributes and target, with a free covariance, by EM.

It is the yardstick of `budgetreg.analysis.theory.excess_bound`: no regular estimator from the same draws has a smaller
excess loss in the limit of many examples, and this one reaches the bound for normal data.

References
----------
A. P. Dempster, N. M. Laird, D. B. Rubin. Maximum Likelihood from Incomplete Data via the EM Algorithm. Journal of the
Royal Statistical Society B 39(1), 1977. The prior of one example is ours.
R. Varadhan, C. Roland. Simple and Globally Convergent Methods for Accelerating the Convergence of Any EM Algorithm.
Scandinavian Journal of Statistics 35(2), 2008 (SQUAREM: two steps are extrapolated, and a third one corrects that).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from budgetreg.algorithms.learner import UNBOUNDED, RunContext, SideInformation, UniformSubsetsLearner
from budgetreg.common.errors import ConfigError
from budgetreg.metering.table import JointMoments, Outputs, WithIntercept
from budgetreg.revealed.collection import Block, Entries, sum_by_columns
from budgetreg.revealed.columns import Rescaled

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

_STEPS = 3000
_CHANGE = 1e-6
"""Most steps of EM, and the change of all correlations by a step with which it ends."""

_LEAST = 1e-6
"""Least eigenvalue of the correlations to which steps are extrapolated."""

_BATCH = 1 << 22
"""Numbers of a batch of systems of equations, which limits the memory."""

# One step of EM as in the textbook, one example at a time.


def em_step(X: np.ndarray, mean: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance after a step, for rows X (n, p), NaN for what was not seen."""
    means, covariance = [], np.zeros_like(C)
    for x in X:
        S = np.flatnonzero(~np.isnan(x))
        gain = C[:, S] @ np.linalg.inv(C[np.ix_(S, S)])
        means.append(mean + gain @ (x[S] - mean[S]))
        covariance += (C - gain @ C[S]) / len(X)
    new = np.mean(means, axis=0)
    return new, covariance + np.cov(np.array(means).T, bias=True)


# All examples at once. With ``u = C_SS^-1 (x_S - mean_S)``, 0 outside S, the expectation of an example is
# ``mean + C u`` and its covariance ``C - C A C``, A being ``C_SS^-1`` in the rows and columns of S. So the means of u,
# u u' and A over the examples suffice, and these are sums over small matrices.


def maximum_likelihood(blocks: Sequence[Block], f: int, p: int, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean (p,) and covariance (p, p) of a stream, up to the prior of one example of independent columns.

    Parameters
    ----------
    blocks : sequence of Block
        Everything revealed; the column p of a value is that of a missing one.
    f : int
        The stream.
    p : int
        Number of columns.
    free : ndarray of bool, shape (p,)
        Columns whose mean is estimated; that of others is 0.
    """
    parts = list(_batches(blocks, f))
    counts, sums, squares = (
        sum(np.bincount(index.reshape(-1), (values**power).reshape(-1), p + 1)[:p] for index, values in parts)
        for power in (0, 1, 2)
    )
    mean = sums / np.maximum(counts, 1) * free
    variances = squares / np.maximum(counts, 1) - mean**2
    variances = np.where(variances > 0, variances, 1.0)
    n, units = sum(len(values) for _, values in parts), np.sqrt(np.append(variances, 1.0))
    scale = np.outer(units[:-1], units)  # of the covariance, and of the mean, its last column

    def step(state: np.ndarray) -> np.ndarray:
        C, mean = state[:, :-1], state[:, -1]
        u, uu, A = _sums(parts, np.append(mean, 0.0), C)
        moved = C @ u / n
        shift = moved * free
        second = C @ (uu / n) @ C - np.outer(moved, shift) - np.outer(shift, moved) + np.outer(shift, shift)
        C = (n * (C - C @ (A / n) @ C + second) + np.diag(variances)) / (n + 1)
        return np.column_stack([(C + C.T) / 2, mean + shift])

    state = np.column_stack([np.diag(variances), mean])
    for _ in range(_STEPS // 3):
        once = step(state)
        twice = step(once)
        r, v = (once - state) / scale, (twice - 2 * once + state) / scale
        if np.abs(r).max() <= _CHANGE:
            break
        stretch = max(1.0, float(np.linalg.norm(r)) / max(float(np.linalg.norm(v)), np.finfo(float).tiny))
        far = state + scale * (2 * stretch * r + stretch**2 * v)
        inside = np.linalg.eigvalsh(far[:, :-1] / scale[:, :-1])[0] > _LEAST
        state = step(far if inside else twice)
    return state[:, -1], state[:, :-1]


def _batches(blocks: Sequence[Block], f: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the columns and the values (T, n) of a stream, a limited number of examples at a time."""
    for block in blocks:
        size = max(1, _BATCH // block.values.shape[2] ** 2)
        for start in range(0, block.values.shape[1], size):
            yield block.attributes[f, start : start + size], block.values[f, start : start + size]


def _sums(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], mean: np.ndarray, C: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sums of u (p,), u u' (p, p) and A (p, p); a missing value is a column without covariances."""
    p = len(C)
    padded = np.pad(C, (0, 1))
    u, uu, A = np.zeros(p + 1), np.zeros((p, p)), np.zeros((p, p))
    for index, values in parts:
        rows, columns = index[:, :, None], index[:, None, :]
        systems = padded[rows, columns] + (rows == p) * np.eye(index.shape[1])
        inverse = np.linalg.inv(systems)
        solved = (inverse @ (values - mean[index])[:, :, None])[:, :, 0]
        u += np.bincount(index.reshape(-1), solved.reshape(-1), p + 1)
        uu += sum_by_columns(index, solved[:, :, None] * solved[:, None, :], p)
        A += sum_by_columns(index, inverse, p)
    return u[:p], uu, A


@dataclass(frozen=True)
class NormalMaximumLikelihood(UniformSubsetsLearner):
    """The regressor of a normal distribution that is fitted to uniform subsets of k attributes."""

    core = "normal_ml"
    most_attributes = 60  # its covariance has d (d + 1) / 2 free numbers, and EM takes more steps if few pairs are seen
    check_streams = 20
    words = ("k attributes per example", "maximum likelihood of a normal distribution with a free covariance")
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "unbiased": "the likelihood's maximum is unbiased in the limit alone",
        "second moments": "its variance is known in the limit alone",
        "boundary": UNBOUNDED,
        "minimiser": "the regressor does not show the distribution; tests compare the maximum with a step of EM",
    }

    def solved(self, entries: Entries, accessor: Accessor, given: SideInformation) -> Outputs:
        """Run EM for each stream."""
        F, d = accessor.n_streams, accessor.d
        free = np.append(np.full(d, given.centred), given.intercept)
        rescaled = Rescaled(entries.blocks(), d, given.scaled, accessor.stored_units())
        W, b, fitted = np.zeros((F, d, 1)), np.zeros((F, 1)), list[JointMoments]()
        for f in range(F):
            mean, C = maximum_likelihood(rescaled.blocks, f, d + 1, free)
            C[np.append(rescaled.left_out[f], False), -1] = 0
            W[f, :, 0] = np.linalg.solve(C[:-1, :-1], C[:-1, -1])
            b[f] = mean[-1] - mean[:-1] @ W[f, :, 0]
            fitted.append(JointMoments(mean, C))
        return rescaled.as_revealed(WithIntercept(W, b, fitted.__getitem__))

    def notes(self, run: RunContext, settings: Mapping[str, Sequence[float]]) -> Sequence[str]:
        """Return nothing.

        Raises
        ------
        ConfigError
            If there are too many attributes.
        """
        if run.d > self.most_attributes:
            raise ConfigError(
                f"algo=normal_ml: at most {self.most_attributes} attributes, as a free covariance of {run.d} takes "
                "too many examples and steps; use aeml"
            )
        return ()

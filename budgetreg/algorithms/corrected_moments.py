"""Regressors from second moments that are corrected for what was not seen, with five ways to solve for them.

An example shows the set S of k attributes; ``M_i`` is 1 if i is in S, else 0. The moments of complete examples are

    Gamma_ij = mean(x_i x_j M_i M_j) / pi_ij,    gamma_i = mean(y x_i M_i) / pi_ii,    pi_ij = P(i and j in S),

where the shares of examples that showed both are used for the ``pi_ij``. Gamma is indefinite as a rule, so that
``w'Gamma w / 2 - gamma'w`` has no minimum. The solvers differ in what they do about it.

References
----------
P.-L. Loh, M. J. Wainwright. High-dimensional regression with noisy and missing data: Provable guarantees with
nonconvexity. Annals of Statistics 40(3), 2012 (`stationary`: Theorem 1 bounds all stationary points).
A. Datta, H. Zou. CoCoLasso for high-dimensional error-in-variables regression. Annals of Statistics 45(6), 2017
(`nearest_by_maximum`, Algorithm 1).
M. Takada, H. Fujisawa, T. Nishikawa. HMLasso: Lasso with high missing rate. IJCAI 2019 (`nearest_by_weights`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from budgetreg.algorithms.learner import UNBOUNDED, SideInformation, UniformSubsetsLearner
from budgetreg.algorithms.vectors import project_l1
from budgetreg.config.options import one_of, option
from budgetreg.metering.table import JointMoments, Outputs, WithIntercept
from budgetreg.revealed.collection import Block, Entries, rows_by_column
from budgetreg.revealed.columns import Rescaled

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

# The moments as printed, one example at a time.


def corrected_moments(
    X: np.ndarray, y: np.ndarray, shown: Sequence[np.ndarray], pi: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return Gamma (d, d) and gamma (d,) of Loh & Wainwright 2012, Equation (2.13), for uniform subsets.

    Parameters
    ----------
    X, y : ndarray of float, shapes (m, d) and (m,)
        Examples.
    shown : sequence of ndarray of int
        The attributes seen of each example.
    pi : ndarray of float, shape (d, d)
        Probabilities that two attributes are seen together; on the diagonal, that one is seen.
    """
    m, d = X.shape
    Gamma, gamma = np.zeros((d, d)), np.zeros(d)
    for x, target, S in zip(X, y, shown, strict=True):
        z = np.zeros(d)
        z[S] = x[S]
        Gamma += np.outer(z, z) / pi / m
        gamma += target * z / pi.diagonal() / m
    return Gamma, gamma


# The solvers. Each returns the regressors (d, G) of several sizes: strengths of ridge, radii of 1-balls, or tolerances.

_STEPS = 2000
_STATIONARY = 1e-10
"""Most steps of the projected gradient, and the relative change with which it ends."""

_ROUNDING = 1e-12
"""Negative part, relative to the matrix, that rounding leaves."""

_ITERATIONS = 100
_GAP = 0.02
"""Most iterations of ADMM, each of which decomposes a matrix, and the gap to the optimum with which it ends."""


def stationary(Gamma: np.ndarray, gamma: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Return stationary points of ``w'Gamma w / 2 - gamma'w`` on 1-balls, to which projected gradient leads from 0."""
    eta = 1 / np.abs(np.linalg.eigvalsh(Gamma)).max()
    W = np.zeros((len(radii), len(gamma)))
    for _ in range(_STEPS):
        before, W = W, project_l1(W - eta * (W @ Gamma - gamma), radii)
        if np.abs(W - before).max() <= _STATIONARY * np.abs(W).max():
            break
    return np.ascontiguousarray(W.T)


def ridge_of(Gamma: np.ndarray, gamma: np.ndarray, strengths: np.ndarray) -> np.ndarray:
    """Return the solutions of ``(Gamma_+ + strength) w = gamma``, with negative eigenvalues set to 0."""
    s, V = np.linalg.eigh(Gamma)
    return np.asarray(V @ ((gamma @ V)[:, None] / (np.maximum(s, 0)[:, None] + strengths)))


def dantzig(Gamma: np.ndarray, gamma: np.ndarray, tolerances: np.ndarray) -> np.ndarray:
    """Return the regressors with the least 1-norm for which ``|gamma - Gamma w|_inf`` is at most a tolerance.

    Where there is none, it is that of the next larger tolerance; tolerances (G,) fall, and the first ones give 0.
    """
    from scipy.optimize import linprog  # here, as the other solvers need none

    d, W = len(gamma), np.zeros((len(gamma), len(tolerances)))
    rows = np.block([[Gamma, -Gamma], [-Gamma, Gamma]])
    for g, tolerance in enumerate(tolerances):
        found = linprog(np.ones(2 * d), rows, np.concatenate([gamma, -gamma]) + tolerance)
        W[:, g] = found.x[:d] - found.x[d:] if found.status == 0 else W[:, max(g - 1, 0)]
    return W


def nearest_by_maximum(Gamma: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the positive semidefinite matrix that is nearest in the maximum norm, up to `_GAP`; by ADMM.

    For any positive semidefinite Z with ``sum |Z_ij| = 1``, no such matrix is nearer than ``-<Z, Gamma>``. The
    multipliers of ADMM give such a Z. The penalty ``mu`` is ours.
    """
    A, negative = _parts(Gamma)
    if np.abs(negative).max() <= _ROUNDING * np.abs(Gamma).max():
        return A
    B, Lambda = np.zeros_like(Gamma), np.zeros_like(Gamma)
    mu = 0.1 * len(Gamma) * np.abs(A - Gamma).max()
    for _ in range(_ITERATIONS):
        A, negative = _parts(B + Gamma + mu * Lambda)
        farthest, size = np.abs(A - Gamma).max(), np.abs(negative).sum()
        if not size or farthest + np.vdot(negative, Gamma) / size <= _GAP * farthest:
            break
        M = A - Gamma - mu * Lambda
        B = M - project_l1(M.reshape(-1), mu).reshape(M.shape)
        Lambda = Lambda - (A - B - Gamma) / mu
    return A


def nearest_by_weights(Gamma: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the positive semidefinite matrix A with the least ``sum shares_ij (A - Gamma)_ij^2``; by ADMM.

    ADMM ends when its two copies of ``A - Gamma`` differ by less than a hundredth of `_GAP`.
    """
    A, negative = _parts(Gamma)
    weights = shares / max(float(np.median(shares)), 1e-3 * float(shares.max()))
    B, U = np.zeros_like(Gamma), np.zeros_like(Gamma)
    for _ in range(_ITERATIONS if negative.any() else 0):
        A, _ = _parts(B + Gamma - U)
        B = (A - Gamma + U) / (1 + weights)
        difference = A - B - Gamma
        U = U + difference
        if np.abs(difference).max() <= 0.01 * _GAP * np.abs(A - Gamma).max():
            break
    return A


def _parts(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positive and the negative part of a symmetric matrix, both positive semidefinite."""
    s, V = np.linalg.eigh(matrix)
    positive = (V * np.maximum(s, 0)) @ V.T
    positive = (positive + positive.T) / 2
    return positive, positive - matrix


_SIZES = np.geomspace(0.05, 50, 16)
"""Radii of 1-balls that are tried, in units of the regressor's natural size, see `sizes`."""

_STRENGTHS = np.geomspace(1e3, 1e-3, 19)
"""Strengths of ridge that are tried, from small regressors to large ones, in units of the attributes' mean square."""

_TOLERANCES = np.geomspace(1, 0.03, 10)
"""Tolerances of the Dantzig selector that are tried, in units of the largest correlation with the target."""

SOLVERS = {
    "stationary": "a stationary point of the indefinite loss in the 1-ball",
    "ridge": "negative eigenvalues set to 0, then ridge",
    "maximum": "the nearest positive semidefinite matrix in the maximum norm, then the lasso",
    "weights": "the nearest positive semidefinite matrix, weighted by how often both were seen, then the lasso",
    "dantzig": "the Dantzig selector",
}


def sizes(solver: str, C: np.ndarray) -> np.ndarray:
    """Return the sizes of regressors that are tried, (G,), from small to large, for joint moments C (d + 1, d + 1)."""
    unit = float(C.diagonal()[:-1].mean())
    if solver == "dantzig":
        return _TOLERANCES * np.abs(C[:-1, -1]).max()
    return _STRENGTHS * unit if solver == "ridge" else _SIZES * np.sqrt(C[-1, -1] / unit)


def solved(solver: str, C: np.ndarray, shares: np.ndarray, tried: np.ndarray) -> np.ndarray:
    """Return regressors (d, G) of the sizes (G,), see `SOLVERS`."""
    from budgetreg.algorithms.least_squares import lasso  # here, as the other solvers need none

    Gamma, gamma = semidefinite_by(solver, C[:-1, :-1], shares[:-1, :-1]), C[:-1, -1]
    solve = {"stationary": stationary, "ridge": ridge_of, "dantzig": dantzig}.get(solver, lasso)
    return solve(Gamma, gamma, tried)


def semidefinite_by(solver: str, Gamma: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the nearest semidefinite moments (d, d), if a solver needs any; the others take them as they are."""
    nearest = {"maximum": nearest_by_maximum, "weights": nearest_by_weights}.get(solver)
    return Gamma if nearest is None else nearest(Gamma, shares)


# The moments of all examples of a stream, and of parts of them: sums of products by sparse matrices.

PARTS = 5
"""Parts of the examples that are held out in turn to choose a size."""


class PairSums(NamedTuple):
    """Sums over the parts of a stream's examples; the target is the last column."""

    products: np.ndarray
    """Shape (P, d + 1, d + 1)."""
    counts: np.ndarray
    """How many examples showed both, (P, d + 1, d + 1)."""
    examples: np.ndarray
    """How many examples there are, (P,)."""
    mean: np.ndarray
    """What was subtracted, (d + 1,)."""

    def moments(self, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return corrected moments, and the shares of examples that showed both, of some parts."""
        counts = self.counts[parts].sum(axis=0)
        return self.products[parts].sum(axis=0) / np.maximum(counts, 1), counts / self.examples[parts].sum()

    def held_out(self, part: int, w: np.ndarray) -> np.ndarray:
        """Return the corrected loss ``w'Gamma w - 2 gamma'w`` of regressors (d, G) on a part.

        A part shows few pairs, so that ratios would be biased: the probabilities are those of all examples. That
        of a pair is the product of those of its attributes, with a factor for all pairs.
        """
        everything = self.counts.sum(axis=0) / self.examples.sum()
        p = everything.diagonal()[:-1]
        pairs = everything[:-1, :-1].sum() - p.sum()
        pi = np.outer(p, p) * pairs / max(p.sum() ** 2 - np.square(p).sum(), np.finfo(float).tiny)
        np.fill_diagonal(pi, p)
        products = self.products[part] / self.examples[part]
        Gamma = np.divide(products[:-1, :-1], pi, out=np.zeros_like(pi), where=pi > 0)
        gamma = np.divide(products[:-1, -1], p, out=np.zeros_like(p), where=p > 0)
        return np.asarray((w * (Gamma @ w)).sum(axis=0) - 2 * gamma @ w)


def pair_sums(blocks: Sequence[Block], f: int, d: int, *, centred: bool, intercept: bool) -> PairSums:
    """Return a stream's sums of products of values that were seen together.

    If attributes are centred, the means of the values seen are first subtracted from them, and with an intercept that
    of the targets from the targets.
    """
    parts = [rows_by_column(block.attributes[f], block.values[f], d + 2) for block in blocks]
    n = sum(seen.shape[0] for seen, _ in parts)
    n_seen, totals = np.sum([[each.sum(axis=0) for each in part] for part in parts], axis=0)[:, : d + 1]
    mean = totals / np.maximum(n_seen, 1) * np.append(np.full(d, centred), intercept)
    P = min(PARTS, n)
    products, counts, examples = np.zeros((P, d + 1, d + 1)), np.zeros((P, d + 1, d + 1)), np.zeros(P)
    start = 0
    for seen, known in parts:
        of = (start + np.arange(seen.shape[0])) % P
        start += seen.shape[0]
        known = known - seen.multiply(np.append(mean, 0.0)[None]).tocsr()
        for part in range(P):
            rows, values = seen[of == part][:, : d + 1], known[of == part][:, : d + 1]
            counts[part] += (rows.T @ rows).toarray()
            products[part] += (values.T @ values).toarray()
            examples[part] += rows.shape[0]
    return PairSums(products, counts, examples, mean)


def regressor(solver: str, sums: PairSums) -> np.ndarray:
    """Return the regressor (d,) of a size that loses little on held-out parts, from what was paid for alone.

    From the smallest size on, sizes are tried as long as the corrected loss of held-out parts falls, and is possible:
    no loss is below 0, which is ``-mean(y^2)`` here. The least of all would be that of a large regressor by chance, as
    the loss of these is estimated badly. A single example gives 0.
    """
    everything = np.arange(len(sums.examples))
    C, _ = sums.moments(everything)
    d = len(C) - 1
    w, live = np.zeros(d), np.flatnonzero(C.diagonal()[:-1])
    if len(everything) < 2 or not C[live, -1].any():
        return w
    tried = sizes(solver, C[np.ix_(np.append(live, d), np.append(live, d))])

    def path(parts: np.ndarray) -> np.ndarray:
        C, shares = sums.moments(parts)
        W = np.zeros((d, len(tried)))
        i = live[C.diagonal()[live] > 0]
        if i.size:
            joint = np.ix_(np.append(i, d), np.append(i, d))
            W[i] = solved(solver, C[joint], shares[joint], tried)
        return W

    losses = np.mean(
        [sums.held_out(part, path(np.delete(everything, part))) for part in range(len(everything))], axis=0
    )
    last = np.flatnonzero((np.diff(losses) > 0) | (losses[1:] < -C[-1, -1]))
    return path(everything)[:, last[0] if last.size else -1]


def solved_streams(
    solver: str, rescaled: Rescaled, F: int, d: int, given: SideInformation
) -> tuple[np.ndarray, np.ndarray, list[PairSums]]:
    """Return regressors (F, d, 1), intercepts (F, 1), and the sums of each stream that they follow from."""
    W, b, kept = np.zeros((F, d, 1)), np.zeros((F, 1)), list[PairSums]()
    for f in range(F):
        sums = shown_sums(rescaled, f, d, given)
        W[f, :, 0] = regressor(solver, sums)
        b[f] = sums.mean[-1] - sums.mean[:-1] @ W[f, :, 0]
        kept.append(sums)
    return W, b, kept


def shown_sums(rescaled: Rescaled, f: int, d: int, given: SideInformation) -> PairSums:
    """Return a stream's sums, in which attributes that are left out have none."""
    sums = pair_sums(rescaled.blocks, f, d, centred=given.centred, intercept=given.intercept)
    sums.products[:, np.append(rescaled.left_out[f], False)] = 0
    return sums


def semidefinite(sums: Sequence[PairSums], f: int) -> JointMoments:
    """Return the joint moments of a stream with negative eigenvalues set to 0."""
    C, _ = sums[f].moments(np.arange(len(sums[f].examples)))
    return JointMoments(sums[f].mean, _parts(C)[0])


@dataclass(frozen=True)
class CorrectedMoments(UniformSubsetsLearner):
    """Regressors from corrected moments of uniform subsets of k attributes.

    Attributes
    ----------
    solver : {'stationary', 'ridge', 'maximum', 'weights', 'dantzig'}
        How the regressor is computed from the moments, see `SOLVERS`.
    """

    solver: str = option("what is done about indefinite moments", one_of(*SOLVERS), tried=())

    core = "corrected_moments"
    check_streams = 40
    skipped_checks: ClassVar[Mapping[str, str]] = {
        "second moments": "sums are divided by how often both were seen, which has no variance in closed form",
        "boundary": UNBOUNDED,
    }

    @property
    def norm(self) -> int:
        """That which ridge or the lasso bounds."""
        return 2 if self.solver == "ridge" else 1

    @property
    def convex(self) -> bool:
        """Whether what it minimises is convex: if not, it returns a stationary point, up to a tolerance."""
        return self.solver != "stationary"

    def solved(self, entries: Entries, accessor: Accessor, given: SideInformation) -> Outputs:
        """Solve for regressors of a size that is chosen on held-out parts of what was seen."""
        rescaled = Rescaled(entries.blocks(), accessor.d, given.scaled, accessor.stored_units())
        W, b, kept = solved_streams(self.solver, rescaled, accessor.n_streams, accessor.d, given)
        outputs = WithIntercept(W, b, selection=partial(semidefinite, kept))
        return rescaled.as_revealed(outputs if given.centred or given.intercept else W)

    @property
    def words(self) -> Sequence[str]:
        """What it sees and solves."""
        return "k attributes per example", f"moments corrected for what was not seen; {SOLVERS[self.solver]}"

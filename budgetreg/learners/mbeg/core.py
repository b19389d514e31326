"""MBEG: matrix exponentiated gradient, whose weight matrix W also decides which pairs are drawn.

Notation: the papers' rank k is n here (``n_components``); r attributes of each example are ``r/2`` pairs. All F x G
replicas take each step together; a replica is a row of the arrays. The state is ``L = log W``, never W itself, because
rounding can make eigenvalues of W negative, which have no logarithm.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from budgetreg.learners.declaration import Rngs, Settings, SideInformation
from budgetreg.learners.mbeg import MatrixGradientLearner
from budgetreg.learners.mbeg.estimates import ESTIMATES
from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.draws import BLOCK, blocks
from budgetreg.solvers.bregman import decompose, project
from budgetreg.solvers.eigenspaces import eigenspaces, leading


def fit(
    learner: MatrixGradientLearner,
    accessor: Accessor,
    settings: Settings,
    checkpoints: Sequence[int],
    rngs: Rngs,
    given: SideInformation,
) -> Iterator[tuple[int, np.ndarray]]:
    """Run all settings along all streams of the accessor, one pass.

    W starts at ``(n/d) I``. Each example's ``r/2`` pairs (s, q) are drawn with the probabilities

        p_sq = (1 - alpha) (W_ss + W_qq) / (2 d n) + alpha / d^2;

    a pair of an attribute with itself costs one attribute. C^ is the mean of the pairs' estimates of ``x x'``, and W
    becomes the projection of ``exp(log W + eta C^)`` onto the weight matrices. If all estimates are 0, W does not
    change and nothing is computed. With missing values, each entry of C^ is divided by the share of examples that have
    both attributes. A changed replica costs one eigendecomposition, O(d^3); memory is O(d^2) per replica.

    Parameters
    ----------
    learner : MatrixGradientLearner
    accessor, settings, checkpoints, rngs, given
        As for `budgetreg.learners.declaration.Learner.fit`; the setting is ``eta``.

    Yields
    ------
    checkpoint : int
    V : ndarray of float, shape (F, G, d, n)
        Output subspaces, as orthonormal columns.

    References
    ----------
    A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
    Algorithm 2. 'singles' and 'top' are ours.
    """
    F, G, d, n = accessor.n_streams, accessor.n_settings, accessor.d, learner.n_components
    pairs = BLOCK, given.k // 2
    step_size = settings["eta"]
    uniform_share = np.minimum(step_size * d**2, 0.5) if learner.alpha == "theory" else np.full(G, float(learner.alpha))
    eta, uniform_share = np.tile(step_size, F), np.tile(uniform_share, F)
    estimate = ESTIMATES[learner.update]
    state = Weights(F * G, d, n, uniform_share)
    for start, stop in blocks(0, checkpoints[-1]):
        # One more number per example chooses the projection, so that checkpoints do not change later draws.
        draws = [(rng.integers(0, d, pairs), rng.random(pairs), rng.random(BLOCK)) for rng in rngs]
        second, uniforms, choices = (np.stack(part).repeat(G, axis=0) for part in zip(*draws, strict=True))
        accessor.open(start, stop)
        for step in range(start + 1, stop + 1):
            position = step - 1 - start
            s, q = state.draw(uniforms[:, position]), second[:, position]
            x_s, x_q = _reveal(accessor, position, s, q)
            nonzero = x_s * x_q != 0 if learner.update == "pairs" else (x_s != 0) | (x_q != 0)
            moved = np.flatnonzero(nonzero.any(axis=1))
            if moved.size:
                w = state.diagonal[moved] / n
                C = estimate(s[moved], q[moved], x_s[moved], x_q[moved], w, uniform_share[moved])
                if not accessor.complete:
                    C /= accessor.together((moved // G)[:, None, None], *np.ogrid[:d, :d])
                state.move(moved, eta[moved, None, None] * C, step)
            if step in checkpoints:
                averages = zip(state.average(step), choices[:, position], strict=True)
                V = [_subspace(W, n, choice if learner.output == "decompose" else None) for W, choice in averages]
                yield step, np.stack(V).reshape(F, G, d, n)


def _reveal(accessor: Accessor, position: int, s: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of pairs (R, r/2); a pair of an attribute with itself is charged once."""
    R, n = s.shape
    twice = s == q
    attributes, drawn = np.hstack([s, q]), np.hstack([np.ones_like(twice), ~twice])
    shape = accessor.n_streams, accessor.n_settings, 2 * n
    x = accessor.reveal_some(position, attributes.reshape(shape), drawn.reshape(shape)).reshape(R, 2 * n)
    return x[:, :n], np.where(twice, x[:, :n], x[:, n:])


class Weights:
    """The weight matrices W of R replicas, stored as L = log W, and the sums of their iterates.

    Parameters
    ----------
    R, d, n : int
        Numbers of replicas and attributes, and the trace of each W.
    alpha : ndarray of float, shape (R,)
        Shares of uniform pairs.

    Attributes
    ----------
    W : ndarray of float, shape (R, d, d)
        The weight matrices, ``(n/d) I`` at first.
    """

    def __init__(self, R: int, d: int, n: int, alpha: np.ndarray) -> None:
        self._n, self._alpha = n, alpha[:, None]
        self._L = np.tile(np.log(n / d) * np.eye(d), (R, 1, 1))
        self.W = np.tile(n / d * np.eye(d), (R, 1, 1))
        self._sum = np.zeros((R, d, d))
        self._since = np.zeros(R, dtype=np.int64)
        self._cumulative = np.empty((R, d))
        self._prepare(np.arange(R))

    @property
    def diagonal(self) -> np.ndarray:
        """``W_ii``, shape (R, d)."""
        return self.W.diagonal(axis1=1, axis2=2)

    def draw(self, uniforms: np.ndarray) -> np.ndarray:
        """Draw one attribute of each pair, (R, r/2), from as many uniforms; the other one is uniform.

        The estimates are symmetric in s and q, so only the half of the mixture with ``W_ss`` needs to be drawn.
        """
        thresholds = uniforms * self._cumulative[:, -1:]
        attributes = (self._cumulative[:, None, :] <= thresholds[:, :, None]).sum(axis=2)
        return np.minimum(attributes, self._cumulative.shape[1] - 1)

    def move(self, rows: np.ndarray, change: np.ndarray, step: int) -> None:
        """Move replicas, at a step, to the projection of ``exp(L + change)``, change (len(rows), d, d)."""
        self._sum[rows] += (step - self._since[rows])[:, None, None] * self.W[rows]
        self._since[rows] = step
        L = self._L[rows] + change
        theta, V = np.linalg.eigh(L)
        log_c = project(theta, self._n)[:, None]
        theta += log_c
        # At most n - 1 eigenvalues exceed 1. Only their excess is subtracted from L, which saves a matrix product.
        d = len(V[0])
        capped = V[:, :, d - self._n + 1 :]
        excess = np.maximum(theta[:, d - self._n + 1 :], 0.0)
        L -= (capped * excess[:, None, :]) @ capped.transpose(0, 2, 1)
        diagonal = np.arange(d)
        L[:, diagonal, diagonal] += log_c
        self._L[rows] = L
        self.W[rows] = (V * np.exp(np.minimum(theta, 0.0))[:, None, :]) @ V.transpose(0, 2, 1)
        self._prepare(rows)

    def average(self, step: int) -> np.ndarray:
        """Return the mean of the weight matrices at the beginnings of the first `step` steps, shape (R, d, d)."""
        return (self._sum + (step - self._since)[:, None, None] * self.W) / step

    def _prepare(self, rows: np.ndarray) -> None:
        """Compute the cumulative draw probabilities of some replicas."""
        alpha = self._alpha[rows]
        probabilities = (1 - alpha) * self.diagonal[rows] / self._n + alpha / self.W.shape[1]
        self._cumulative[rows] = np.cumsum(probabilities, axis=1)


def _subspace(W: np.ndarray, n: int, choice: float | None) -> np.ndarray:
    """Return orthonormal columns (d, n): the leading ones of W, or those that a number in [0, 1) chooses."""
    if choice is None:
        return leading(W, n)
    eigenvalues, V = eigenspaces(W)
    weights, members = decompose(eigenvalues, n)
    drawn = int(np.searchsorted(np.cumsum(weights), choice, side="right"))
    return V[:, members[min(drawn, len(members) - 1)]]

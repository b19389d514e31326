"""MBEG: matrix exponentiated gradient on weight matrices, which say which pairs of attributes are worth their price.

Notation: the papers' rank k is n here (``n_components``), r attributes of each example are ``r/2`` pairs.  All F x G
replicas take each step together; a replica is a row of the arrays.  The state is ``L = log W``, never W itself: the
logarithm of eigenvalues that rounding has made negative does not exist.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from budgetreg.metering.accessor import Accessor
from budgetreg.sampling.draws import BLOCK
from budgetreg.solvers.bregman import decompose, project
from budgetreg.solvers.eigenspaces import eigenspaces, leading


def fit(
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Sequence[np.random.Generator],
    *,
    k: int,
    n_components: int,
    update: str,
    alpha: float | str,
    output: str,
) -> Iterator[tuple[int, np.ndarray]]:
    """Run all settings along all streams of the accessor, one pass.

    From ``W = (n/d) I`` on, each example's ``r/2`` pairs (s, q) are drawn with the probabilities

        p_sq = (1 - alpha) (W_ss + W_qq) / (2 d n) + alpha / d^2;

    a pair of an attribute with itself costs one attribute.  The mean of the pairs' estimates of ``x x'`` is C^, and W
    becomes the projection of ``exp(log W + eta C^)`` onto the weight matrices.  Where every estimate is 0, W stays as
    it is, and nothing is computed.  Where values are missing, each entry of C^ is divided by the share of examples that
    have both attributes.  A changed replica costs one eigendecomposition, O(d^3); memory is O(d^2) per
    replica.

    Parameters
    ----------
    accessor, settings, checkpoints, rngs
        As for `budgetreg.learners.declaration.Fit`: the setting is ``eta``.
    k : int
        Attributes r of an example that may be seen, even.
    n_components : int
        Dimension n of the subspace, from 1 to d.
    update : {'pairs', 'singles'}
        What estimates the diagonal: pairs of an attribute with itself (MBEG), or every attribute seen (MBEG+), see
        `from_pairs` and `from_singles`.
    alpha : float or 'theory'
        Share of uniform pairs, in [0, 1]; theory's is ``eta d^2``, here at most 1/2.
    output : {'decompose', 'top'}
        What becomes of the average of the weight matrices: one of the projections that it is a mean of, drawn with
        its weight; or the one of its n leading eigenvectors.

    Yields
    ------
    checkpoint : int
    V : ndarray of float, shape (F, G, d, n)
        Output subspaces, as orthonormal columns.

    References
    ----------
    A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
    Algorithm 2.  That the diagonal is estimated from single attributes, and the leading eigenvectors, are not theirs.
    """
    F, G, d, n = accessor.n_streams, accessor.n_settings, accessor.d, n_components
    step_size = settings["eta"]
    mixed = np.minimum(step_size * d**2, 0.5) if alpha == "theory" else np.full(G, float(alpha))
    eta, mixed = np.tile(step_size, F), np.tile(mixed, F)
    estimate = ESTIMATES[update]
    state = Weights(F * G, d, n, mixed)
    for start in range(0, checkpoints[-1], BLOCK):
        stop = min(start + BLOCK, checkpoints[-1])
        # One number more for each example chooses a projection there, so that no checkpoint moves the draws after it.
        draws = [(rng.integers(0, d, (BLOCK, k // 2)), rng.random((BLOCK, k // 2)), rng.random(BLOCK)) for rng in rngs]
        partners, uniforms, choices = (np.stack(part).repeat(G, axis=0) for part in zip(*draws, strict=True))
        accessor.open(start, stop)
        for step in range(start + 1, stop + 1):
            position = step - 1 - start
            s, q = state.draw(uniforms[:, position]), partners[:, position]
            x_s, x_q = _reveal(accessor, position, s, q)
            counts = x_s * x_q != 0 if update == "pairs" else (x_s != 0) | (x_q != 0)
            moved = np.flatnonzero(counts.any(axis=1))
            if moved.size:
                C = estimate(s[moved], q[moved], x_s[moved], x_q[moved], state.diagonal[moved] / n, mixed[moved])
                if not accessor.complete:
                    C /= accessor.together((moved // G)[:, None, None], *np.ogrid[:d, :d])
                state.move(moved, eta[moved, None, None] * C, step)
            if step in checkpoints:
                averages = zip(state.average(step), choices[:, position], strict=True)
                V = [_subspace(W, n, choice if output == "decompose" else None) for W, choice in averages]
                yield step, np.stack(V).reshape(F, G, d, n)


def from_pairs(
    s: np.ndarray, q: np.ndarray, x_s: np.ndarray, x_q: np.ndarray, w: np.ndarray, alpha: np.ndarray
) -> np.ndarray:
    """Estimate ``x x'`` by the mean of ``x_s x_q (E_sq + E_qs) / (2 p_sq)``, which is ``x_s^2 / p_ss`` at (s, s).

    Parameters
    ----------
    s, q : ndarray of int, shape (R, r/2)
        Pairs, drawn with probabilities ``p_sq = (1 - alpha) (w_s + w_q) / 2d + alpha / d^2``.
    x_s, x_q : ndarray of float, shape (R, r/2)
        Their values.
    w : ndarray of float, shape (R, d)
        ``W_ii / n``, numbers that sum to 1.
    alpha : ndarray of float, shape (R,)
        Share of uniform pairs.

    Returns
    -------
    ndarray of float, shape (R, d, d)

    References
    ----------
    Gonen et al. 2016, Equations 7 and 8.
    """
    return _scatter(s, q, x_s * x_q / (2 * _probability(s, q, w, alpha)), w)


def from_singles(
    s: np.ndarray, q: np.ndarray, x_s: np.ndarray, x_q: np.ndarray, w: np.ndarray, alpha: np.ndarray
) -> np.ndarray:
    """Estimate ``x x'`` as `from_pairs` does, but the diagonal by ``(x_s^2/a_s E_ss + x_q^2/a_q E_qq) / 2``.

    ``a_s``, the sum of p_sq over q, is the probability that either attribute of a pair is s: pairs of an attribute
    with itself are rare, single ones are not.  Parameters and return value are those of `from_pairs`.
    """
    d = w.shape[1]
    off_diagonal = np.where(s == q, 0.0, x_s * x_q / (2 * _probability(s, q, w, alpha)))
    C = _scatter(s, q, off_diagonal, w)
    for i, x in ((s, x_s), (q, x_q)):
        own = alpha[:, None]
        a = (1 - own) * (np.take_along_axis(w, i, axis=1) + 1 / d) / 2 + own / d
        C += _scatter(i, i, x**2 / (4 * a), w)
    return C


Estimate = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]

ESTIMATES: Mapping[str, Estimate] = {"pairs": from_pairs, "singles": from_singles}


def _probability(s: np.ndarray, q: np.ndarray, w: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    d, own = w.shape[1], alpha[:, None]
    return (1 - own) * (np.take_along_axis(w, s, axis=1) + np.take_along_axis(w, q, axis=1)) / (2 * d) + own / d**2


def _scatter(s: np.ndarray, q: np.ndarray, terms: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the means over the pairs of ``terms (E_sq + E_qs)``, shape (R, d, d)."""
    C = np.zeros((*w.shape, w.shape[1]))
    row = np.arange(len(w))[:, None]
    np.add.at(C, (row, s, q), terms / s.shape[1])
    np.add.at(C, (row, q, s), terms / s.shape[1])
    return C


def _reveal(accessor: Accessor, position: int, s: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of pairs (R, r/2); what a pair has twice is paid for once."""
    R, n = s.shape
    twice = s == q
    attributes, drawn = np.hstack([s, q]), np.hstack([np.ones_like(twice), ~twice])
    shape = accessor.n_streams, accessor.n_settings, 2 * n
    x = accessor.reveal_some(position, attributes.reshape(shape), drawn.reshape(shape)).reshape(R, 2 * n)
    return x[:, :n], np.where(twice, x[:, :n], x[:, n:])


class Weights:
    """The weight matrices W of R replicas, as L = log W, and the sums of those held so far.

    Parameters
    ----------
    R, d, n : int
        Replicas, attributes, and the trace of each W.
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
        self._below = np.empty((R, d))
        self._prepare(np.arange(R))

    @property
    def diagonal(self) -> np.ndarray:
        """``W_ii``, shape (R, d)."""
        return self.W.diagonal(axis1=1, axis2=2)

    def draw(self, uniforms: np.ndarray) -> np.ndarray:
        """Draw one attribute of each pair, (R, r/2), from as many numbers; the other one is uniform.

        No estimate knows which of a pair came first: one half of the mixture, that with ``W_ss``, is as good as both.
        """
        aim = uniforms * self._below[:, -1:]
        found = (self._below[:, None, :] <= aim[:, :, None]).sum(axis=2)
        return np.minimum(found, self._below.shape[1] - 1)

    def move(self, rows: np.ndarray, change: np.ndarray, step: int) -> None:
        """Let replicas hold the projection of ``exp(L + change)`` after so many steps; change is (len(rows), d, d)."""
        self._sum[rows] += (step - self._since[rows])[:, None, None] * self.W[rows]
        self._since[rows] = step
        L = self._L[rows] + change
        theta, V = np.linalg.eigh(L)
        log_c = project(theta, self._n)[:, None]
        theta += log_c
        # At most n - 1 eigenvalues pass 1. What they have too much is taken off L; the others need no new product.
        capped = V[:, :, len(V[0]) - self._n + 1 :]
        excess = np.maximum(theta[:, len(V[0]) - self._n + 1 :], 0.0)
        L -= (capped * excess[:, None, :]) @ capped.transpose(0, 2, 1)
        diagonal = np.arange(len(V[0]))
        L[:, diagonal, diagonal] += log_c
        self._L[rows] = L
        self.W[rows] = (V * np.exp(np.minimum(theta, 0.0))[:, None, :]) @ V.transpose(0, 2, 1)
        self._prepare(rows)

    def average(self, step: int) -> np.ndarray:
        """Return the means of the weight matrices that the first so many steps began with, shape (R, d, d)."""
        return (self._sum + (step - self._since)[:, None, None] * self.W) / step

    def _prepare(self, rows: np.ndarray) -> None:
        own = self._alpha[rows]
        self._below[rows] = np.cumsum((1 - own) * self.diagonal[rows] / self._n + own / self.W.shape[1], axis=1)


def _subspace(W: np.ndarray, n: int, choice: float | None) -> np.ndarray:
    """Return orthonormal columns (d, n): the leading ones of W, or those that a number in [0, 1) chooses."""
    if choice is None:
        return leading(W, n)
    eigenvalues, V = eigenspaces(W)
    weights, members = decompose(eigenvalues, n)
    drawn = int(np.searchsorted(np.cumsum(weights), choice, side="right"))
    return V[:, members[min(drawn, len(members) - 1)]]

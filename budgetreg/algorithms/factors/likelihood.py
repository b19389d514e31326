"""The most likely factor model of what was revealed, by expectation and maximisation (EM): at once, or as a stream.

The model is that of `budgetreg.algorithms.factors.posterior` without means, which the loadings may represent:
``x = W z + e``, ``z ~ N(0, I)``, ``e_i ~ N(0, psi_i)``. EM never decreases the log-likelihood of the revealed values
less the penalty

    sum_i [(ridge |W_i|^2 + pseudo noise) / psi_i + pseudo log psi_i] / 2,

which shrinks the loadings and adds pseudo-values of pure noise to each attribute.

References
----------
D. B. Rubin, D. T. Thayer. EM algorithms for ML factor analysis. Psychometrika 47, 1982; with values missing at random,
D. B. Rubin. Inference and missing data. Biometrika 63, 1976.
O. Cappé, E. Moulines. On-line expectation-maximization algorithm for latent data models. J. R. Stat. Soc. B 71, 2009;
blocks of examples: P. Liang, D. Klein. Online EM for unsupervised models. NAACL 2009.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from budgetreg.algorithms.eigenspaces import leading, leading_of_sum
from budgetreg.revealed.collection import rows_by_column

if TYPE_CHECKING:
    from budgetreg.algorithms.factors import FactorAnalysis

_EXAMPLES = 4096
"""Examples in one E-step computation, few enough for the processor's cache."""


@dataclass(frozen=True)
class FactorModel:
    """Loadings and noise of a factor model.

    Attributes
    ----------
    W : ndarray of float, shape (d, q)
        Loadings.
    psi : ndarray of float, shape (d,)
        Noise variances, above 0.
    """

    W: np.ndarray
    psi: np.ndarray

    @property
    def second_moment(self) -> np.ndarray:
        """Return ``W W' + diag(psi)``, shape (d, d)."""
        C = self.W @ self.W.T
        C[np.diag_indices_from(C)] += self.psi
        return C


@dataclass(frozen=True)
class Penalty:
    """Constants of the penalty; all 0 gives the plain likelihood.

    Attributes
    ----------
    ridge : float
        Ridge penalty of the loadings, in examples.
    pseudo : float
        Number of pseudo-values of each attribute.
    noise : float
        Square of each pseudo-value, which is all noise.
    least : float
        Lower bound of the noise variances.
    shared : bool
        Whether all attributes share one noise variance, the mean of theirs.
    """

    ridge: float = 0.0
    pseudo: float = 0.0
    noise: float = 0.0
    least: float = 0.0
    shared: bool = False

    def in_units(self, square: float) -> Penalty:
        """Return the penalty of which `noise` and `least` were in units of a mean square."""
        return replace(self, noise=self.noise * square, least=self.least * square)


class RevealedEntries:
    """Revealed values of examples, with their counts and sums of squares by attribute.

    Parameters
    ----------
    attributes : ndarray of int, shape (T, n)
        Distinct attributes of each example; d for a missing value.
    values : ndarray of float, shape (T, n)
        Values; 0 if missing.
    d : int
        Number of attributes.
    """

    def __init__(self, attributes: np.ndarray, values: np.ndarray, d: int) -> None:
        self.d = d
        self.counts = np.bincount(attributes.reshape(-1), minlength=d + 1)[:d]
        self.squares = np.bincount(attributes.reshape(-1), np.square(values).reshape(-1), minlength=d + 1)[:d]
        self.attributes, self.values = attributes, values

    @property
    def mean_squares(self) -> np.ndarray:
        """Mean squares of the attributes, shape (d,); 0 for attributes never seen."""
        return np.asarray(self.squares / np.maximum(self.counts, 1))

    def parts(self) -> Iterator[tuple[np.ndarray, np.ndarray, csr_array, csr_array]]:
        """Yield, chunk by chunk, attributes and values, and as matrices (d, T) which are seen and the values."""
        for begin in range(0, len(self.values), _EXAMPLES):
            i, x = self.attributes[begin : begin + _EXAMPLES], self.values[begin : begin + _EXAMPLES]
            seen, known = (rows.T.tocsr()[: self.d] for rows in rows_by_column(i, x, self.d + 1))
            yield i, x, seen, known


def ascend(model: FactorModel, revealed: RevealedEntries, penalty: Penalty) -> FactorModel:
    """Return a model whose penalised log-likelihood is at least that of a given one, by one step of EM.

    Parameters
    ----------
    model : FactorModel
    revealed : RevealedEntries
        At least one example.
    penalty : Penalty
    """
    d, q = model.W.shape
    upper = np.triu_indices(q)
    packed, b = np.zeros((d, len(upper[0]))), np.zeros((d, q))
    loadings, noise = np.append(model.W, np.zeros((1, q)), axis=0), np.append(model.psi, 1.0)
    for attributes, values, seen, known in revealed.parts():
        z, V = factor_posterior(loadings[attributes], noise[attributes], values)
        packed += seen @ (V[:, upper[0], upper[1]] + z[:, upper[0]] * z[:, upper[1]])
        b += known @ z
    A = np.empty((d, q, q))
    A[:, upper[0], upper[1]] = A[:, upper[1], upper[0]] = packed
    A += penalty.ridge * np.eye(q)
    never = revealed.counts == 0
    A[never] = np.eye(q)
    W = np.linalg.solve(A, b[:, :, None])[..., 0]
    residual = revealed.squares - (W * b).sum(axis=1) + penalty.pseudo * penalty.noise
    counts = revealed.counts + penalty.pseudo
    if penalty.shared:
        residual, counts = (np.full(d, sums[~never].sum()) for sums in (residual, counts))
    psi = np.maximum(residual / np.maximum(counts, 1), penalty.least)
    psi[never] = model.psi[never]
    return FactorModel(W, psi)


def factor_posterior(W: np.ndarray, psi: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior of the factors of examples given their revealed values.

    Parameters
    ----------
    W, psi : ndarray of float, shape (T, n, q) and (T, n)
        Loadings and noise variances of the attributes seen.
    x : ndarray of float, shape (T, n)
        Their values.

    Returns
    -------
    z : ndarray of float, shape (T, q)
        Means.
    V : ndarray of float, shape (T, q, q)
        Covariances.
    """
    n, q = W.shape[1:]
    transposed = W.swapaxes(1, 2)
    if n < q:  # the matrix over attributes is the smaller one to invert
        inverse = np.linalg.inv(W @ transposed + psi[:, :, None] * np.eye(n))
        u = (inverse @ x[:, :, None])[..., 0]
        return (transposed @ u[:, :, None])[..., 0], np.eye(q) - transposed @ inverse @ W
    scaled = transposed / psi[:, None, :]
    V = np.linalg.inv(scaled @ W + np.eye(q))
    h = (scaled @ x[:, :, None])[..., 0]
    return (V @ h[:, :, None])[..., 0], V


# The estimate of a second moment: a factor model for rare pairs, mean products for frequent ones.
#
# The weight of the model is chosen by the criterion of the learner: how much of held-out examples the subspace keeps.
# The error of a reconstruction would instead depend on all eigenvectors, also on those that are not wanted.

_MIN_STEPS, _MAX_STEPS, _MAX_VALUES = 10, 40, 40_000_000
"""Least and most steps of EM, and the values that all steps may read: with more examples, fewer steps are needed. Every
checkpoint starts EM from the mean products, which is faster than from the model of fewer examples."""

_PARTS, _MAX_FOLDS, _MAX_FOLD_VALUES = 20, 5, 10_000_000
"""A held-out part is one twentieth of the examples. At most five parts are held out in turn, fewer if their EM steps
would read more values than this, but at least one. With fewer examples than parts the mean products are used alone."""

_TRUSTS = (1.0, 10.0, 100.0, 1000.0, np.inf)
"""Weights of the model that are tried, in observations of a pair."""

_TIE = 1e-9
"""Relative difference up to which two trusts are tied, because of rounding; the larger trust wins."""

_PENALTY = Penalty(ridge=10.0, pseudo=5.0, noise=0.5, least=0.01)
"""Penalty of the model of all that was revealed; `noise` and `least` in units of the attributes' mean square. While
attributes have fewer values than pseudo-values, the penalty dominates the model: the mean products are used alone."""


def estimate(learner: FactorAnalysis, revealed: RevealedEntries) -> np.ndarray:
    """Return the estimated second moment (d, d) of the examples of a stream, with the options of the learner."""
    d, n, kappa = revealed.d, learner.n_components, learner.kappa
    attributes, values = revealed.attributes, revealed.values
    if not revealed.squares.any():
        return np.zeros((d, d))
    square = float(revealed.mean_squares[revealed.counts > 0].mean())
    penalty = replace(_PENALTY.in_units(square), shared=learner.noise == "shared")
    steps = min(max(_MIN_STEPS, _MAX_VALUES // values.size), _MAX_STEPS)

    def fitted(revealed: RevealedEntries, C: np.ndarray, N: np.ndarray) -> np.ndarray:
        model = _initial_model(C, N, min(learner.n_factors or 2 * n, d), penalty.least)
        for _ in range(steps):
            model = ascend(model, revealed, penalty)
        return model.second_moment

    C, N = products(revealed)
    if kappa == "auto" and (len(values) < _PARTS or revealed.counts.mean() < penalty.pseudo):
        return C / np.maximum(N, 1)
    if kappa != "auto":
        return mixed(fitted(revealed, C, N), C, N, np.inf if kappa == "model" else float(kappa))
    folds = min(max(1, _MAX_FOLD_VALUES // (steps * values.size)), _MAX_FOLDS)
    F, scores = np.zeros((d, d)), np.zeros(len(_TRUSTS))
    for fold in range(folds):
        held = np.arange(len(values)) % _PARTS == _PARTS - 1 - fold
        C_held, N_held = products(RevealedEntries(attributes[held], values[held], d))
        C_rest, N_rest = C - C_held, N - N_held
        F_rest = fitted(RevealedEntries(attributes[~held], values[~held], d), C_rest, N_rest)
        moments = (mixed(F_rest, C_rest, N_rest, trust) for trust in _TRUSTS)
        scores += [kept(leading(M, n), F_rest, C_held, N_held, N) for M in moments]
        F += F_rest / folds
    tied = scores >= scores.max() - _TIE * np.abs(scores).max()
    return mixed(F, C, N, max(np.array(_TRUSTS)[tied]))


def products(revealed: RevealedEntries) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of products of values seen together, and their numbers, both (d, d)."""
    C, N = np.zeros((revealed.d, revealed.d)), np.zeros((revealed.d, revealed.d))
    for _, _, seen, known in revealed.parts():
        C += (known @ known.T).toarray()
        N += (seen @ seen.T).toarray()
    return C, N


def mixed(F: np.ndarray, C: np.ndarray, N: np.ndarray, kappa: float) -> np.ndarray:
    """Return ``(C + kappa F) / (N + kappa)`` entrywise, between the model and the mean products."""
    return F if np.isinf(kappa) else (C + kappa * F) / (N + kappa)


def kept(V: np.ndarray, F: np.ndarray, C_held: np.ndarray, N_held: np.ndarray, N: np.ndarray) -> float:
    """Estimate how much of the second moment a subspace keeps, ``tr V' E[x x'] V``, from a held-out part.

    The value for the model is corrected by the products of the part, each divided by the expected number of its pair
    there. The estimate is unbiased over the pairs seen at all, for any model, and has less variance than without one.

    Parameters
    ----------
    V : ndarray of float, shape (d, n)
        Orthonormal columns, independent of the part, as F must be.
    F : ndarray of float, shape (d, d)
        Second moment of the model.
    C_held, N_held : ndarray of float, shape (d, d)
        Sums of products in the part, and their numbers.
    N : ndarray of float, shape (d, d)
        Numbers of products in all examples, of which the part is one twentieth.
    """
    correction = _PARTS * (C_held - N_held * F) / np.maximum(N, 1)
    return float(np.vdot(V, (F + correction) @ V))


def _initial_model(C: np.ndarray, N: np.ndarray, q: int, least: float) -> FactorModel:
    """Return the model of the mean products' leading eigenvectors, with the rest as noise."""
    means = C / np.maximum(N, 1)
    V = leading(means, q)
    values = np.maximum((V * (means @ V)).sum(axis=0), 0)
    W = V * np.sqrt(values)
    noise = (np.trace(means) - np.square(W).sum()) / len(C)
    return FactorModel(W, np.full(len(C), max(noise, least)))


# Stepwise EM for the same model and penalty, which learns from each block of examples once and stores none. The M-step
# for attribute i needs four sums over the examples that show it,
#
#     A_i = sum E z z',    b_i = sum x_i E z,    c_i = sum 1,    s_i = sum x_i^2,
#
# and only these are stored. A block of examples is added to the discounted sums of the blocks before:
# ``S_t = (1 - gamma_t) S_{t-1} + gamma_t (sum of block t)``, ``gamma_t = (t + 1)^-alpha``. The stored value is
# ``S_t / gamma_t``, in which the newest block has weight 1, the unit of the penalty. Then the rows of the loadings move
# by one Gauss-Seidel sweep over ``(A_i + ridge I) W_i = b_i``, which increases the likelihood as the exact solution
# does, in q^2 operations instead of q^3. Fast updates are noisy. So the output is solved from a second set of sums,
# over the same expectations, in which block t has a weight proportional to ``t + 1``: a Polyak-Ruppert average.

EM_BLOCK = 32
"""Examples of a block. With 16, results are equal at twice the time; with 64, the early results are worse."""

ALPHA = 0.6
"""Exponent of the discount of earlier blocks."""

STREAM_PENALTY = Penalty(ridge=3.0, pseudo=5.0, noise=0.5, least=0.01)
"""Penalty of the model of a stream; `noise` and `least` in units of the attributes' mean square."""

_INITIAL_SHARE = 0.5
"""Share of the mean square that the initial random loadings explain."""

_CHUNK = 1024
"""Attributes whose rows are solved for in one call."""


class StepwiseEM:
    """A factor model that learns from one block of examples after another, stored in O(d q^2) numbers.

    A block of T examples with n values each takes ``O(T (n q^2 + min(n, q)^3))`` operations, independent of d: the sums
    of an attribute are discounted only when a block shows it again.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws the initial loadings.
    d, q : int
        Numbers of attributes and factors.
    """

    def __init__(self, rng: np.random.Generator, d: int, q: int) -> None:
        self._q = q
        # Missing values belong to one more row than there are attributes, whose loadings stay 0.
        self._W, self._psi = np.zeros((d + 1, q)), np.ones(d + 1)
        self._W[:d] = rng.standard_normal((d, q))
        self._upper = np.triu_indices(q)
        packed = len(self._upper[0])
        self._square = np.empty((q, q), dtype=np.intp)
        self._square[self._upper] = self._square.T[self._upper] = np.arange(packed)
        self._b = slice(packed, packed + q)
        # The discounted and the average sums: for each attribute the triangle of A_i, b_i, c_i and s_i.
        self._sums = np.zeros((2, d, packed + q + 2))
        # Logarithms of the first block's discount now, and when each attribute was last shown.
        self._discount, self._discount_then = np.zeros(2), np.zeros((2, d))
        self._blocks = 0
        self._unit = 0.0
        self._unfinished: list[tuple[np.ndarray, np.ndarray]] = []

    def see(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Append examples of the current block of `EM_BLOCK`, and learn from it once it is full; as for `learn`."""
        self._unfinished.append((attributes, values))
        if sum(len(x) for _, x in self._unfinished) == EM_BLOCK:
            self._finish()

    def subspace(self, n: int) -> np.ndarray:
        """Return the leading subspace (d, n) of all examples, those of an unfinished block included."""
        em = self
        if self._unfinished:
            em = deepcopy(self)
            em._finish()
        model = em.model()
        return leading_of_sum(model.W, model.psi, n)

    def _finish(self) -> None:
        self.learn(*(np.concatenate(parts) for parts in zip(*self._unfinished, strict=True)))
        self._unfinished = []

    def learn(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Learn from a block of examples; blocks of nothing but zeros are skipped until a first other block.

        Parameters
        ----------
        attributes : ndarray of int, shape (T, n)
            Distinct attributes of each example; d for a missing value.
        values : ndarray of float, shape (T, n)
            Values; 0 if missing.
        """
        if not self._unit and not values.any():
            return
        if not self._unit:
            self._set_unit(attributes, values)
        self._blocks += 1
        t, alpha = self._blocks, ALPHA
        self._discount += np.log([(1 - (t + 1) ** -alpha) * ((t + 1) / t) ** alpha, t / (t + 1)])
        shown = self._add(attributes, values)
        self._sweep(shown)
        if t.bit_count() == 1:  # at each doubling only, because it takes O(d)
            self._unit = float(self.mean_squares()[self._sums[1, :, -2] > 0].mean())

    def mean_squares(self) -> np.ndarray:
        """Return the attributes' mean squares so far, shape (d,); 0 for attributes never shown."""
        counts, squares = self._sums[1, :, -2:].T
        return np.asarray(squares / np.where(counts > 0, counts, 1.0))

    def model(self) -> FactorModel:
        """Return the model that maximises the likelihood given the average sums."""
        sums = self._sums[1] * np.exp(self._discount[1] - self._discount_then[1])[:, None]
        W = np.empty((len(sums), self._q))
        psi = np.empty(len(sums))
        for begin in range(0, len(sums), _CHUNK):
            part = slice(begin, begin + _CHUNK)
            A, b = self._normal_equations(sums[part])
            W[part] = np.linalg.solve(A, b[:, :, None])[..., 0]
            psi[part] = self._noise(sums[part], W[part], A, b)
        return FactorModel(W, psi)

    def _set_unit(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Scale the initial model to the mean square of the first block."""
        available = np.count_nonzero(attributes < len(self._W) - 1)
        self._unit = float(np.square(values).sum() / available)
        self._W *= np.sqrt(_INITIAL_SHARE * self._unit / self._q)
        self._psi[:-1] = (1 - _INITIAL_SHARE) * self._unit

    def _add(self, attributes: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Add a block to the sums of the attributes that it shows, and return these attributes."""
        shown, column = np.unique(attributes, return_inverse=True)
        shown = shown[shown < len(self._W) - 1]
        column = column.reshape(values.shape)
        seen, known = (rows.T.tocsr()[: len(shown)] for rows in rows_by_column(column, values, column.max() + 1))
        z, V = factor_posterior(self._W[attributes], self._psi[attributes], values)
        i, j = self._upper
        new = np.empty((len(shown), self._sums.shape[2]))
        new[:, : len(i)] = seen @ (V[:, i, j] + z[:, i] * z[:, j])
        new[:, self._b] = known @ z
        new[:, -2] = np.bincount(column.reshape(-1))[: len(shown)]
        new[:, -1] = np.bincount(column.reshape(-1), np.square(values).reshape(-1))[: len(shown)]
        for sums, discount, then in zip(self._sums, self._discount, self._discount_then, strict=True):
            sums[shown] = sums[shown] * np.exp(discount - then[shown])[:, None] + new
            then[shown] = discount
        return shown

    def _sweep(self, shown: np.ndarray) -> None:
        """Move the rows of some attributes by one Gauss-Seidel sweep, and fit their noise."""
        sums, W = self._sums[0, shown], self._W[shown]
        A, b = self._normal_equations(sums)
        for j in range(self._q):
            W[:, j] += (b[:, j] - np.einsum("ij,ij->i", A[:, j], W)) / A[:, j, j]
        self._W[shown] = W
        self._psi[shown] = self._noise(sums, W, A, b)

    def _normal_equations(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``A_i + ridge I``, shape (n, q, q), and ``b_i``, shape (n, q)."""
        A = sums[:, self._square]
        A[:, range(self._q), range(self._q)] += STREAM_PENALTY.ridge
        return A, sums[:, self._b]

    def _noise(self, sums: np.ndarray, W: np.ndarray, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the most likely noise variances (n,) of attributes, given their rows W."""
        residual = sums[:, -1] + (W * ((A @ W[:, :, None])[..., 0] - 2 * b)).sum(axis=1)
        penalty = STREAM_PENALTY.in_units(self._unit)
        return np.maximum((residual + penalty.pseudo * penalty.noise) / (sums[:, -2] + penalty.pseudo), penalty.least)

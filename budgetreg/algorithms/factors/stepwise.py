"""Stepwise EM for a factor model, which learns from each block of examples once and stores none.

The model and its penalty are those of `budgetreg.algorithms.factors.likelihood`: ``x_i = W_i z + e_i``,
``z ~ N(0, I)``, ``e_i ~ N(0, psi_i)``. The M-step for attribute i needs four sums over the examples that show it,

    A_i = sum E z z',    b_i = sum x_i E z,    c_i = sum 1,    s_i = sum x_i^2,

and only these are stored. A block of examples is added to the discounted sums of the blocks before:
``S_t = (1 - gamma_t) S_{t-1} + gamma_t (sum of block t)``, ``gamma_t = (t + 1)^-alpha``. The stored value is
``S_t / gamma_t``, in which the newest block has weight 1, the unit of the penalty. Then the rows of the loadings move
by one Gauss-Seidel sweep over ``(A_i + ridge I) W_i = b_i``, which increases the likelihood as the exact solution does,
in q^2 operations instead of q^3. Fast updates are noisy. So the output is solved from a second set of sums, over the
same expectations, in which block t has a weight proportional to ``t + 1``: a Polyak-Ruppert average.

References
----------
O. Cappé, E. Moulines. On-line expectation-maximization algorithm for latent data models. J. R. Stat. Soc. B 71, 2009;
blocks of examples: P. Liang, D. Klein. Online EM for unsupervised models. NAACL 2009.
"""

from copy import deepcopy

import numpy as np

from budgetreg.algorithms.factors.likelihood import FactorModel, factor_posterior
from budgetreg.eigenspaces import leading_of_sum
from budgetreg.revealed.collection import AttributeDraws, rows_by_column

EM_BLOCK = 32
"""Examples of a block. With 16, results are equal at twice the time; with 64, the early results are worse."""

ALPHA = 0.6
"""Exponent of the discount of earlier blocks."""

RIDGE, PSEUDO, NOISE, LEAST = 3.0, 5.0, 0.5, 0.01
"""See `budgetreg.algorithms.factors.likelihood.Penalty`; noise in units of the attributes' mean square."""

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
        A[:, range(self._q), range(self._q)] += RIDGE
        return A, sums[:, self._b]

    def _noise(self, sums: np.ndarray, W: np.ndarray, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the most likely noise variances (n,) of attributes, given their rows W."""
        residual = sums[:, -1] + (W * ((A @ W[:, :, None])[..., 0] - 2 * b)).sum(axis=1)
        return np.maximum((residual + PSEUDO * NOISE * self._unit) / (sums[:, -2] + PSEUDO), LEAST * self._unit)


class StreamModel:
    """The model of one stream, its draws, and the examples of the block that is being filled."""

    def __init__(self, rng: np.random.Generator, draws: AttributeDraws, d: int, q: int) -> None:
        self.draws, self.model = draws, StepwiseEM(rng, d, q)
        self._attributes, self._values = np.empty((0, draws.width), dtype=np.int64), np.empty((0, draws.width))

    def see(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Append examples (T, n) of the current block, and learn from the block once it is full."""
        self._attributes = np.append(self._attributes, attributes, axis=0)
        self._values = np.append(self._values, values, axis=0)
        if len(self._values) == EM_BLOCK:
            self.model.learn(self._attributes, self._values)
            self._attributes, self._values = self._attributes[:0], self._values[:0]

    def subspace(self, n: int) -> np.ndarray:
        """Return the leading subspace (d, n) of all examples, those of an unfinished block included."""
        em = self.model
        if len(self._values):
            em = deepcopy(em)
            em.learn(self._attributes, self._values)
        model = em.model()
        return leading_of_sum(model.W, model.psi, n)

"""Stepwise expectation and maximisation of a factor model: each block of examples is looked at once and forgotten.

The model and its penalty are those of `budgetreg.learners.factors.likelihood`: ``x_i = W_i z + e_i``, ``z ~ N(0, I)``,
``e_i ~ N(0, psi_i)``. The likeliest row of attribute i is made of four sums over the examples that show it,

    A_i = sum E z z',    b_i = sum x_i E z,    c_i = sum 1,    s_i = sum x_i^2,

and these alone are kept. A block of examples is added to what is left of the blocks before:
``S_t = (1 - gamma_t) S_{t-1} + gamma_t (sum of block t)``, ``gamma_t = (t + 1)^-alpha``; kept is ``S_t / gamma_t``, in
which the newest block weighs 1, and the penalty is in its units. Rows then move by one sweep of Gauss and Seidel over
``(A_i + ridge I) W_i = b_i``. Like the exact solution it makes the model likelier, for q^2 operations in place of q^3.
What moves fast is noisy. So what is put out is solved from a second set of sums, over the same expectations, in which
block t weighs in proportion to ``t + 1``: an average in the sense of Polyak and Ruppert.

References
----------
O. Cappé, E. Moulines. On-line expectation-maximization algorithm for latent data models. J. R. Stat. Soc. B 71, 2009;
blocks of examples: P. Liang, D. Klein. Online EM for unsupervised models. NAACL 2009.
"""

import numpy as np
from scipy.sparse import csr_array

from budgetreg.learners.factors.likelihood import FactorModel, expected

ALPHA = 0.6
"""How fast blocks fade from the sums by which rows move."""

RIDGE, PSEUDO, NOISE, LEAST = 3.0, 5.0, 0.5, 0.01
"""See `budgetreg.learners.factors.likelihood.Penalty`; noise in units of the attributes' mean square."""

_EXPLAINED = 0.5
"""Share of the mean square that random loadings explain at first."""

_TOGETHER = 1024
"""Attributes whose rows are solved for at once."""


class StepwiseEM:
    """A factor model that learns from one block of examples after another; O(d q^2) numbers, whatever their number.

    A block of T examples with n values each takes ``O(T (n q^2 + min(n, q)^3))``, whatever d is: sums of attributes
    that it does not show fade when these are shown again.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws the loadings to start from.
    d, q : int
        Attributes and factors.
    """

    def __init__(self, rng: np.random.Generator, d: int, q: int) -> None:
        self._q = q
        # One more row than attributes, for values that are missing: it loads nothing, and tells nothing.
        self._W, self._psi = np.zeros((d + 1, q)), np.ones(d + 1)
        self._W[:d] = rng.standard_normal((d, q))
        self._upper = np.triu_indices(q)
        packed = len(self._upper[0])
        self._square = np.empty((q, q), dtype=np.intp)
        self._square[self._upper] = self._square.T[self._upper] = np.arange(packed)
        self._b = slice(packed, packed + q)
        # The recent sums and the average ones: of each attribute the triangle of A_i, b_i, c_i and s_i.
        self._sums = np.zeros((2, d, packed + q + 2))
        # Logarithms of what is left of a first block by now, and of what was left when an attribute was last shown.
        self._left, self._left_then = np.zeros(2), np.zeros((2, d))
        self._blocks = 0
        self._unit = 0.0

    def learn(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Learn from a block of examples; from nothing but zeros not before there was anything else.

        Parameters
        ----------
        attributes : ndarray of int, shape (T, n)
            Distinct ones of each example; d for a value that is missing.
        values : ndarray of float, shape (T, n)
            Those that are missing 0.
        """
        if not self._unit and not values.any():
            return
        if not self._unit:
            self._begin(attributes, values)
        self._blocks += 1
        t, alpha = self._blocks, ALPHA
        self._left += np.log([(1 - (t + 1) ** -alpha) * ((t + 1) / t) ** alpha, t / (t + 1)])
        seen = self._add(attributes, values)
        self._sweep(seen)
        if t.bit_count() == 1:  # at each doubling, as it takes O(d)
            self._unit = float(self.mean_squares()[self._sums[1, :, -2] > 0].mean())

    def mean_squares(self) -> np.ndarray:
        """Return what is known of the attributes' mean squares, shape (d,); 0 of those that were never shown."""
        counts, squares = self._sums[1, :, -2:].T
        return np.asarray(squares / np.where(counts > 0, counts, 1.0))

    def model(self) -> FactorModel:
        """Return the model that the average sums make the likeliest."""
        sums = self._sums[1] * np.exp(self._left[1] - self._left_then[1])[:, None]
        W = np.empty((len(sums), self._q))
        psi = np.empty(len(sums))
        for begin in range(0, len(sums), _TOGETHER):
            part = slice(begin, begin + _TOGETHER)
            A, b = self._normal_equations(sums[part])
            W[part] = np.linalg.solve(A, b[:, :, None])[..., 0]
            psi[part] = self._noise(sums[part], W[part], A, b)
        return FactorModel(W, psi)

    def _begin(self, attributes: np.ndarray, values: np.ndarray) -> None:
        """Begin in the units of a first block."""
        there = np.count_nonzero(attributes < len(self._W) - 1)
        self._unit = float(np.square(values).sum() / there)
        self._W *= np.sqrt(_EXPLAINED * self._unit / self._q)
        self._psi[:-1] = (1 - _EXPLAINED) * self._unit

    def _add(self, attributes: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Add a block to the sums of the attributes that it shows, and return these."""
        seen, column = np.unique(attributes, return_inverse=True)
        seen = seen[seen < len(self._W) - 1]
        column, x = column.reshape(-1), values.reshape(-1)
        starts, shape = np.arange(0, x.size + 1, values.shape[1]), (len(values), column.max() + 1)
        where, known = (csr_array((own, column, starts), shape).T.tocsr()[: len(seen)] for own in (np.ones(x.size), x))
        z, V, _ = expected(self._W[attributes], self._psi[attributes], values)
        i, j = self._upper
        new = np.empty((len(seen), self._sums.shape[2]))
        new[:, : len(i)] = where @ (V[:, i, j] + z[:, i] * z[:, j])
        new[:, self._b] = known @ z
        new[:, -2] = np.bincount(column)[: len(seen)]
        new[:, -1] = np.bincount(column, np.square(x))[: len(seen)]
        for sums, left, left_then in zip(self._sums, self._left, self._left_then, strict=True):
            sums[seen] = sums[seen] * np.exp(left - left_then[seen])[:, None] + new
            left_then[seen] = left
        return seen

    def _sweep(self, seen: np.ndarray) -> None:
        """Move the rows of attributes one coordinate after the other, each to its best, and fit their noise."""
        sums, W = self._sums[0, seen], self._W[seen]
        A, b = self._normal_equations(sums)
        for j in range(self._q):
            W[:, j] += (b[:, j] - np.einsum("ij,ij->i", A[:, j], W)) / A[:, j, j]
        self._W[seen] = W
        self._psi[seen] = self._noise(sums, W, A, b)

    def _normal_equations(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``A_i + ridge I``, shape (n, q, q), and ``b_i``, shape (n, q)."""
        A = sums[:, self._square]
        A[:, range(self._q), range(self._q)] += RIDGE
        return A, sums[:, self._b]

    def _noise(self, sums: np.ndarray, W: np.ndarray, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the likeliest noise (n,) of attributes with these rows, in place of which others may be best."""
        left = sums[:, -1] + (W * ((A @ W[:, :, None])[..., 0] - 2 * b)).sum(axis=1)
        return np.maximum((left + PSEUDO * NOISE * self._unit) / (sums[:, -2] + PSEUDO), LEAST * self._unit)

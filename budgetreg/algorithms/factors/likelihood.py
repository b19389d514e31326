"""The most likely factor model of what was revealed, by expectation and maximisation (EM).

The model is that of `budgetreg.algorithms.factors.posterior` without means, which the loadings may represent:
``x = W z + e``, ``z ~ N(0, I)``, ``e_i ~ N(0, psi_i)``. EM never decreases the log-likelihood of the revealed values
less the penalty

    sum_i [(ridge |W_i|^2 + pseudo noise) / psi_i + pseudo log psi_i] / 2,

which shrinks the loadings and adds pseudo-values of pure noise to each attribute.

References
----------
D. B. Rubin, D. T. Thayer. EM algorithms for ML factor analysis. Psychometrika 47, 1982; with values missing at random,
D. B. Rubin. Inference and missing data. Biometrika 63, 1976.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from budgetreg.revealed.collection import rows_by_column

_CHUNK = 4096
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
        for begin in range(0, len(self.values), _CHUNK):
            i, x = self.attributes[begin : begin + _CHUNK], self.values[begin : begin + _CHUNK]
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

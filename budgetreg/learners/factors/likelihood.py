"""The likeliest factor model of what was revealed, by expectation and maximisation.

The model is that of `budgetreg.learners.factors.posterior` without means, which the loadings may carry:
``x = W z + e``, ``z ~ N(0, I)``, ``e_i ~ N(0, psi_i)``. What is maximised is the likelihood of the values seen, less

    sum_i [(ridge |W_i|^2 + pseudo noise) / psi_i + pseudo log psi_i] / 2:

loadings are held near 0, and some values of each attribute supposed that are all noise. No step makes this less.

References
----------
D. B. Rubin, D. T. Thayer. EM algorithms for ML factor analysis. Psychometrika 47, 1982; with values missing at random,
D. B. Rubin. Inference and missing data. Biometrika 63, 1976.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

_TOGETHER = 4096
"""Examples whose factors are expected at once: what they take stays in memory that is near."""


@dataclass(frozen=True)
class FactorModel:
    """Loadings and noise.

    Attributes
    ----------
    W : ndarray of float, shape (d, q)
    psi : ndarray of float, shape (d,)
        Above 0.
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
    """What is supposed before anything is seen; all 0: nothing, which leaves the likelihood as it is.

    Attributes
    ----------
    ridge : float
        By how many examples' factors loadings are held at 0.
    pseudo : float
        Values supposed of each attribute, whose square is all noise.
    noise : float
        That square.
    least : float
        Least noise of an attribute.
    shared : bool
        Whether all attributes have the same noise, that of their mean.
    """

    ridge: float = 0.0
    pseudo: float = 0.0
    noise: float = 0.0
    least: float = 0.0
    shared: bool = False


class RevealedEntries:
    """Values revealed of examples, laid out for `ascend`.

    Parameters
    ----------
    attributes : ndarray of int, shape (T, n)
        Distinct ones of each example; d for a value that is missing.
    values : ndarray of float, shape (T, n)
        Those that are missing 0.
    d : int
        Attributes there are.
    """

    def __init__(self, attributes: np.ndarray, values: np.ndarray, d: int) -> None:
        self.d = d
        self.counts = np.bincount(attributes.reshape(-1), minlength=d + 1)[:d]
        self.squares = np.bincount(attributes.reshape(-1), np.square(values).reshape(-1), minlength=d + 1)[:d]
        self._attributes, self._values = attributes, values

    def parts(self) -> Iterator[tuple[np.ndarray, np.ndarray, csr_array, csr_array]]:
        """Yield attributes and values of some examples, and the same as matrices (d, T): which are seen, and values."""
        for begin in range(0, len(self._values), _TOGETHER):
            i, x = self._attributes[begin : begin + _TOGETHER], self._values[begin : begin + _TOGETHER]
            starts = np.arange(0, x.size + 1, x.shape[1])
            shape = len(x), self.d + 1
            rows = (csr_array((own.reshape(-1), i.reshape(-1), starts), shape) for own in (np.ones(x.shape), x))
            seen, known = (own.T.tocsr()[: self.d] for own in rows)
            yield i, x, seen, known


def ascend(model: FactorModel, seen: RevealedEntries, penalty: Penalty) -> tuple[FactorModel, float]:
    """Take one step of expectation and maximisation.

    Parameters
    ----------
    model : FactorModel
    seen : RevealedEntries
        At least one example.
    penalty : Penalty

    Returns
    -------
    model : FactorModel
        At least as likely, less the penalty.
    likelihood : float
        Logarithm of the likelihood of the model given, less its penalty.
    """
    d, q = model.W.shape
    upper = np.triu_indices(q)
    packed, b, likelihood = np.zeros((d, len(upper[0]))), np.zeros((d, q)), 0.0
    loadings, noise = np.append(model.W, np.zeros((1, q)), axis=0), np.append(model.psi, 1.0)
    for attributes, values, where, known in seen.parts():
        z, V, own = expected(loadings[attributes], noise[attributes], values)
        packed += where @ (V[:, upper[0], upper[1]] + z[:, upper[0]] * z[:, upper[1]])
        b += known @ z
        likelihood += own
    A = np.empty((d, q, q))
    A[:, upper[0], upper[1]] = A[:, upper[1], upper[0]] = packed
    A += penalty.ridge * np.eye(q)
    never = seen.counts == 0
    A[never] = np.eye(q)
    W = np.linalg.solve(A, b[:, :, None])[..., 0]
    left = seen.squares - (W * b).sum(axis=1) + penalty.pseudo * penalty.noise
    numbers = seen.counts + penalty.pseudo
    if penalty.shared:
        left, numbers = (np.full(d, own[~never].sum()) for own in (left, numbers))
    psi = np.maximum(left / np.maximum(numbers, 1), penalty.least)
    psi[never] = model.psi[never]
    size = penalty.ridge * np.square(model.W).sum(axis=1) + penalty.pseudo * penalty.noise
    likelihood -= 0.5 * float((size / model.psi + penalty.pseudo * np.log(model.psi)).sum())
    return FactorModel(W, psi), likelihood


def expected(W: np.ndarray, psi: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return what is expected of the factors of examples, given what was seen of them.

    Parameters
    ----------
    W, psi : ndarray of float, shape (T, n, q) and (T, n)
        Loadings and noise of the attributes seen.
    x : ndarray of float, shape (T, n)
        Their values.

    Returns
    -------
    z : ndarray of float, shape (T, q)
        Means.
    V : ndarray of float, shape (T, q, q)
        Covariances.
    likelihood : float
        Logarithm of the likelihood of the values.
    """
    n, q = W.shape[1:]
    turned = W.swapaxes(1, 2)
    if n < q:  # the inverse of a matrix over attributes is smaller than that over factors
        inverse = np.linalg.inv(W @ turned + psi[:, :, None] * np.eye(n))
        u = (inverse @ x[:, :, None])[..., 0]
        z, V = (turned @ u[:, :, None])[..., 0], np.eye(q) - turned @ inverse @ W
        determinant, square = -np.linalg.slogdet(inverse)[1], (x * u).sum(axis=1)
    else:
        turned = turned / psi[:, None, :]
        V = np.linalg.inv(turned @ W + np.eye(q))
        h = (turned @ x[:, :, None])[..., 0]
        z = (V @ h[:, :, None])[..., 0]
        determinant = np.log(psi).sum(axis=1) - np.linalg.slogdet(V)[1]
        square = (np.square(x) / psi).sum(axis=1) - (h * z).sum(axis=1)
    return z, V, float(-0.5 * (determinant + square + n * np.log(2 * np.pi)).sum())

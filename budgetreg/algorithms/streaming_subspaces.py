"""Oja, GROUSE and PETRELS: streaming PCA, whose subspace moves with every example.

A uniform subset S of r attributes is seen of each example. Notation: the papers' rank k is n here (``n_components``); V
is the subspace as columns (d, n), and V_S are its rows at S. All F x G replicas take each step together; a replica's
result does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from budgetreg.algorithms.learner import (
    ONE_PASS,
    STEP_SIZE,
    UNBOUNDED,
    Batching,
    Parameter,
    Rngs,
    Settings,
    SideInformation,
    SubspaceLearner,
    Trajectory,
    update_option,
)
from budgetreg.common.streams import blocks, subset

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

GROUSE_RIDGE = 1e-6
"""Ridge of GROUSE's least squares, in units of the mean eigenvalue r/d of V_S'V_S: enough for weights to exist."""
PETRELS_RIDGE = 0.1
"""Ridge of the least squares for PETRELS' weights, in the same units."""
ORTHONORMALISE = 256
"""Steps after which GROUSE and PETRELS make V orthonormal again.

A step of GROUSE keeps it orthonormal but for rounding and the ridge. The ridge of PETRELS assumes columns of length
near 1.
"""


class _Subspaces:
    """F x G subspaces as columns, which an update keeps close to orthonormal.

    Parameters
    ----------
    V : ndarray of float, shape (F, G, d, n)
        Orthonormal columns to start from.
    """

    def __init__(self, V: np.ndarray) -> None:
        self._V = V

    def _rows(self) -> np.ndarray:
        """Return the rows of all V: a view, shape (F * G * d, n)."""
        return self._V.reshape(-1, self._V.shape[3])

    def subspace(self) -> np.ndarray:
        """Return orthonormal columns, shape (F, G, d, n)."""
        return np.linalg.qr(self._V)[0]


class Oja(_Subspaces):
    """State of Oja's algorithm ``V <- orth(V + eta_t C^_t V)``, where C^ is an unbiased estimate of ``x x'``.

    From a uniform subset S of r attributes, ``C^_ij = d(d-1)/(r(r-1)) x_i x_j`` and ``C^_ii = (d/r) x_i^2``: only the
    rows V_S change before they are made orthonormal again. The step size is AdaOja's, ``eta_t = eta / sqrt(sum_{s <=
    t} |C^_s V_s|_F^2)``, which needs neither the scale of the data nor the number of examples.

    Parameters
    ----------
    V : ndarray of float, shape (F, G, d, n)
        Orthonormal columns to start from.
    k : int
        Attributes r seen of each example, at least 2.
    settings : mapping of str to ndarray of shape (G,)
        ``eta``, the size of the first step, in radians roughly.

    References
    ----------
    E. Oja. A simplified neuron model as a principal component analyzer. J. Math. Biology 15, 1982.
    A. Henriksen, R. Ward. AdaOja: Adaptive Learning Rates for Streaming PCA. arXiv:1905.12115, 2019.
    """

    def __init__(self, V: np.ndarray, k: int, settings: Mapping[str, np.ndarray]) -> None:
        super().__init__(V)
        self._eta = settings["eta"]
        d = V.shape[2]
        self._pair, self._single = d * (d - 1) / (k * (k - 1)), d / k
        self._sum = np.zeros(V.shape[:2])

    def step(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Learn from one example of each stream: S as rows of the state (F, G, r), the values x_S (F, 1, r, 1)."""
        all_rows = self._rows()
        V_S = all_rows.take(rows, axis=0)
        change = self._pair * x * (x.swapaxes(2, 3) @ V_S) + (self._single - self._pair) * x**2 * V_S
        self._sum += np.square(change).reshape(*self._sum.shape, -1).sum(axis=2)
        eta = self._eta / np.sqrt(np.maximum(self._sum, np.finfo(float).tiny))
        all_rows[rows] = V_S + eta[:, :, None, None] * change
        # For a matrix that is nearly orthonormal, Cholesky costs a fifth of QR; the next step corrects its errors.
        L = np.linalg.cholesky(self._V.swapaxes(2, 3) @ self._V)
        self._V = self._V @ np.linalg.inv(L).swapaxes(2, 3)


class Grouse(_Subspaces):
    """State of GROUSE, gradient descent on the Grassmannian.

    V turns, in one plane, towards the part of the attributes S seen that it does not explain. With least-squares
    weights w, residual ``r = x_S - V_S w`` (0 where nothing is seen) and ``p = V w``,

        V += ((cos(theta) - 1) p/|p| + sin(theta) r/|r|) w'/|w|.

    The gradient has norm ``sigma = |r| |w|``. Its step size is that of AdaGrad-Norm, ``theta_t = eta sigma_t /
    sqrt(sum_{s <= t} sigma_s^2)``, at most a right angle: it needs neither the scale of the data nor the number of
    examples.

    Where the data are not of rank n, GROUSE is biased for any number of examples: weights that are fitted to few
    attributes also fit the part that V should not explain.

    Parameters
    ----------
    V : ndarray of float, shape (F, G, d, n)
        Orthonormal columns to start from.
    k : int
        Attributes r seen of each example, more than n.
    settings : mapping of str to ndarray of shape (G,)
        ``eta``.

    References
    ----------
    L. Balzano, R. Nowak, B. Recht. Online Identification and Tracking of Subspaces from Highly Incomplete Information.
    Allerton 2010, Algorithm 1. Their step size is constant, or falls as 1/t.
    R. Ward, X. Wu, L. Bottou. AdaGrad stepsizes: sharp convergence over nonconvex landscapes. ICML 2019.
    """

    def __init__(self, V: np.ndarray, k: int, settings: Mapping[str, np.ndarray]) -> None:
        super().__init__(V)
        self._eta = settings["eta"]
        self._ridge = GROUSE_RIDGE * k / V.shape[2]
        self._sum = np.zeros((*V.shape[:2], 1, 1))
        self._steps = 0

    def step(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Learn from one example of each stream: S as rows of the state (F, G, r), the values x_S (F, 1, r, 1)."""
        self._steps += 1
        if self._steps % ORTHONORMALISE == 0:
            self._V = self.subspace()
        all_rows = self._rows()
        V_S = all_rows.take(rows, axis=0)
        w = _weights(V_S, x, self._ridge)
        residual = x - V_S @ w
        w_norm, residual_norm = _norm(w), _norm(residual)
        self._sum += np.square(w_norm * residual_norm)
        rate = self._eta[:, None, None] / np.sqrt(np.maximum(self._sum, np.finfo(float).tiny))
        theta = np.minimum(rate * w_norm * residual_norm, np.pi / 2)
        direction = (w / np.maximum(w_norm, np.finfo(float).tiny)).swapaxes(2, 3)
        self._V += (np.cos(theta) - 1) * (self._V @ direction.swapaxes(2, 3)) @ direction
        turn = np.sin(theta) / np.maximum(residual_norm, np.finfo(float).tiny)
        all_rows[rows] += (residual * turn) @ direction


class Petrels(_Subspaces):
    """State of PETRELS: recursive least squares for each row of V.

    Row i is fitted to all values ``x_i`` seen so far, given the weights of their examples. With weights w of the
    current example, ``R_i <- lambda R_i + w w'`` and ``V_i += (x_i - V_i w) R_i^{-1} w`` for the attributes i seen, and
    ``R_i <- lambda R_i`` for the others. The state holds the inverses, O(d n^2) numbers, and updates each when its
    attribute is seen.

    Two changes to the published algorithm keep uncertain directions from growing without bound: the weights are fitted
    with a ridge, and no ``R_i^{-1}`` grows by forgetting beyond its initial size, which stands for one example. Without
    a ridge and with few attributes, least squares fits noise on data that are not of rank n. With or without a ridge,
    PETRELS is biased there for any number of examples.

    Parameters
    ----------
    V : ndarray of float, shape (F, G, d, n)
        Orthonormal columns to start from.
    k : int
        Attributes r seen of each example, more than n.
    settings : mapping of str to ndarray of shape (G,)
        ``forgetting``, the factor lambda, in (0, 1]: ``1/(1 - lambda)`` examples are remembered, which should show each
        attribute more than n times.

    References
    ----------
    Y. Chi, Y. C. Eldar, R. Calderbank. PETRELS: Parallel Subspace Estimation and Tracking by Recursive Least Squares
    from Partial Observations. IEEE Trans. Signal Processing 61(23), 2013, Algorithm 1.
    """

    def __init__(self, V: np.ndarray, k: int, settings: Mapping[str, np.ndarray]) -> None:
        super().__init__(V)
        F, G, d, n = V.shape
        self._growth = 1 / settings["forgetting"][:, None]
        self._ridge = PETRELS_RIDGE * k / d
        self._P = np.tile(n * np.eye(n), (F * G * d, 1, 1))
        self._last = np.zeros(F * G * d, dtype=np.int64)
        self._unit = np.zeros((F, 1, 1, 1))
        self._steps = 0

    def step(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Learn from one example of each stream: S as rows of the state (F, G, r), the values x_S (F, 1, r, 1)."""
        self._steps += 1
        if self._steps % ORTHONORMALISE == 0:
            self._orthonormalise()
        d, n = self._V.shape[2:]
        x = self._scaled(x, d)
        all_rows = self._rows()
        V_S = all_rows.take(rows, axis=0)
        w = _weights(V_S, x, self._ridge)
        P = self._P.take(rows, axis=0)
        trace = P.reshape(*rows.shape, n * n)[..., :: n + 1].sum(axis=-1)
        forgotten = self._growth ** (self._steps - self._last.take(rows))
        P *= np.maximum(np.minimum(forgotten, n * n / trace), 1.0)[..., None, None]
        P_w = (P.reshape(*rows.shape[:2], -1, n) @ w).reshape(*rows.shape, n)
        gain = P_w / (1 + P_w @ w)
        all_rows[rows] = V_S + (x - V_S @ w) * gain
        self._P[rows] = P - gain[..., :, None] * P_w[..., None, :]
        self._last[rows] = self._steps

    def _scaled(self, x: np.ndarray, d: int) -> np.ndarray:
        """Return values such that the first example of each stream has length 1, as far as it is seen."""
        length = np.sqrt(x.swapaxes(2, 3) @ x * (d / x.shape[2]))
        self._unit = np.where(self._unit == 0, length, self._unit)
        return x / np.where(self._unit == 0, 1.0, self._unit)

    def _orthonormalise(self) -> None:
        """Change the basis of V to an orthonormal one, and that of R with it."""
        F, G, d, n = self._V.shape
        self._V, basis = np.linalg.qr(self._V)
        inverse = np.linalg.inv(basis)[:, :, None]
        P = inverse.swapaxes(-1, -2) @ self._P.reshape(F, G, d, n, n) @ inverse
        self._P = (P + P.swapaxes(-1, -2)).reshape(-1, n, n) / 2


def _weights(V_S: np.ndarray, x: np.ndarray, ridge: float) -> np.ndarray:
    """Minimise ``|V_S w - x_S|^2 + ridge |w|^2``.

    Parameters
    ----------
    V_S : ndarray of float, shape (..., r, n)
        Rows of the subspace.
    x : ndarray of float, shape (..., r, 1)
        Values seen.
    ridge : float
        Above 0: the rows of attributes that are always 0 become 0 too, and the others may be fewer than n.

    Returns
    -------
    ndarray of float, shape (..., n, 1)
    """
    V_T = V_S.swapaxes(-1, -2)
    return np.linalg.solve(V_T @ V_S + ridge * np.eye(V_S.shape[-1]), V_T @ x)


def _norm(v: np.ndarray) -> np.ndarray:
    """Return the lengths of columns (F, G, n, 1), shape (F, G, 1, 1)."""
    return np.sqrt(v.swapaxes(2, 3) @ v)


_UPDATES = {
    "oja": "Oja's rule with an unbiased estimate of the second moment",
    "grouse": "GROUSE, gradient steps on the Grassmannian",
    "petrels": "PETRELS, recursive least squares for each attribute",
}
_FITTED = "the subspace is fitted to what is seen of each example, without an estimate of x x'"
_DIVIDED = "the estimate is popca's, and the step that follows it is divided by the size of all steps before"
_FORGETTING = "the factor by which an example's weight falls with each one that follows"


@dataclass(frozen=True)
class StreamingLearner(SubspaceLearner):
    """Oja, GROUSE and PETRELS, which move the subspace in different ways."""

    update: str = update_option(*_UPDATES)

    core = "streaming"
    continues = True
    parameters = (
        replace(STEP_SIZE, absolute=True),
        Parameter("forgetting", _FORGETTING, absolute=True, tried=(0.9, 0.99), unlimited=False),
    )
    batching = Batching.IN_STEP

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run all settings along all streams, each from a uniformly random subspace; see `Learner.fit`.

        Memory is O(d n) per replica, and O(d n^2) for PETRELS.
        """
        F, G, d = accessor.n_streams, accessor.n_settings, accessor.d
        initial = np.stack([np.linalg.qr(rng.normal(size=(d, self.n_components)))[0] for rng in rngs])
        state = UPDATES[self.update](np.repeat(initial[:, None], G, axis=1), given.k, settings)
        first_row = d * np.arange(F * G).reshape(F, G, 1)
        for start, stop in blocks(0, checkpoints[-1]):
            attributes = np.stack([subset(rng, d, given.k) for rng in rngs])[:, : stop - start]
            accessor.open(start, stop)
            x = accessor.reveal_block(attributes)
            for position in range(stop - start):
                state.step(first_row + attributes[:, None, position], x[:, None, position, :, None])
                if start + position + 1 in checkpoints:
                    yield start + position + 1, state.subspace()

    @property
    def fits_weights(self) -> bool:
        """Whether weights are fitted to what is seen of an example; Oja's rule needs none."""
        return self.update != "oja"

    @property
    def tuned(self) -> Sequence[str]:
        """The step size, or for PETRELS how fast it forgets."""
        return ("forgetting",) if self.update == "petrels" else ("eta",)

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return "k attributes per example", _UPDATES.get(self.update, "")

    @property
    def skipped_checks(self) -> Mapping[str, str]:
        """No estimate without bias, and no minimum."""
        reason = _DIVIDED if self.update == "oja" else _FITTED
        estimates = dict.fromkeys(("unbiased", "second moments", "full at k=d"), reason)
        return {**estimates, "boundary": UNBOUNDED, "minimiser": ONE_PASS}


UPDATES: Mapping[str, type[Oja] | type[Grouse] | type[Petrels]] = {"oja": Oja, "grouse": Grouse, "petrels": Petrels}

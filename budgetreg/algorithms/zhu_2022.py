"""primePCA: PCA of rows whose missing values are imputed from the subspace itself, again and again.

Notation: the paper's K is n here (``n_components``). V is the subspace as columns (d, n), and V_J are its rows at the
attributes J seen of an example.

References
----------
Z. Zhu, T. Wang, R. J. Samworth. High-dimensional principal component analysis with heterogeneous missingness. Journal
of the Royal Statistical Society B 84(5), 2022. The body of the paper was not at hand: the algorithm and its defaults
are those of the authors' R package primePCA 1.2 with ``center=FALSE``. Two things are ours: the first subspace has the
leading eigenvectors, not singular vectors, which may belong to negative eigenvalues; and if no row is good, V stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from budgetreg.algorithms.learner import (
    UNBOUNDED,
    Missing,
    Rngs,
    Settings,
    SideInformation,
    SubspaceLearner,
    Trajectory,
)
from budgetreg.common.streams import blocks
from budgetreg.config.options import POSITIVE, option, whole
from budgetreg.revealed.collection import AttributeDraws, Entries, reveal, rows_by_column

if TYPE_CHECKING:
    from budgetreg.metering.accessor import Accessor

_CHANGE = 1e-5
"""Distance of two subspaces in a row, the Frobenius norm of the sines of their angles, below which the steps end."""
_EXAMPLES = 1024
"""Examples that are imputed at the same time, few enough for the processor's cache."""

# The algorithm as in the package, one example at a time.


def prime_pca(X: np.ndarray, n: int, sigma: float, n_iter: int) -> np.ndarray:
    """Return the subspace (d, n) of rows X (m, d), NaN for what was not seen, after at most `n_iter` steps.

    A row is good if more than n values are seen and the least singular value of V_J is at least ``sqrt(|J|/d)/sigma``.
    """
    seen, Y = ~np.isnan(X), np.nan_to_num(X)
    V = np.linalg.eigh(Y.T @ Y / np.maximum(1.0 * seen.T @ seen, 1))[1][:, -n:]
    for _ in range(n_iter):
        filled = []
        for y, J in zip(Y, seen, strict=True):
            if J.sum() > n and np.linalg.norm(V[J], -2) >= np.sqrt(J.mean()) / sigma:
                filled.append(np.where(J, y, V @ np.linalg.pinv(V[J]) @ y[J]))
        if not filled:
            break
        old, V = V, np.linalg.svd(filled)[2][:n].T
        if n - np.square(old.T @ V).sum() < _CHANGE**2:
            break
    return V


# All examples at once: the sum of the imputed rows' ``x x'`` has their right singular vectors.


def _subspace(attributes: np.ndarray, values: np.ndarray, d: int, learner: PrimePCA) -> np.ndarray:
    """Return what `prime_pca` does, in O(m d^2) a step: attributes (m, r), d for a missing value, and values (m, r)."""
    from budgetreg.algorithms.eigenspaces import leading  # here, as SciPy loads slowly

    n, parts = learner.n_components, [slice(i, i + _EXAMPLES) for i in range(0, len(values), _EXAMPLES)]
    seen, known = (each[:, :d] for each in rows_by_column(attributes, values, d + 1))
    V = leading((known.T @ known).toarray() / np.maximum((seen.T @ seen).toarray(), 1), n)
    for _ in range(learner.n_iter):
        filled = (_filled(attributes[part], values[part], V, learner.sigma) for part in parts)
        C = sum((rows.T @ rows for rows in filled), np.zeros((d, d)))
        if not C.any():
            break
        old, V = V, leading(C, n)
        if n - np.square(old.T @ V).sum() < _CHANGE**2:
            break
    return V


def _filled(attributes: np.ndarray, values: np.ndarray, V: np.ndarray, sigma: float) -> np.ndarray:
    """Return the good ones of some rows, imputed; for a missing value, V_J has a row of zeros."""
    d, n = V.shape
    V_J = np.pad(V, ((0, 1), (0, 0)))[attributes]
    squares, W = np.linalg.eigh(V_J.swapaxes(1, 2) @ V_J)
    size = (attributes < d).sum(axis=1)
    good = (size > n) & (np.sqrt(np.maximum(squares[:, 0], 0)) >= np.sqrt(size / d) / sigma)
    attributes, x, V_J, squares, W = (each[good] for each in (attributes, values, V_J, squares, W))
    u = W @ ((V_J @ W).swapaxes(1, 2) @ x[:, :, None] / squares[:, :, None])
    filled = np.pad(u[:, :, 0] @ V.T, ((0, 0), (0, 1)))
    np.put_along_axis(filled, attributes, x, axis=1)
    return filled[:, :d]


@dataclass(frozen=True)
class PrimePCA(SubspaceLearner):
    """PCA of imputed rows, from uniform subsets of k attributes; the options are those of `prime_pca`."""

    sigma: float = option("the bound sigma_* that decides which rows are used", POSITIVE, tried=(2.0,))
    n_iter: int = option("the most steps", whole(1), tried=(1,))

    core = "prime_pca"
    fits_weights = True
    continues = True
    missing = Missing.LEFT_OUT
    uses_free = True
    draws_groups = True
    check_streams = 12
    words = ("k attributes per example", "PCA of rows that are imputed from the subspace, until it stays the same")
    skipped_checks: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("unbiased", "second moments"), "imputed values follow from the subspace, and are biased"),
        "boundary": UNBOUNDED,
        "minimiser": "its steps minimise nothing that is known; a test of its own compares them with the listing",
    }

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Draw k attributes of each example, keep them, and begin again at each checkpoint; see `Learner.fit`."""
        d = accessor.d
        entries, draws = Entries(d), [AttributeDraws(rng, d, given.k, accessor.free, accessor.groups) for rng in rngs]
        for start, stop in blocks(0, checkpoints[-1], checkpoints):
            entries.add(*reveal(accessor, draws, start, stop, d))
            if stop in checkpoints:
                (block,) = entries.blocks()
                yield stop, np.stack([_subspace(i, x, d, self) for i, x in zip(*block, strict=True)])[:, None]

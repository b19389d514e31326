"""The task of learning a subspace, and the losses by which subspaces are judged.

A subspace of n dimensions is given by orthonormal columns V, shape (d, n), and its projection is ``Pi = V V'``. Its
loss is ``E|x - Pi x|^2 = tr C - tr V'CV``, where ``C = E x x'`` is the second moment, which is not centred. The least
loss is that of the leading eigenvectors of C.

References
----------
Gonen, Rosenbaum, Eldar and Shalev-Shwartz (2016), "Subspace learning with partial information", Section 2.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from budgetreg.data.dataset import Dataset
from budgetreg.data.values import row_blocks
from budgetreg.errors import ConfigError, DataError
from budgetreg.metering.centring import Origin
from budgetreg.metering.table import Table
from budgetreg.tasks.task import Columns, Model


@dataclass(frozen=True)
class SubspaceLearning:
    """The task of projecting examples with a small loss: outputs are orthonormal columns, (G, d, n) for each stream.

    Attributes
    ----------
    n_components : int
        Dimension n of the subspace.
    """

    n_components: int
    predicts = False

    def admit(self, algo: str, data: Dataset, center: str) -> None:
        """Refuse fewer attributes than dimensions, and a centre that moves."""
        d = data.X.shape[1]
        if center == "revealed":
            raise ConfigError(
                f"dataset.center=revealed: {algo} adds up the values it sees, which must all have the same centre; use "
                "full or none"
            )
        if self.n_components >= d:
            raise ConfigError(
                f"algo.n_components={self.n_components}: must be below d={d}, the number of attributes of {data.name}"
            )

    def held_out(self, table: Table, index: np.ndarray) -> "SubspaceJudge":
        """Judge by the second moment of the examples."""
        return SubspaceJudge(second_moment(table, index), self.n_components)

    def test(self, data: Dataset, table: Table, index: np.ndarray, constant: float = 0.0) -> "SubspaceJudge":
        """Judge by the second moment of the distribution if it is known, else by that of the test examples."""
        del constant
        if data.second_moment is not None:
            return SubspaceJudge(data.second_moment, self.n_components)
        judge = self.held_out(table, index)
        if not judge.C.any():
            raise DataError(
                f"all attributes in the test part of {data.name} are 0: there is no error to compare with; use another "
                "seed or a larger dataset.test_fraction"
            )
        return judge

    def model(self, table: Table, outputs: np.ndarray, setting: int, origin: Origin) -> Model:
        """Return orthonormal columns ``V`` (d, n) of a subspace of ``(x - c) * scale``, ``c`` and ``scale`` (d,)."""
        assert origin == Origin()
        scale, c = table.stored_units()
        return {"V": outputs[setting], "c": c, "scale": scale}


@dataclass(frozen=True)
class SubspaceJudge:
    """A second moment C, shape (d, d), for subspaces of n dimensions."""

    C: np.ndarray
    n: int

    def losses(self, outputs: np.ndarray, origin: Origin) -> np.ndarray:
        """Return the losses of the subspaces."""
        assert origin == Origin()
        return projection_losses(self.C, outputs)

    def columns(self, outputs: np.ndarray, setting: int, origin: Origin) -> Columns:
        """Return the comparison with the best subspace."""
        assert origin == Origin()
        return compare_with_best(self.C, np.ascontiguousarray(outputs[setting]), self._best)

    @cached_property
    def _best(self) -> np.ndarray:
        from budgetreg.solvers.eigenspaces import leading  # here, as scipy is slow to load

        return leading(self.C, self.n)


def second_moment(table: Table, index: np.ndarray) -> np.ndarray:
    """Return ``C``, the mean of ``x x'``.

    Parameters
    ----------
    table : Table
        The data.
    index : ndarray of int, shape (n,)
        Rows to average over.

    Returns
    -------
    ndarray of float64, shape (d, d)
        Exactly symmetric.
    """
    C = np.zeros((table.d, table.d))
    for rows in row_blocks(index, table.d):
        X = table.rows(rows)
        C += X.T @ X
    C /= index.size
    return (C + C.T) / 2


def projection_losses(C: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return the loss ``tr C - tr V'CV`` of each subspace.

    Parameters
    ----------
    C : ndarray of float64, shape (d, d)
        Second moment of the held-out part.
    V : ndarray of float64, shape (G, d, n)
        Subspaces, orthonormal columns.

    Returns
    -------
    ndarray of float64, shape (G,)
        In squared units of the attributes.
    """
    return np.array([np.trace(C) - np.vdot(v, C @ v) for v in np.ascontiguousarray(V)])


def compare_with_best(C: np.ndarray, v: np.ndarray, best: np.ndarray) -> dict[str, float]:
    """Return the test columns of the curve for one subspace.

    Parameters
    ----------
    C : ndarray of float64, shape (d, d)
        Second moment: that of the distribution if it is known, else that of the test part.
    v : ndarray of float64, shape (d, n)
        The subspace, orthonormal columns.
    best : ndarray of float64, shape (d, n)
        ``leading(C, n)`` of `budgetreg.solvers.eigenspaces`.

    Returns
    -------
    dict
        ``excess_loss``, ``<Pi* - Pi, C>``, which is not negative and accurate even where it is small;
        ``relative_error``, the loss divided by ``tr C``, the loss of the empty subspace; ``principal_angle``, the
        largest angle between the two subspaces, in degrees. Where the n-th and the (n+1)-th eigenvalue of C are equal
        there are several best subspaces, and the angle is to one of them.
    """
    overlap = best.T @ v
    outside = v - best @ overlap
    missed = best - v @ overlap.T
    eigenvalues = (best * (C @ best)).sum(axis=0)
    # Both terms are sums of non-negative numbers: no difference of two losses that are nearly equal.
    within = np.vdot(eigenvalues - eigenvalues[-1], np.square(missed).sum(axis=0))
    beyond = eigenvalues[-1] * np.square(outside).sum() - np.vdot(outside, C @ outside)
    sine, cosine = (np.linalg.svd(matrix, compute_uv=False) for matrix in (outside, overlap))
    total = np.trace(C)
    return {
        "excess_loss": max(0.0, float(within + beyond)),
        "relative_error": float((total - np.vdot(v, C @ v)) / total),
        "principal_angle": float(np.degrees(np.arctan2(sine[0], cosine[-1]))),
    }

"""Tasks: what is learned, a regressor or a subspace, and what judges it on test or held-out examples.

These are seen in full: judging is outside the budget. Predictions and products have shapes that depend on the
configuration alone, never on how replicas are batched, so that their last bits do not either.

A subspace of n dimensions is given by orthonormal columns V, shape (d, n), and its projection is ``Pi = V V'``. Its
loss is ``E|x - Pi x|^2 = tr C - tr V'CV``, where ``C = E x x'`` is the second moment, which is not centred. The least
loss is that of the leading eigenvectors of C.

References
----------
Gonen, Rosenbaum, Eldar and Shalev-Shwartz (2016), "Subspace learning with partial information", Section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from budgetreg.common.errors import ConfigError, DataError
from budgetreg.data.dataset import Dataset, row_blocks
from budgetreg.metering.table import JointMoments, Origin, Table

Columns = Mapping[str, float | None]

Model = Mapping[str, np.ndarray]
"""The arrays of a learned model, which the task names, in units of the columns as they are stored."""


@dataclass(frozen=True)
class Regression:
    """The task of predicting the target: outputs are regressors, (d, G) for each stream.

    Attributes
    ----------
    delta : float or None
        Width of the insensitive zone of the SVR loss, for learners of that loss; None for the squared loss.
    """

    delta: float | None = None
    predicts = True

    @property
    def by_squares(self) -> bool:
        """Whether the held-out loss is the mean squared error of predictions."""
        return self.delta is None

    def admit(self, algo: str, data: Dataset, center: str) -> None:
        """Refuse targets that are not predictable numbers, or all 0.

        Parameters
        ----------
        algo : str
            The learner's name, for messages.
        data : Dataset
            The data of the first repetition.
        center : str
            How attributes are centred.

        Raises
        ------
        ConfigError
            If the data cannot be learned, whatever the examples are.
        """
        if data.unpredictable:
            raise ConfigError(data.unpredictable)
        if not data.y.any():
            raise ConfigError(f"all targets of {data.name} are 0: {algo} has nothing to predict")

    def held_out(self, table: Table, index: np.ndarray) -> RegressorJudge:
        """Judge by the learner's loss on some training examples, which are held out."""
        return RegressorJudge(table, index, False, self.delta)

    def test(
        self, data: Dataset, table: Table, index: np.ndarray, constant: float = 0.0, own_data: bool = False
    ) -> RegressorJudge:
        """Judge by errors on test examples relative to those of a constant, the prediction without attributes.

        Labels of one's own data are judged by their order, too: the papers' curves have no such column.

        Raises
        ------
        DataError
            If the error cannot be expressed relative to that of the constant.
        """
        if (table.y[index] == constant).all():
            raise DataError(
                f"all targets in the test part of {data.name} are {constant:g}: there is no error to compare with; "
                "use another seed or a larger dataset.test_fraction"
            )
        return RegressorJudge(table, index, data.two_valued, self.delta, constant, own_data and data.two_valued)

    def model(self, table: Table, outputs: np.ndarray, setting: int, origin: Origin) -> Model:
        """Return ``w`` (d,), ``b`` () and ``c`` (d,) of the prediction ``b + <w, x - c>`` for other examples."""
        scale, c = _centred(table, origin).stored_units()
        return {"w": outputs[:, setting] * scale, "b": np.array(_intercept(origin, setting)), "c": c}

    def moments(self, table: Table, origin: Origin) -> JointMoments | None:
        """Return the moments of attributes and target, in units of the stored columns; None without a model."""
        if origin.moments is None:
            return None
        mean, covariance = origin.moments()
        scale, c = (np.append(part, last) for part, last in zip(table.stored_units(), (1.0, 0.0), strict=True))
        return JointMoments(mean / scale + c, covariance / np.outer(scale, scale))


@dataclass(frozen=True)
class RegressorJudge:
    """Rows of a table, whose targets are to be predicted.

    Attributes
    ----------
    table : Table
        The data.
    index : ndarray of int, shape (n,)
        The rows.
    two_valued : bool
        Whether targets are -1 and +1.
    delta : float or None
        Width of the insensitive zone of the SVR loss, for learners of that loss.
    constant : float
        The prediction without attributes, whose error is the unit of the relative error.
    by_order : bool
        Whether the order of predictions is judged as well; targets are two-valued then.
    """

    table: Table
    index: np.ndarray
    two_valued: bool
    delta: float | None
    constant: float = 0.0
    by_order: bool = False

    def losses(self, outputs: np.ndarray, origin: Origin) -> np.ndarray:
        """Return the learner's loss (G,), by which parameters are chosen."""
        return mean_loss(_centred(self.table, origin), self.index, outputs, self.delta, origin.intercept)

    def columns(self, outputs: np.ndarray, setting: int, origin: Origin, visible: np.ndarray | None = None) -> Columns:
        """Return the columns of the curve for the output of one setting, which are test errors.

        If attributes are given that predictions may see, all others of a test example are masked, and the column
        ``predicted_from`` has their number.

        They are ``test_mse``; ``test_relative``, divided by the error of the constant, ``mean((y - c)^2)``;
        ``test_error_rate``, the fraction of wrong signs, None unless targets are two-valued; ``test_svr_loss`` if there
        is a delta; ``test_auc``, see `auc`, if the order is judged.
        """
        w, b = np.ascontiguousarray(outputs[:, setting]), _intercept(origin, setting)
        table, y = _centred(self.table, origin), self.table.y[self.index]
        if visible is None:
            predictions = np.concatenate([table.rows(rows) @ w + b for rows in row_blocks(self.index, table.d)])
        else:  # no other value is read
            predictions = table.entries(self.index[:, None], visible) @ w[visible] + b
        mse = float(np.square(predictions - y).mean())
        columns = {
            "test_mse": mse,
            "test_relative": mse / float(np.square(y - self.constant).mean()),
            "test_error_rate": float((np.sign(predictions) != y).mean()) if self.two_valued else None,
        }
        if self.delta is not None:
            columns["test_svr_loss"] = float(np.maximum(np.abs(predictions - y) - self.delta, 0).mean())
        if visible is not None:
            columns["predicted_from"] = visible.size
        if self.by_order:
            columns["test_auc"] = auc(predictions, y)
        return columns


def auc(predictions: np.ndarray, y: np.ndarray) -> float | None:
    """Return the area under the ROC curve, by its identity with the statistic of Mann and Whitney (1947).

    Parameters
    ----------
    predictions : ndarray of float, shape (n,)
    y : ndarray of float, shape (n,)
        Labels -1 and +1.

    Returns
    -------
    float or None
        Share of the pairs of a positive and a negative example of which the positive one has the larger prediction,
        pairs with equal predictions counted half; None if all labels are equal.
    """
    positive, negative = predictions[y > 0], np.sort(predictions[y < 0])
    if not (positive.size and negative.size):
        return None
    below, not_above = (np.searchsorted(negative, positive, side).sum() for side in ("left", "right"))
    return float((below + not_above) / (2 * positive.size * negative.size))


def mean_loss(
    table: Table, index: np.ndarray, W: np.ndarray, delta: float | None = None, intercept: np.ndarray | float = 0.0
) -> np.ndarray:
    """Return the mean loss of each regressor, of the residuals ``r = intercept + <w, x> - y``.

    Parameters
    ----------
    table : Table
        The data.
    index : ndarray of int, shape (n,)
        Held-out rows.
    W : ndarray of float, shape (d, G)
        Regressors.
    delta : float, optional
        Width of the insensitive zone of the SVR loss ``max(|r| - delta, 0)``; without, the loss is ``r^2``.
    intercept : float or ndarray of float, shape (G,)
        Prediction for ``x = 0``.

    Returns
    -------
    ndarray of float, shape (G,)
    """
    total = np.zeros(W.shape[1])
    for rows in row_blocks(index, table.d):
        residuals = table.rows(rows) @ W + intercept - table.y[rows, None]
        losses = np.square(residuals) if delta is None else np.maximum(np.abs(residuals) - delta, 0)
        total += losses.sum(axis=0)
    return total / index.size


def _centred(table: Table, origin: Origin) -> Table:
    return table if origin.shift is None else table.shifted(origin.shift)


def _intercept(origin: Origin, setting: int) -> float:
    intercept = origin.intercept
    return float(intercept[setting] if isinstance(intercept, np.ndarray) else intercept)


@dataclass(frozen=True)
class SubspaceLearning:
    """The task of projecting examples with a small loss: outputs are orthonormal columns (G, d, n).

    Attributes
    ----------
    n_components : int
        Dimension n of the subspace.
    """

    n_components: int
    predicts = False
    by_squares = False

    def admit(self, algo: str, data: Dataset, center: str) -> None:
        """Refuse fewer attributes than dimensions, and a centre that moves; see `Regression.admit`."""
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

    def held_out(self, table: Table, index: np.ndarray) -> SubspaceJudge:
        """Judge by the second moment of the examples."""
        return SubspaceJudge(second_moment(table, index), self.n_components)

    def test(
        self, data: Dataset, table: Table, index: np.ndarray, constant: float = 0.0, own_data: bool = False
    ) -> SubspaceJudge:
        """Judge by the second moment of the distribution if it is known, else by that of the test examples."""
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
        assert origin._replace(seen=None) == Origin()
        scale, c = table.stored_units()
        return {"V": outputs[setting], "c": c, "scale": scale}

    def moments(self, table: Table, origin: Origin) -> None:
        """Return None: learners of subspaces model no target."""


@dataclass(frozen=True)
class SubspaceJudge:
    """A second moment C, shape (d, d), for subspaces of n dimensions."""

    C: np.ndarray
    n: int

    def losses(self, outputs: np.ndarray, origin: Origin) -> np.ndarray:
        """Return the losses (G,) of the subspaces."""
        assert origin == Origin()
        return projection_losses(self.C, outputs)

    def columns(self, outputs: np.ndarray, setting: int, origin: Origin, visible: np.ndarray | None = None) -> Columns:
        """Return the comparison with the best subspace."""
        assert origin._replace(seen=None) == Origin() and visible is None
        return compare_with_best(self.C, np.ascontiguousarray(outputs[setting]), self._best)

    @cached_property
    def _best(self) -> np.ndarray:
        from budgetreg.algorithms.eigenspaces import leading  # here, as scipy is slow to load

        return leading(self.C, self.n)


Task = Regression | SubspaceLearning
"""What is learned. Equal tasks have equal hashes, as judges are cached by task."""


@dataclass(frozen=True)
class Unjudged:
    """No examples: all are learned from, and no error is computed."""

    def columns(self, outputs: np.ndarray, setting: int, origin: Origin, visible: np.ndarray | None = None) -> Columns:
        """Return no columns."""
        return {}


Judge = RegressorJudge | SubspaceJudge | Unjudged
"""Examples on which the outputs of a stream are judged, those of all settings at one checkpoint."""


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
        ``leading(C, n)`` of `budgetreg.algorithms.eigenspaces`.

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

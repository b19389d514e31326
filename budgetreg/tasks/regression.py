"""The task of predicting a target, and the errors by which regressors are judged."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from budgetreg.data.dataset import Dataset
from budgetreg.data.values import row_blocks
from budgetreg.errors import ConfigError, DataError
from budgetreg.metering.centring import Origin
from budgetreg.metering.table import Table
from budgetreg.tasks.task import Columns, Model


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

    def admit(self, algo: str, data: Dataset, center: str) -> None:
        """Refuse targets that are not predictable numbers, or all 0."""
        if data.unpredictable:
            raise ConfigError(data.unpredictable)
        if not data.y.any():
            raise ConfigError(f"all targets of {data.name} are 0: {algo} has nothing to predict")

    def held_out(self, table: Table, index: np.ndarray) -> "RegressorJudge":
        """Judge by the learner's loss."""
        return RegressorJudge(table, index, False, self.delta)

    def test(self, data: Dataset, table: Table, index: np.ndarray, constant: float = 0.0) -> "RegressorJudge":
        """Judge by errors relative to those of a constant prediction."""
        if (data.y[index] == constant).all():
            raise DataError(
                f"all targets in the test part of {data.name} are {constant:g}: there is no error to compare with; "
                "use another seed or a larger dataset.test_fraction"
            )
        return RegressorJudge(table, index, data.two_valued, self.delta, constant)

    def model(self, table: Table, outputs: np.ndarray, setting: int, origin: Origin) -> Model:
        """Return ``w`` (d,), ``b`` () and ``c`` (d,) of the prediction ``b + <w, x - c>``."""
        scale, c = _centred(table, origin).stored_units()
        return {"w": outputs[:, setting] * scale, "b": np.array(_intercept(origin, setting)), "c": c}


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
    """

    table: Table
    index: np.ndarray
    two_valued: bool
    delta: float | None
    constant: float = 0.0

    def losses(self, outputs: np.ndarray, origin: Origin) -> np.ndarray:
        """Return the learner's loss."""
        table = _centred(self.table, origin)
        if self.delta is None:
            return squared_error(table, self.index, outputs, origin.intercept)
        return svr_loss(table, self.index, outputs, self.delta, origin.intercept)

    def columns(self, outputs: np.ndarray, setting: int, origin: Origin) -> Columns:
        """Return the test errors.

        They are ``test_mse``; ``test_relative``, divided by the error of the constant, ``mean((y - c)^2)``;
        ``test_error_rate``, the fraction of wrong signs, None unless targets are two-valued; ``test_svr_loss`` if there
        is a delta.
        """
        w, b = np.ascontiguousarray(outputs[:, setting]), _intercept(origin, setting)
        table, y = _centred(self.table, origin), self.table.y[self.index]
        predictions = np.concatenate([table.rows(rows) @ w + b for rows in row_blocks(self.index, table.d)])
        mse = float(np.square(predictions - y).mean())
        columns = {
            "test_mse": mse,
            "test_relative": mse / float(np.square(y - self.constant).mean()),
            "test_error_rate": float((np.sign(predictions) != y).mean()) if self.two_valued else None,
        }
        if self.delta is not None:
            columns["test_svr_loss"] = float(np.maximum(np.abs(predictions - y) - self.delta, 0).mean())
        return columns


def squared_error(table: Table, index: np.ndarray, W: np.ndarray, intercept: np.ndarray | float = 0.0) -> np.ndarray:
    """Return the mean squared error ``mean((intercept + <w, x> - y)^2)`` of each regressor.

    Parameters
    ----------
    table : Table
        The data.
    index : ndarray of int, shape (n,)
        Held-out rows.
    W : ndarray of float, shape (d, G)
        Regressors.
    intercept : float or ndarray of float, shape (G,)
        Prediction for ``x = 0``.

    Returns
    -------
    ndarray of float, shape (G,)
    """
    return _mean_loss(table, index, W, intercept, np.square)


def svr_loss(
    table: Table, index: np.ndarray, W: np.ndarray, delta: float, intercept: np.ndarray | float = 0.0
) -> np.ndarray:
    """Return the mean SVR loss ``mean(max(|intercept + <w, x> - y| - delta, 0))`` of each regressor.

    Parameters and result are as in `squared_error`, in units of the target.
    """
    return _mean_loss(table, index, W, intercept, lambda residuals: np.maximum(np.abs(residuals) - delta, 0))


def _mean_loss(
    table: Table, index: np.ndarray, W: np.ndarray, intercept: np.ndarray | float, loss: Callable[..., np.ndarray]
) -> np.ndarray:
    total = np.zeros(W.shape[1])
    for rows in row_blocks(index, table.d):
        total += loss(table.rows(rows) @ W + intercept - table.y[rows, None]).sum(axis=0)
    return total / index.size


def _centred(table: Table, origin: Origin) -> Table:
    return table if origin.shift is None else table.shifted(origin.shift)


def _intercept(origin: Origin, setting: int) -> float:
    intercept = origin.intercept
    return float(intercept[setting] if isinstance(intercept, np.ndarray) else intercept)

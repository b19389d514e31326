"""To predict a target: what a regressor is judged by."""

from dataclasses import dataclass

import numpy as np

from budgetreg.data.dataset import Dataset
from budgetreg.errors import ConfigError, DataError
from budgetreg.metering.centring import Origin
from budgetreg.metering.table import Table
from budgetreg.tasks.regressors import error_columns, squared_error, svr_loss
from budgetreg.tasks.task import Columns, Model


@dataclass(frozen=True)
class Regression:
    """To predict the target: outputs are regressors, (d, G) for each stream.

    Attributes
    ----------
    delta : float or None
        That of the SVR loss, for learners of it; None for the squared loss.
    """

    delta: float | None = None
    predicts = True

    def admit(self, algo: str, data: Dataset, center: str) -> None:
        """Ask for targets that are numbers and not all 0."""
        if data.unpredictable:
            raise ConfigError(data.unpredictable)
        if not data.y.any():
            raise ConfigError(f"{data.name} has no targets other than 0: nothing for {algo} to predict")

    def held_out(self, table: Table, index: np.ndarray) -> "RegressorJudge":
        """Judge by the learner's own loss."""
        return RegressorJudge(table, index, False, self.delta)

    def test(self, data: Dataset, table: Table, index: np.ndarray, constant: float = 0.0) -> "RegressorJudge":
        """Judge by errors relative to those of a constant prediction."""
        if (data.y[index] == constant).all():
            raise DataError(
                f"the test part of {data.name} has only targets {constant:g}, which no error can be relative to"
            )
        return RegressorJudge(table, index, data.two_valued, self.delta, constant)

    def model(self, table: Table, outputs: np.ndarray, setting: int, origin: Origin) -> Model:
        """Return ``w`` (d,), ``b`` () and ``c`` (d,) of the prediction ``b + <w, x - c>``."""
        scale, c = _as_seen(table, origin).stored_units()
        return {"w": outputs[:, setting] * scale, "b": np.array(_own(origin.intercept, setting)), "c": c}


@dataclass(frozen=True)
class RegressorJudge:
    """Rows of a table, whose targets are to be predicted."""

    table: Table
    index: np.ndarray
    two_valued: bool
    delta: float | None
    constant: float = 0.0

    def losses(self, outputs: np.ndarray, origin: Origin) -> np.ndarray:
        """Return the loss that the learner is after."""
        table = _as_seen(self.table, origin)
        if self.delta is None:
            return squared_error(table, self.index, outputs, origin.intercept)
        return svr_loss(table, self.index, outputs, self.delta, origin.intercept)

    def columns(self, outputs: np.ndarray, setting: int, origin: Origin) -> Columns:
        """Return the test errors."""
        w, b = np.ascontiguousarray(outputs[:, setting]), _own(origin.intercept, setting)
        seen = _as_seen(self.table, origin)
        return error_columns(seen, self.index, w, self.two_valued, self.delta, b, self.constant)


def _as_seen(table: Table, origin: Origin) -> Table:
    return table if origin.shift is None else table.shifted(origin.shift)


def _own(intercept: np.ndarray | float, setting: int) -> float:
    return float(intercept[setting] if isinstance(intercept, np.ndarray) else intercept)

"""To predict a target: what a regressor is judged by."""

from dataclasses import dataclass, replace

import numpy as np

from budgetreg.data.dataset import Dataset
from budgetreg.errors import ConfigError, DataError
from budgetreg.metering.accessor import Table
from budgetreg.tasks.regressors import error_columns, squared_error, svr_loss
from budgetreg.tasks.task import Columns


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

    def test(self, data: Dataset, table: Table, index: np.ndarray) -> "RegressorJudge":
        """Judge by errors relative to those of the zero predictor."""
        if not data.y[index].any():
            raise DataError(f"the test part of {data.name} has only targets 0, which no error can be relative to")
        return RegressorJudge(table, index, data.two_valued, self.delta)


@dataclass(frozen=True)
class RegressorJudge:
    """Rows of a table, whose targets are to be predicted."""

    table: Table
    index: np.ndarray
    two_valued: bool
    delta: float | None

    def losses(self, outputs: np.ndarray, zero: np.ndarray | None) -> np.ndarray:
        """Return the loss that the learner is after."""
        table = self._as_seen(zero)
        if self.delta is None:
            return squared_error(table, self.index, outputs)
        return svr_loss(table, self.index, outputs, self.delta)

    def columns(self, outputs: np.ndarray, setting: int, zero: np.ndarray | None) -> Columns:
        """Return the test errors."""
        w = np.ascontiguousarray(outputs[:, setting])
        return error_columns(self._as_seen(zero), self.index, w, self.two_valued, self.delta)

    def _as_seen(self, zero: np.ndarray | None) -> Table:
        return self.table if zero is None else replace(self.table, shift=zero)

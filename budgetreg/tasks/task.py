"""The interface of a task, and of the judges of a learner's outputs.

Test and held-out examples are seen in full: judging is outside the budget. Predictions and products have shapes that
depend on the configuration alone, never on how replicas are batched, so that their last bits do not either.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from budgetreg.data.dataset import Dataset
from budgetreg.metering.centring import Origin
from budgetreg.metering.table import Table

Columns = Mapping[str, float | None]

Model = Mapping[str, np.ndarray]
"""The arrays of a learned model, which the task names, in units of the columns as they are stored."""


class WithIntercept(NamedTuple):
    """Regressors of a learner that centres what it sees itself: ``f(x) = intercept + <w, x>``."""

    regressors: np.ndarray
    """Shape (F, d, G)."""
    intercept: np.ndarray
    """Shape (F, G), in units of the target."""


Outputs = np.ndarray | WithIntercept
"""What a learner puts out: regressors (F, d, G), or subspaces (F, G, d, n) as orthonormal columns."""


class Judge(Protocol):
    """Examples on which the outputs of a stream are judged, those of all settings at one checkpoint."""

    def losses(self, outputs: np.ndarray, origin: Origin) -> np.ndarray:
        """Return the loss (G,) by which parameters are chosen."""

    def columns(self, outputs: np.ndarray, setting: int, origin: Origin) -> Columns:
        """Return the columns of the curve for the output of one setting."""


class Task(Protocol):
    """What is learned: a regressor or a subspace."""

    def __hash__(self) -> int:
        """Equal tasks have equal hashes, as judges are cached by task."""

    @property
    def predicts(self) -> bool:
        """Whether it predicts targets; if not, it learns a subspace."""

    def admit(self, algo: str, data: Dataset, center: str) -> None:
        """Refuse data that do not suit the task.

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

    def held_out(self, table: Table, index: np.ndarray) -> Judge:
        """Return the judge for some training examples, which are held out."""

    def test(self, data: Dataset, table: Table, index: np.ndarray, constant: float) -> Judge:
        """Return the judge of a run's outputs on test examples; `constant` is the prediction without attributes.

        Raises
        ------
        DataError
            If the error on the test examples cannot be expressed relative to a baseline.
        """

    def model(self, table: Table, outputs: np.ndarray, setting: int, origin: Origin) -> Model:
        """Return the model of one setting for other examples, given the table that it was learned on."""

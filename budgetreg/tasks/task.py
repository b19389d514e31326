"""What a task is to those that run it, and what judges the outputs of a learner.

Test and held-out examples are seen in full: judging is outside the budget.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from budgetreg.data.dataset import Dataset
from budgetreg.metering.centring import Origin
from budgetreg.metering.table import Table

Columns = Mapping[str, float | None]

Model = Mapping[str, np.ndarray]
"""What was learned, in units of the columns as they are stored: what its arrays are, the task says."""


class WithIntercept(NamedTuple):
    """Regressors of a learner that centres what it sees itself: ``f(x) = intercept + <w, x>``."""

    regressors: np.ndarray
    """Shape (F, d, G)."""
    intercept: np.ndarray
    """Shape (F, G), in units of the target."""


Outputs = np.ndarray | WithIntercept
"""What a learner puts out: regressors (F, d, G), or subspaces (F, G, d, n) as orthonormal columns."""


class Judge(Protocol):
    """Examples on which outputs of a stream are judged, those of all its settings at one checkpoint."""

    def losses(self, outputs: np.ndarray, origin: Origin) -> np.ndarray:
        """Return the loss (G,) by which parameters are chosen."""

    def columns(self, outputs: np.ndarray, setting: int, origin: Origin) -> Columns:
        """Return the columns of the curve for the output of one setting."""


class Task(Protocol):
    """What is learned."""

    def __hash__(self) -> int:
        """Equal tasks are one, as what they judge by is remembered."""

    @property
    def predicts(self) -> bool:
        """Whether it is to predict targets; if not, a subspace is learned."""

    def admit(self, algo: str, data: Dataset, center: str) -> None:
        """Do nothing if the data allow it.

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
            If they do not, whatever the examples are.
        """

    def held_out(self, table: Table, index: np.ndarray) -> Judge:
        """Return the judge that some training examples make."""

    def test(self, data: Dataset, table: Table, index: np.ndarray, constant: float) -> Judge:
        """Return the judge of what a run puts out; a constant is what it predicts that has seen no attribute.

        Raises
        ------
        DataError
            If the test examples cannot tell good from bad.
        """

    def model(self, table: Table, outputs: np.ndarray, setting: int, origin: Origin) -> Model:
        """Return what can be applied to other examples: the output of one setting, for the table it was learned on."""

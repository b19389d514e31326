"""What learners learn, regressors or subspaces: which data allow it, and what judges it.

Test and held-out examples are seen in full: judging is outside the budget.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from budgetreg.data import Dataset
from budgetreg.errors import ConfigError, DataError
from budgetreg.metering.accessor import Table
from budgetreg.protocol.configuration import AlgoConfig, Config
from budgetreg.tasks.regressors import error_columns, squared_error, svr_loss

Columns = Mapping[str, float | None]


class Judge(Protocol):
    """Examples on which outputs of a stream are judged, those of all its settings at one checkpoint."""

    def losses(self, outputs: np.ndarray, zero: np.ndarray | None) -> np.ndarray:
        """Return the loss (G,) by which parameters are chosen; `zero` (d,) centres what the outputs are applied to."""

    def columns(self, outputs: np.ndarray, setting: int, zero: np.ndarray | None) -> Columns:
        """Return the columns of the curve for the output of one setting."""


class Task(Protocol):
    """What is learned."""

    def __hash__(self) -> int:
        """Equal tasks are one, as what they judge by is remembered."""

    def admit(self, config: Config, data: Dataset) -> None:
        """Do nothing if the data allow it.

        Raises
        ------
        ConfigError
            If they do not, whatever the examples are.
        """

    def held_out(self, table: Table, index: np.ndarray) -> Judge:
        """Return the judge that some training examples make."""

    def test(self, data: Dataset, table: Table, index: np.ndarray) -> Judge:
        """Return the judge of what a run puts out.

        Raises
        ------
        DataError
            If the test examples cannot tell good from bad.
        """


def task_of(algo: AlgoConfig) -> Task:
    """Return what a learner learns."""
    return Regression(algo.delta) if algo.n_components is None else SubspaceLearning(algo.n_components)


@dataclass(frozen=True)
class Regression:
    """To predict the target: outputs are regressors, (d, G) for each stream.

    Attributes
    ----------
    delta : float or None
        That of the SVR loss, for learners of it; None for the squared loss.
    """

    delta: float | None

    def admit(self, config: Config, data: Dataset) -> None:
        """Ask for targets, and of MNIST for two classes."""
        if config.dataset.kind == "mnist" and not data.two_valued:
            raise ConfigError(
                "dataset.digits=all has ten classes; a regression learner needs two: dataset.digits=[3,5]"
            )
        if not data.y.any():
            raise ConfigError(f"{data.name} has no targets other than 0: nothing for {config.algo.name} to predict")

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


@dataclass(frozen=True)
class SubspaceLearning:
    """To keep of examples what a projection can: outputs are orthonormal columns, (G, d, n) for each stream.

    Attributes
    ----------
    n_components : int
        Dimension n of the subspace.
    """

    n_components: int

    def admit(self, config: Config, data: Dataset) -> None:
        """Ask for more attributes than dimensions, and for a zero that stays where it is."""
        d = data.X.shape[1]
        if config.dataset.center == "revealed":
            raise ConfigError(
                f"dataset.center=revealed: {config.algo.name} adds up what it sees, which a zero that moves would "
                "spoil; use full or none"
            )
        if self.n_components >= d:
            raise ConfigError(
                f"algo.n_components={self.n_components}: must be below d={d}, the attributes of {data.name}"
            )

    def held_out(self, table: Table, index: np.ndarray) -> "SubspaceJudge":
        """Judge by the examples' own second moment."""
        from budgetreg.tasks.subspaces import second_moment  # here, as it needs scipy, which is slow to load

        return SubspaceJudge(second_moment(table, index), self.n_components)

    def test(self, data: Dataset, table: Table, index: np.ndarray) -> "SubspaceJudge":
        """Judge by the second moment of the law if it is known, else by that of the test examples."""
        if data.second_moment is not None:
            return SubspaceJudge(data.second_moment, self.n_components)
        judge = self.held_out(table, index)
        if not judge.C.any():
            raise DataError(f"the test part of {data.name} has only attributes 0, which no error can be relative to")
        return judge


@dataclass(frozen=True)
class SubspaceJudge:
    """A second moment C, shape (d, d), of which a subspace of n dimensions is to keep as much as it can."""

    C: np.ndarray
    n: int

    def losses(self, outputs: np.ndarray, zero: np.ndarray | None) -> np.ndarray:
        """Return what the projections leave."""
        from budgetreg.tasks.subspaces import losses

        assert zero is None
        return losses(self.C, outputs)

    def columns(self, outputs: np.ndarray, setting: int, zero: np.ndarray | None) -> Columns:
        """Return the comparison with the best subspace."""
        from budgetreg.tasks.subspaces import columns

        assert zero is None
        return columns(self.C, np.ascontiguousarray(outputs[setting]), self._best)

    @cached_property
    def _best(self) -> np.ndarray:
        from budgetreg.tasks.subspaces import top

        return top(self.C, self.n)

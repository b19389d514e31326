"""To keep of examples what a projection can: what a subspace is judged by."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from budgetreg.data.dataset import Dataset
from budgetreg.errors import ConfigError, DataError
from budgetreg.metering.centring import Origin
from budgetreg.metering.table import Table
from budgetreg.tasks.task import Columns, Model


@dataclass(frozen=True)
class SubspaceLearning:
    """To keep of examples what a projection can: outputs are orthonormal columns, (G, d, n) for each stream.

    Attributes
    ----------
    n_components : int
        Dimension n of the subspace.
    """

    n_components: int
    predicts = False

    def admit(self, algo: str, data: Dataset, center: str) -> None:
        """Ask for more attributes than dimensions, and for a zero that stays where it is."""
        d = data.X.shape[1]
        if center == "revealed":
            raise ConfigError(
                f"dataset.center=revealed: {algo} adds up what it sees, which a zero that moves would "
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

    def test(self, data: Dataset, table: Table, index: np.ndarray, constant: float = 0.0) -> "SubspaceJudge":
        """Judge by the second moment of the law if it is known, else by that of the test examples."""
        del constant
        if data.second_moment is not None:
            return SubspaceJudge(data.second_moment, self.n_components)
        judge = self.held_out(table, index)
        if not judge.C.any():
            raise DataError(f"the test part of {data.name} has only attributes 0, which no error can be relative to")
        return judge

    def model(self, table: Table, outputs: np.ndarray, setting: int, origin: Origin) -> Model:
        """Return orthonormal columns ``V`` (d, n), a subspace of ``(x - c) * scale``, and these two, (d,) each."""
        assert origin == Origin()
        scale, c = table.stored_units()
        return {"V": outputs[setting], "c": c, "scale": scale}


@dataclass(frozen=True)
class SubspaceJudge:
    """A second moment C, shape (d, d), of which a subspace of n dimensions is to keep as much as it can."""

    C: np.ndarray
    n: int

    def losses(self, outputs: np.ndarray, origin: Origin) -> np.ndarray:
        """Return what the projections leave."""
        from budgetreg.tasks.subspaces import losses

        assert origin == Origin()
        return losses(self.C, outputs)

    def columns(self, outputs: np.ndarray, setting: int, origin: Origin) -> Columns:
        """Return the comparison with the best subspace."""
        from budgetreg.tasks.subspaces import columns

        assert origin == Origin()
        return columns(self.C, np.ascontiguousarray(outputs[setting]), self._best)

    @cached_property
    def _best(self) -> np.ndarray:
        from budgetreg.solvers.eigenspaces import leading

        return leading(self.C, self.n)

"""What learners of subspaces share: the dimension, and the least budget that shows how attributes vary together."""

from dataclasses import dataclass

from budgetreg.config.options import option
from budgetreg.config.requirements import whole
from budgetreg.errors import ConfigError
from budgetreg.learners.declaration import BudgetSplit, Learner
from budgetreg.tasks.subspace_learning import SubspaceLearning


@dataclass(frozen=True)
class PairwiseLearner(Learner):
    """Base class of learners that estimate how attributes vary together, from at least two of an example."""

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse a budget of one attribute.

        Raises
        ------
        ConfigError
            If the budget is 1.
        """
        if k < 2:
            raise ConfigError(
                f"k={k}: {self.name} needs a budget of at least 2, as one attribute of each example tells nothing of "
                "how attributes go together"
            )
        return None

    def state_numbers(self, d: int) -> int:
        """Return the size of a matrix of second moments."""
        return d**2


@dataclass(frozen=True)
class SubspaceLearner(PairwiseLearner):
    """Base class of learners of subspaces."""

    n_components: int = option("the dimension of the subspace", whole(1), tried=(1, 3))

    @property
    def task(self) -> SubspaceLearning:
        """A subspace of the dimension chosen."""
        return SubspaceLearning(self.n_components)

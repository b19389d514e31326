"""The arguments of `Learner.fit` beside the accessor, and its outputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from budgetreg.metering.accessor import Accessor
from budgetreg.revealed.purchases import Purse
from budgetreg.tasks import Outputs


class BudgetSplit(NamedTuple):
    """The division of the budget k."""

    k_x: int
    """Draws for the data point."""
    k_ip: int
    """Draws for the inner product."""


@dataclass(frozen=True)
class SideInformation:
    """Information that a learner is given beside examples and parameters.

    Attributes
    ----------
    k : int
        Attribute budget; all attributes if there is a purse.
    budget_split : BudgetSplit or None
        How the budget is divided, for learners that divide it.
    moments : ndarray of float, shape (F, d), or None
        Second moments of the attributes, for learners that are given them.
    centred : bool
        For learners that centre what they see themselves: whether attributes are centred on the means of what was
        seen. Other learners get centred attributes from the accessor.
    intercept : bool
        For the same learners: whether the mean of the targets is predicted at these means. Other learners get
        centred targets from the accessor.
    scaled : bool
        For learners that scale what they see themselves: whether attributes are divided by the standard deviations of
        what was seen. The regressors that they yield are for attributes as the accessor returns them.
    prices : ndarray of float, shape (d,), or None
        What attributes cost, for price-aware learners; all above 0.
    raw : bool
        Whether the learner sees the values of the data, scaled perhaps. If not, means that nobody paid for have been
        subtracted, and a value of 0 or another constant has no meaning.
    purse : Purse or None
        For learners that choose how many attributes they see of each example (`Learner.chooses_k`): what they may
        spend. Checkpoints are then amounts, the last of which is the total.
    """

    k: int
    budget_split: BudgetSplit | None = None
    moments: np.ndarray | None = None
    centred: bool = False
    intercept: bool = False
    scaled: bool = False
    prices: np.ndarray | None = None
    raw: bool = True
    purse: Purse | None = None

    @property
    def split(self) -> BudgetSplit:
        """The division of the budget, for learners that always divide it."""
        assert self.budget_split is not None
        return self.budget_split


Trajectory = Iterator[tuple[int, Outputs]]
"""Checkpoints with the outputs of all settings along all streams."""
Settings = Mapping[str, np.ndarray]
"""Parameters in absolute values, shape (G,) each."""
Rngs = Sequence[np.random.Generator]
"""One random generator per stream."""
Fit = Callable[[Accessor, Settings, Sequence[int], Rngs, SideInformation], Trajectory]

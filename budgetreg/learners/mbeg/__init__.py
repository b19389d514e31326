"""MBEG and MBEG+: matrix exponentiated gradient on pairs of attributes, which its weight matrix chooses.

References
----------
A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz. Subspace Learning with Partial Information. JMLR 17, 2016,
Algorithm 2.  MBEG+ is ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from budgetreg.config.options import option
from budgetreg.config.requirements import FRACTION, ONE, ZERO, one_of
from budgetreg.enumeration.expectations import Oracle
from budgetreg.errors import ConfigError
from budgetreg.learners.bases import SubspaceLearner
from budgetreg.learners.declaration import (
    ONE_PASS,
    STEP_SIZE,
    Batching,
    BudgetSplit,
    Cost,
    Missing,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    Theorem,
    Trajectory,
)
from budgetreg.metering.accessor import Accessor
from budgetreg.theory import mbeg_bound, mbeg_least_examples, mbeg_step

_UPDATES = {
    "pairs": "matrix exponentiated gradient",
    "singles": "matrix exponentiated gradient, the diagonal estimated from single attributes",
}


@dataclass(frozen=True)
class MatrixGradientLearner(SubspaceLearner):
    """What estimates the diagonal, how pairs are mixed, and what is output; see `budgetreg.learners.mbeg.core.fit`.

    Attributes
    ----------
    n_components : int
        Dimension n of the subspace, from 1 to d.
    update : {'pairs', 'singles'}
        The estimate of the diagonal: from pairs of an attribute with itself (MBEG), or from every attribute seen
        (MBEG+), see `from_pairs` and `from_singles` in `budgetreg.learners.mbeg.estimates`.
    alpha : float or 'theory'
        Share of uniform pairs, in [0, 1]; 'theory': ``eta d^2``, at most 1/2.
    output : {'decompose', 'top'}
        How the average of the weight matrices becomes a subspace. 'decompose' writes it as a mixture of projections
        and draws one; 'top' takes its n leading eigenvectors.
    """

    update: str = option("the update", one_of(*_UPDATES), tried=())
    alpha: float | str = option(
        "the share of uniform pairs", one_of("theory") | ZERO | FRACTION | ONE, tried=("theory", 0, 0.3, 1)
    )
    output: str = option("what becomes of the average of the weight matrices", one_of("decompose", "top"))

    core = "mbeg"
    version = 2
    parameters = (STEP_SIZE,)
    tuned = ("eta",)
    batching = Batching.IN_STEP
    k_multiple = 2
    missing = Missing.WEIGHED
    skipped_checks: ClassVar[Mapping[str, str]] = {"minimiser": ONE_PASS}

    def fit(
        self, accessor: Accessor, settings: Settings, checkpoints: Sequence[int], rngs: Rngs, given: SideInformation
    ) -> Trajectory:
        """Run `budgetreg.learners.mbeg.core.fit`."""
        from budgetreg.learners.mbeg import core

        return core.fit(self, accessor, settings, checkpoints, rngs, given)

    def split_budget(self, k: int) -> BudgetSplit | None:
        """Refuse budgets that are not made of pairs.

        Raises
        ------
        ConfigError
            If the budget is 1 or odd.
        """
        super().split_budget(k)
        if k % 2:
            raise ConfigError(f"k={k}: {self.name} sees attributes in pairs and needs an even budget")
        return None

    def cost(self, d: int, k: int, settings: Mapping[str, float]) -> Cost:
        """Return the mean cost: one of d pairs is an attribute with itself, whatever the weights, and costs 1."""
        mean = k - k / (2 * d)
        return Cost(mean, mean)

    def theory(self, run: RunContext, B: float | None) -> Mapping[str, float]:
        """Return the step size of Gonen et al. 2016."""
        return {"eta": mbeg_step(run.k, run.d, run.m)}

    def notes(self, run: RunContext, settings: Mapping[str, Sequence[float]]) -> Sequence[str]:
        """Warn if the theorem does not hold, which needs ``alpha = eta d^2`` and at most 1/2."""
        eta = max(settings["eta"])
        if self.alpha != "theory" or eta * run.d**2 <= 1 / 2:
            return ()
        return (
            f"{self.name} is outside its theory: alpha = eta d^2 would be {eta * run.d**2:.2g} for eta up to "
            f"{eta:.2g}, and is set to 1/2; with theory's eta, it takes {mbeg_least_examples(run.k, run.d):.2g} "
            "examples to be inside",
        )

    @property
    def words(self) -> Sequence[str]:
        """What it sees and how it moves."""
        return "k attributes per example, in pairs", _UPDATES.get(self.update, "")

    @property
    def theorem(self) -> Theorem | None:
        """Theorem 7 of Gonen et al. 2016."""
        if (self.update, self.alpha, self.output) != ("pairs", "theory", "decompose"):
            return None
        n = self.n_components
        return Theorem(
            lambda B, d, m, k: mbeg_bound(n, d, k, m) if m >= mbeg_least_examples(k, d) else np.nan,
            "2-ball",
        )

    @property
    def oracle(self) -> Oracle:
        """The distribution of pairs and of what they estimate."""
        from budgetreg.learners.mbeg.oracle import PairsOracle

        return PairsOracle(self)

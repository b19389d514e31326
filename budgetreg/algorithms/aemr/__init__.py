"""AEMR: a regression of the target on what was seen, under a factor model of it; ours.

The factor model is that of AEML. `target_regression` regresses the target given what the model expects of attributes
that were not seen, and names its sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from budgetreg.algorithms.factors import FactorRegression
from budgetreg.config.options import option, whole

if TYPE_CHECKING:
    import numpy as np

    from budgetreg.algorithms.factors.posterior import Known
    from budgetreg.algorithms.learner import Rngs, SideInformation
    from budgetreg.metering.table import WithIntercept


@dataclass(frozen=True)
class TargetRegressionLearner(FactorRegression):
    """AEMR: the factor model's regressor, and a regression of the target as far as it is clearly better.

    Draws are planned when AEML's are, a third of them by the second moments of the weights' posterior.

    Attributes
    ----------
    n_factors : int
        Factors of the model, capped at d.
    """

    n_factors: int = option("the factors of the factor model", whole(1), tried=(2,))

    core = "target_regression"
    version = 18
    check_streams = 48
    regresses = True

    def regressors(self, known: Known, given: SideInformation, *rngs: Rngs) -> WithIntercept:
        """Return the average regressors of all streams."""
        from budgetreg.algorithms.aemr.target_regression import average_regressors

        return average_regressors(known, *rngs, centred=given.centred, intercept=given.intercept)

    def expected_parts(self, known: Known, given: SideInformation, *rngs: Rngs) -> np.ndarray:
        """Return the posterior means of ``w_i^2 s_i^2``."""
        from budgetreg.algorithms.aemr.target_regression import expected_parts

        return expected_parts(known, *rngs, centred=given.centred, intercept=given.intercept)

    @property
    def words(self) -> Sequence[str]:
        """How it draws and what it solves."""
        return self.draws_in_words, f"regression of the target under a model with {self.n_factors} factors"

"""The expected behaviour of each learner, by its class."""

from collections.abc import Callable, Mapping
from typing import Any

from budgetreg.algorithms.aemr import MomentRegression
from budgetreg.algorithms.cesa_bianchi_2010 import Baseline
from budgetreg.algorithms.comparison.fixed_subset import FixedSubset
from budgetreg.algorithms.comparison.imputation import ImputationLearner
from budgetreg.algorithms.comparison.sgd_impute import ImputedGradientLearner
from budgetreg.algorithms.factors import FactorRegression, StreamingFactorAnalysis
from budgetreg.algorithms.full_rows import ExactGradientLearner, OfflineLearner
from budgetreg.algorithms.gonen_2016.mbeg import MatrixGradientLearner
from budgetreg.algorithms.gonen_2016.popca import SecondMomentLearner
from budgetreg.algorithms.hazan_koren_2012.aesvr import SupportVectorLearner
from budgetreg.algorithms.hazan_koren_2012.gradients import GradientLearner
from budgetreg.algorithms.kukliansky_shamir_2015 import TwoPhaseLearner
from budgetreg.algorithms.learner import Learner
from budgetreg.testing.certificates import BallOracle, FullRowsOracle, largest, one_norm, two_norm
from budgetreg.testing.expectations import Oracle
from budgetreg.testing.one_pass import SlopeOracle, all_attributes, imputed_steps, one_pass, two_phases
from budgetreg.testing.stored import FixedSubsetOracle, ImputationOracle, PairEstimatesOracle
from budgetreg.testing.subspaces import PairsOracle, SecondMomentOracle

_NORMS = {"ridge": (two_norm, two_norm), "lasso": (one_norm, largest)}
_LEAST_RIDGE = 11.0
"""The candidate of AEMR's spectrum with the least ridge, which many full rows leave nothing to."""

_ORACLES: Mapping[type[Learner], Callable[[Any], Oracle]] = {
    Baseline: lambda learner: PairEstimatesOracle(learner.update),
    GradientLearner: one_pass,
    SupportVectorLearner: SlopeOracle,
    TwoPhaseLearner: two_phases,
    SecondMomentLearner: SecondMomentOracle,
    MatrixGradientLearner: PairsOracle,
    ExactGradientLearner: all_attributes,
    OfflineLearner: lambda learner: BallOracle(*_NORMS[learner.update]),
    ImputedGradientLearner: imputed_steps,
    ImputationLearner: lambda learner: ImputationOracle(learner.rescale),
    FixedSubset: lambda learner: FixedSubsetOracle(rescale=True),
    MomentRegression: lambda learner: FullRowsOracle({"candidate": [_LEAST_RIDGE]}),
    FactorRegression: lambda learner: FullRowsOracle(),
    StreamingFactorAnalysis: lambda learner: FullRowsOracle(),
}


def oracle_of(learner: Learner) -> Oracle:
    """Return the expected behaviour of a learner: what its class declares, or what is stated here."""
    declared: Oracle | None = learner.oracle
    if declared is not None:
        return declared
    stated = (_ORACLES[parent] for parent in type(learner).__mro__ if parent in _ORACLES)
    return next(stated, lambda learner: Oracle())(learner)

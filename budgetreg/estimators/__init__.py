"""The learners as estimators, by scikit-learn's conventions.

Each learner has a class, whose parameters are its options. ``fit(X, y)`` sees only what is bought: NaN marks a cell
that was not, and ``k`` limits how many attributes of each example are seen. The numbers are those of ``budgetreg fit``
on the same table in a file ``table.csv``.

>>> import numpy as np
>>> from budgetreg.estimators import AEML
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(60, 3))
>>> y = X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=60)
>>> X[rng.random(X.shape) < 0.5] = np.nan
>>> model = AEML(n_factors=2).fit(X, y)
>>> model.attributes_seen_ == int(np.count_nonzero(~np.isnan(X)))
True
>>> predictions, deviations = model.predict([[1.0, np.nan, 0.0]], return_std=True)
"""

from typing import TYPE_CHECKING, Any

from budgetreg.estimators.base import BudgetEstimator, BudgetRegressor, SubspaceEstimator
from budgetreg.estimators.containers import ObservationError
from budgetreg.estimators.parameters import arguments, constructor, docstring, learner_of

_NAMES = {
    "AEFA": "aefa",
    "AEFAStreaming": "aefa_streaming",
    "AELR": "aelr",
    "AEML": "aeml",
    "AEMR": "aemr",
    "AER": "aer",
    "AERR": "aerr",
    "AESVR": "aesvr",
    "Baseline": "baseline",
    "CoCoLasso": "cocolasso",
    "CorrectedLasso": "corrected_lasso",
    "CorrectedRidge": "corrected_ridge",
    "DDAELR": "ddaelr",
    "DDAELRTwoPhase": "ddaelr_two_phase",
    "DDAERR": "ddaerr",
    "DDAERRTwoPhase": "ddaerr_two_phase",
    "DebiasedSGD": "debiased_sgd",
    "Exploration": "exploration",
    "FixedSubset": "fixed_subset",
    "GROUSE": "grouse",
    "HMLasso": "hmlasso",
    "Hybrid": "hybrid",
    "ImputeIterative": "impute_iterative",
    "ImputeRidge": "impute_ridge",
    "Lasso": "lasso",
    "MBEG": "mbeg",
    "MBEGPlus": "mbeg_plus",
    "Naive": "naive",
    "NormalML": "normal_ml",
    "Oja": "oja",
    "OnlineLasso": "online_lasso",
    "OnlineRidge": "online_ridge",
    "PCA": "pca",
    "PETRELS": "petrels",
    "POPCA": "popca",
    "POPCAImportance": "popca_importance",
    "POPCAPassive": "popca_passive",
    "PrimePCA": "prime_pca",
    "Ridge": "ridge",
    "SGDImpute": "sgd_impute",
    "TwoPhaseSparse": "two_phase_sparse",
    "ZeroFilledPCA": "zero_filled_pca",
}
"""The class of each learner; those whose constants are tuned have another one, whose name ends in CV."""


def _estimator(name: str, algo: str, tuned: bool) -> type[BudgetEstimator]:
    """Return the class of a learner."""
    base: type[Any] = BudgetRegressor if learner_of(algo).predicts else SubspaceEstimator
    listed = arguments(algo, tuned)
    members = {
        "__module__": __name__,
        "__doc__": docstring(name, algo, tuned, listed, base.attributes),
        "__init__": constructor(listed),
        "algo": algo,
        "tuned": tuned,
    }
    return type(name, (base,), members)


ESTIMATORS: dict[str, type[BudgetEstimator]] = {}
"""All estimators by name."""
for _name, _algo in _NAMES.items():
    ESTIMATORS[_name] = _estimator(_name, _algo, False)
    if learner_of(_algo).tuned:
        ESTIMATORS[f"{_name}CV"] = _estimator(f"{_name}CV", _algo, True)
globals().update(ESTIMATORS)

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[Any]:
        """Type checkers cannot see classes that are made at run time."""


__all__ = ["ESTIMATORS", "BudgetEstimator", "ObservationError", *ESTIMATORS]

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

from budgetreg.config.catalogue import conf_dir
from budgetreg.estimators.base import BudgetEstimator, BudgetRegressor, SubspaceEstimator
from budgetreg.estimators.containers import ObservationError
from budgetreg.estimators.parameters import arguments, constructor, docstring, learner_of

_ACRONYMS = {
    *("aefa", "aelr", "aeml", "aemr", "aer", "aerr", "aesvr", "ddaelr", "ddaerr"),
    *("grouse", "mbeg", "ml", "pca", "petrels", "popca", "sgd"),
}
_IRREGULAR = {"cocolasso": "CoCoLasso", "hmlasso": "HMLasso"}


def _name(algo: str) -> str:
    """Return the name of a learner's class, such as ``AEFAStreaming`` of ``aefa_streaming``."""
    words = (word.upper() if word in _ACRONYMS else word.capitalize() for word in algo.split("_"))
    return _IRREGULAR.get(algo, "".join(words))


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
"""All estimators by name: one of each learner, and if its constants are tuned another one, whose name ends in CV."""
for _algo in sorted(path.stem for path in (conf_dir() / "algo").glob("*.yaml")):
    ESTIMATORS[_name(_algo)] = _estimator(_name(_algo), _algo, False)
    if learner_of(_algo).tuned:
        ESTIMATORS[f"{_name(_algo)}CV"] = _estimator(f"{_name(_algo)}CV", _algo, True)
globals().update(ESTIMATORS)

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[Any]:
        """Type checkers cannot see classes that are made at run time."""


__all__ = ["ESTIMATORS", "BudgetEstimator", "ObservationError", *ESTIMATORS]

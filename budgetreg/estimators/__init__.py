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


def _estimator(algo: str, tuned: bool) -> type[BudgetEstimator]:
    """Return the class of a learner, such as ``AEFAStreaming`` of ``aefa_streaming``; if it is tuned, it ends in CV."""
    words = (word.upper() if word in _ACRONYMS else word.capitalize() for word in algo.split("_"))
    name = _IRREGULAR.get(algo, "".join(words)) + ("CV" if tuned else "")
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


_CLASSES = [
    _estimator(algo, tuned)
    for algo in sorted(path.stem for path in (conf_dir() / "algo").glob("*.yaml"))
    for tuned in ((False, True) if learner_of(algo).tuned else (False,))
]
ESTIMATORS: dict[str, type[BudgetEstimator]] = {estimator.__name__: estimator for estimator in _CLASSES}
"""All estimators by name: one of each learner, and if its constants are tuned another one, whose name ends in CV."""
globals().update(ESTIMATORS)

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[Any]:
        """Type checkers cannot see classes that are made at run time."""


__all__ = ["ESTIMATORS", "BudgetEstimator", "ObservationError", *ESTIMATORS]

"""The base class of the estimators, which check their input and learn as `budgetreg fit` does."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length

from budgetreg.algorithms.learner import Learner, Missing
from budgetreg.data.dataset import Sparse, Values, label, size_fault
from budgetreg.errors import UserError
from budgetreg.estimators.containers import checked, largest_of, plain, refuse_sizes
from budgetreg.estimators.observed import Observe, Observed
from budgetreg.estimators.parameters import learner_of, python_name, sees_all
from budgetreg.notices import Notice
from budgetreg.protocol.in_memory import Choices, Learned, learn_table
from budgetreg.protocol.plan import listed, of_unknown_scale

_OWN = ("grid", "folds", "fit_intercept", "center", "pilot", "scale", "random_state", "k")
"""Parameters that are no options of the learner and none of its constants."""

_MOST_SEEDS = 2**31


class BudgetEstimator(BaseEstimator):
    """Base class of the estimators.

    Attributes
    ----------
    algo : str
        The name of the learner on the command line.
    tuned : bool
        Whether cross-validation chooses the learner's constants.
    """

    algo: ClassVar[str]
    tuned: ClassVar[bool]
    k: int | None
    n_features_in_: int

    @property
    def _learner(self) -> Learner:
        return learner_of(self.algo)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        n_features: int | None = None,
        known: np.ndarray | None = None,
        **refused: Any,
    ) -> "BudgetEstimator":
        """Learn from the values that are present, or that a function observes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or callable
            NaN marks a cell that was not bought, and so do a mask and pandas' NA. A callable
            ``observe(example, attributes)`` returns the values of attributes of an example; it is called with an int
            and an array of distinct ints, while it learns.
        y : array-like of shape (n,)
            Targets. Learners of subspaces ignore them; with a callable, their number is that of the examples.
        n_features : int, optional
            Number of attributes d. It is needed with a callable, and for nothing else.
        known : ndarray of float, shape (n, d), optional
            Values that a callable is not asked for again, NaN elsewhere: those of an `ObservationError`, for example.
        **refused
            Nothing: ``sample_weight`` has no meaning here.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If a cell holds an object that is no number.
        ValueError
            If a parameter or the data cannot be used.
        ObservationError
            If an example cannot be observed. What was learned by an earlier call of `fit` stays as it was.
        """
        if refused:
            name = next(iter(refused))
            reason = (
                "examples have no weights, because each is bought once"
                if name == "sample_weight"
                else "no such argument"
            )
            raise ValueError(f"{type(self).__name__}.fit: {name}: {reason}")
        if callable(X) and not hasattr(X, "shape"):
            values: np.ndarray | Values
            values, target = self._observed(X, y, n_features, known)
            names: tuple[str, ...] = ()
            d, fitted_names = values.shape[1], None
        else:
            if n_features is not None or known is not None:
                raise ValueError("n_features and known are for a callable only: an array has values and a shape")
            values, target = self._checked(X, y)
            d, fitted_names = self.n_features_in_, getattr(self, "feature_names_in_", None)
            names = () if fitted_names is None else tuple(map(str, fitted_names))
        learned = self._learned(self._choices(callable(X)), values, target, names)
        self.n_features_in_ = d
        if fitted_names is None and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._adopt(learned)
        return self

    def _learned(
        self,
        choices: Choices,
        values: np.ndarray | Values,
        target: np.ndarray | None,
        names: Sequence[str],
        ordered: bool = False,
    ) -> Learned:
        """Return what is learned from checked values and targets."""
        if target is not None and (why := size_fault(float(largest_of(target[:, None])[0]))):
            raise ValueError(f"y: {why}")
        try:
            learned = learn_table(choices, values, target, names, ordered)
        except UserError as error:
            raise ValueError(f"{type(self).__name__}: {error}") from error
        if isinstance(values, Observed):
            values.refuse_small()
        return learned

    def _adopt(self, learned: Learned) -> None:
        """Set the fitted attributes, and warn of attributes that are left out."""
        if learned.left_out:
            names = getattr(self, "feature_names_in_", None)
            shown = [label(i, () if names is None else list(map(str, names)), ()) for i in learned.left_out]
            warnings.warn(f"{of_unknown_scale()}: {listed(shown)}", Notice, stacklevel=4)
        self.attributes_seen_ = int(learned.run["attributes_total"])
        if self.tuned:
            self.best_params_ = {python_name(name): learned.run[f"p_{name}"] for name in self._learner.tuned}
            self.attributes_tuning_ = int(learned.run["attributes_tuning"])
        self._keep(learned)

    def _keep(self, learned: Learned) -> None:
        """Store what was learned."""
        raise NotImplementedError

    def _choices(self, on_demand: bool) -> Choices:
        """Return what the parameters say, as values."""
        learner, given = self._learner, {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        if given["k"] is None and not sees_all(learner):
            raise ValueError(f"{type(self).__name__}: k is needed, the number of attributes to see of each example")
        constants = {} if self.tuned else {name: python_name(name) for name in learner.tuned}
        missing = [name for name in constants.values() if given[name] is None]
        if missing:
            raise ValueError(
                f"{type(self).__name__}: {' and '.join(missing)} must be given; {type(self).__name__}CV chooses them"
            )
        if on_demand:
            self._refuse_unpaid()
        state = given["random_state"]
        choices = Choices(
            self.algo,
            given["k"],
            state if isinstance(state, int) else check_random_state(state).randint(_MOST_SEEDS),
            {name: value for name, value in given.items() if name not in (*_OWN, *constants.values())},
            {name: given[parameter] for name, parameter in constants.items()} if constants else None,
            center=given["center"],
            scale=given["scale"],
        )
        if self.tuned:
            grid = {name: list(values) for name, values in (given["grid"] or {}).items()}
            choices = replace(choices, grid=grid, folds=given["folds"])
        if learner.predicts:
            choices = replace(choices, intercept="mean" if given["fit_intercept"] else "none", pilot=given["pilot"])
        return choices

    def _refuse_unpaid(self) -> None:
        """Refuse parameters that need all values beforehand: they are observed while the estimator learns."""
        name, given = type(self).__name__, self.get_params(deep=False)
        default = "revealed" if self._learner.predicts else "max_abs"
        if self.tuned:
            raise ValueError(
                f"{name}: cross-validation needs full rows; use {name.removesuffix('CV')} and give its constants"
            )
        if (given["scale"] or default) == "max_abs":
            raise ValueError(f"{name}: scale='max_abs' needs all values; use scale='none'")
        if given["center"] == "full":
            raise ValueError(f"{name}: center='full' needs all values; use center='none'")
        if given.get("moments") == "given":
            raise ValueError(f"{name}: moments='given' needs all values; use moments='pilot'")

    def _checked(self, X: Any, y: Any) -> tuple[np.ndarray | Values, np.ndarray | None]:
        """Return values and targets, checked as scikit-learn does."""
        learner = self._learner
        finite: bool | str = True if learner.missing is Missing.REFUSED else "allow-nan"
        X = checked(self, X, ensure_all_finite=finite, ensure_min_features=2, ensure_min_samples=2)
        refuse_sizes(X, "X", getattr(self, "feature_names_in_", ()))
        target = None
        if learner.predicts:
            target = self._targets(y)
            check_consistent_length(X, target)
        return _values(X), target

    def _targets(self, y: Any) -> np.ndarray:
        """Return checked targets."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        finite: bool | str = "allow-nan" if self._learner.unlabelled else True
        if np.ma.is_masked(y):
            raise ValueError("y has masked targets: leave out their examples, or fill them in")
        y = column_or_1d(plain(y, "y"), warn=True)
        target = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=finite, input_name="y")
        if np.isnan(target).all():
            raise ValueError("Input y contains NaN only: at least one target is needed")
        return np.asarray(target)

    def _observed(
        self, observe: Observe, y: Any, d: int | None, known: np.ndarray | None
    ) -> tuple[Observed, np.ndarray | None]:
        """Return the values that a function observes, and the targets."""
        if d is None or y is None:
            raise ValueError("fit(observe, y=y, n_features=d): y and n_features are needed with a callable")
        target = self._targets(y) if self._learner.predicts else None
        shape = (len(y), d)
        values = np.full(shape, np.nan) if known is None else np.array(plain(known, "known"), dtype=np.float64)
        if values.shape != shape or np.isinf(values).any():
            raise ValueError(f"known has shape {values.shape}; finite values or NaN of shape {shape} are needed")
        refuse_sizes(values, "known", small=False)
        return Observed(observe, values), target

    def __sklearn_tags__(self) -> Any:
        """Describe what data it accepts."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._learner.missing is not Missing.REFUSED
        return tags


def _values(X: Any) -> np.ndarray | Values:
    """Return checked values: dense, or sparse if some are stored and none is missing."""
    if isinstance(X, np.ndarray):
        return X
    if not X.nnz or np.isnan(X.data).any():
        return np.asarray(X.toarray())
    return Sparse(X.indptr, X.indices, X.data, X.shape[1])


def _plain(value: Any) -> Any:
    """Return a number of NumPy as Python's own."""
    return value.item() if isinstance(value, np.generic) else value

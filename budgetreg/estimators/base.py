"""What all estimators do: check their input, learn as `budgetreg fit` does, and predict or project."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from budgetreg.data.values import Sparse, Values
from budgetreg.errors import UserError
from budgetreg.estimators.observed import Observe, Observed
from budgetreg.estimators.parameters import learner_of, python_name, sees_all
from budgetreg.learners.declaration import Learner, Missing
from budgetreg.protocol.in_memory import Learned, all_present, learn_table
from budgetreg.solvers.conditional import conditional_means, conditional_variances

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
            NaN marks a cell that was not bought. A callable ``observe(example, attributes)`` returns the values of
            attributes of an example; it is called with an int and an array of distinct ints, while it learns.
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
        ValueError
            If a parameter or the data cannot be used.
        ObservationError
            If an example cannot be observed. What was learned by an earlier call of `fit` stays as it was.
        """
        if refused:
            name = next(iter(refused))
            reason = (
                "examples have no weights, as each is bought once" if name == "sample_weight" else "no such argument"
            )
            raise ValueError(f"{type(self).__name__}.fit: {name}: {reason}")
        if callable(X) and not hasattr(X, "shape"):
            values: np.ndarray | Values
            values, target = self._observed(X, y, n_features, known)
            names: tuple[str, ...] = ()
            d, fitted_names = values.shape[1], None
        else:
            if n_features is not None or known is not None:
                raise ValueError("n_features and known are for a callable; X has its values and its shape")
            values, target = self._checked(X, y)
            d, fitted_names = self.n_features_in_, getattr(self, "feature_names_in_", None)
            names = () if fitted_names is None else tuple(map(str, fitted_names))
        try:
            learned = learn_table(self._choices(d, callable(X)), values, target, names)
        except UserError as error:
            raise ValueError(f"{type(self).__name__}: {error}") from error
        self.n_features_in_ = d
        if fitted_names is None and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.attributes_seen_ = int(learned.run["attributes_total"])
        if self.tuned:
            self.best_params_ = {python_name(name): learned.run[f"p_{name}"] for name in self._learner.tuned}
            self.attributes_tuning_ = int(learned.run["attributes_tuning"])
        self._keep(learned)
        return self

    def _keep(self, learned: Learned) -> None:
        """Store what was learned."""
        raise NotImplementedError

    def _choices(self, d: int, on_demand: bool) -> dict[str, Any]:
        """Return the choices of the command."""
        learner, given = self._learner, self.get_params(deep=False)
        if given["k"] is None and not sees_all(learner):
            raise ValueError(f"{type(self).__name__}: k is needed, the number of attributes to see of each example")
        constants = {} if self.tuned else {python_name(name): name for name in learner.tuned}
        missing = [name for name in constants if given[name] is None]
        if missing:
            raise ValueError(
                f"{type(self).__name__}: {' and '.join(missing)} must be given; {type(self).__name__}CV chooses them"
            )
        state = given["random_state"]
        seed = int(state) if isinstance(state, int | np.integer) else check_random_state(state).randint(_MOST_SEEDS)
        choices = {"algo": self.algo, "seed": seed}
        choices |= all_present(self.algo, d) if given["k"] is None else {"k": given["k"]}
        choices |= {f"algo.{name}": given[name] for name in given if name not in (*_OWN, *constants)}
        choices |= {f"tuning.{constants[name]}": given[name] for name in constants}
        choices |= {f"dataset.{name}": given[name] for name in ("center", "scale") if given[name] is not None}
        choices["dataset.missing"] = "unavailable"
        if learner.tuned:
            choices["tuning"] = "cv" if self.tuned else "fixed"
        if self.tuned:
            choices["tuning.folds"] = given["folds"]
            choices |= {f"algo.grid.{name}": list(values) for name, values in (given["grid"] or {}).items()}
        if learner.predicts:
            choices["intercept"] = "mean" if given["fit_intercept"] else "none"
            if given["pilot"] is not None:
                choices["pilot"] = given["pilot"]
        if on_demand:
            self._refuse_unpaid(choices)
        return {key: value.item() if isinstance(value, np.generic) else value for key, value in choices.items()}

    def _refuse_unpaid(self, choices: Mapping[str, Any]) -> None:
        """Refuse what needs all values beforehand, which nobody has if they are observed while it learns."""
        name = type(self).__name__
        default = "revealed" if self._learner.predicts else "max_abs"
        if self.tuned:
            raise ValueError(f"{name}: cross-validation sees full rows; give its constants, without CV")
        if choices.get("dataset.scale", default) == "max_abs":
            raise ValueError(f"{name}: scale='max_abs' needs all values; use scale='none'")
        if choices.get("dataset.center") == "full":
            raise ValueError(f"{name}: center='full' needs all values; use center='none'")
        if choices.get("algo.moments") == "given":
            raise ValueError(f"{name}: moments='given' needs all values; use moments='pilot'")

    def _checked(self, X: Any, y: Any) -> tuple[np.ndarray | Values, np.ndarray | None]:
        """Return values and targets, checked as scikit-learn does."""
        learner = self._learner
        finite: bool | str = True if learner.missing is Missing.REFUSED else "allow-nan"
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            ensure_all_finite=finite,
            ensure_min_features=2,
            ensure_min_samples=2,
        )
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
        y = column_or_1d(y, warn=True)
        checked = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=finite, input_name="y")
        if np.isnan(checked).all():
            raise ValueError("Input y contains NaN only: at least one target is needed")
        return np.asarray(checked)

    def _observed(
        self, observe: Observe, y: Any, d: int | None, known: np.ndarray | None
    ) -> tuple[Observed, np.ndarray | None]:
        """Return the values that a function observes, and the targets."""
        if d is None or y is None:
            raise ValueError("fit(observe, y=y, n_features=d): y and n_features are needed with a callable")
        target = self._targets(y) if self._learner.predicts else None
        shape = (len(y), d)
        values = np.full(shape, np.nan) if known is None else np.array(known, dtype=np.float64)
        if values.shape != shape or np.isinf(values).any():
            raise ValueError(f"known has shape {values.shape}; finite values or NaN of shape {shape} are needed")
        return Observed(observe, values), target

    def __sklearn_tags__(self) -> Any:
        """Describe what data it accepts."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._learner.missing is not Missing.REFUSED
        return tags


class BudgetRegressor(RegressorMixin, BudgetEstimator):
    """Base class of the estimators that predict a target."""

    attributes: ClassVar[Mapping[str, str]] = {
        "coef_ : ndarray of shape (d,)": "The regressor.",
        "intercept_ : float": "The prediction where all attributes are 0.",
        "attributes_seen_ : int": "The bill: attributes charged, those that cross-validation saw not counted.",
        "n_features_in_ : int": "Number of attributes d.",
        "feature_names_in_ : ndarray of shape (d,)": "Names of the attributes, if all are text.",
    }

    def _keep(self, learned: Learned) -> None:
        model = learned.model
        self.coef_ = model["w"]
        self.intercept_ = float(model["b"] - model["w"] @ model["c"])
        self._b, self._c = float(model["b"]), model["c"]
        self.mean_: Any = None
        self.covariance_: Any = None
        self.noise_variance_: Any = None
        if learned.moments is not None:
            mean, covariance = learned.moments
            contrast = np.append(-self.coef_, 1.0)
            self.mean_, self.covariance_ = mean[:-1], covariance[:-1, :-1]
            self.noise_variance_ = max(0.0, float(contrast @ covariance @ contrast))

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return predictions, by the expectation of what is missing.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            NaN marks what is not known. Only learners that model the attributes accept it.
        return_std : bool
            Whether to return standard deviations, too; for learners that model the attributes.

        Returns
        -------
        predictions : ndarray of shape (n,)
        deviations : ndarray of shape (n,)
            If asked for.
        """
        check_is_fitted(self)
        mean, covariance = self.mean_, self.covariance_
        modelled = mean is not None and covariance is not None
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite="allow-nan" if modelled else True,
        )
        if return_std and not modelled:
            raise ValueError(f"{type(self).__name__} does not model the attributes, and knows no standard deviation")
        X = X if isinstance(X, np.ndarray) else X.toarray()
        whole = conditional_means(mean, covariance, X) if np.isnan(X).any() else X
        # Column by column, as `budgetreg predict` reads them: the bits are the same.
        predictions = self._b + (np.asfortranarray(whole) - self._c) @ self.coef_
        if not return_std:
            return np.asarray(predictions)
        return predictions, np.sqrt(conditional_variances(covariance, self.coef_, X) + self.noise_variance_)

    def __sklearn_tags__(self) -> Any:
        """Describe what can be expected: little, with few attributes or untuned constants."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.k is not None or bool(self._learner.tuned)
        return tags


class SubspaceEstimator(TransformerMixin, BudgetEstimator):
    """Base class of the estimators that project examples onto a subspace."""

    attributes: ClassVar[Mapping[str, str]] = {
        "components_ : ndarray of shape (n_components, d)": "Orthonormal rows, for ``(x - mean_) * scale_``.",
        "mean_, scale_ : ndarray of shape (d,)": "What is subtracted from attributes, and what they are multiplied by.",
        "attributes_seen_ : int": "The bill: attributes charged, those that cross-validation saw not counted.",
        "n_features_in_ : int": "Number of attributes d.",
        "feature_names_in_ : ndarray of shape (d,)": "Names of the attributes, if all are text.",
    }

    def _keep(self, learned: Learned) -> None:
        model = learned.model
        self.components_ = np.ascontiguousarray(model["V"].T)
        self.mean_, self.scale_ = model["c"], model["scale"]

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates (n, n_components) of complete examples in the subspace."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        X = X if isinstance(X, np.ndarray) else X.toarray()
        return np.asarray(((X - self.mean_) * self.scale_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the examples (n, d) that coordinates (n, n_components) describe."""
        check_is_fitted(self)
        X = check_array(X, dtype=np.float64)
        return np.asarray((X @ self.components_) / self.scale_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def _values(X: Any) -> np.ndarray | Values:
    """Return checked values: dense, or sparse if some are stored and none is missing."""
    if isinstance(X, np.ndarray):
        return X
    X = X.copy()
    X.sum_duplicates()
    if not X.nnz or np.isnan(X.data).any():
        return np.asarray(X.toarray())
    return Sparse(X.indptr, X.indices, X.data, X.shape[1])

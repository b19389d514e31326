"""The base classes of the estimators, which check their input and learn as `budgetreg fit` does.

`BudgetEstimator` fits, and goes on with further examples, of which it stores only the attributes seen.
`BudgetRegressor` predicts a target, and `SubspaceEstimator` projects examples onto a subspace.
"""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from budgetreg.algorithms.conditional import conditional_means, conditional_variances
from budgetreg.algorithms.learner import Learner, Missing
from budgetreg.common.errors import UserError
from budgetreg.common.notices import Notice
from budgetreg.config.options import options_of
from budgetreg.data.dataset import Sparse, Values, label, numbered, size_fault
from budgetreg.data.tables import text_of
from budgetreg.estimators.containers import Observe, Observed, checked, each_of, largest_of, plain, refuse_sizes
from budgetreg.estimators.parameters import learner_of, python_name, sees_all
from budgetreg.protocol.in_memory import FitOptions, Learned, learn_table
from budgetreg.protocol.plan import listed, of_unknown_scale

_UNPAID = {"scale": ("max_abs", "none"), "center": ("full", "none"), "moments": ("given", "pilot")}
"""Values of parameters that need the whole table, and what to use if its values are observed during learning."""
_ATTRIBUTES = {
    "attributes_seen_ : int": "The bill: attributes charged, without those that cross-validation saw.",
    "cost_ : float or None": "The same bill in money, if there are `costs`.",
    "n_features_in_ : int": "Number of attributes d.",
    "feature_names_in_ : ndarray of shape (d,)": "Names of the attributes, if all are text.",
}


@dataclass(frozen=True)
class Seen:
    """The stored values of earlier examples.

    Attributes
    ----------
    choices : FitOptions
        What the parameters said.
    shape : tuple of int
        Number of examples n, and of attributes d.
    y : ndarray of float, shape (n,), or None
        Targets; None for subspaces.
    cells : ndarray of int, shape (m,)
        What was seen, as ``example * d + attribute``, ascending.
    values : ndarray of float, shape (m,)
        The values of these cells.
    """

    choices: FitOptions
    shape: tuple[int, int]
    y: np.ndarray | None
    cells: np.ndarray
    values: np.ndarray


def _continues(estimator: "BudgetEstimator") -> bool:
    """Whether the learner, with its options, can go on with more examples; cross-validation needs all at once.

    Raises
    ------
    ValueError
        If it could with other parameters.
    """
    given = estimator._given
    if estimator.tuned or not replace(estimator._learner, **estimator._options).continues:
        return False
    if "pilot" in given and not isinstance(given["pilot"], int):
        raise ValueError(
            f"{type(estimator).__name__}: the pilot is a share of all examples; give a number of rows, such as pilot=0 "
            "with scale='none'"
        )
    if given["total"] is not None:
        raise ValueError(f"{type(estimator).__name__}: a total ends a fit, and partial_fit learns from every example")
    estimator._refuse_unpaid()
    return True


def _native(value: Any) -> Any:
    """Return a number of NumPy as one of Python, and anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


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
    k: int | str | None
    n_features_in_: int
    _seen: Seen | None = None

    @property
    def _learner(self) -> Learner:
        return learner_of(self.algo)

    @property
    def _names(self) -> tuple[str, ...]:
        """The names of the attributes; empty if they have none."""
        return tuple(map(str, getattr(self, "feature_names_in_", ())))

    @property
    def _given(self) -> dict[str, Any]:
        """The parameters, numbers of NumPy as Python's own."""
        return {name: _native(value) for name, value in self.get_params(deep=False).items()}

    @property
    def _grid(self) -> dict[str, list[Any]]:
        """The values to try of each constant, by name; empty: those of the learner."""
        grid = self._given.get("grid")
        if grid is None:
            return {}
        tried: dict[str, list[Any]] = {}
        with suppress(AttributeError, TypeError):  # not a dict, or not of lists
            tried = {name: list(map(_native, values)) for name, values in grid.items()}
        if not tried or not all(isinstance(value, int | float) for values in tried.values() for value in values):
            raise ValueError(
                f"{type(self).__name__}: grid must give a list of numbers for each constant, such as "
                f"{{{self._learner.tuned[0]!r}: [1, 10]}}, not {grid!r}"
            )
        return tried

    @property
    def _options(self) -> dict[str, Any]:
        """The parameters that are options of the learner."""
        given = self._given
        return {name: given[name] for name in options_of(type(self._learner)) if name in given}

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        n_features: int | None = None,
        known: np.ndarray | None = None,
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
        on_demand = callable(X) and not hasattr(X, "shape")
        values: np.ndarray | Values
        if on_demand:
            values, target = self._observed(X, y, n_features, known)
        elif n_features is not None or known is not None:
            raise ValueError("n_features and known are for a callable only: an array has values and a shape")
        else:
            values, target = self._checked(X, y)
        names, d = () if on_demand else self._names, values.shape[1]
        learned = self._learned(self._choices(names, d, on_demand), values, target, names)
        self.n_features_in_ = d
        if on_demand and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._adopt(learned)
        return self

    def _learned(
        self,
        choices: FitOptions,
        values: np.ndarray | Values,
        target: np.ndarray | None,
        names: Sequence[str],
        ordered: bool = False,
    ) -> Learned:
        """Return what is learned from checked values and targets."""
        if target is not None and (why := size_fault(float(largest_of(target[:, None])[0]))):
            raise ValueError(f"y: {why}")
        if target is not None and self.tuned and np.nanmax(target) == np.nanmin(target):
            raise ValueError(f"{type(self).__name__}: all targets are equal, so no constants can be chosen by them")
        try:
            learned = learn_table(choices, values, target, names, ordered)
        except UserError as error:
            raise ValueError(f"{type(self).__name__}: {error}") from error
        if isinstance(values, Observed):
            values.refuse_small()
        return learned

    def _adopt(self, learned: Learned) -> None:
        """Set the fitted attributes, forget earlier examples, and warn of attributes that are left out."""
        if learned.left_out:
            shown = [label(i, self._names, ()) for i in learned.left_out]
            warnings.warn(f"{of_unknown_scale()}: {listed(shown)}", Notice, stacklevel=3)
        self.attributes_seen_ = int(learned.run["attributes_total"])
        self.cost_ = learned.run.get("cost_total")
        if self.tuned:
            self.best_params_ = {python_name(name): learned.run[f"p_{name}"] for name in self._learner.tuned}
            self.attributes_tuning_ = int(learned.run["attributes_tuning"])
            self.cost_tuning_ = learned.run.get("cost_tuning")
        self._keep(learned)
        self._seen = None

    def _keep(self, learned: Learned) -> None:
        """Store what was learned."""
        raise NotImplementedError

    def _choices(self, names: Sequence[str], d: int, on_demand: bool) -> FitOptions:
        """Return what the parameters say, as values, for d attributes with names or none."""
        learner, given = self._learner, self._given
        if given["k"] is None and not sees_all(learner):
            raise ValueError(f"{type(self).__name__}: k is needed, the number of attributes to see of each example")
        constants = {} if self.tuned else {name: python_name(name) for name in learner.tuned}
        missing = [name for name in constants.values() if given[name] is None]
        if missing:
            name, them = type(self).__name__, "it" if len(missing) == 1 else "them"
            raise ValueError(f"{name}: {' and '.join(missing)} must be given; {name}CV chooses {them}")
        if not isinstance(given.get("fit_intercept", True), bool):
            raise ValueError(
                f"{type(self).__name__}: fit_intercept must be True or False, not {given['fit_intercept']!r}"
            )
        if on_demand:
            self._refuse_unpaid()
        state = given["random_state"]
        seed = state if isinstance(state, int) else check_random_state(state).randint(2**31)
        costs = groups = None
        if given["costs"] is not None:
            prices = np.array(plain(each_of(given["costs"], "costs", names, d), "costs"), dtype=np.float64).tolist()
            costs = tuple(None if np.isnan(price) else price for price in prices)
        if given.get("groups") is not None:
            groups = numbered([*map(text_of, each_of(given["groups"], "groups", names, d))])
        return FitOptions(
            self.algo,
            given["k"],
            seed,
            self._options,
            {name: given[parameter] for name, parameter in constants.items()} if constants else None,
            grid=self._grid,
            folds=given.get("folds", FitOptions.folds),
            center=given["center"],
            scale=given["scale"],
            intercept=("mean" if given["fit_intercept"] else "none") if learner.predicts else None,
            pilot=given.get("pilot"),
            predict_k=given.get("predict_k"),
            total=given["total"],
            costs=costs,
            groups=groups,
        )

    def _refuse_unpaid(self) -> None:
        """Refuse parameters that need all values beforehand: they are observed while the estimator learns."""
        name, given = type(self).__name__, self._given
        if self.tuned:
            raise ValueError(
                f"{name}: cross-validation needs full rows; use {name.removesuffix('CV')} and give its constants"
            )
        given["scale"] = given["scale"] or ("revealed" if self._learner.predicts else "max_abs")
        for key, (unpaid, paid) in _UNPAID.items():
            if given.get(key) == unpaid:
                raise ValueError(f"{name}: {key}={unpaid!r} needs all values; use {key}={paid!r}")

    def _checked(self, X: Any, y: Any) -> tuple[np.ndarray | Values, np.ndarray | None]:
        """Return values and targets, checked as scikit-learn does."""
        learner = self._learner
        finite: bool | str = True if learner.missing is Missing.REFUSED else "allow-nan"
        X = checked(self, X, ensure_all_finite=finite, ensure_min_features=2, ensure_min_samples=2)
        refuse_sizes(X, "X", self._names)
        target = self._targets(y, X)
        if not isinstance(X, np.ndarray):  # sparse values are used as they are if some are stored and none is missing
            dense = not X.nnz or np.isnan(X.data).any()
            X = np.asarray(X.toarray()) if dense else Sparse(X.indptr, X.indices, X.data, X.shape[1])
        return X, target

    def _targets(self, y: Any, X: Any = None) -> np.ndarray | None:
        """Return checked targets, as many as X has rows if it is given; None for learners of subspaces."""
        if not self._learner.predicts:
            return None
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        finite: bool | str = "allow-nan" if self._learner.unlabelled else True
        if np.ma.is_masked(y):
            raise ValueError("y has masked targets: leave out their examples, or fill them in")
        y = column_or_1d(plain(y, "y"), warn=True)
        target = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=finite, input_name="y")
        if np.isnan(target).all():
            raise ValueError("Input y contains NaN only: at least one target is needed")
        check_consistent_length(X, target)
        return np.asarray(target)

    def _observed(
        self, observe: Observe, y: Any, d: int | None, known: np.ndarray | None
    ) -> tuple[Observed, np.ndarray | None]:
        """Return the values that a function observes, and the targets."""
        if d is None or y is None:
            raise ValueError("fit(observe, y=y, n_features=d): y and n_features are needed with a callable")
        if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 1:
            raise ValueError(f"n_features={d}: must be a whole number of at least 1")
        target, shape = self._targets(y), (len(y), d)
        values = np.full(shape, np.nan) if known is None else np.array(plain(known, "known"), dtype=np.float64)
        if values.shape != shape or np.isinf(values).any():
            raise ValueError(f"known has shape {values.shape}; finite values or NaN of shape {shape} are needed")
        refuse_sizes(values, "known", small=False)
        return Observed(observe, values), target

    @available_if(_continues)
    def partial_fit(self, X: Any, y: Any = None) -> "BudgetEstimator":
        """Learn from more examples, as if all that were given so far had come at once, in their order.

        Of each example the attributes that are seen are stored, and no others. Each call learns from all examples
        again: it reads earlier ones from what is stored, which is charged once. `fit` takes examples in a random
        order, and ends earlier if there is a pilot; apart from that the numbers are the same. It forgets the examples
        of earlier calls, and does not keep its own.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Complete rows. `pilot` full rows, the first ones of the first call, are paid for in addition.
        y : array-like of shape (n,)
            Targets. Learners of subspaces ignore them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used, or parameters have changed since the first call. What was
            learned before stays as it was.
        """
        seen = self._seen
        X = checked(self, X, dense=True, reset=seen is None, ensure_min_features=2 if seen is None else 1)
        target, names, d = self._targets(y, X), self._names, X.shape[1]
        choices = self._continuing_choices(names, d)
        if seen is not None and d != seen.shape[1]:
            raise ValueError(f"{type(self).__name__}.partial_fit: X has {d} attributes, not {seen.shape[1]} as before")
        if seen is None:
            seen = Seen(choices, (0, d), None if target is None else target[:0], np.empty(0, np.intp), np.empty(0))
        n = seen.shape[0]

        def observe(example: int, attributes: np.ndarray) -> np.ndarray:
            if example < n:  # a learner declares that it cannot happen
                raise LookupError(f"attribute {attributes[0]} of it was not seen by an earlier call")
            return np.asarray(X[example - n, attributes])

        values = np.full((n + len(X), d), np.nan)
        values.flat[seen.cells] = seen.values
        if target is not None and seen.y is not None:
            target = np.concatenate([seen.y, target])
        observed = Observed(observe, values)
        self._adopt(self._learned(choices, observed, target, names, ordered=True))
        cells = np.flatnonzero(~np.isnan(values))
        self._seen = Seen(choices, observed.shape, target, cells, values.take(cells))
        return self

    def _continuing_choices(self, names: Sequence[str], d: int) -> FitOptions:
        """Return what the parameters say, with the seed of the first call."""
        choices = self._choices(names, d, on_demand=True)
        if self._seen is None:
            return choices
        before = self._seen.choices
        choices = replace(choices, seed=before.seed)
        if choices != before:
            new, old = (vars(each) | vars(each)["options"] | (each.constants or {}) for each in (choices, before))
            changed = {name for name in {*new, *old} - {"options", "constants"} if new.get(name) != old.get(name)}
            raise ValueError(
                f"{type(self).__name__}.partial_fit: other than at first: {', '.join(sorted(changed))}; begin with a "
                "new estimator"
            )
        return choices

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
        "support_ : ndarray of int": "The attributes that predictions see: all, or at most `predict_k`.",
        **_ATTRIBUTES,
    }

    def _keep(self, learned: Learned) -> None:
        model = learned.model
        self.coef_ = model["w"]
        self.intercept_ = float(model["b"] - model["w"] @ model["c"])
        self._b, self._c = float(model["b"]), model["c"]
        self.support_ = np.arange(len(self.coef_)) if learned.visible is None else learned.visible
        self.mean_: Any = None
        self.covariance_: Any = None
        self.noise_variance_: Any = None
        if learned.moments is not None:
            mean, covariance = learned.moments
            contrast = np.append(-self.coef_, 1.0)
            self.mean_, self.covariance_ = mean[:-1], covariance[:-1, :-1]
            self.noise_variance_ = max(0.0, float(contrast @ covariance @ contrast))

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return predictions; missing values are replaced by their expectations given the rest of the row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            NaN marks a missing value. Only learners that model the attributes accept it, except in attributes that
            are not in `support_`, whose values are not used.
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
        modelled = mean is not None
        narrow = len(self.support_) < len(self.coef_)
        X = checked(self, X, dense=True, reset=False, ensure_all_finite="allow-nan" if modelled or narrow else True)
        if narrow:
            X = np.where(np.isin(np.arange(len(self.coef_)), self.support_), X, np.nan if modelled else 0.0)
            check_array(X, ensure_all_finite="allow-nan" if modelled else True)
        if return_std and not modelled:
            raise ValueError(
                f"{type(self).__name__} does not model the attributes: use AEML or AEMR for standard deviations"
            )
        whole = conditional_means(mean, covariance, X) if np.isnan(X).any() else X
        # Column by column, as `budgetreg predict` reads them: the bits are the same.
        predictions = self._b + (np.asfortranarray(whole) - self._c) @ self.coef_
        if not return_std:
            return np.asarray(predictions)
        return predictions, np.sqrt(conditional_variances(covariance, self.coef_, X) + self.noise_variance_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of the predictions, the share of the targets' variance that they explain."""
        return float(super().score(X, self._targets(y), sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Describe what can be expected: little, with few attributes or untuned constants."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.k is not None or bool(self._learner.tuned)
        return tags


class SubspaceEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BudgetEstimator):
    """Base class of the estimators that project examples onto a subspace."""

    attributes: ClassVar[Mapping[str, str]] = {
        "components_ : ndarray of shape (n_components, d)": "Orthonormal rows, for ``(x - mean_) * scale_``.",
        "mean_, scale_ : ndarray of shape (d,)": "An attribute x is used as ``(x - mean_) * scale_``.",
        **_ATTRIBUTES,
    }

    def _keep(self, learned: Learned) -> None:
        model = learned.model
        self.components_ = np.ascontiguousarray(model["V"].T)
        self.mean_, self.scale_ = model["c"], model["scale"]

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates (n, n_components) of complete examples in the subspace."""
        check_is_fitted(self)
        X = checked(self, X, dense=True, reset=False)
        return np.asarray(((X - self.mean_) * self.scale_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the examples (n, d) that coordinates (n, n_components) describe."""
        check_is_fitted(self)
        X = check_array(plain(X, "X"), dtype=np.float64)
        return np.asarray((X @ self.components_) / self.scale_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

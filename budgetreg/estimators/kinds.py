"""Estimators that predict a target, and estimators that project examples onto a subspace."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from budgetreg.algorithms.conditional import conditional_means, conditional_variances
from budgetreg.estimators.containers import checked, plain
from budgetreg.estimators.continued import ContinuedEstimator
from budgetreg.protocol.in_memory import Learned


class BudgetRegressor(RegressorMixin, ContinuedEstimator):
    """Base class of the estimators that predict a target."""

    attributes: ClassVar[Mapping[str, str]] = {
        "coef_ : ndarray of shape (d,)": "The regressor.",
        "intercept_ : float": "The prediction where all attributes are 0.",
        "attributes_seen_ : int": "The bill: attributes charged, without those that cross-validation saw.",
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
        """Return predictions; missing values are replaced by their expectations given the rest of the row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            NaN marks a missing value. Only learners that model the attributes accept it.
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
        X = checked(self, X, reset=False, ensure_all_finite="allow-nan" if modelled else True)
        if return_std and not modelled:
            raise ValueError(
                f"{type(self).__name__} does not model the attributes: use AEML or AEMR for standard deviations"
            )
        X = X if isinstance(X, np.ndarray) else X.toarray()
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


class SubspaceEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ContinuedEstimator):
    """Base class of the estimators that project examples onto a subspace."""

    attributes: ClassVar[Mapping[str, str]] = {
        "components_ : ndarray of shape (n_components, d)": "Orthonormal rows, for ``(x - mean_) * scale_``.",
        "mean_, scale_ : ndarray of shape (d,)": "An attribute x is used as ``(x - mean_) * scale_``.",
        "attributes_seen_ : int": "The bill: attributes charged, without those that cross-validation saw.",
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
        X = checked(self, X, reset=False)
        X = X if isinstance(X, np.ndarray) else X.toarray()
        return np.asarray(((X - self.mean_) * self.scale_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the examples (n, d) that coordinates (n, n_components) describe."""
        check_is_fitted(self)
        X = check_array(plain(X, "X"), dtype=np.float64)
        return np.asarray((X @ self.components_) / self.scale_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

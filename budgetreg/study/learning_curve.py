"""The reducible part of the error, from the values that were bought.

An example of which the values A are present adds ``(S - V) / (s2 + w'V w)`` to the precision M of the regressor, in
expectation over the values. S is the covariance of the attributes, V that given A, w the regressor and s2 the noise.
The error exceeds the noise by ``tr(S M^-1)``. All of it is in units of the attributes' standard deviations and of the
target's variance. The prior precision is ``d / R``, as if regressors that explain a share R of the target were equally
likely in all directions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.study.joint import JointModel

_EXAMPLES = 256
"""Examples that stand for all, if there are more."""

_ATTAINED = 0.75
"""Share of the excess that is gained with more values: attributes are not normal, and the floor is not that of a normal
distribution."""

_NOISE = 0.3
"""Share of the target's variance that is taken to be noise. An estimated error less the excess would be a worse guess:
its own error would be magnified."""


@dataclass(frozen=True)
class LearningCurve:
    """The error with all attributes by the values that were bought, relative to that with those that are known.

    Attributes
    ----------
    model : JointModel
    known : ndarray of bool, shape (n, d)
        The values that were bought so far.
    variance : float
        The target's variance.
    """

    model: JointModel
    known: np.ndarray
    variance: float

    def ratios(self, later: Sequence[np.ndarray | float]) -> np.ndarray:
        """Return the ratios of the errors when other values were bought to the error now, one for each element.

        Parameters
        ----------
        later : sequence of ndarray of bool, shape (n, d), or float
            The values; a number stands for those that are known, and as many times as many examples.
        """
        S, w = self._standardised()
        examples = _Examples(S, w)
        present = examples.precision(self.known)
        excess = _excess(S, present)
        share = _ATTAINED * excess / (_NOISE + excess)
        ratios = []
        for known in later:
            if isinstance(known, np.ndarray):
                M, growth = examples.precision(known), known.sum() / max(self.known.sum(), 1)
            else:
                M, growth = known * present, known
            ratio = _excess(S, M) / excess if excess > 0 else 1.0
            # The excess changes at most as if it were inversely proportional to the number of values.
            bounded = max(ratio, 1 / growth) if growth >= 1 else min(ratio, 1 / growth)
            ratios.append(1 + share * (bounded - 1))
        return np.array(ratios)

    def _standardised(self) -> tuple[np.ndarray, np.ndarray]:
        deviations = np.sqrt(np.diagonal(self.model.covariance))
        units = np.where(deviations > 0, deviations, 1.0)
        return self.model.covariance / np.outer(units, units), self.model.w * units / np.sqrt(self.variance)


class _Examples:
    """Precisions that examples add, for attributes of variance 1."""

    def __init__(self, S: np.ndarray, w: np.ndarray) -> None:
        self._model = JointModel(np.zeros(len(w)), S, w, 0.0, 0.0)

    def precision(self, known: np.ndarray) -> np.ndarray:
        """Return the precision that examples of which some values are known add in all, shape (d, d)."""
        rows = known[known.any(axis=1)]
        if not len(rows):
            return np.zeros_like(self._model.covariance)
        some = rows[np.unique(np.linspace(0, len(rows) - 1, _EXAMPLES).round().astype(int))]
        S, w = self._model.covariance, self._model.w
        given = self._model.conditional(np.where(some, 0.0, np.nan))
        V = given.covariances
        counts = np.bincount(given.pattern, minlength=len(V))
        left = np.einsum("i,pij,j->p", w, V, w, optimize=True)
        weights = counts / (_NOISE + np.maximum(left, 0)) * (len(rows) / len(some))
        return np.asarray(weights.sum() * S - np.einsum("p,pij->ij", weights, V))


def _excess(S: np.ndarray, M: np.ndarray) -> float:
    """Return ``tr(S M^-1)`` with the prior's precision added to M."""
    prior = len(S) / (1 - _NOISE)
    return float(np.trace(np.linalg.solve(M + prior * np.eye(len(S)), S)))

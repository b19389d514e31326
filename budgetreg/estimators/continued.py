"""Estimators that continue with further examples, and store only the attributes seen of earlier ones."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from budgetreg.config.options import options_of
from budgetreg.estimators.base import BudgetEstimator
from budgetreg.estimators.containers import checked
from budgetreg.estimators.observed import Observed
from budgetreg.protocol.in_memory import Choices, Learned


@dataclass(frozen=True)
class Seen:
    """The stored values of earlier examples.

    Attributes
    ----------
    choices : Choices
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

    choices: Choices
    shape: tuple[int, int]
    y: np.ndarray | None
    cells: np.ndarray
    values: np.ndarray


def _continues(estimator: "ContinuedEstimator") -> bool:
    """Whether the learner, with its options, can go on with more examples; cross-validation needs all at once.

    Raises
    ------
    ValueError
        If it could with other parameters.
    """
    given, learner = estimator.get_params(deep=False), estimator._learner
    options = {name: given[name] for name in options_of(type(learner)) if name in given}
    if estimator.tuned or not replace(learner, **options).continues:
        return False
    if "pilot" in given and not isinstance(given["pilot"], int | np.integer):
        raise ValueError(
            f"{type(estimator).__name__}: the pilot is a share of all examples; give a number of rows, such as pilot=0 "
            "with scale='none'"
        )
    estimator._refuse_unpaid()
    return True


class ContinuedEstimator(BudgetEstimator):
    """Base class of estimators that can go on with more examples, if their learner can."""

    _seen: Seen | None = None

    def _adopt(self, learned: Learned) -> None:
        """Become what was learned, and forget the examples that were learned from before."""
        super()._adopt(learned)
        self._seen = None

    @available_if(_continues)
    def partial_fit(self, X: Any, y: Any = None) -> "ContinuedEstimator":
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
        X = checked(self, X, reset=seen is None, ensure_min_features=2 if seen is None else 1)
        X = X if isinstance(X, np.ndarray) else X.toarray()
        target = None
        if self._learner.predicts:
            target = self._targets(y)
            check_consistent_length(X, target)
        d = X.shape[1]
        choices = self._continuing_choices()
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
        names = tuple(map(str, getattr(self, "feature_names_in_", ())))
        observed = Observed(observe, values)
        self._adopt(self._learned(choices, observed, target, names, ordered=True))
        cells = np.flatnonzero(~np.isnan(values))
        self._seen = Seen(choices, observed.shape, target, cells, values.take(cells))
        return self

    def _continuing_choices(self) -> Choices:
        """Return what the parameters say, with the seed of the first call."""
        choices = self._choices(on_demand=True)
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

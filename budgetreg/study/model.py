"""The joint model of attributes and target: learned from all known values, and applied to incomplete examples."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from budgetreg.algorithms.conditional import Conditional, conditional, conditional_means, conditional_variances
from budgetreg.algorithms.registry import members
from budgetreg.common.errors import ConfigError, DataError, nearest, quoted
from budgetreg.common.notices import Notice
from budgetreg.protocol.in_memory import FitOptions, learn_table
from budgetreg.protocol.plan import listed, of_unknown_scale
from budgetreg.protocol.prediction import calibrated, explained_of_rows, probability
from budgetreg.revealed.columns import enough_equal
from budgetreg.revealed.tails import MANY_VALUES
from budgetreg.runs.models import model_npz
from budgetreg.study.state import State

if TYPE_CHECKING:
    from budgetreg.estimators import BudgetRegressor

LEARNER = "aemr"
"""The learner of a study that names none."""

EXPORTED = b"budgetreg study export"
"""How the file of an exported model ends, unlike one that a run has learned."""


@dataclass(frozen=True, eq=False)
class JointModel:
    """Attributes x with a mean and a covariance, and a target ``y = b + <w, x> + e``; all in units of the data.

    Attributes
    ----------
    mean : ndarray of float, shape (d,)
    covariance : ndarray of float, shape (d, d)
        Positive semidefinite.
    w : ndarray of float, shape (d,)
    b : float
    noise : float
        Variance of e, that of the target given all attributes; 0 if fewer than two different targets are known.
    shared : ndarray of float, shape (d,), optional
        Covariance of the attributes with the target, as the values show it. By default the one that `w` implies,
        ``covariance @ w``.
    left_out : tuple of int
        Attributes with weight 0 because the values seen do not show their scale.

    Notes
    -----
    An attribute of which fewer than two different values were seen is independent of all others, and has weight 0. Its
    mean is the value seen, or 0; its variance is what can be expected of an attribute that has shown one value so often
    and no other, see `budgetreg.revealed.columns.variance`. It is above 0, and shrinks as more equal values are
    seen. The unit of an attribute of which nothing was seen is unknown, and taken to be 1.
    """

    mean: np.ndarray
    covariance: np.ndarray
    w: np.ndarray
    b: float
    noise: float
    shared: np.ndarray | None = None
    left_out: tuple[int, ...] = ()

    @property
    def d(self) -> int:
        """Number of attributes."""
        return len(self.w)

    @property
    def units(self) -> np.ndarray:
        """The attributes' standard deviations, 1 where there is none, shape (d,)."""
        deviations = np.sqrt(np.diagonal(self.covariance))
        return np.where(deviations > 0, deviations, 1.0)

    @property
    def shared_with_target(self) -> np.ndarray:
        """The covariance of the attributes with the target, shape (d,)."""
        return self.covariance @ self.w if self.shared is None else self.shared

    @property
    def target_variance(self) -> float:
        """The variance of the target."""
        return float(self.noise + 2 * self.w @ self.shared_with_target - self.w @ self.covariance @ self.w)

    def conditional(self, X: np.ndarray) -> Conditional:
        """Return what is known of incomplete examples: expectations of each, covariances by pattern of missing values.

        Parameters
        ----------
        X : ndarray of float, shape (n, d) or (d,)
            NaN marks what is unknown.
        """
        return conditional(self.mean, self.covariance, X)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the expected targets ``b + <w, E[x | what is present]>``, shape (n,); NaN marks what is unknown."""
        return np.asarray(conditional_means(self.mean, self.covariance, X) @ self.w + self.b)

    def deviations(self, X: np.ndarray) -> np.ndarray:
        """Return the standard deviations of the targets around the predictions, shape (n,).

        They are the root of ``w'V w + noise``, V the covariance of x given what is present.
        """
        return np.asarray(np.sqrt(conditional_variances(self.covariance, self.w, X) + self.noise))


def learn(values: np.ndarray, targets: np.ndarray, *, seed: int, algo: str = LEARNER, **options: Any) -> JointModel:
    """Return the joint model of attributes and target, learned from all values that are known.

    The numbers are those of ``budgetreg fit algo=ALGO k=d algo.draws=everything pilot=0 dataset.missing=unavailable
    seed=SEED`` on the same table in a file ``table.csv``. Examples without a target inform the moments of the
    attributes.

    Parameters
    ----------
    values : ndarray of float, shape (n, d)
        NaN for unknown values. At least one row and two attributes; all may be unknown.
    targets : ndarray of float, shape (n,)
        NaN for unknown targets; all may be unknown.
    seed : int
        At least 0.
    algo : str
        A learner that models attributes and target together: ``aemr`` or ``aeml``.
    **options
        Options of the learner, such as ``n_factors=5``.

    Raises
    ------
    ConfigError
        If an option is impossible.
    DataError
        If the values cannot be computed with.
    """
    X, y = np.asarray(values, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    learned = learn_table(FitOptions(algo, seed=int(seed), options=options), X, y)
    if learned.moments is None:
        raise ConfigError(f"algo={algo}: does not model the attributes; use {' or '.join(_able())}")
    w, c = learned.model["w"], learned.model["c"]
    mean, covariance = learned.moments
    contrast = np.append(-w, 1.0)  # y - <w, x>
    noise = max(0.0, float(contrast @ covariance @ contrast))
    b = float(learned.model["b"] - w @ c)
    # Contiguous, as from another process: sums of strided arrays differ in their last bits.
    inner, shared = map(np.ascontiguousarray, (covariance[:-1, :-1], covariance[:-1, -1]))
    return JointModel(mean[:-1], inner, w, b, noise, shared, learned.left_out)


def fitted(state: State) -> JointModel:
    """Return the model of a study.

    Raises
    ------
    DataError
        If no target is known.
    """
    refuse_unlearnable(state)
    model = learn(state.values, state.y, seed=int(state.facts["seed"]), algo=state.facts["algo"])
    name_left_out(state, model)
    return model


def explain_no_spread(state: State) -> None:
    """Say why the standard deviations of predictions are 0, if the known targets do not vary."""
    if len(np.unique(state.y[state.known_targets])) < 2:
        why = "all known targets are equal: nothing shows how targets vary, so predictions are that value, with std 0"
        warnings.warn(why, Notice, stacklevel=3)


def settled(state: State, model: JointModel | None) -> np.ndarray:
    """Return the attributes of which more values would show nothing, bool of shape (d,).

    They are those that the model leaves out although many values are known, and those whose many known values are all
    equal. Attributes that are bought together are settled together, and those without a price never.
    """
    counts, left_out = state.known.sum(axis=0), np.zeros(len(state.attributes), dtype=bool)
    left_out[list(model.left_out if model else ())] = True
    largest = np.fmax.reduce(state.values, axis=0, initial=-np.inf)
    equal = np.fmin.reduce(state.values, axis=0, initial=np.inf) == largest
    alone = left_out & (counts >= MANY_VALUES) | equal & (counts >= enough_equal(len(state.examples)))
    together = np.bincount(state.heads, ~alone, len(alone)) == 0
    return np.asarray((together & (state.costs > 0))[state.heads])


def name_left_out(state: State, model: JointModel) -> None:
    """Warn of the attributes of a study that its model leaves out, if there are any."""
    if model.left_out:
        names = listed([quoted(state.attributes[i]) for i in model.left_out])
        why = of_unknown_scale("record them in other units")
        warnings.warn(f"{why}: {names}", Notice, stacklevel=4)


def estimator_of(state: State) -> "BudgetRegressor":
    """Return the model of a study as a fitted estimator, which knows the attributes' names.

    Raises
    ------
    DataError
        If no target is known.
    """
    import pandas as pd  # here, as these are slow to load and the model alone needs none

    from budgetreg.estimators import ESTIMATORS, BudgetRegressor

    refuse_unlearnable(state)
    kind = ESTIMATORS[state.facts["algo"].upper()]
    estimator = kind(random_state=int(state.facts["seed"]))
    estimator.fit(pd.DataFrame(state.values, columns=list(state.attributes)), state.y)
    assert isinstance(estimator, BudgetRegressor)
    return estimator


def joint_of(estimator: "BudgetRegressor", state: State) -> JointModel:
    """Return the model in an estimator that is fitted to the attributes of a study.

    Raises
    ------
    ConfigError
        If it is not.
    """
    if getattr(estimator, "covariance_", None) is None:
        raise ConfigError("model: it has not learned how attributes are related: use what Study.fit returns")
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    if names != list(state.attributes):
        of = f"{listed(list(map(quoted, names)))}, and" if names else "a table without names, and"
        raise ConfigError(f"model: it was learned from {of} the study has other attributes: Study.fit learns them")
    return JointModel(
        estimator.mean_, estimator.covariance_, estimator.coef_, estimator.intercept_, estimator.noise_variance_
    )


def check_learner(algo: str) -> None:
    """Refuse a learner that cannot learn from a study.

    Raises
    ------
    ConfigError
        If it is none of those that model attributes and target together.
    """
    able = _able()
    if algo not in able:
        raise ConfigError(
            f"algo={algo}: a study needs a learner that models the attributes: {' or '.join(able)}{nearest(algo, able)}"
        )


def _able() -> list[str]:
    """Return the learners that model attributes and target together, first the one that studies have by default."""
    able = members(lambda learner: learner.unlabelled)
    return sorted(able, key=lambda name: name != LEARNER)


def labels_of(model: JointModel, state: State, X: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """Return the labels whose probability is larger, as ``budgetreg predict`` gives them, shape (n,).

    Parameters
    ----------
    model : JointModel
    state : State
        A study of a two-valued target.
    X : ndarray of float, shape (n, d)
        NaN marks what is unknown.
    predictions : ndarray of float, shape (n,)
        The model's for these examples.
    """
    known = _calibrated(model, state)
    explained = explained_of_rows(float(known["explained"]), model.covariance, model.w, X)
    return np.array(state.labels)[(probability(predictions, float(known["share"]), explained) > 0.5).astype(int)]


def _calibrated(model: JointModel, state: State) -> dict[str, np.ndarray]:
    """Return what probabilities need, see `budgetreg.protocol.prediction.calibrated`."""
    signal = float(model.w @ model.covariance @ model.w)
    y = state.y[~np.isnan(state.y)]
    return calibrated(y, signal / (signal + model.noise) if signal else 0.0, len(y))


def model_file(model: JointModel, state: State) -> bytes:
    """Return the content of ``model.npz``; of a two-valued target, with what probabilities need.

    Parameters
    ----------
    model : JointModel
        What was learned.
    state : State
        What it was learned from.
    """
    arrays = {"w": model.w, "b": np.array(model.b + model.w @ model.mean), "c": model.mean}
    arrays |= {"mean": model.mean, "covariance": model.covariance}
    labelled = len(state.labels) == 2
    if labelled:
        arrays |= _calibrated(model, state)
    labels = state.labels if labelled else ()
    return model_npz({0: arrays}, state.attributes, state.facts["target"], labels, comment=EXPORTED)


def refuse_unlearnable(state: State) -> None:
    """Refuse a study of which no target is known."""
    if not state.known_targets.any():
        raise DataError(
            f"nothing can be learned, as no target is known: budgetreg study add records the column "
            f"{state.facts['target']}"
        )

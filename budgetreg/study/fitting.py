"""Learning from the known values of a study."""

import warnings
from typing import TYPE_CHECKING

from budgetreg.errors import ConfigError, DataError, nearest, quoted
from budgetreg.notices import Notice
from budgetreg.protocol.plan import listed, of_unknown_scale
from budgetreg.study.joint import JointModel
from budgetreg.study.learning import learn
from budgetreg.study.state import State

if TYPE_CHECKING:
    from budgetreg.estimators import BudgetRegressor


def fitted(state: State) -> JointModel:
    """Return the model of a study.

    Raises
    ------
    DataError
        If no target is known, or the study's learner is not there.
    """
    _refuse_unlearnable(state)
    model = learn(state.values, state.y, seed=int(state.facts["seed"]), algo=state.facts["algo"])
    if model.left_out:
        names = listed([quoted(state.attributes[i]) for i in model.left_out])
        why = of_unknown_scale("record them in other units")
        warnings.warn(f"{why}: {names}", Notice, stacklevel=3)
    return model


def estimator_of(state: State) -> "BudgetRegressor":
    """Return the same model as a fitted estimator, by the names of the attributes.

    Raises
    ------
    DataError
        If no target is known, or the study's learner is not there.
    """
    import pandas as pd  # here, as these are slow to load and the model alone needs none

    from budgetreg.estimators import ESTIMATORS, BudgetRegressor

    _refuse_unlearnable(state)
    kinds = (kind for kind in ESTIMATORS.values() if kind.algo == state.facts["algo"] and not kind.tuned)
    estimator = next(kinds)(random_state=int(state.facts["seed"]))
    estimator.fit(pd.DataFrame(state.values, columns=list(state.attributes)), state.y)
    assert isinstance(estimator, BudgetRegressor)
    return estimator


def joint_of(estimator: "BudgetRegressor") -> JointModel:
    """Return the model in a fitted estimator."""
    return JointModel(
        estimator.mean_, estimator.covariance_, estimator.coef_, estimator.intercept_, estimator.noise_variance_
    )


def check_learner(algo: str) -> None:
    """Refuse a learner that cannot learn from a study.

    Raises
    ------
    ConfigError
        If there is none of the name, or it does not model attributes and target together.
    """
    from budgetreg.config import catalogue  # these are slow to load, too
    from budgetreg.estimators.parameters import learner_of

    names = catalogue.options("algo")
    able = [name for name in ("aemr", "aeml") if name in names]
    if algo not in names or not learner_of(algo).unlabelled:
        raise ConfigError(
            f"algo={algo}: a study needs a learner that models the attributes: {' or '.join(able)}{nearest(algo, able)}"
        )


def _refuse_unlearnable(state: State) -> None:
    try:
        check_learner(state.facts["algo"])
    except ConfigError as error:  # such as a learner of a package that is not installed here
        raise DataError(f"nothing can be learned from the study: {error}") from error
    if not state.known_targets.any():
        raise DataError(
            f"nothing can be learned, as no target is known: budgetreg study add records the column "
            f"{state.facts['target']}"
        )

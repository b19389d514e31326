"""What is learned from all that a study knows."""

from budgetreg.buying.joint import JointModel
from budgetreg.buying.learning import learn
from budgetreg.buying.state import State
from budgetreg.errors import DataError


def fitted(state: State) -> JointModel:
    """Return the model of a study.

    Raises
    ------
    DataError
        If no target is known.
    ConfigError
        If the study's learner is none, or has no such model.
    """
    if not state.known_targets.any():
        raise DataError(
            f"nothing can be learned, as no target is known: budgetreg study add records the column "
            f"{state.facts['target']}"
        )
    return learn(state.values, state.y, seed=int(state.facts["seed"]), algo=state.facts["algo"])

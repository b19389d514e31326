"""What families that learn subspaces declare alike: the dimension, and the least budget that tells of one."""

from budgetreg.config.options import option
from budgetreg.config.requirements import whole
from budgetreg.errors import ConfigError
from budgetreg.learners.declaration import Learner


def dimension_option() -> int:
    """Declare the dimension of the subspace."""
    declared: int = option("the dimension of the subspace", whole(1), tried=(1, 3))
    return declared


def at_least_two(learner: Learner, k: int) -> None:
    """Refuse a budget of one attribute.

    Raises
    ------
    ConfigError
        If it is one.
    """
    if k < 2:
        raise ConfigError(
            f"k={k}: {learner.name} needs a budget of at least 2, as one attribute of each example tells nothing of "
            "how attributes go together"
        )


def square(d: int) -> int:
    """Return the numbers of a matrix of second moments."""
    return d**2

"""Names for groups of learners, by what their declarations say: whoever adds a learner has it in its group."""

from collections.abc import Callable, Mapping
from typing import Any

from budgetreg.config import catalogue
from budgetreg.learners import read
from budgetreg.learners.declaration import Learner, Observation

GROUPS: Mapping[str, Callable[[Learner], bool]] = {
    "all_budgeted": lambda learner: learner.predicts and learner.observation is not Observation.ALL,
    "all_full": lambda learner: learner.predicts and learner.observation is Observation.ALL,
    "all_subspaces": lambda learner: not learner.predicts,
}
"""Which learners each name stands for: regressors on a budget, regressors on full rows, learners of subspaces."""


def expanded(names: str) -> list[str]:
    """Return the learners that names, separated by commas, stand for, each once; others than groups stay."""
    found: dict[str, None] = {}
    for name in names.split(","):
        found |= dict.fromkeys(members(GROUPS[name]) if name in GROUPS else [name])
    return list(found)


def members(belongs: Callable[[Learner], bool]) -> list[str]:
    """Return the names of those learners of ``conf/algo`` that belong to a group, sorted."""
    read_ones = ((name, read(_section(name))) for name in catalogue.options("algo"))
    return [name for name, learner in read_ones if learner is not None and belongs(learner)]


def advised() -> list[str]:
    """Return the names of those whose file recommends them for data of which nothing is known, sorted."""
    return [name for name in catalogue.options("algo") if _section(name).get("advised")]


def _section(name: str) -> dict[str, Any]:
    """Return what a learner's file says, with what it takes over from others; Hydra would take seconds for all files.

    Grids, the only keys with keys below them, are not joined: no group depends on them.
    """
    own = catalogue.content("algo", name)
    taken = [other for other in own.pop("defaults", []) if other in catalogue.options("algo") and other != name]
    return {key: value for section in (*map(_section, taken), own) for key, value in section.items()}

"""Learners: each a class in a module or package of its own; what is seen comes through the accessor alone.

Learners know updates, samplers, solvers and theory, and nothing of splits, folds, files or figures.
"""

import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from budgetreg.config import extensions
from budgetreg.config.options import Option, Options, completed, options_of
from budgetreg.config.requirements import FLAG, NAME, NOTHING, Requirement
from budgetreg.learners.declaration import Learner, Parameter
from budgetreg.learners.online import IGNORABLE

__all__ = ["algo_options", "composed", "cores", "parameters", "read"]

_STYLE = Requirement(
    "a colour and a marker, such as {colour: blue, marker: o}",
    lambda value: isinstance(value, dict) and value.keys() == {"colour", "marker"},
)


@cache
def cores() -> Mapping[str, type[Learner]]:
    """Return the classes of learners by the value of ``algo.core``: ours, then those that other packages bring.

    Raises
    ------
    ConfigError
        If what another package brings cannot be loaded.
    """
    ours = (
        value
        for module in extensions.modules(sys.modules[__name__])
        for value in vars(module).values()
        if _core(value) and value.__module__ == module.__name__
    )
    return extensions.declared(ours, extensions.LEARNERS, _core, "a class of learners, derived from Learner")


def _core(value: object) -> str | None:
    """Return the core of a class of learners that declares one; None of anything else."""
    return vars(value).get("core") if isinstance(value, type) and issubclass(value, Learner) else None


def algo_options(learner: type[Learner]) -> Options:
    """Return the keys below ``algo`` for a class of learners: its options, and those that all learners have."""
    return {
        "name": Option("the learner's name", NAME),
        "core": Option("the kind of learner"),
        **IGNORABLE,
        **options_of(learner),
        "grid": Option("the grid of parameters"),
        "style": Option("the style in figures", _STYLE | NOTHING, default=None, inert=True),
        "advised": Option("whether it is compared where none are named", FLAG, default=False, inert=True),
    }


@cache
def parameters() -> Mapping[str, Parameter]:
    """Return all parameters that learners have, by name."""
    return {parameter.name: parameter for learner in cores().values() for parameter in learner.parameters}


def composed(section: Mapping[str, Any], grid: Mapping[str, tuple[float, ...]]) -> Learner:
    """Return the learner that a section ``algo`` describes, with this grid."""
    learner = cores()[str(section["core"])]
    options = {name: _frozen(section[name]) for name in options_of(learner) if name in section}
    return learner(name=str(section.get("name", "")), grid=grid, **options)


def read(section: Mapping[str, Any]) -> Learner | None:
    """Return the learner of a section ``algo`` as it was recorded with results; None if its class is not known.

    What the record does not hold has its default, as it had for those results.
    """
    learner = cores().get(str(section.get("core")))
    if learner is None:
        return None
    grid = {key: tuple(map(float, values)) for key, values in dict(section.get("grid", {})).items()}
    return composed(completed(options_of(learner), section), grid)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value

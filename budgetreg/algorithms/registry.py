"""Learners: one class each, which sees values through the accessor alone.

This module finds the classes by the value of ``algo.core``, builds learners from sections of the configuration, and
names groups of learners.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field
from functools import cache
from typing import Any

from budgetreg.algorithms.learner import IGNORABLE, Learner, Observation, Parameter
from budgetreg.common.errors import ContractError
from budgetreg.config import catalogue
from budgetreg.config.options import (
    FLAG,
    NAME,
    NOTHING,
    Option,
    Options,
    Requirement,
    completed,
    frozen,
    one_of,
    options_of,
)

WITH_GAPS = "gaps"
"""Learners whose file advises them with this word impute missing values, and stand for full rows where some are."""

_STYLE = Requirement(
    "a colour and a marker, such as {colour: blue, marker: o}, a name if labels have another one than algo=, "
    "and heavy: true or broken: true for such lines",
    lambda value: (
        isinstance(value, dict)
        and {"colour", "marker"} <= value.keys() <= {"name", "colour", "marker", "heavy", "broken"}
    ),
)


@cache
def cores() -> Mapping[str, type[Learner]]:
    """Return the classes of learners by the value of ``algo.core``: ours, then those that other packages bring.

    Raises
    ------
    ConfigError
        If what another package brings cannot be loaded.
    ContractError
        If a class declares options and is no dataclass.
    """
    ours = sorted(_ours("budgetreg.algorithms"), key=lambda learner: learner.core)
    classes = catalogue.declared(ours, catalogue.LEARNERS, _core, "a class of learners, derived from Learner")
    for learner in classes.values():
        # Without the decorator the options would be those of the base class.
        if any(isinstance(value, Field) for value in vars(learner).values()):
            raise ContractError(f"{learner.__name__} declares options: decorate it with @dataclass(frozen=True)")
    return classes


def _ours(package: str) -> Iterator[type[Learner]]:
    """Yield the classes of learners in the modules of a package, and in packages below it that declare none."""
    for module in catalogue.modules(package):
        classes = [value for value in vars(module).values() if _core(value) and value.__module__ == module.__name__]
        yield from classes if classes or not hasattr(module, "__path__") else _ours(module.__name__)


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
        "advised": Option(
            "whether it is among the learners that are compared by default",
            FLAG | one_of(WITH_GAPS),
            default=False,
            inert=True,
        ),
    }


@cache
def parameters() -> Mapping[str, Parameter]:
    """Return all parameters that learners have, by name."""
    return {parameter.name: parameter for learner in cores().values() for parameter in learner.parameters}


def composed(section: Mapping[str, Any], grid: Mapping[str, tuple[float, ...]]) -> Learner:
    """Return the learner that a section ``algo`` describes, with this grid."""
    learner = cores()[str(section["core"])]
    options = {name: frozen(section[name]) for name in options_of(learner) if name in section}
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


GROUPS: Mapping[str, Callable[[Learner], bool]] = {
    "all_budgeted": lambda learner: learner.predicts and learner.observation is not Observation.ALL,
    "all_full": lambda learner: learner.predicts and learner.observation is Observation.ALL,
    "all_subspaces": lambda learner: not learner.predicts,
}
"""Learners by the name of their group: regressors on a budget, regressors on full rows, learners of subspaces."""


def _of_any_size(belongs: Callable[[Learner], bool]) -> list[str]:
    return members(lambda learner: belongs(learner) and learner.most_attributes is None)


def expanded(names: str) -> list[str]:
    """Return the learners that comma-separated names of learners and groups stand for, each once."""
    learners: dict[str, None] = {}
    for name in names.split(","):
        learners |= dict.fromkeys(_of_any_size(GROUPS[name]) if name in GROUPS else [name])
    return list(learners)


def members(belongs: Callable[[Learner], bool]) -> list[str]:
    """Return the names of the learners of ``conf/algo`` that belong to a group, sorted."""
    learners = {name: read(section(name)) for name in catalogue.options("algo")}
    return [name for name, learner in learners.items() if learner is not None and belongs(learner)]


def advised(where: bool | str = True) -> list[str]:
    """Return the names of the learners whose file recommends them for data of which nothing is known, sorted.

    With `WITH_GAPS`, those that stand for full rows where values are missing.
    """
    return [name for name in catalogue.options("algo") if section(name).get("advised") == where]


def section(name: str) -> dict[str, Any]:
    """Return the content of a learner's file, with that of its defaults; Hydra would take seconds for all files.

    Grids, the only keys with keys below them, are not merged: no group depends on them.
    """
    content = catalogue.content("algo", name)
    defaults = [other for other in content.pop("defaults", []) if other in catalogue.options("algo") and other != name]
    return {key: value for section in (*map(section, defaults), content) for key, value in section.items()}

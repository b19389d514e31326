"""Learners: each family a module or package that declares it; what is seen comes through the accessor alone.

A room of families: it knows updates, samplers, solvers and theory, and nothing of splits, folds, files or figures.
"""

import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from budgetreg.config import extensions
from budgetreg.config.options import Option, Options, completed, options_of
from budgetreg.config.requirements import FLAG, NAME, NOTHING, Requirement
from budgetreg.learners.declaration import Family, Learner, Parameter
from budgetreg.learners.online import IGNORABLE

__all__ = ["algo_options", "families", "family", "parameters", "read"]

_STYLE = Requirement(
    "a colour and a marker, such as {colour: blue, marker: o}",
    lambda value: isinstance(value, dict) and value.keys() == {"colour", "marker"},
)


@cache
def families() -> Mapping[str, Family]:
    """Return all families by name: ours, then those that other packages bring.

    Raises
    ------
    ConfigError
        If what another package brings cannot be loaded.
    """
    return extensions.declared(sys.modules[__name__], "FAMILIES", extensions.LEARNERS, Family)


def family(name: str) -> Family:
    """Return a family by its name, the value of ``algo.core``."""
    return families()[name]


def algo_options(own: Family) -> Options:
    """Return the keys below ``algo`` for a family: its own, and those that all learners have."""
    return {
        "name": Option("the learner's name", NAME),
        "core": Option("the kind of learner"),
        **IGNORABLE,
        **options_of(own.options),
        "grid": Option("the grid of parameters"),
        "style": Option("the style in figures", _STYLE | NOTHING, default=None, inert=True),
        "advised": Option("whether it is compared where none are named", FLAG, default=False, inert=True),
    }


@cache
def parameters() -> Mapping[str, Parameter]:
    """Return all parameters that learners have, by name."""
    return {one.name: one for own in families().values() for one in own.parameters}


def read(section: Mapping[str, Any]) -> Learner | None:
    """Return the learner of a section ``algo`` as it was recorded with results; None if its family is not known.

    What the record does not hold has its default, as it had for those results.
    """
    own = families().get(str(section.get("core")))
    if own is None:
        return None
    options = options_of(own.options)
    known = completed(options, section)
    grid = {key: tuple(map(float, values)) for key, values in dict(section.get("grid", {})).items()}
    chosen = own.options(**{name: known[name] for name in options if name in known})
    return Learner(str(section.get("name", "")), own, chosen, grid)

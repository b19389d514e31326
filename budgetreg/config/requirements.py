"""What a value of the configuration must be, and the check of a section against such rules.

A `Requirement` is a phrase that completes "must be ..." and the function that accepts a value. `Rules` name one for
every key of a section.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from budgetreg.errors import ConfigError, nearest


@dataclass(frozen=True)
class Requirement:
    """A phrase such as ``a whole number of at least 1``, and the function that accepts such a value."""

    phrase: str
    accepts: Callable[[Any], bool]
    choices: tuple[str, ...] = ()

    def __or__(self, other: "Requirement") -> "Requirement":
        """Return the requirement that either of the two is met."""
        return Requirement(
            f"{self.phrase} or {other.phrase}",
            lambda value: self.accepts(value) or other.accepts(value),
            self.choices + other.choices,
        )


def _is_whole(value: Any) -> bool:
    return type(value) is int  # not isinstance, which would accept True


def _is_real(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def whole(minimum: int) -> Requirement:
    """Require a whole number of at least `minimum`."""
    return Requirement(f"a whole number of at least {minimum}", lambda value: _is_whole(value) and value >= minimum)


def one_of(*choices: str) -> Requirement:
    """Require one of several words."""
    phrase = choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    return Requirement(phrase, lambda value: type(value) is str and value in choices, choices)


def matching(phrase: str, pattern: str) -> Requirement:
    """Require text that a regular expression matches in full."""
    return Requirement(phrase, lambda value: type(value) is str and re.fullmatch(pattern, value) is not None)


def list_of(phrase: str, element: Requirement) -> Requirement:
    """Require a list of at least one value, each of which `element` accepts."""
    return Requirement(
        phrase, lambda value: isinstance(value, list) and len(value) > 0 and all(map(element.accepts, value))
    )


def increasing(phrase: str, element: Requirement) -> Requirement:
    """Require a strictly increasing list of at least one value, each of which `element` accepts."""
    values = list_of(phrase, element)
    return Requirement(
        phrase, lambda value: values.accepts(value) and all(before < after for before, after in pairwise(value))
    )


ANYTHING = Requirement("anything", lambda value: True)
MAPPING = Requirement("keys with values", lambda value: isinstance(value, dict))
LIST = Requirement("a list", lambda value: isinstance(value, list))
MAPPINGS = Requirement(
    "a list of keys with values", lambda value: isinstance(value, list) and all(map(MAPPING.accepts, value))
)
FLAG = Requirement("true or false", lambda value: type(value) is bool)
NOTHING = Requirement("null", lambda value: value is None)
TEXT = Requirement("text", lambda value: type(value) is str)
NAME = Requirement("text, not empty", lambda value: type(value) is str and value.strip() != "")
NUMBER = Requirement("a number", _is_real)
POSITIVE = Requirement("a number above 0", lambda value: _is_real(value) and value > 0)
NOT_NEGATIVE = Requirement("a number of at least 0", lambda value: _is_real(value) and value >= 0)
ZERO = Requirement("0", lambda value: _is_real(value) and value == 0)
ONE = Requirement("1", lambda value: _is_real(value) and value == 1)
FRACTION = Requirement("a number above 0 and below 1", lambda value: _is_real(value) and 0 < value < 1)


Rules = Mapping[str, tuple[str, Requirement]]
"""By key: what it is, in words, and what it must be."""


def chosen(section: Any, prefix: str, key: str, offered: Iterable[str]) -> str:
    """Return the value of the key that selects the kind of a section, such as ``dataset.kind``.

    Raises
    ------
    ConfigError
        If the value is not among those offered.
    """
    names = tuple(offered)
    if not isinstance(section, dict):
        raise ConfigError(f"{prefix}={_written(section)}: must have the key {key}, one of {', '.join(names)}")
    selector: Rules = {key: (f"the {key}", one_of(*names))}
    check({key: section[key]} if key in section else {}, selector, prefix)
    return str(section[key])


def check(section: Any, rules: Rules, prefix: str) -> None:
    """Check the keys and values of a section.

    Raises
    ------
    ConfigError
        If a key is unknown or missing, or a value does not meet its requirement.
    """
    dot = "." if prefix else ""
    if not isinstance(section, dict):
        raise ConfigError(f"{prefix}={_written(section)}: must have the keys {', '.join(rules)}")
    for key in section:
        if key not in rules:
            hint = nearest(key, rules)
            raise ConfigError(f"{prefix}{dot}{key}: no such key{hint}; keys: {', '.join(rules)}")
    for key, (what, must) in rules.items():
        if key not in section:
            raise ConfigError(f"{prefix}{dot}{key}: {what} is missing")
        value = section[key]
        if not must.accepts(value):
            hint = nearest(str(value), must.choices)
            raise ConfigError(f"{prefix}{dot}{key}={_written(value)}: {what} must be {must.phrase}{hint}")


def _written(value: Any) -> str:
    """Return a value as the command line has it."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))

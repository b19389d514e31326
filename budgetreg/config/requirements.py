"""What a value of the configuration must be, said in the words of the error message.

A `Requirement` is a phrase that completes "must be ..." together with the function that accepts a value. The
tables in `budgetreg.config.rules` name one for every key.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True)
class Requirement:
    """A phrase such as ``a whole number of at least 1``, and the function that recognises such a value."""

    phrase: str
    accepts: Callable[[Any], bool]
    choices: tuple[str, ...] = ()

    def __or__(self, other: "Requirement") -> "Requirement":
        """Return the requirement that one of the two is met."""
        return Requirement(
            f"{self.phrase} or {other.phrase}",
            lambda value: self.accepts(value) or other.accepts(value),
            self.choices + other.choices,
        )


def _is_whole(value: Any) -> bool:
    return type(value) is int  # not isinstance: True is no number of attributes


def _is_real(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def whole(minimum: int) -> Requirement:
    """Require a whole number of at least `minimum`."""
    return Requirement(f"a whole number of at least {minimum}", lambda value: _is_whole(value) and value >= minimum)


def one_of(*choices: str) -> Requirement:
    """Require one of a few words."""
    phrase = choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    return Requirement(phrase, lambda value: type(value) is str and value in choices, choices)


def matching(phrase: str, pattern: str) -> Requirement:
    """Require text that a regular expression matches in full."""
    return Requirement(phrase, lambda value: type(value) is str and re.fullmatch(pattern, value) is not None)


def list_of(phrase: str, element: Requirement) -> Requirement:
    """Require a list, not empty, of what `element` accepts."""
    return Requirement(
        phrase, lambda value: isinstance(value, list) and len(value) > 0 and all(map(element.accepts, value))
    )


def increasing(phrase: str, element: Requirement) -> Requirement:
    """Require a list, not empty and strictly increasing, of what `element` accepts."""

    def accepts(value: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) > 0
            and all(map(element.accepts, value))
            and all(before < after for before, after in pairwise(value))
        )

    return Requirement(phrase, accepts)


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

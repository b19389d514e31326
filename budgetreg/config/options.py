"""Options of a section of the configuration: what each is, what it must be, and its default.

Learners and kinds of data declare their options as fields of a frozen dataclass, made with `option`. The declarations
also show which of them decide a result. An option at its default is not part of a run's identity. So an option that is
added later leaves existing results current.

A `Requirement` is a phrase that completes "must be ..." and the function that accepts a value. The sections that every
run has, besides learner and data, are declared at the end.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any

from budgetreg.common.errors import ConfigError, nearest


@dataclass(frozen=True)
class Requirement:
    """A phrase such as ``a whole number of at least 1``, and the function that accepts such a value."""

    phrase: str
    accepts: Callable[[Any], bool]
    choices: tuple[str, ...] = ()
    text: bool = False
    """Whether values are names or paths: words of a command line are then text as typed, never numbers."""

    def __or__(self, other: "Requirement") -> "Requirement":
        """Return the requirement that either of the two is met."""
        return Requirement(
            f"{self.phrase} or {other.phrase}",
            lambda value: self.accepts(value) or other.accepts(value),
            self.choices + other.choices,
            self.text or other.text,
        )


def _is_real(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def whole(minimum: int) -> Requirement:
    """Require a whole number of at least `minimum`."""
    # Not isinstance, which would accept True.
    return Requirement(f"a whole number of at least {minimum}", lambda value: type(value) is int and value >= minimum)


def one_of(*choices: str) -> Requirement:
    """Require one of several words."""
    phrase = choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    return Requirement(phrase, lambda value: type(value) is str and value in choices, choices)


def matching(phrase: str, pattern: str) -> Requirement:
    """Require text that a regular expression matches in full."""
    return Requirement(phrase, lambda value: type(value) is str and re.fullmatch(pattern, value) is not None)


def increasing(phrase: str, element: Requirement) -> Requirement:
    """Require a strictly increasing list of at least one value, each of which `element` accepts."""

    def accepts(value: Any) -> bool:
        if not isinstance(value, list) or not value or not all(map(element.accepts, value)):
            return False
        return all(before < after for before, after in pairwise(value))

    return Requirement(phrase, accepts)


ANYTHING = Requirement("anything", lambda value: True)
WORD = Requirement(
    "text, not empty", lambda value: not isinstance(value, list | dict) and str(value).strip() != "", text=True
)
MAPPING = Requirement("keys with values", lambda value: isinstance(value, dict))
LIST = Requirement("a list", lambda value: isinstance(value, list))
MAPPINGS = Requirement(
    "a list of keys with values", lambda value: isinstance(value, list) and all(map(MAPPING.accepts, value))
)
FLAG = Requirement("true or false", lambda value: type(value) is bool)
NOTHING = Requirement("null", lambda value: value is None)
TEXT = Requirement("text", lambda value: type(value) is str)
NAME = Requirement("text, not empty", lambda value: type(value) is str and value.strip() != "", text=True)
NUMBER = Requirement("a number", _is_real)
POSITIVE = Requirement("a number above 0", lambda value: _is_real(value) and value > 0)
NOT_NEGATIVE = Requirement("a number of at least 0", lambda value: _is_real(value) and value >= 0)
ZERO = Requirement("0", lambda value: _is_real(value) and value == 0)
ONE = Requirement("1", lambda value: _is_real(value) and value == 1)
FRACTION = Requirement("a number above 0 and below 1", lambda value: _is_real(value) and 0 < value < 1)


REQUIRED = object()
"""In place of a default: the key must be given."""


@dataclass(frozen=True)
class Option:
    """The declaration of one key.

    Attributes
    ----------
    what : str
        What it is, as error messages say it.
    must : Requirement
        What it must be.
    default : Any
        The value where none is given. An option that is added later has the default that changes nothing.
    only : tuple of (str, str), or None
        Another key of the section, and the value of it with which this option exists.
    inert : bool
        Whether it changes no result, such as the folder of the data.
    null_for_own_data : Any
        What null means for a regressor of the user's own data; elsewhere null means the default. None of an option for
        which null has no meaning.
    tried : tuple or None
        Values that the checks try. None: all its words, or true and false; for numbers, values must be listed.
    """

    what: str
    must: Requirement = ANYTHING
    default: Any = REQUIRED
    only: tuple[str, str] | None = None
    inert: bool = False
    null_for_own_data: Any = None
    tried: tuple[Any, ...] | None = None

    @property
    def values(self) -> tuple[Any, ...]:
        """Values that the checks try."""
        if self.tried is not None:
            return self.tried
        return (False, True) if self.must is FLAG else self.must.choices

    def applies(self, section: Mapping[str, Any]) -> bool:
        """Whether a section has this key."""
        return self.only is None or section.get(self.only[0]) == self.only[1]


Options = Mapping[str, Option]


def option(*declaration: Any, **attributes: Any) -> Any:
    """Declare an option as a field of a frozen dataclass; parameters are those of `Option`, in order.

    A field whose key is required, or does not exist in the section, is None until it is read.
    """
    declared = Option(*declaration, **attributes)
    default = None if declared.default is REQUIRED else declared.default
    # A dataclass takes no list or mapping as the default itself.
    given = {"default_factory": lambda: default} if isinstance(default, list | dict) else {"default": default}
    return field(**given, metadata={"option": declared})


def options_of(record: type) -> Options:
    """Return the options among the fields of a dataclass, in their order: those made with `option`."""
    return {field.name: field.metadata["option"] for field in fields(record) if "option" in field.metadata}


def frozen(value: Any) -> Any:
    """Return a value as it is kept in a frozen dataclass: lists become tuples."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def completed(options: Options, section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section with defaults added for the options that it lacks."""
    missing = {
        name: option.default
        for name, option in options.items()
        if name not in section and option.default is not REQUIRED and option.applies(section)
    }
    return {**section, **missing}


def checked(section: Any, options: Options, prefix: str) -> dict[str, Any]:
    """Compare a section with its options, and return it with the defaults of those that it lacks.

    Raises
    ------
    ConfigError
        If a key is unknown or missing, or a value does not meet its requirement.
    """
    given = section if isinstance(section, dict) else {}
    known = {key: option for key, option in options.items() if option.applies(given)}
    if section is not given:
        raise ConfigError(f"{prefix}={_written(section)}: must have the keys {', '.join(known)}")
    dot = "." if prefix else ""
    for key in given:
        if key not in known:
            raise ConfigError(f"{prefix}{dot}{key}: no such key{nearest(key, known)}; keys: {', '.join(known)}")
    whole = completed(known, given)
    for key, option in known.items():
        if key not in whole:
            raise ConfigError(f"{prefix}{dot}{key}: {option.what} is missing")
        value, must = whole[key], option.must
        if not must.accepts(value):
            hint = nearest(str(value), must.choices)
            raise ConfigError(f"{prefix}{dot}{key}={_written(value)}: {option.what} must be {must.phrase}{hint}")
    return whole


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
    given = {key: section[key]} if key in section else {}
    return str(checked(given, {key: Option(f"the {key}", one_of(*names))}, prefix)[key])


def _written(value: Any) -> str:
    """Return a value as the command line has it."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def resolve_nulls(options: Options, section: Mapping[str, Any], own_data: bool) -> dict[str, Any]:
    """Return a section in which the meaning of null replaces it: that for own data, or else the default."""
    meant = {
        name: option.null_for_own_data if own_data else option.default
        for name, option in options.items()
        if option.null_for_own_data is not None and section.get(name, 0) is None
    }
    return {**section, **meant}


def identity_of(options: Options, section: Mapping[str, Any], without: Iterable[str] = ()) -> dict[str, Any]:
    """Return the part of a section that decides a result: nothing at its default, nothing without effect.

    Parameters
    ----------
    options : mapping of str to Option
        The declarations of the section.
    section : mapping
        Its keys and values, checked.
    without : iterable of str
        Options that have no effect with these values of the others.
    """
    inactive = set(without)
    return {
        name: section[name]
        for name, option in options.items()
        if name in section and name not in inactive and not option.inert and section[name] != option.default
    }


AUTO, EVERY = "auto", "all"
"""The values of k with which a learner chooses how many attributes it sees of each example, and with which it sees all
of them."""

TOP: Options = {
    "experiment": Option("the recipe's name", TEXT),
    "protocol": Option("the preset", NAME | NOTHING, inert=True),
    "protocols": Option("the keys that each preset of a recipe sets", MAPPING, inert=True),
    "algo": Option("the learner"),
    "learners": Option("the keys that a recipe sets for each learner", MAPPING, inert=True),
    "omit": Option("the combinations that a recipe leaves out", MAPPINGS, inert=True),
    "dataset": Option("the data set"),
    "tuning": Option("the tuning"),
    "backend": Option("the backend", inert=True),
    "k": Option("the attribute budget", whole(1) | one_of(AUTO, EVERY)),
    "intercept": Option("the intercept", one_of("none", "mean") | NOTHING, default="none", null_for_own_data="mean"),
    "pilot": Option(
        "the number of full rows that are seen first", one_of("auto") | whole(0) | NOTHING, 0, null_for_own_data="auto"
    ),
    "axis": Option(
        "the axis on which all learners end at the same point",
        one_of("attributes", "examples", "paid"),
        default="attributes",
    ),
    "total": Option(
        "the number of attributes, or the money, that every learner ends at", whole(1) | NOTHING, default=None
    ),
    "predict_k": Option("the attributes that a prediction may see", whole(1) | NOTHING, default=None),
    "repetitions": Option("the number of repetitions", whole(1), inert=True),
    "seed": Option("the seed", whole(0)),
    "checkpoints": Option(
        "the checkpoints",
        whole(1)
        | increasing("an increasing list of numbers of examples, each at least 1", whole(1))
        | increasing("of shares of the whole axis, above 0 and up to 1", FRACTION | ONE),
    ),
    "n_jobs": Option("the number of workers", whole(1), inert=True),
    "out": Option("the folder of the results", NAME | NOTHING, inert=True),
    "figure": Option("the style of a recipe's figure", MAPPING, inert=True),
    "differs": Option("the differences from the paper", LIST, inert=True),
    "claims": Option("a recipe's claims", LIST, inert=True),
}
"""The plain keys and the groups. Inert ones change a result only through the keys that they set."""

RECIPE = ("protocols", "learners", "omit", "figure", "differs", "claims")
"""Keys of a recipe that no run needs."""

_ADDRESS = matching("tcp://HOST:PORT or tls://HOST:PORT", r"t(?:cp|ls)://([^\s:/\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")

BACKEND: Options = {
    "name": Option("the backend's name", one_of("loky", "sequential", "dask")),
    "address": Option("the address of dask's scheduler", _ADDRESS | NOTHING, default=None, only=("name", "dask")),
    "batch_size": Option("the number of replicas advanced together", whole(1)),
}

_WIDEN = Option("the number of times that a grid may be widened", whole(0) | NOTHING, default=0, null_for_own_data=3)

TUNINGS = ("cv", "theory", "fixed", "paid")
FORMER = {
    "tuning": {"honest": "paid"},
    "experiment": {"aefa/laws": "aefa/distributions", "aemr/laws": "aemr/distributions"},
    "kind": {"buys_more": "below_at_any_spending"},
}
"""Former names of tunings, which runs have recorded, of recipes, and of kinds of claims, with those they have now."""
RADIUS = "B"
"""The radius: with tuning=theory it may be given; otherwise cross-validation chooses it."""


def tuning_options(name: str, parameters: Mapping[str, str]) -> Options:
    """Return the options of a tuning.

    Parameters
    ----------
    name : str
        One of `TUNINGS`.
    parameters : mapping of str to str
        All parameters of learners, with what they are in words.
    """
    given = {"theory": (RADIUS,), "fixed": tuple(parameters)}.get(name, ())
    return {
        "name": Option("the tuning's name"),
        "at": Option("the checkpoint to tune at", one_of("end", "each")),
        "folds": Option("the number of folds", whole(2)),
        **({"widen": _WIDEN} if name in ("cv", "theory") else {}),
        **{name: Option(parameters[name], POSITIVE | NOTHING, default=None) for name in given},
    }

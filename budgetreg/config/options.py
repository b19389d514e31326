"""Options of a section of the configuration: what each is, what it must be, and its default.

Learners and kinds of data declare their options as fields of a frozen dataclass, made with `option`. The declarations
also tell what decides a result. An option at its default is no part of a run's identity, so an option that is added
later leaves existing results current.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from budgetreg.config.requirements import ANYTHING, FLAG, Requirement, Rules

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
    own : Any
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
    own: Any = None
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


def option(
    what: str,
    must: Requirement = ANYTHING,
    default: Any = REQUIRED,
    only: tuple[str, str] | None = None,
    own: Any = None,
    tried: tuple[Any, ...] | None = None,
) -> Any:
    """Declare an option as a field of a frozen dataclass; the parameters are the attributes of `Option`.

    A field whose key is required, or does not exist in the section, is None until it is read.
    """
    declared = Option(what, must, default, only, own=own, tried=tried)
    return field(default=None if default is REQUIRED else default, metadata={"option": declared})


def options_of(record: type) -> Options:
    """Return the options among the fields of a dataclass, in their order: those made with `option`."""
    return {field.name: field.metadata["option"] for field in fields(record) if "option" in field.metadata}


def frozen(value: Any) -> Any:
    """Return a value as it is kept in a frozen dataclass: lists become tuples."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def rules_of(options: Options, section: Mapping[str, Any]) -> Rules:
    """Return the rules of the options that exist in a section."""
    return {name: (option.what, option.must) for name, option in options.items() if option.applies(section)}


def completed(options: Options, section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section with defaults added for the options that it lacks."""
    missing = {
        name: option.default
        for name, option in options.items()
        if name not in section and option.default is not REQUIRED and option.applies(section)
    }
    return {**section, **missing}


def resolve_nulls(options: Options, section: Mapping[str, Any], own_data: bool) -> dict[str, Any]:
    """Return a section in which the meaning of null replaces it: `Option.own` for own data, else the default."""
    nulls = {
        name: option for name, option in options.items() if option.own is not None and section.get(name, 0) is None
    }
    return {**section, **{name: option.own if own_data else option.default for name, option in nulls.items()}}


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

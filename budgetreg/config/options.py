"""Options of a section of the configuration, declared once: what each is, must be, and is unless it is said.

Whoever brings options (a family of learners, a kind of data) declares them here in its own terms: as fields of a frozen
dataclass made with `option`, or as a plain mapping of names to `Option`. What decides a result is then known, too: an
option that has its default says nothing, so that one which is added later changes no identity.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from budgetreg.config.requirements import ANYTHING, FLAG, Requirement
from budgetreg.config.rules import Rules

REQUIRED = object()
"""In place of a default: the key has to be there."""


@dataclass(frozen=True)
class Option:
    """What is known of one key.

    Attributes
    ----------
    what : str
        What it is, in the words of error messages.
    must : Requirement
        What it must be.
    default : Any
        What it is where nothing is said, and where it makes no difference to what there was before it.
    only : tuple of (str, str), or None
        Another key of the section and the value that it must have for this one to exist.
    inert : bool
        Whether it changes no result, such as where data lie.
    own : Any
        What null stands for where a regressor is learned from somebody's own data; elsewhere it stands for the default.
        None of an option for which null stands for nothing.
    tried : tuple or None
        Values with which checks try it. None: all words that it may be, true and false; of numbers it takes a choice.
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
        """Values with which checks try it."""
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

    A field that is required, or that its section does not have, is None where it was not read.
    """
    declared = Option(what, must, default, only, own=own, tried=tried)
    return field(default=None if default is REQUIRED else default, metadata={"option": declared})


def options_of(record: type) -> Options:
    """Return the options among the fields of a dataclass, in their order: those made with `option`."""
    return {field.name: field.metadata["option"] for field in fields(record) if "option" in field.metadata}


def rules_of(options: Options, section: Mapping[str, Any]) -> Rules:
    """Return the rules for those options that a section has."""
    return {name: (one.what, one.must) for name, one in options.items() if one.applies(section)}


def completed(options: Options, section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section with the defaults of what it does not say, in its own order."""
    missing = {
        name: one.default
        for name, one in options.items()
        if name not in section and one.default is not REQUIRED and one.applies(section)
    }
    return {**section, **missing}


def resolve_nulls(options: Options, section: Mapping[str, Any], own: bool) -> dict[str, Any]:
    """Return a section with what null stands for in place of it; own: whether that is what `Option.own` says."""
    left = {name: one for name, one in options.items() if one.own is not None and section.get(name, 0) is None}
    return {**section, **{name: one.own if own else one.default for name, one in left.items()}}


def identity_of(options: Options, section: Mapping[str, Any], without: Iterable[str] = ()) -> dict[str, Any]:
    """Return what of a section decides a result: no defaults, and nothing that has no effect.

    Parameters
    ----------
    options : mapping of str to Option
        What is declared of the section.
    section : mapping
        Keys and values, checked.
    without : iterable of str
        Options that have no effect beside the others.
    """
    silent = set(without)
    return {
        name: section[name]
        for name, one in options.items()
        if name in section and name not in silent and not one.inert and section[name] != one.default
    }

"""A learner with its options changed: what a file of ``conf/algo`` may say, beside what it does."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from budgetreg.config.options import REQUIRED, options_of
from budgetreg.learners.declaration import Family, Learner


def variants(learner: Learner) -> Iterator[tuple[Mapping[str, Any], Learner]]:
    """Yield what is changed and what comes of it: nothing, then one option after the other.

    Each takes the values that it declares to be tried. Those that have no effect beside the others are changed
    together with one that gives them theirs. What the family refuses is left out.

    Yields
    ------
    changes : mapping of str to Any
        Options and their values.
    Learner
    """
    yield {}, learner
    known = _effective(learner.family, learner.options)
    for changes, options in _changed(learner.family, learner.options, known):
        yield changes, replace(learner, options=options)
        for more, both in _changed(learner.family, options, _effective(learner.family, options) - known):
            yield {**changes, **more}, replace(learner, options=both)


def _changed(family: Family, options: Any, names: set[str]) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yield options of which one is changed, among some names."""
    for name, declared in options_of(family.options).items():
        for value in declared.values if name in names else ():
            if value != getattr(options, name):
                changed = _completed(family, replace(options, **{name: value}))
                if changed is not None:
                    yield {name: value}, changed


def _effective(family: Family, options: Any) -> set[str]:
    """Return the names of options that have an effect beside the others."""
    there = {name for name, one in options_of(family.options).items() if one.applies(vars(options))}
    return there - set(family.inactive_options(options))


def _completed(family: Family, options: Any) -> Any | None:
    """Return options with the defaults of those that come to be there; None if one has no default, or it is refused."""
    for name, one in options_of(family.options).items():
        if one.applies(vars(options)) and getattr(options, name) is None and not one.must.accepts(None):
            if one.default is REQUIRED:
                return None
            options = replace(options, **{name: one.default})
    return options if family.refuse(options) is None else None

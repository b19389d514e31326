"""Variants of a learner with changed options: what a file of ``conf/algo`` may say, besides what it does."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from budgetreg.config.options import REQUIRED, options_of
from budgetreg.learners.declaration import Learner


def variants(learner: Learner) -> Iterator[tuple[Mapping[str, Any], Learner]]:
    """Yield the learner, then its variants with one option changed, and what is changed.

    Each option takes the values that it declares to be tried. An option without effect beside the others is changed
    together with one that gives it an effect. What the learner refuses is left out.

    Yields
    ------
    changes : mapping of str to Any
        Options and their values.
    Learner
    """
    yield {}, learner
    effective = _effective(learner)
    for changes, changed in _changed(learner, effective):
        yield changes, changed
        for more, both in _changed(changed, _effective(changed) - effective):
            yield {**changes, **more}, both


def _changed(learner: Learner, names: set[str]) -> Iterator[tuple[Mapping[str, Any], Learner]]:
    """Yield learners of which one option is changed, among some names."""
    for name, option in options_of(type(learner)).items():
        for value in option.values if name in names else ():
            if value != getattr(learner, name):
                changed = _completed(replace(learner, **{name: value}))
                if changed is not None:
                    yield {name: value}, changed


def _effective(learner: Learner) -> set[str]:
    """Return the names of options that have an effect beside the others."""
    options = options_of(type(learner)).items()
    return {name for name, option in options if option.applies(vars(learner))} - set(learner.inactive_options)


def _completed(learner: Learner) -> Learner | None:
    """Return a learner with the defaults of options that come to apply; None if one has no default, or it refuses."""
    for name, option in options_of(type(learner)).items():
        if option.applies(vars(learner)) and getattr(learner, name) is None and not option.must.accepts(None):
            if option.default is REQUIRED:
                return None
            learner = replace(learner, **{name: option.default})
    return learner if learner.refuse() is None else None

"""Comparing a section of the configuration with what its keys are and must be; a mistake becomes one line."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from budgetreg.config.requirements import Requirement, one_of
from budgetreg.errors import ConfigError, nearest

Rules = Mapping[str, tuple[str, Requirement]]  # key -> (what it is, what it must be)


def chosen(section: Any, prefix: str, key: str, offered: Iterable[str]) -> str:
    """Return the value of the key that selects what a section is, such as ``dataset.kind``.

    Raises
    ------
    ConfigError
        If that value is none of those offered.
    """
    names = tuple(offered)
    if not isinstance(section, dict):
        raise ConfigError(f"{prefix}={_shown(section)}: must have the key {key}, one of {', '.join(names)}")
    selector: Rules = {key: (f"the {key}", one_of(*names))}
    check({key: section[key]} if key in section else {}, selector, prefix)
    return str(section[key])


def check(section: Any, rules: Rules, prefix: str) -> None:
    """Compare the keys and values of a section with its rules.

    Raises
    ------
    ConfigError
        If a key is unknown or missing, or a value is not what it must be.
    """
    dot = "." if prefix else ""
    if not isinstance(section, dict):
        raise ConfigError(f"{prefix}={_shown(section)}: must have the keys {', '.join(rules)}")
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
            raise ConfigError(f"{prefix}{dot}{key}={_shown(value)}: {what} must be {must.phrase}{hint}")


def _shown(value: Any) -> str:
    """Return a value as it is written on the command line."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))

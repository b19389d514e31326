"""Hydra's errors as one line: what is wrong, and the choices or the nearest key."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep
from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException, OverrideParseException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from budgetreg.config import catalogue
from budgetreg.config.composition import composed
from budgetreg.config.nested import flatten
from budgetreg.errors import ConfigError, nearest

_UNKNOWN_KEY = re.compile(r"Could not (?:override|delete from config\.|append to config\.) ?'([^']+)'")
_SWEEP_WITHOUT_M = re.compile(r"Ambiguous value for argument '([^']+)'")


def check_words(words: list[str]) -> None:
    """Refuse a list or a mapping where a group's option must be named, for which Hydra has no message.

    Raises
    ------
    ConfigError
        If an override of a group is a list or a mapping, or has one among the values of a sweep.
    """
    parser = OverridesParser.create()
    for word in words:
        group = word.partition("=")[0].lstrip("+")
        if group not in catalogue.groups() and not group.startswith("hydra/"):
            continue
        try:
            value = parser.parse_override(word).value()
        except HydraException:  # no override, which Hydra reports later
            continue
        values = value.list if isinstance(value, ChoiceSweep) else [value]
        if any(isinstance(value, list | dict) for value in values):
            choices = f"; choices: {', '.join(catalogue.options(group))}" if group in catalogue.groups() else ""
            raise ConfigError(f"{word}: must be the name of one {group.rpartition('/')[2]}{choices}")


@contextmanager
def composition_explained(words: list[str]) -> Iterator[None]:
    """Turn an error of Hydra, OmegaConf or YAML in the block into a `ConfigError` of one line.

    Parameters
    ----------
    words : list of str
        As for `as_config_error`.

    Raises
    ------
    ConfigError
        If the configuration cannot be composed.
    """
    try:
        yield
    except (HydraException, OmegaConfBaseException, YAMLError) as error:
        raise as_config_error(error, words) from error


def as_config_error(error: Exception, words: list[str]) -> ConfigError:
    """Return an error of Hydra or OmegaConf as one line.

    Parameters
    ----------
    error : Exception
        What Hydra raised while it composed the configuration.
    words : list of str
        The command line. Its choices (``algo=ridge``) decide which keys exist.
    """
    if isinstance(error, OverrideParseException):
        name, _, value = str(error.override).partition("=")
        hint = f"; put special characters in two pairs of quotes: \"{name}='{value}'\"" if value else ""
        return ConfigError(f"{error.override}: is not KEY=VALUE: {_first_line(error)}{hint}")
    if isinstance(error, YAMLError):
        return ConfigError(" ".join(str(error).split()))
    if isinstance(error, MissingConfigException) and "/" in str(error.missing_cfg_file):
        return _unknown_option(str(error.missing_cfg_file), error.options or ())
    sweep = _SWEEP_WITHOUT_M.search(str(error))
    if sweep is not None:
        brackets = "" if sweep[1].partition("=")[0] in catalogue.groups() else ", brackets (a list) or quotes (a text)"
        return ConfigError(f"{sweep[1]}: several values need run -m (a sweep){brackets}")
    key = _UNKNOWN_KEY.search(str(error))
    known = _keys(words) if key is not None else []
    if key is not None and key[1] not in known:
        return _unknown_key(key[1], known)
    if not isinstance(error, HydraException | OmegaConfBaseException | ValueError):
        # No message for users: only settings of Hydra itself can be the cause.
        suspects = [word for word in words if word.lstrip("+~").startswith("hydra")] or words
        return ConfigError(f"{' '.join(suspects)}: cannot be used ({type(error).__name__}: {_first_line(error)})")
    cause = f": {_first_line(error.__cause__)}" if error.__cause__ is not None else ""
    return ConfigError(f"{_first_line(error).rstrip('.')}{cause}")


def _unknown_option(path: str, offered: Iterable[str]) -> ConfigError:
    top, _, rest = path.partition("/")
    # The name of a recipe contains a slash, and Hydra lists only the choices on one level.
    group, option = (top, rest) if top in catalogue.groups() else path.rpartition("/")[::2]
    choices = catalogue.options(group) if group in catalogue.groups() else sorted(offered)
    kind, hint = group.rpartition("/")[2], nearest(option, choices)
    return ConfigError(f"{group}={option}: no such {kind}{hint}; choices: {', '.join(choices)}")


def _unknown_key(key: str, known: list[str]) -> ConfigError:
    level, _, last = key.rpartition(".")
    siblings = [name for name in known if level and name.rpartition(".")[0] == level]
    # On the top level all keys are candidates: `split=even` without its group is near `algo.split`.
    hint = (
        nearest(last, [name.rpartition(".")[2] for name in siblings], f"{level}.") if siblings else nearest(key, known)
    )
    keys = siblings or [name for name in known if "." not in name]
    return ConfigError(f"{key}: no such key{hint}; keys: {', '.join(keys)}")


def _keys(words: list[str]) -> list[str]:
    """Return all keys of the configuration that has the groups chosen on the command line; sweeps are left out."""
    chosen = [word for word in words if word.partition("=")[0] in catalogue.groups() and "," not in word]
    try:
        config = composed({}, *chosen)
    except ConfigCompositionException:
        config = composed({})
    content: Any = OmegaConf.to_container(config)
    return [*content, *flatten(content)]


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Error parsing override")] or lines
    return lines[0] if lines else type(error).__name__

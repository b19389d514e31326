"""Words that set one value per key, such as ``dataset.path=t.csv``, read by Hydra's grammar."""

from collections.abc import Collection, Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser

from budgetreg.cli.common import with_home
from budgetreg.config.composition import as_typed, composition_explained
from budgetreg.errors import ConfigError
from budgetreg.protocol.configuration import names_and_paths


def read_words(
    words: Sequence[str], command: str, options: Collection[str], refused: Collection[str], about: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the options of a command, as text, and its other choices.

    Parameters
    ----------
    words : sequence of str
        What the user wrote.
    command : str
        The command, for messages.
    options : collection of str
        Keys whose text the command reads itself.
    refused : collection of str
        Groups and keys that it does not take.
    about : str
        What it does, for messages.

    Raises
    ------
    ConfigError
        If a word cannot be read, has several values, or is not for this command.
    """
    texts: dict[str, str] = {}
    choices: dict[str, Any] = {}
    named = names_and_paths()
    for word in (as_typed(with_home(word), named) for word in words):
        key, equals, text = word.partition("=")
        if not equals or not text or key.startswith(("~", "+")):
            raise ConfigError(f"{word}: must be KEY=VALUE (see budgetreg {command} --help)")
        if key.partition("/")[0].partition(".")[0] in refused:
            raise ConfigError(f"{word}: not for {command}, which {about}; see budgetreg run")
        if key in options:
            texts[key] = text
            continue
        with composition_explained([word]):
            (override,) = OverridesParser.create().parse_overrides([word])
        if override.is_sweep_override():
            raise ConfigError(f"{word}: one value, as {command} {about}")
        choices[key] = override.value()
    return texts, choices

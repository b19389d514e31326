"""Parts of several commands: options that fail in one line, messages, and a console for tables."""

import argparse
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from budgetreg import __version__
from budgetreg.errors import ConfigError, UserError, nearest

_HOME = re.compile(r"(?<=[=,])~[^/,]*(?=[/,]|$)")  # where a path of an override begins
_WIDE = 200  # columns of a table that goes to a file


class Parser(argparse.ArgumentParser):
    """Options of one command; a mistake is a `ConfigError` rather than a page of usage."""

    def __init__(self, command: str, description: str) -> None:
        super().__init__(prog=f"budgetreg {command}", description=description)
        self.add_argument("--version", action="version", version=f"budgetreg {__version__}")

    def words(self, argv: list[str], least: str, metavar: str, help_text: str) -> list[str]:
        """Return the words of a command line without other options.

        Parameters
        ----------
        argv : list of str
            What follows the command.
        least : {'*', '+'}
            Whether there may be no word, or must be one.
        metavar, help_text : str
            The name of the words in the help, and their description.
        """
        self.add_argument("words", nargs=least, metavar=metavar, help=help_text)
        return list(self.parse_intermixed_args(argv).words)

    def error(self, message: str) -> NoReturn:
        """Refuse the command line.

        Raises
        ------
        ConfigError
            Always.
        """
        raise ConfigError(f"{message} (see {self.prog} --help)")


def refuse_root(out: Path | str) -> None:
    """Refuse the root of the file system as a folder of results, as everything lies below it.

    Raises
    ------
    ConfigError
        If the path leads there.
    """
    path = Path(out).expanduser().resolve()
    if path == path.parent:
        raise ConfigError(f"out={out}: is the root of the file system: choose a folder below it, such as out=runs/mine")


def at_home(word: str) -> str:
    """Return an override with the home folder in place of ``~``.

    Shells expand it only at the beginning of a word, and Hydra's grammar forbids it outside quotes.
    """
    return _HOME.sub(lambda home: os.path.expanduser(home[0]), word)


def shown(path: Path) -> str:
    """Return a path as text, relative to the current folder if it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def console() -> Console:
    """Return the console for tables on stdout, as wide as the terminal, and plain without one."""
    # The file is passed, so that its encoding decides which characters draw the lines of tables.
    return Console(
        file=sys.stdout, width=None if sys.stdout.isatty() else _WIDE, highlight=False, markup=False, emoji=False
    )


def whole_number(name: str, text: str, least: int) -> int:
    """Return the whole number that an option of a command gives.

    Raises
    ------
    ConfigError
        If the text is no whole number, or below `least`.
    """
    if not text.isdecimal() or int(text) < least:
        raise ConfigError(f"{name}={text}: must be a whole number of at least {least}")
    return int(text)


def harmless(words: Iterable[str], keys: Iterable[str], refusal: str) -> dict[str, int | str]:
    """Return the keys and values of words such as ``n_jobs=2``.

    Parameters
    ----------
    words : iterable of str
        What the user wrote.
    keys : iterable of str
        Keys that change no result; all others are refused.
    refusal : str
        Why others are refused.

    Raises
    ------
    ConfigError
        If a key is none of these, or has no value.
    """
    values: dict[str, int | str] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if key not in keys or not equals:
            raise ConfigError(f"{word}: {refusal}{nearest(key, keys)}; keys that change no result: {', '.join(keys)}")
        if not text:
            raise ConfigError(f"{word}: a value is needed: {key}=VALUE")
        values[key] = whole_number(key, text, 1) if key in ("n_jobs", "backend.batch_size") else text
    return values


def report_error(error: UserError, where: str) -> None:
    """Print a user's mistake as one line on stderr, while the command goes on."""
    print(f"budgetreg: {' '.join(str(error).split())} ({where})", file=sys.stderr)

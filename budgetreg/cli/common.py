"""What several commands share: options that fail in one line, and a console for tables."""

import argparse
import os
import re
import sys
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from budgetreg import __version__
from budgetreg.errors import ConfigError

_HOME = re.compile(r"(?<=[=,])~[^/,]*(?=[/,]|$)")  # where a path of an override begins
_WIDE = 200  # columns of a table that no terminal limits, such as one in a file


class Parser(argparse.ArgumentParser):
    """Options of one command; a mistake is a `ConfigError` rather than a page of usage."""

    def __init__(self, command: str, description: str) -> None:
        super().__init__(prog=f"budgetreg {command}", description=description)
        self.add_argument("--version", action="version", version=f"budgetreg {__version__}")

    def words(self, argv: list[str], least: str, metavar: str, told: str) -> list[str]:
        """Read a command line that has words and no other options of its own, in any order.

        Parameters
        ----------
        argv : list of str
            What follows the command.
        least : {'*', '+'}
            Whether there may be none, or is at least one.
        metavar, told : str
            What the help calls them, and says of them.
        """
        self.add_argument("words", nargs=least, metavar=metavar, help=told)
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
    """Refuse the root of the file system as a folder of results: everything there is would lie below it.

    Raises
    ------
    ConfigError
        If that is asked for, by whatever name.
    """
    path = Path(out).expanduser().resolve()
    if path == path.parent:
        raise ConfigError(f"out={out}: is the root of the file system: give a folder below it, such as out=runs/mine")


def at_home(word: str) -> str:
    """Return an override with the home folder in place of ``~``.

    Shells expand it only at the beginning of a word, and in no value of Hydra's grammar it may stand unquoted.
    """
    return _HOME.sub(lambda home: os.path.expanduser(home[0]), word)


def shown(path: Path) -> str:
    """Return a path as it is told: from the current folder, if it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def console() -> Console:
    """Return the console for tables on stdout: as wide as the terminal, plain if there is none."""
    # The file is given, as only then its encoding decides which lines tables are drawn with.
    return Console(
        file=sys.stdout, width=None if sys.stdout.isatty() else _WIDE, highlight=False, markup=False, emoji=False
    )


def whole_number(name: str, text: str, least: int) -> int:
    """Read a whole number of a command's option.

    Raises
    ------
    ConfigError
        If it is none, or below `least`.
    """
    if not text.isdecimal() or int(text) < least:
        raise ConfigError(f"{name}={text}: must be a whole number of at least {least}")
    return int(text)

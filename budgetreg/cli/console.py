"""The console for tables, and paths as the user writes and reads them."""

import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from budgetreg.common.errors import ConfigError
from budgetreg.common.files import at_home
from budgetreg.common.notices import AsIs, in_one_line

_WIDE = 200  # columns of a table that goes to a file


def refuse_root(out: Path | str) -> None:
    """Refuse the root of the file system as a folder of results, as everything lies below it.

    Raises
    ------
    ConfigError
        If the path leads there.
    """
    path = Path(os.path.realpath(at_home(out)))
    if path == path.parent:
        raise ConfigError(f"out={out}: is the root of the file system: choose a folder below it, such as out=runs/mine")


def shown(path: Path) -> str:
    """Return a path as text in one line, relative to the current folder if it lies below."""
    here = Path.cwd()
    return in_one_line(str(path.relative_to(here) if path.is_relative_to(here) else path))


def console() -> Console:
    """Return the console for tables on stdout, as wide as the terminal, and plain without one."""
    # The file is passed, so that its encoding decides which characters draw the lines of tables.
    file: Any = AsIs(sys.stdout)
    return _PlainConsole(
        file=file, width=None if sys.stdout.isatty() else _WIDE, highlight=False, markup=False, emoji=False
    )


class _PlainConsole(Console):
    def print(self, *objects: Any, **options: Any) -> None:
        """Print all columns: wide tables have narrow gaps, and the terminal wraps what does not fit even so."""
        for wide in (each for each in objects if isinstance(each, Table)):
            if Measurement.get(self, self.options.update(max_width=10 * _WIDE), wide).maximum > self.width:
                wide.padding = (0, 0 if wide.box else 1, 0, 0)
        super().print(*objects, crop=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return text as it is shown: cells, titles and lines are one line each."""
        return super().render_str(in_one_line(text), **options)

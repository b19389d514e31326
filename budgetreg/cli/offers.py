"""``budgetreg list`` and shell completion: the learners, data sets, recipes and options that a user can choose.

``eval "$(budgetreg run -sc install=bash)"`` installs completion. The shell then calls ``budgetreg -sc query=bash`` with
the line in COMP_LINE. Hydra completes overrides.
"""

import contextlib
import io
import os
from collections.abc import Sequence

from budgetreg.config import catalogue
from budgetreg.errors import ConfigError, UserError, nearest

_RUN_OPTIONS = ("-m", "--dry-run", "--cfg", "--help", "--version")
_OPTIONS = {
    "run": _RUN_OPTIONS,
    "advise": ("--help", "--version"),
    "compare": ("--help", "--version"),
    "status": ("--why", "--help", "--version"),
    "verify": ("--all", "--sample", "--seed", "--help", "--version"),
    "predict": ("--help", "--version"),
    "gc": ("--yes", "--help", "--version"),
}


_SECTIONS = {"algos": "algo", "datasets": "dataset", "experiments": "experiment"}  # word -> configuration group


def main(argv: list[str]) -> int:
    """List all sections, or one.

    Parameters
    ----------
    argv : list of str
        What follows ``list`` on the command line.

    Raises
    ------
    ConfigError
        If there is no such section.
    """
    from rich.table import Table  # here, as shell completion does not need it
    from rich.text import Text

    from budgetreg.cli.common import Parser, console

    parser = Parser("list", "List learners, data sets and recipes.")
    parser.add_argument("section", nargs="?", help=f"one of {', '.join(_SECTIONS)}; all of them by default")
    section = parser.parse_args(argv).section
    if section is not None and section not in _SECTIONS:
        raise ConfigError(f"list {section}: must be one of {', '.join(_SECTIONS)}{nearest(section, _SECTIONS)}")
    for group in _SECTIONS.values() if section is None else [_SECTIONS[section]]:
        table = Table(f"{group}=", "what it is", box=None, pad_edge=False)
        for option in catalogue.options(group):
            table.add_row(option, Text(catalogue.headline(group, option)))
        console().print(table)
    return 0


def complete(argv: list[str], commands: Sequence[str]) -> int:
    """Print what the word under the cursor can become, or have Hydra print the script that installs completion.

    Parameters
    ----------
    argv : list of str
        What follows ``-sc``: ``query=bash``, ``install=bash`` and the like.
    commands : sequence of str
        The names of all commands.
    """
    if not any(word.startswith("query=") for word in argv):
        return _hydra(argv)
    line = os.environ.get("COMP_LINE", "")
    line = line[: int(os.environ.get("COMP_POINT") or len(line))]
    words = line.split()[1:]
    current = "" if line.endswith(" ") else "".join(words[-1:])
    before = words if line.endswith(" ") else words[:-1]
    if before[:1] in (["run"], ["advise"]) and not current.startswith(("-", "experiment=")):
        return _overrides(argv, before[1:], current)
    offered = _OPTIONS.get(before[0], ()) if before and current.startswith("-") else _candidates(before, commands)
    print("\n".join(word for word in offered if word.startswith(current)))
    return 0


def _candidates(before: list[str], commands: Sequence[str]) -> list[str]:
    """Return what may follow some words. If there is nothing, the shell offers files."""
    if not before:
        return list(commands)
    if before[0] == "run":  # options, and recipes, whose names contain a slash that Hydra does not complete
        return [*_RUN_OPTIONS, *(f"experiment={name}" for name in catalogue.options("experiment"))]
    if before == ["list"]:
        return list(_SECTIONS)
    if before[0] == "predict" and len(before) > 2:  # after a folder and a table
        return ["repetition=", "out="]
    return ["mnist", "mnist_3v5"] if before == ["fetch"] else []


def _overrides(argv: list[str], before: list[str], current: str) -> int:
    """Have Hydra complete an override. It expects the line without our command and our options."""
    kept = [word for word in before if not word.startswith("-") or word in ("-m", "--multirun")]
    os.environ["COMP_LINE"] = " ".join(["budgetreg", *kept, current])
    # An unfinished word may be no valid override: then nothing is offered and no error is shown.
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(UserError):
        _hydra(argv)
    if current.startswith("algo="):
        from budgetreg.learners import GROUPS  # here, as numpy is slow to load

        groups = [word for word in (f"algo={name}" for name in GROUPS) if word.startswith(current)]
        print("\n".join(groups), end="\n" if groups else "")
    return 0


def _hydra(argv: list[str]) -> int:
    from budgetreg.cli import run  # here, as Hydra is slow to load

    return run.main(["-sc", *argv])

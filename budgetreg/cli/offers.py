"""``budgetreg list`` and shell completion: the learners, data sets, recipes and options.

``eval "$(budgetreg run -sc install=bash)"`` installs completion. The shell then calls ``budgetreg -sc query=bash`` with
the line in COMP_LINE. Hydra completes overrides.
"""

import contextlib
import io
import os
from argparse import Namespace
from collections.abc import Sequence

from budgetreg.cli.arguments import FETCHED, PARTS, SECTIONS, flags, parsed
from budgetreg.config import catalogue
from budgetreg.errors import ConfigError, nearest


def main(arguments: Namespace) -> int:
    """List all sections, or one.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Raises
    ------
    ConfigError
        If there is no such section.
    """
    from budgetreg.cli.common import console  # here, as shell completion does not need it
    from budgetreg.notices import table

    section = arguments.section
    if section is not None and section not in SECTIONS:
        raise ConfigError(f"list {section}: must be one of {', '.join(SECTIONS)}{nearest(section, SECTIONS)}")
    for group in SECTIONS.values() if section is None else [SECTIONS[section]]:
        rows = ((option, catalogue.headline(group, option)) for option in catalogue.options(group))
        console().print(table((f"{group}=", "what it is"), rows))
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
        from budgetreg.cli import run  # here, as Hydra is slow to load

        return run.main(parsed("run", ["-sc", *argv]))
    line = os.environ.get("COMP_LINE", "")
    line = line[: int(os.environ.get("COMP_POINT") or len(line))]
    words = line.split()[1:]
    current = "" if line.endswith(" ") else "".join(words[-1:])
    before = words if line.endswith(" ") else words[:-1]
    if before[:1] in (["run"], ["advise"], ["fit"]) and not current.startswith(("-", "experiment=")):
        return _overrides(argv, before[1:], current)
    asks_for_flags = before and before[0] in commands and current.startswith("-")
    offered = flags(before[0]) if asks_for_flags else _candidates(before, commands)
    print("\n".join(word for word in offered if word.startswith(current)))
    return 0


def _candidates(before: list[str], commands: Sequence[str]) -> list[str]:
    """Return what may follow some words. If there is nothing, the shell offers files."""
    if not before:
        return list(commands)
    if before[0] in ("run", "advise"):  # recipes, whose names contain a slash that Hydra does not complete
        return [f"experiment={name}" for name in catalogue.options("experiment")]
    if before == ["list"]:
        return list(SECTIONS)
    if before[0] == "predict" and len(before) > 2:  # after a folder and a table
        return ["repetition=", "out="]
    if before[0] in PARTS:
        parts = PARTS[before[0]]
        if len(before) == 1:
            return list(parts)
        part = parts.get(before[1])
        return [f"{key}=" for key in part.keys] if part and len(before) > 2 + len(part.files) else []
    return sorted(FETCHED) if before == ["fetch"] else []


def _overrides(argv: list[str], before: list[str], current: str) -> int:
    """Have Hydra complete an override. It expects the line without our command and our options."""
    kept = [word for word in before if not word.startswith("-") or word in ("-m", "--multirun")]
    os.environ["COMP_LINE"] = " ".join(["budgetreg", *kept, current])
    # An unfinished word may be no valid override: then nothing is offered and no error is shown.
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(Exception):
        from budgetreg.config import application  # here, as Hydra is slow to load

        application.complete(argv)
    if current.startswith("algo="):
        from budgetreg.algorithms.registry import GROUPS  # here, as numpy is slow to load

        groups = [word for word in (f"algo={name}" for name in GROUPS) if word.startswith(current)]
        print("\n".join(groups), end="\n" if groups else "")
    return 0

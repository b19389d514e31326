"""Shell completion, installed by ``eval "$(budgetreg run -sc install=bash)"``.

The shell asks ``budgetreg -sc query=bash``, the line being in COMP_LINE; Hydra answers for overrides.
"""

import contextlib
import io
import os

from budgetreg.cli.commands import COMMANDS
from budgetreg.config import catalogue
from budgetreg.errors import UserError

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


def main(argv: list[str]) -> int:
    """Print what the word under the cursor can become, or hand a request to install the completion to Hydra.

    Parameters
    ----------
    argv : list of str
        What follows ``-sc``: ``query=bash``, ``install=bash`` and the like.
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
    offered = _OPTIONS.get(before[0], ()) if before and current.startswith("-") else _candidates(before)
    print("\n".join(word for word in offered if word.startswith(current)))
    return 0


def _candidates(before: list[str]) -> list[str]:
    """Return what may follow some words; nothing lets the shell offer files."""
    if not before:
        return list(COMMANDS)
    if before[0] == "run":  # options and recipes, whose names with a slash Hydra does not complete
        return [*_RUN_OPTIONS, *(f"experiment={name}" for name in catalogue.options("experiment"))]
    if before == ["list"]:
        return ["algos", "datasets", "experiments"]
    if before[0] == "predict" and len(before) > 2:  # a folder and a table come first
        return ["repetition=", "out="]
    return ["mnist", "mnist_3v5"] if before == ["fetch"] else []


def _overrides(argv: list[str], before: list[str], current: str) -> int:
    """Let Hydra complete an override, from a line as it expects it: without the command and our options."""
    kept = [word for word in before if not word.startswith("-") or word in ("-m", "--multirun")]
    os.environ["COMP_LINE"] = " ".join(["budgetreg", *kept, current])
    # Half a word may be no valid override: then there is nothing to offer and nothing to say.
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(UserError):
        _hydra(argv)
    if current.startswith("algo="):
        from budgetreg.learners.groups import GROUPS  # here, because numpy is slow to load

        groups = [word for word in (f"algo={name}" for name in GROUPS) if word.startswith(current)]
        print("\n".join(groups), end="\n" if groups else "")
    return 0


def _hydra(argv: list[str]) -> int:
    from budgetreg.cli import run  # here, because Hydra is slow to load

    return run.main(["-sc", *argv])

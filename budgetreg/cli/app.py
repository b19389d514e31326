"""The command ``budgetreg``: a user's mistake becomes one line and an exit code.

Nothing heavy is imported here: ``budgetreg --help`` must answer at once.
"""

import sys
from importlib import import_module

from budgetreg import __version__
from budgetreg.cli.commands import COMMANDS
from budgetreg.cli.streams import PatientStreams
from budgetreg.notices import each_once

_HELP = """usage: budgetreg COMMAND ...

What accuracy can be bought with k attributes per example, and which learner buys most?

commands:
{commands}

options:
  --help     show this, or with a command what it takes
  --version  show the version

examples:
  budgetreg run algo=aelr k=4
  budgetreg run -m algo=aelr,aer,lasso k=4 out=runs/main
  budgetreg plot runs/main

exit codes: 0 ok, 1 some runs or checks failed, 2 usage or configuration, 3 data unavailable, 130 interrupted"""


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : list of str, optional
        The words after ``budgetreg``; those of the command line by default.

    Returns
    -------
    int
        0 ok, 1 some runs or checks failed, 2 usage or configuration, 3 data unavailable, 130 interrupted.
    """
    with PatientStreams() as streams, each_once():
        code = _answer(sys.argv[1:] if argv is None else argv)
        lost = streams.lost()
        if lost:
            print(f"budgetreg: {lost}", file=sys.stderr)
    return code or (2 if lost else 0)


def _answer(words: list[str]) -> int:
    if words and words[0] in ("--help", "-h"):
        commands = "\n".join(f"  {name:<11}{what}" for name, (_, what) in COMMANDS.items())
        print(_HELP.format(commands=commands))
        return 0
    if words and words[0] == "--version":
        print(f"budgetreg {__version__}")
        return 0
    return _guarded(words)


def _guarded(words: list[str]) -> int:
    from budgetreg.errors import ContractError, UserError  # here, because it costs --help a few milliseconds

    try:
        return _dispatch(words)
    except (UserError, ContractError) as error:
        print(f"budgetreg: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("budgetreg: interrupted", file=sys.stderr)
        return 130
    except SystemExit as left:  # as argparse does after --help
        return left.code if isinstance(left.code, int) else 0 if left.code is None else 2


def _dispatch(words: list[str]) -> int:
    from budgetreg.errors import ConfigError, nearest

    if not words:
        raise ConfigError(f"a command is needed: {', '.join(COMMANDS)} (see budgetreg --help)")
    name, *rest = words
    if name in ("-sc", "--shell-completion"):  # the script that `run -sc install=bash` prints asks this way
        from budgetreg.cli import completion

        return completion.main(rest)
    if name not in COMMANDS:
        raise ConfigError(f"{name}: no such command{nearest(name, COMMANDS)}; commands: {', '.join(COMMANDS)}")
    command = import_module(f"budgetreg.cli.{COMMANDS[name][0]}")
    exit_code: int = command.main(rest)
    return exit_code

"""The command ``budgetreg``: a user's mistake becomes one line and an exit code.

Nothing heavy is imported here, so that ``budgetreg --help`` answers at once.
"""

import sys
from importlib import import_module
from types import TracebackType

from budgetreg import __version__
from budgetreg.common.notices import each_once, lost, patient_streams, plain_warnings, printable

COMMANDS = {
    "run": ("run", "main", "run one learner, a sweep (-m) or a recipe, or resume it"),
    "advise": ("advise", "main", "find the learner and k with the least error for a total (total=T)"),
    "fit": ("fit", "fit", "learn one model from all rows, and show what was paid"),
    "reproduce": ("reproduce", "main", "reproduce the papers' figures and judge their claims, or resume it"),
    "plot": ("curves", "plot", "draw the curves of one or several folders in one figure"),
    "compare": ("curves", "compare", "show how many attributes runs need to reach an error"),
    "report": ("curves", "report", "write one HTML page about runs, a recommendation or a study"),
    "status": ("status", "main", "show the progress of the runs in a folder"),
    "list": ("offers", "list_offers", "list learners, data sets and recipes"),
    "fetch": ("offers", "fetch_named", "obtain a data set that is not bundled"),
    "check": ("offers", "check", "check that learners are unbiased, within the budget, reproducible"),
    "predict": ("fit", "predict_rows", "apply what a run has learned to another table"),
    "study": ("study", "main", "recommend what to buy next, record results, show the bill"),
    "verify": ("reproduce", "verify", "compute finished repetitions again and compare the bytes"),
    "reprice": ("curves", "reprice", "recompute costs of finished runs with another price list"),
}
"""By name: the module of `budgetreg.cli`, its function, and what the command does."""

_HELP = """usage: budgetreg COMMAND ...

Compare linear learners that may see only k attributes of each training example.

commands:
{commands}

options:
  --help     show this; after a command, show its options
  --version  show the version

examples:
  budgetreg run algo=aelr k=4
  budgetreg run -m algo=aelr,aer,lasso k=4 out=runs/main
  budgetreg plot runs/main

exit codes: 0 ok, 1 some runs or checks failed, 2 usage or configuration,
3 data unavailable, 130 interrupted, 129 terminal closed"""


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : list of str, optional
        The words after ``budgetreg``; those of the command line by default.

    Returns
    -------
    int
        0 ok, 1 some runs or checks failed, 2 usage or configuration, 3 data unavailable, 130 interrupted, 129 if the
        terminal was closed.
    """
    sys.excepthook = _print_bug
    with patient_streams(), each_once(), plain_warnings():
        code = _answer(sys.argv[1:] if argv is None else argv)
        problem = lost()
        if problem:
            print(f"budgetreg: {problem}", file=sys.stderr)
    return code or (2 if problem else 0)


def _print_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of a bug as Python does, but escape what may be data in it."""
    import traceback

    print(printable("".join(traceback.format_exception(kind, error, trace))), end="", file=sys.stderr)


def _answer(words: list[str]) -> int:
    """Print the help or the version, or run a command, whose mistakes become one line and an exit code."""
    if words and words[0] in ("--help", "-h"):
        commands = "\n".join(f"  {name:<11}{what}" for name, (*_, what) in COMMANDS.items())
        print(_HELP.format(commands=commands))
        return 0
    if words and words[0] == "--version":
        print(f"budgetreg {__version__}")
        return 0
    from budgetreg.common.errors import ContractError, DataError, UserError
    from budgetreg.config.catalogue import blamed  # here, as it costs --help some milliseconds
    from budgetreg.runs.workers import interrupts_told_apart

    try:
        with interrupts_told_apart(), blamed():
            return _dispatch(words)
    except (UserError, ContractError) as error:
        print(f"budgetreg: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except MemoryError as error:
        print(f"budgetreg: not enough memory{f': {error}' if str(error) else ''}", file=sys.stderr)
        return DataError.exit_code
    except KeyboardInterrupt as error:
        resumes = "; the same command resumes" if words[0] in ("run", "advise", "fit") else ""
        print(f"budgetreg: interrupted{resumes}", file=sys.stderr)
        return getattr(error, "exit_code", 130)
    except SystemExit as end:  # which argparse raises after --help
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 2


def _dispatch(words: list[str]) -> int:
    from budgetreg.common.errors import ConfigError, nearest

    if not words:
        raise ConfigError(f"a command is needed: {', '.join(COMMANDS)} (see budgetreg --help)")
    name, *rest = words
    if name in ("-sc", "--shell-completion"):  # as the script that `run -sc install=bash` prints asks
        from budgetreg.cli.arguments import complete

        return complete(rest, tuple(COMMANDS))
    if name not in COMMANDS:
        raise ConfigError(f"{name}: no such command{nearest(name, COMMANDS)}; commands: {', '.join(COMMANDS)}")
    from budgetreg.cli.arguments import parsed
    from budgetreg.runs.workers import keep_freed_memory, pin_blas_threads, refuse_little_memory

    arguments = parsed(name, rest)
    refuse_little_memory()
    pin_blas_threads()
    keep_freed_memory()
    module, function, _ = COMMANDS[name]
    exit_code: int = getattr(import_module(f"budgetreg.cli.{module}"), function)(arguments)
    return exit_code

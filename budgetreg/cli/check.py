"""``budgetreg check``: the checks that every learner has to pass, as a table of ticks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from budgetreg.cli.common import Parser, console
from budgetreg.config import catalogue
from budgetreg.errors import ConfigError, nearest
from budgetreg.execution.workers import pin_blas_threads

if TYPE_CHECKING:
    from budgetreg.checks import CheckResult, Subject

_MARKS = {True: "✓", False: "✗", None: "–"}
_ABOUT = """Check learners, as their files have them and with each option changed: unbiased estimates and their second
moments (exactly, over all draws), agreement with full information at k = d, steps that are clipped or projected,
outputs that minimise, the budget, same seed same bytes, permuted attributes, values never shown, budgets too small."""


def main(argv: list[str]) -> int:
    """Check all learners, or some.

    Parameters
    ----------
    argv : list of str
        What follows ``check`` on the command line.

    Returns
    -------
    int
        0, or 1 if a check failed.

    Raises
    ------
    ConfigError
        If there is no such learner, or its file describes none.
    """
    parser = Parser("check", _ABOUT)
    parser.add_argument("algo", nargs="?", metavar="algo=NAME,NAME", help="learners; all of them by default")
    names = _learners(parser.parse_args(argv).algo)
    pin_blas_threads()
    from budgetreg.checks import verdicts  # here, because numpy is slow to load and --help is not

    found = {}
    with Console(stderr=True).status("", spinner="line") as status:  # of ASCII letters; it is shown on a terminal alone
        for name in names:
            status.update(f"checking {name}")
            found[name] = list(verdicts(_composed(name)))
    console().print(_table(found))
    for line in _reasons(found):
        console().print(line)
    return 1 if any(verdict.passed is False for own in found.values() for verdict in own) else 0


def _composed(name: str) -> "Subject":
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    from budgetreg.checks import examined
    from budgetreg.config.hydra_errors import as_config_error

    try:
        return examined(name)
    except (HydraException, OmegaConfBaseException, YAMLError) as error:
        raise as_config_error(error, [f"algo={name}"]) from error


def _table(found: Mapping[str, list["CheckResult"]]) -> Table:
    """Return a row for each learner: what came of it, and a cross where that or a variant of it has failed."""
    checks = list(dict.fromkeys(verdict.check for own in found.values() for verdict in own))
    table = Table("algo", box=None, pad_edge=False)
    for check in checks:
        table.add_column(check, justify="center")
    for name, own in found.items():
        passed = {verdict.check: verdict.passed for verdict in own if not verdict.changes}
        passed |= {verdict.check: False for verdict in own if verdict.passed is False}
        table.add_row(name, *(_MARKS[passed[check]] for check in checks))
    return table


def _reasons(found: Mapping[str, list["CheckResult"]]) -> list[str]:
    """Return why learners were excused, each reason once, then what failed; variants only if the learner was not."""
    excused: dict[tuple[str, str], list[str]] = {}
    failed = []
    for name, own in found.items():
        as_composed = {verdict.check for verdict in own if verdict.passed is None and not verdict.changes}
        for verdict in own:
            who = f"{name} {verdict.changes}".rstrip()
            if verdict.passed is False:
                failed.append(f"{_MARKS[False]} {who}, {verdict.check}: {verdict.reason}")
            elif verdict.passed is None and not (verdict.changes and verdict.check in as_composed):
                excused.setdefault((verdict.check, verdict.reason), []).append(who)
    reasons = [f"{_MARKS[None]} {check}: {reason} ({', '.join(names)})" for (check, reason), names in excused.items()]
    return reasons + failed


def _learners(word: str | None) -> list[str]:
    offered = catalogue.options("algo")
    if word is None:
        return offered
    key, equals, value = word.partition("=")
    if key != "algo" or not equals:
        raise ConfigError(f"check {word}: must be algo=NAME or algo=NAME,NAME; learners: {', '.join(offered)}")
    names = value.split(",")
    for name in names:
        if name not in offered:
            raise ConfigError(f"algo={name}: no such algo{nearest(name, offered)}; choices: {', '.join(offered)}")
    return names

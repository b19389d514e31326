"""``budgetreg check``: the checks that every learner must pass, as a table."""

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from budgetreg.cli.common import console
from budgetreg.config import catalogue
from budgetreg.errors import ConfigError, nearest
from budgetreg.notices import AsIs, in_one_line, table
from budgetreg.testing.checks import CheckResult, examined, run_checks

_MARKS = {True: "✓", False: "✗", None: "–"}


def main(arguments: Namespace) -> int:
    """Check all learners, or some.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Returns
    -------
    int
        0, or 1 if a check failed.

    Raises
    ------
    ConfigError
        If there is no such learner, or its file is no learner.
    """
    names = _learners(arguments.algo)
    results = {}
    file: Any = AsIs(sys.stderr)
    with Console(file=file).status("", spinner="line") as status:  # in ASCII; shown only on a terminal
        for name in names:
            status.update(f"checking {in_one_line(name)}")
            results[name] = list(run_checks(examined(name)))
    console().print(_table(results), *_reasons(results), sep="\n")
    return 1 if any(verdict.passed is False for verdicts in results.values() for verdict in verdicts) else 0


def _table(results: Mapping[str, list[CheckResult]]) -> Table:
    """Return a row for each learner; a cross means that the learner or a variant of it failed."""
    checks = list(dict.fromkeys(verdict.check for verdicts in results.values() for verdict in verdicts))
    rows = []
    for name, verdicts in results.items():
        passed = {verdict.check: verdict.passed for verdict in verdicts if not verdict.changes}
        passed |= {verdict.check: False for verdict in verdicts if verdict.passed is False}
        rows.append([name, *(_MARKS[passed[check]] for check in checks)])
    return table(["algo", *(Column(check, justify="center") for check in checks)], rows)


def _reasons(results: Mapping[str, list[CheckResult]]) -> list[str]:
    """Return why checks were skipped, each reason once, then what failed."""
    skipped: dict[tuple[str, str], list[str]] = {}
    failed = []
    for name, verdicts in results.items():
        as_composed = {verdict.check for verdict in verdicts if verdict.passed is None and not verdict.changes}
        for verdict in verdicts:
            who = f"{name} {verdict.changes}".rstrip()
            if verdict.passed is False:
                failed.append(f"{_MARKS[False]} {who}, {verdict.check}: {verdict.reason}")
            elif verdict.passed is None and not (verdict.changes and verdict.check in as_composed):
                skipped.setdefault((verdict.check, verdict.reason), []).append(who)
    reasons = [f"{_MARKS[None]} {check}: {reason} ({', '.join(names)})" for (check, reason), names in skipped.items()]
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

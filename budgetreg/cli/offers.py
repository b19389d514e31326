"""What is offered: ``budgetreg list`` names it, ``check`` tests the learners, ``fetch`` obtains what is not bundled."""

import contextlib
import io
import os
import re
import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Column, Table

from budgetreg.cli.arguments import FETCHED, SECTIONS, key_values
from budgetreg.cli.console import console
from budgetreg.common.errors import ConfigError, DataError, nearest
from budgetreg.common.files import remove_abandoned, replaceable, scratch_folder
from budgetreg.common.notices import AsIs, in_one_line, table
from budgetreg.config import catalogue
from budgetreg.data import mnist

if TYPE_CHECKING:
    from budgetreg.testing.checks import CheckResult

_MARKS = {True: "✓", False: "✗", None: "–"}
_TASKS = {
    "all_budgeted": "regression, k attributes of each example (algo=all_budgeted stands for these)",
    "all_full": "regression, full rows (all_full)",
    "all_subspaces": "subspaces (all_subspaces)",
}
_ROOT_KEY = "dataset.root"
_SCRATCH = ".fetch-"  # prefix of the folders of unfinished downloads


def list_offers(arguments: Namespace) -> int:
    """List all sections, or one: learners by their task and, within it, by their source.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Raises
    ------
    ConfigError
        If there is no such section.
    """
    section = arguments.section
    if section is not None and section not in SECTIONS:
        raise ConfigError(f"list {section}: must be one of {', '.join(SECTIONS)}{nearest(section, SECTIONS)}")
    for group in SECTIONS.values() if section is None else [SECTIONS[section]]:
        by_task = _by_task() if group == "algo" else {"what it is": catalogue.options(group)}
        for task, options in by_task.items():
            rows = [(option, catalogue.headline(group, option)) for option in options]
            if group == "algo":
                rows.sort(key=_source)
            console().print(table((f"{group}=", task), rows))
    return 0


def _by_task() -> dict[str, list[str]]:
    """Return the names of all learners by their task; files that describe none come last."""
    from budgetreg.algorithms.registry import GROUPS, members  # here, as numpy is slow to load

    tasks = {_TASKS[name]: members(belongs) for name, belongs in GROUPS.items()}
    others = [name for name in catalogue.options("algo") if not any(name in of_task for of_task in tasks.values())]
    return {**tasks, "no learners": others} if others else tasks


def _source(row: tuple[str, str]) -> tuple[int, str, str]:
    """Return the order of learners in their task: those of papers by year, then ours, then common practice."""
    name, headline = row
    year = re.search(r"\b(?:19|20)\d\d\b", headline)
    return (0, year[0], name) if year else (1 if "(ours)" in headline else 2, "", name)


def check(arguments: Namespace) -> int:
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
    from budgetreg.testing.checks import examined, run_checks  # here, as they are slow to load

    names = _learners(arguments.algo)
    results = {}
    file: Any = AsIs(sys.stderr)
    with Console(file=file).status("", spinner="line") as status:  # in ASCII; shown only on a terminal
        for name in names:
            status.update(f"checking {in_one_line(name)}")
            results[name] = list(run_checks(examined(name)))
    console().print(_check_table(results), *_reasons(results), sep="\n")
    return 1 if any(verdict.passed is False for verdicts in results.values() for verdict in verdicts) else 0


def _check_table(results: Mapping[str, list["CheckResult"]]) -> Table:
    """Return a row for each learner; a cross means that the learner or a variant of it failed."""
    checks = list(dict.fromkeys(verdict.check for verdicts in results.values() for verdict in verdicts))
    rows = []
    for name, verdicts in results.items():
        passed = {verdict.check: verdict.passed for verdict in verdicts if not verdict.changes}
        passed |= {verdict.check: False for verdict in verdicts if verdict.passed is False}
        rows.append([name, *(_MARKS[passed[check]] for check in checks)])
    return table(["algo", *(Column(check, justify="center") for check in checks)], rows)


def _reasons(results: Mapping[str, list["CheckResult"]]) -> list[str]:
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


def fetch_named(arguments: Namespace) -> int:
    """Run ``budgetreg fetch NAME [dataset.root=DIR]``.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

    Returns
    -------
    int
        0.

    Raises
    ------
    ConfigError
        If the name or an option is unknown.
    DataError
        If the files cannot be obtained, or are not the original ones.
    """
    if arguments.name not in FETCHED:
        hint = nearest(arguments.name, FETCHED)
        raise ConfigError(f"nothing to fetch for {arguments.name!r}{hint}; possible: {', '.join(FETCHED)}")
    given = key_values(arguments.words, [_ROOT_KEY], "fetch has no such key")
    print(fetch(arguments.name, given.get(_ROOT_KEY, "data")))
    return 0


def fetch(name: str, root: str, checksums: Mapping[str, str] = mnist.CHECKSUMS) -> str:
    """Prepare a data set below a folder; only missing or wrong files are downloaded.

    Returns
    -------
    str
        One line with the places of the files.

    Raises
    ------
    DataError
        If torchvision is needed but not installed, the download fails, or a folder cannot be written.
    """
    remove_abandoned(_SCRATCH, mnist.raw_folder(root))
    wrong = mnist.faults(root, checksums)
    if wrong:
        _download(root, wrong, checksums)
    folder = mnist.prepare(root, checksums)
    n, d = mnist.Mnist(root, FETCHED[name]).load(checksums).X.shape
    return f"{name}: {n} images of {d} pixels; original files in {mnist.raw_folder(root)}, arrays in {folder}"


def _download(root: str, wrong: Mapping[str, str], checksums: Mapping[str, str]) -> None:
    """Replace the wrong files; a download that fails changes nothing."""
    try:
        from torchvision import datasets  # here, as torchvision is an extra and slow to load
    except ImportError as error:
        raise DataError(
            "downloading MNIST needs torchvision: pip install '.[mnist]' (in a clone: make mnist)"
        ) from error
    raw = mnist.raw_folder(root)
    try:
        raw.mkdir(parents=True, exist_ok=True)
        # Inside the folder, so that moving the files into place is a rename on one file system.
        with scratch_folder(_SCRATCH, raw) as scratch:
            try:
                # Progress goes to stderr, and only on a terminal.
                progress: Any = AsIs(sys.stderr) if sys.stderr.isatty() else io.StringIO()
                with contextlib.redirect_stdout(progress), contextlib.redirect_stderr(progress):
                    datasets.MNIST(str(scratch), download=True)
            except Exception as error:  # a download can fail in any way
                reason = " ".join(str(error).split()) or type(error).__name__
                raise DataError(f"the download of MNIST failed: {reason}") from error
            still_wrong = mnist.faults(scratch, checksums)
            if still_wrong:
                problems = "; ".join(f"{file}: {problem}" for file, problem in still_wrong.items())
                raise DataError(f"the download does not have the original files of MNIST ({problems}): try again")
            for file in wrong:
                os.replace(mnist.raw_folder(scratch) / file, replaceable(raw / file))
    except OSError as error:
        raise DataError(
            f"cannot write {raw} ({error.strerror or error}): choose another folder with {_ROOT_KEY}=DIR"
        ) from error

"""Break one rule at a time, and check that a test fails: ``python scripts/mutants.py [NAME ...]``.

Each mutant of ``mutants.yaml`` changes one function while the tests run: this file is also the pytest plugin that makes
the change. The tests that the mutant names or the literal test of the protocol must
notice it. A mutant that no test notices survives, which is an error. All tests must pass without any change first.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml
from mutation import Mutant, apply, rewrite
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
LITERAL = "tests/protocol/test_literal_protocol.py"
SECONDS = 300.0
"""Time limit of a mutant's tests; a mutant that makes them take longer is noticed, too."""
CHOSEN = "BUDGETREG_MUTANT"
"""Environment variable that names the mutant to the plugin."""


def pytest_configure() -> None:
    """Apply the mutant that the environment names; pytest calls this before it collects tests."""
    if name := os.environ.get(CHOSEN):
        apply(next(mutant for mutant in mutants() if mutant.name == name))


def mutants() -> tuple[Mutant, ...]:
    """Return all mutants; their changes import the package, which has to wait for the settings of the tests."""
    import faults

    return tuple(
        Mutant(
            entry["name"],
            entry["in"],
            rewrite(entry["old"], entry["new"]) if "old" in entry else eval(entry["change"], vars(faults)),
            tuple(entry.get("test", "").split()),
        )
        for entry in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    )


def failed(tests: Sequence[str], name: str = "") -> str:
    """Run tests with a mutant; return the first one that fails, ``(time limit)``, or nothing if all pass.

    Raises
    ------
    RuntimeError
        If the tests cannot be run at all.
    """
    path = os.pathsep.join(map(str, (ROOT, ROOT / "scripts")))
    environment = {**os.environ, "PYTHONPATH": path, CHOSEN: name}
    command = [sys.executable, "-m", "pytest", "-p", "mutants", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *tests]
    try:
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "(time limit)"
    if run.returncode == 0:
        return ""
    failure = re.search(r"^FAILED (\S+)", run.stdout, re.MULTILINE)
    if run.returncode != 1 or not failure:
        raise RuntimeError(f"{' '.join(tests)} could not be run:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return failure[1]


def killed_by(mutant: Mutant) -> str:
    """Return the test that notices a mutant, or nothing."""
    return (failed(mutant.tests, mutant.name) if mutant.tests else "") or failed([LITERAL], mutant.name)


def score(chosen: Sequence[Mutant], jobs: int) -> dict[str, str]:
    """Return for each mutant's name the test that notices it, or nothing.

    Raises
    ------
    RuntimeError
        If tests fail without any change, or cannot be run.
    """
    if broken := failed([LITERAL, *sorted({test for mutant in chosen for test in mutant.tests})]):
        raise RuntimeError(f"{broken} fails without any mutant")
    with Progress(console=Console(stderr=True), transient=True) as progress, ThreadPoolExecutor(jobs) as threads:
        killers = progress.track(threads.map(killed_by, chosen), len(chosen), description="mutants")
        return dict(zip((mutant.name for mutant in chosen), killers, strict=True))


def short(test: str) -> str:
    """Return the name of a test, or the case of the literal test, as the table prints it."""
    name = test.rpartition("::")[2]
    return escape(f"literal{name[name.find('[') :]}" if test.startswith(LITERAL) and "[" in name else name)


def main() -> int:
    """Try the named mutants, or all, print which test notices each, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="try mutants whose name contains one of these (all)")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="mutants tried side by side (%(default)s)")
    arguments = parser.parse_args()
    chosen = [m for m in mutants() if not arguments.names or any(word in m.name for word in arguments.names)]
    if not chosen:
        parser.error(f"no mutant's name contains {' or '.join(arguments.names)}")
    try:
        killers = score(chosen, max(1, arguments.jobs))
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    table = Table("mutant", "in", "noticed by")
    for mutant in chosen:
        killer = killers[mutant.name]
        table.add_row(mutant.name, mutant.place, short(killer) if killer else "[bold red]SURVIVED")
    dead = sum(map(bool, killers.values()))
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    console.print(f"tests notice {dead} of {len(chosen)} mutants")
    return 0 if dead == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())

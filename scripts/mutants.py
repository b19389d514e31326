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


def failed(tests: Sequence[str], name: str = "", limit: float = SECONDS) -> str:
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
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit)
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


def main() -> int:
    """Try the named mutants, or all, print which test notices each, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="try mutants whose name contains one of these (all)")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="mutants tried side by side (%(default)s)")
    arguments = parser.parse_args()
    chosen = [m for m in mutants() if not arguments.names or any(word in m.name for word in arguments.names)]
    if not chosen:
        parser.error(f"no mutant's name contains {' or '.join(arguments.names)}")
    every = [LITERAL, *sorted({test for mutant in chosen for test in mutant.tests})]
    if broken := failed(every, limit=SECONDS * len(every)):
        print(f"{broken} fails without any mutant", file=sys.stderr)
        return 1
    dead = 0
    with ThreadPoolExecutor(max(1, arguments.jobs)) as threads:
        for mutant, killer in zip(chosen, threads.map(killed_by, chosen), strict=True):
            print(f"{mutant.name} ({mutant.place}): {f'noticed by {killer}' if killer else 'SURVIVED'}", flush=True)
            dead += bool(killer)
    print(f"tests notice {dead} of {len(chosen)} mutants")
    return 0 if dead == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())

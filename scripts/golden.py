"""Do all commands still print and write the same bytes? ``python scripts/golden.py [--only PATTERN] [-j N] [--write]``.

A change of the layout must change nothing that a user sees. `golden.yaml` lists small commands: every learner with each
kind of option, sweeps, studies, figures, reports, help, mistakes, estimators, and the identities of all results. This
script runs them and compares exit codes and hashes of what they print and write with `golden.json`. It prints which
commands differ, and in which files, and exits with 1 then.

- ``--only PATTERN``: only the scenarios whose names match, such as ``'study*'``
- ``--show PATTERN``: print what these scenarios print and write, to be compared by diff before and after a change
- ``--write``: make what is printed and written now the expected; scenarios that were not run stay as they are

A scenario is a list of commands, which run in this order in a folder of their own. A first word ``[2]`` says that a
command must end with exit code 2, and others must end with 0, or nothing is written. A shell runs all commands but
those that begin with budgetreg.

Everything is hashed, apart from the place of the temporary folder; versions, commit, processor, seconds, and digests
that depend on them; lines of progress; the times of events of a study; and the order of the lines of a journal, as
workers finish in any order. Linear algebra uses the kernels that every processor has, so that the hashes are the same
everywhere.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from fnmatch import fnmatch
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import yaml
from steady_output import KERNELS, PROGRESS, TIMES, without_seconds
from stress_trials import Answer, environment, forked

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS, GOLDEN = ROOT / "scripts" / "golden.yaml", ROOT / "scripts" / "golden.json"

Outcome = dict[str, Any]
"""How a command ended, by ``exit code``, ``stdout``, ``stderr`` and the names of files that it wrote or removed."""

LIMIT = 600.0
"""Seconds after which a command counts as hanging: on a quiet machine, none takes a twentieth of that."""

_MARK = "BUDGETREG_GOLDEN"  # in the environment of a process that has the kernels
_LENGTH = 64  # characters of the temporary folder, as the width of printed tables depends on it
_NOT_HASHED = ("cache", "tmp")
_VARYING = re.compile(
    rb'("seconds": (?=\d)|"(?:made_from|sha256|runs\.csv|manifest\.json|commit|dirty|python|numpy|scipy|scikit-learn'
    rb'|hydra|budgetreg|platform|blas)": )("[^"]*"|[\w.+-]+)'
)
"""Entries of manifests and journals that depend on versions or on the clock."""
_OF_THE_MACHINE = re.compile(
    rb"(commit|python|numpy|scipy|scikit-learn|hydra|budgetreg|platform|blas)</th>\s*<td>[^<]*</td>"
)
"""The same entries in a report, and whether the source was changed since the commit."""


def scenarios(pattern: str = "*") -> dict[str, list[str]]:
    """Read the commands of the scenarios whose names match a pattern.

    Raises
    ------
    ValueError
        If a scenario has a command twice.
    """
    commands = {}
    for name, text in yaml.safe_load(SCENARIOS.read_text(encoding="utf-8")).items():
        commands[name] = [" ".join(line.split()) for line in text.replace("\\\n", "").splitlines() if line.strip()]
        if len(set(commands[name])) < len(commands[name]):
            raise ValueError(f"{name}: a command is there twice")
    return {name: lines for name, lines in commands.items() if fnmatch(name, pattern)}


def run_scenario(name: str, commands: Sequence[str], place: Path) -> tuple[dict[str, Outcome], float]:
    """Run the commands of a scenario; return their outcomes and their processor time in seconds.

    Raises
    ------
    RuntimeError
        If a command does not end as it must.
    """
    folder, began = place / name.replace(" ", "-"), os.times()
    shutil.copytree(place / "start", folder, symlinks=True)
    outcomes, before = {}, contents(folder)
    for line in commands:
        code, command = re.fullmatch(r"(?:\[(\d)\] )?(.*)", line).groups("0")  # type: ignore[union-attr]
        answer = run_command(command, folder)
        if answer.hung or str(answer.code) != code or "Traceback (most recent call last)" in answer.err:
            raise RuntimeError(f"{name}: {line}: exit code {answer.code}, not {code}\n{answer.err[-2000:]}")
        after = contents(folder)
        outcomes[line] = {
            "exit code": answer.code,
            "stdout": steady(answer.out.encode(), folder),
            "stderr": steady(PROGRESS.sub("", answer.err).encode(), folder),
            **{file: after.get(file) for file in sorted({*before, *after}) if before.get(file) != after.get(file)},
        }
        before = after
    return outcomes, sum(os.times()[2:4]) - sum(began[2:4])


def run_command(line: str, folder: Path) -> Answer:
    """Run a command in a folder: one of budgetreg in a copy of this process, any other in a shell."""
    if line.startswith("budgetreg "):
        return forked(shlex.split(line)[1:], folder, limit=LIMIT)
    try:
        done = subprocess.run(
            ["sh", "-c", line], cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return Answer(-1, "", "", hung=True)
    return Answer(done.returncode, done.stdout, done.stderr)


def contents(folder: Path) -> dict[str, bytes]:
    """Return what is hashed of the files below a folder by name; of a study its SQL."""
    found = {}
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in names):
            name = path.relative_to(folder).as_posix()
            if path.suffix == ".db":
                with closing(sqlite3.connect(path)) as connection:
                    found[name] = TIMES.sub("NULL", "\n".join(connection.iterdump())).encode()
            elif not name.startswith(_NOT_HASHED):
                found[name] = steady(path.read_bytes(), folder, path.name)
    return found


def steady(text: bytes, folder: Path, name: str = "") -> bytes:
    """Return what was printed, or written under a name, without what differs between machines or calls."""
    text = text.replace(str(folder).encode(), b"FOLDER")
    if name == "runs.csv":
        text = without_seconds(text)
    if name.endswith((".json", ".jsonl")):
        text = _VARYING.sub(rb"\1null", text)
    if name.endswith(".html"):
        text = _OF_THE_MACHINE.sub(b"", text)
    return b"".join(sorted(text.splitlines(keepends=True))) if name.endswith(".jsonl") else text


def hashed(outcome: Mapping[str, Any]) -> Outcome:
    """Return an outcome with hashes in place of contents; nothing for empty ones."""

    def short(content: Any) -> Any:
        if isinstance(content, bytes):
            return hashlib.sha256(content).hexdigest()[:16] if content else ""
        return "removed" if content is None else content

    return {part: short(content) for part, content in outcome.items()}


def differences(name: str, expected: Mapping[str, Outcome], actual: Mapping[str, Outcome]) -> Iterator[str]:
    """Give two lines for each command of a scenario that differs: the command, and what of it."""
    for line in dict.fromkeys([*expected, *actual]):
        if line not in expected or line not in actual:
            yield f"{name}: {line}\n    {'is new' if line in actual else 'is no longer run'}"
        elif expected[line] != actual[line]:
            parts = dict.fromkeys([*expected[line], *actual[line]])
            differing = [part for part in parts if expected[line].get(part) != actual[line].get(part)]
            yield f"{name}: {line}\n    {', '.join(differing)}"


def show(outcomes: Mapping[str, Outcome]) -> None:
    """Print what the commands of a scenario print and write; of binary files the hash."""
    for line, outcome in outcomes.items():
        print(f"##### {line}")
        for part, short in hashed(outcome).items():
            content = outcome[part]
            text = content.decode(errors="replace") if isinstance(content, bytes) else ""
            print(f"### {part}: {short}", *([] if "\ufffd" in text or not text else [text.rstrip("\n")]), sep="\n")


def prepare(place: Path) -> None:
    """Make the folder in which each scenario starts, and import whatever a run imports."""
    start = place / "start"
    subprocess.run([sys.executable, ROOT / "examples" / "write_tables.py", start], check=True, timeout=LIMIT)
    for name in ("examples", "results", "scripts"):
        (start / name).symlink_to(ROOT / name)
    os.environ["MPLCONFIGDIR"] = str(place / "fonts")  # matplotlib looks for fonts once, not in each command
    code = "import sys; from budgetreg.cli.app import main; main(sys.argv[1:]); print(*sys.modules)"
    words = ["run", "algo=aemr", "k=4", "repetitions=1", "checkpoints=1", "out=imported"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=place, capture_output=True, text=True, check=True, timeout=LIMIT
    )
    for module in done.stdout.splitlines()[-1].split():
        with suppress(ImportError):
            import_module(module)


def main() -> int:
    """Run the scenarios; compare, print or write what they leave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="scenarios to run (all)")
    parser.add_argument("--show", metavar="PATTERN", help="print what these scenarios print and write")
    parser.add_argument("--write", action="store_true", help="make what is printed and written now the expected")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="scenarios side by side (%(default)s)")
    arguments = parser.parse_args()
    if _MARK not in os.environ:  # libraries choose their kernels when they are loaded
        kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
        # Reports print the commit, which is unknown without a repository.
        here = {"PATH": path, "PYTHONPATH": str(ROOT)}  # so that this source answers, not an installed one
        variables = {**kept, **KERNELS, **here, "LANG": "C.UTF-8", "GIT_DIR": os.devnull, _MARK: "1"}
        os.execve(sys.executable, [sys.executable, *sys.argv], variables)
    todo = scenarios(arguments.show or arguments.only)
    prefix = "golden".ljust(_LENGTH - len(tempfile.gettempdir()) - 9, "-")
    place, actual, failed = Path(tempfile.mkdtemp(prefix=prefix)), {}, []
    try:
        prepare(place)
        with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("fork")) as pool:
            ends = {name: pool.submit(run_scenario, name, todo[name], place) for name in todo}
            for name, end in ends.items():
                try:
                    outcomes, seconds = end.result()
                except RuntimeError as error:
                    failed.append(str(error))
                    continue
                print(f"{name}: {len(outcomes)} commands, {seconds:.1f} s of processor time", file=sys.stderr)
                if arguments.show:
                    show(outcomes)
                actual[name] = {line: hashed(outcome) for line, outcome in outcomes.items()}
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return conclude(actual, failed, arguments.write)


def conclude(actual: Mapping[str, Mapping[str, Outcome]], failed: Sequence[str], write: bool) -> int:
    """Print what differs from the expected, replace the expected if asked to, and return the exit code."""
    expected = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    known = scenarios()
    compared = {name: actual.get(name, {}) for name in [*actual, *(name for name in expected if name not in known)]}
    lines = [line for name in compared for line in differences(name, expected.get(name, {}), compared[name])]
    print(*lines, *failed, sep="\n", end="\n" if lines or failed else "")
    commands = sum(map(len, actual.values()))
    print(f"{len(lines)} differences in {commands} commands of {len(actual)} scenarios; {len(failed)} scenarios failed")
    if write and not failed:
        whole = {name: actual.get(name, expected.get(name)) for name in known if name in actual or name in expected}
        new = GOLDEN.with_suffix(".tmp")
        new.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        new.replace(GOLDEN)
        return 0
    return 1 if lines or failed else 0


if __name__ == "__main__":
    sys.exit(main())

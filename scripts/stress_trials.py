"""What all trials of `stress.py` share: kinds and cases, commands, and the judgement of faults."""

import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FAULTS = ("wrong", "tracebacks", "hangs", "orphans", "leftovers", "untold")
"""Results that differ without a message; tracebacks; hangs; processes, files left over; no clear line."""

LIMIT = 120.0
"""Seconds after which a command counts as hanging; on a busy machine, the slowest takes less than half."""

_LINES = 4
"""Most lines of an error message: one, and one for each further cell of a sweep."""

_GRACE = 20.0
"""Seconds within which processes must notice that their parent has ended."""

_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Answer:
    """How a command ended.

    Attributes
    ----------
    code : int
        Its exit code, or minus the signal that ended it.
    out, err : str
        What it printed.
    hung : bool
        Whether it was killed for taking too long.
    """

    code: int
    out: str
    err: str
    hung: bool = False


@dataclass(frozen=True)
class Trial:
    """A trial.

    Attributes
    ----------
    kind, case : str
        What is done to the program, and to which part of it.
    number, seed : int
        Number of the trial and seed, which decide all its random choices.
    place : Path
        Folder that the trials of a kind share.
    options : mapping
        What was prepared for the case.
    """

    kind: str
    case: str
    number: int
    seed: int
    place: Path
    options: Mapping[str, Any] = field(default_factory=dict)

    def turn(self, cases: int) -> int:
        """Return how many trials of the case come before this one, if all cases take turns."""
        return self.number // cases

    @property
    def rng(self) -> np.random.Generator:
        """Return the random generator of the trial."""
        return np.random.default_rng([self.seed, self.number, *f"{self.kind} {self.case}".encode()])


@dataclass
class TrialResult:
    """The faults of a trial, each with a description."""

    trial: Trial
    faults: dict[str, str] = field(default_factory=dict)

    def note(self, fault: str, seen: str) -> None:
        """Note a fault; only the first of its kind is kept."""
        assert fault in FAULTS
        self.faults.setdefault(fault, seen)

    def judge(self, what: str, answer: Answer, codes: Sequence[int] = (0, 2, 3)) -> None:
        """Note a fault if a command ended badly."""
        lines = [line for line in answer.err.splitlines() if line.strip()]
        seen = f"{what}: exit code {answer.code}\n{answer.err[-2000:]}"
        if answer.hung:
            self.note("hangs", seen)
        elif "Traceback (most recent call last)" in answer.err or "Fatal Python error" in answer.err:
            self.note("tracebacks", seen)
        elif answer.code not in codes or (answer.code in (2, 3) and not 1 <= len(lines) <= _LINES):
            self.note("untold", seen)


Try = Callable[[TrialResult, Path, np.random.Generator], None]
"""Carries out a trial in a folder, and notes its faults."""


@dataclass(frozen=True)
class Kind:
    """A kind of trials.

    Attributes
    ----------
    option : str
        The option of `stress.py` that sets their number.
    trials : int
        Their number in a full run.
    prepared : callable
        Runs in a folder, for a number of trials, what they share; returns what each case needs. ``whole`` names a
        folder that each trial copies; ``turns`` is how often a case comes before the others come again.
    cases : mapping or callable
        How each case is tried, or all of them.
    """

    option: str
    trials: int
    prepared: Callable[[Path, int], Mapping[str, Mapping[str, Any]]]
    cases: Mapping[str, Try] | Try

    def tried(self, trial: Trial) -> TrialResult:
        """Carry out a trial in a new folder, deep enough that what is written to .. stays in it."""
        result, place = TrialResult(trial), Path(tempfile.mkdtemp(dir=trial.place))
        folder = place / "some" / "where"
        if "whole" in trial.options:
            shutil.copytree(trial.options["whole"], folder)
        else:
            folder.mkdir(parents=True)
        (self.cases if callable(self.cases) else self.cases[trial.case])(result, folder, trial.rng)
        shutil.rmtree(place, ignore_errors=True)
        return result


def alike(cases: Iterable[str], **options: Any) -> Mapping[str, Mapping[str, Any]]:
    """Return the same options for all cases."""
    return dict.fromkeys(cases, options)


def undisturbed(words: str | Sequence[str], folder: Path, *, fork: bool = True) -> Answer:
    """Run a command that trials will disturb.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    given = words.split() if isinstance(words, str) else words
    answer = forked(given, folder) if fork else ended(started(given, folder))
    if answer.code:
        raise RuntimeError(f"{words}: exit code {answer.code} undisturbed\n{answer.err}")
    return answer


def limit_memory(more: int) -> None:
    """Limit the address space of this process to some bytes beyond what it uses."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more,) * 2)


def environment(folder: Path) -> dict[str, str]:
    """Make folders for caches and temporary files, and return an environment that names them."""
    for name in ("tmp", "cache"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return {
        **os.environ,
        "TMPDIR": str(folder / "tmp"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", str(folder / "cache")),
        "COLUMNS": "200",
    }


def started(
    words: Sequence[str],
    folder: Path,
    variables: Mapping[str, str] | None = None,
    before: Callable[[], object] | None = None,
) -> "subprocess.Popen[str]":
    """Start the command in a new session, with the folders of `environment`, more variables and what it does first."""
    return subprocess.Popen(
        [sys.executable, "-m", "budgetreg", *words],
        cwd=folder,
        env={**environment(folder), **(variables or {})},
        preexec_fn=before,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        errors="replace",
    )


def ended(process: "subprocess.Popen[str]", limit: float = LIMIT) -> Answer:
    """Wait until a command ends, and return how."""
    hung = False
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        hung = True
        end_session(process.pid)
        out, err = process.communicate()
    return Answer(process.returncode, out, err, hung)


def forked(
    words: Sequence[str], folder: Path, before: Callable[[], object] = lambda: None, limit: float | None = None
) -> Answer:
    """Run the command in a fork of this process, which has imported all that the command needs.

    Parameters
    ----------
    words : sequence of str
        What follows ``budgetreg``.
    folder : Path
        Where it runs; its folders are those of `environment`.
    before : callable
        What the copy does first.
    limit : float, optional
        Seconds after which it is killed; `LIMIT` by default.
    """
    variables = environment(folder)
    pipes = [os.pipe(), os.pipe()]
    process = os.fork()
    if not process:
        _answer_as_copy(words, folder, variables, [write for _, write in pipes], before)
    for _, write in pipes:
        os.close(write)
    printed: dict[int, bytes] = {read: b"" for read, _ in pipes}
    status, hung, deadline = None, False, time.monotonic() + (limit or LIMIT)
    open_pipes = set(printed)
    while status is None or select.select(list(open_pipes), [], [], 0)[0]:
        for read in select.select(list(open_pipes), [], [], 0.02)[0]:
            piece = os.read(read, 1 << 16)
            printed[read] += piece
            if not piece:
                open_pipes.discard(read)
        if status is None and os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        elif status is None and not hung and time.monotonic() > deadline:
            hung = True
            end_session(process)
    for read in printed:
        os.close(read)
    out, err = (printed[read].decode(errors="replace") for read, _ in pipes)
    end_session(process)  # with what it started
    return Answer(status, out, err, hung)


def _answer_as_copy(
    words: Sequence[str], folder: Path, variables: Mapping[str, str], pipes: Sequence[int], before: Callable[[], object]
) -> None:
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        with Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), 0)
        for number, pipe in zip((1, 2), pipes, strict=True):
            os.dup2(pipe, number)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, encoding="utf-8") for number, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        import multiprocessing.process

        from budgetreg.cli.app import main

        # A command that a user gives is nobody's worker.
        multiprocessing.process._parent_process = None  # type: ignore[attr-defined]
        tempfile.tempdir = None  # to be asked for again
        sys.argv = ["budgetreg", *words]
        before()
        code = main(list(words))
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        with suppress(BaseException):
            os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def session(leader: int) -> set[int]:
    """Return the processes of a session that have not ended."""
    processes = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, number = stat.read_text().rpartition(")")[2].split()[:4]
            if int(number) == leader and state != "Z":
                processes.add(int(stat.parent.name))
    return processes


def end_session(leader: int) -> None:
    """Kill all processes of a session."""
    for process in session(leader):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def note_orphans(result: TrialResult, leader: int) -> None:
    """Note the processes of a session that outlive its leader, and end them."""
    deadline = time.monotonic() + _GRACE
    while session(leader) and time.monotonic() < deadline:
        time.sleep(0.1)
    left = session(leader)
    if left:
        result.note("orphans", f"processes {sorted(left)} live on")
        end_session(leader)


def note_leftovers(result: TrialResult, folder: Path, processes: set[int]) -> None:
    """Note temporary files left over in the folders of `environment` and in shared memory."""
    left = [path for path in (folder / "tmp").iterdir()]
    left += [path for path in (folder / "cache").rglob("*.tmp")]
    if _SHARED_MEMORY.is_dir():
        names = {str(process) for process in processes}
        left += [path for path in _SHARED_MEMORY.iterdir() if names & set(path.name.replace("_", "-").split("-"))]
    if left:
        result.note("leftovers", f"left: {', '.join(map(str, left))}")


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files in a folder by name, without times and what depends on their order."""
    contents = {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
    for name, content in contents.items():
        if name.endswith(("manifest.json", ".receipt.json", "journal.jsonl", "models.jsonl")):
            contents[name] = b""
        elif name.endswith("runs.csv"):
            contents[name] = _without_seconds(content)
    return contents


def _without_seconds(table: bytes) -> bytes:
    rows = [row.split(b",") for row in table.splitlines()]
    place = rows[0].index(b"seconds")
    return b"\n".join(b",".join([*row[:place], *row[place + 1 :]]) for row in rows)


def compare(result: TrialResult, folder: Path, expected: Mapping[str, bytes]) -> None:
    """Note files of a folder that differ from those of an undisturbed run."""
    here = snapshot(folder) if folder.is_dir() else {}
    other = [name for name in expected if here.get(name) != expected[name]]
    more = sorted(set(here) - set(expected))
    if other:
        result.note("wrong", f"{folder}: differ: {', '.join(other)}")
    if more:
        result.note("leftovers", f"{folder}: left: {', '.join(more)}")

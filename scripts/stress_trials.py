"""What all trials of `stress.py` share: kinds and cases, commands, and the judgement of faults."""

import os
import resource
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
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from steady_output import without_seconds

FAULTS = ("wrong", "tracebacks", "hangs", "orphans", "leftovers", "untold")
"""Results that differ without a message; tracebacks; hangs; processes, files left over; no clear line."""

LIMIT = 120.0
"""Seconds after which a command counts as hanging; on a busy machine, the slowest takes less than half."""

DATA: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("stress.yaml").read_text(encoding="utf-8"))
"""By kind, the commands, texts and numbers that its trials take."""

_LINES = 4  # most lines of an error message: one, and one for each further cell of a sweep
_GRACE = 20.0  # seconds within which processes must notice that their parent has ended
_SHARED_MEMORY = Path("/dev/shm")

Line = str | Sequence[str]
"""A command line without ``budgetreg``, as text if no word has blanks."""


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


@dataclass
class Trial:
    """A trial, and the faults that it shows.

    Attributes
    ----------
    kind, case : str
        What is done to the program, and to which part of it.
    number, seed : int
        Number of the trial and seed, which decide all its random choices.
    options : mapping
        What was prepared for the case.
    folder : Path
        Where commands run.
    faults : dict
        A description of the first fault of each sort.
    """

    kind: str
    case: str
    number: int
    seed: int
    options: Mapping[str, Any]
    folder: Path
    faults: dict[str, str] = field(default_factory=dict)

    @cached_property
    def rng(self) -> np.random.Generator:
        """Return the random generator of the trial."""
        return np.random.default_rng([self.seed, self.number, *f"{self.kind} {self.case}".encode()])

    def pick(self, values: Sequence[Any]) -> Any:
        """Return one of some values."""
        return values[int(self.rng.integers(len(values)))]

    def run(self, line: Line, codes: Sequence[int] = (0, 2, 3), **how: Any) -> Answer:
        """Run a command, see `forked`, judge how it ends, and return that."""
        answer = forked(line, self.folder, **how)
        self.judge(str(line), answer, codes)
        return answer

    def end(
        self, process: "subprocess.Popen[str]", what: str, codes: Sequence[int] = (0,), limit: float | None = None
    ) -> Answer:
        """Wait until a command ends, judge how, and return that; none of its processes may live on."""
        answer = ended(process, limit)
        self.judge(what, answer, codes)
        self.without_orphans(process.pid)
        return answer

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

    def note(self, fault: str, seen: str) -> None:
        """Note a fault; only the first of its sort is kept."""
        assert fault in FAULTS
        self.faults.setdefault(fault, seen)

    def expect(self, right: bool, seen: str, fault: str = "wrong") -> None:
        """Note a fault if something is not right, and nothing before it went wrong."""
        if not right and not self.faults:
            self.note(fault, seen)

    def compare(self, out: str, expected: Mapping[str, bytes]) -> None:
        """Note files in a folder that differ from those of an undisturbed run."""
        here = snapshot(self.folder / out)
        if other := [name for name in expected if here.get(name) != expected[name]]:
            self.note("wrong", f"{out}: differ: {', '.join(other)}")
        if more := sorted(set(here) - set(expected)):
            self.note("leftovers", f"{out}: left: {', '.join(more)}")

    def without_orphans(self, leader: int) -> None:
        """Note the processes of a session that outlive its leader, and end them."""
        deadline = time.monotonic() + _GRACE
        while session(leader) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left := session(leader):
            self.note("orphans", f"processes {sorted(left)} live on")
            end_session(leader)

    def without_leftovers(self, processes: Iterable[int] = ()) -> None:
        """Note temporary files left over in the folders of `environment`, and some processes' shared memory."""
        left = [*(self.folder / "tmp").iterdir(), *(self.folder / "cache").rglob("*.tmp")]
        names = {str(process) for process in processes}
        if names and _SHARED_MEMORY.is_dir():
            left += [path for path in _SHARED_MEMORY.iterdir() if names & set(path.name.replace("_", "-").split("-"))]
        if left:
            self.note("leftovers", f"left: {', '.join(map(str, left))}")


Try = Callable[[Trial], None]
"""Carries out a trial, and notes its faults."""


@dataclass(frozen=True)
class Kind:
    """A kind of trials.

    Attributes
    ----------
    trials : int
        Their number in a full run.
    prepared : callable
        Runs in a folder, for a number of trials, what they share; returns what each case needs. ``whole`` names a
        folder that each trial copies; ``turns`` is how often a case comes before the others come again.
    cases : mapping or callable
        How each case is tried, or all of them.
    """

    trials: int
    prepared: Callable[[Path, int], Mapping[str, Mapping[str, Any]]]
    cases: Mapping[str, Try] | Try

    def tried(self, trial: Trial) -> Trial:
        """Carry out a trial in a new folder, deep enough that what is written to .. stays in it."""
        place = Path(tempfile.mkdtemp(dir=trial.folder))
        trial.folder = place / "some" / "where"
        if "whole" in trial.options:
            shutil.copytree(trial.options["whole"], trial.folder)
        environment(trial.folder)
        (self.cases if callable(self.cases) else self.cases[trial.case])(trial)
        shutil.rmtree(place, ignore_errors=True)
        return trial


def alike(cases: Iterable[str], **options: Any) -> Mapping[str, Mapping[str, Any]]:
    """Return the same options for all cases."""
    return dict.fromkeys(cases, options)


def undisturbed(line: Line, folder: Path, *, fork: bool = True) -> Answer:
    """Run a command that trials will disturb.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    answer = forked(line, folder) if fork else ended(started(line, folder))
    if answer.code:
        raise RuntimeError(f"{line}: exit code {answer.code} undisturbed\n{answer.err}")
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
    line: Line,
    folder: Path,
    variables: Mapping[str, str] | None = None,
    before: Callable[[], object] | None = None,
) -> "subprocess.Popen[str]":
    """Start a command in a new session, with the folders of `environment`, more variables and what it does first."""
    words = line.split() if isinstance(line, str) else line
    return subprocess.Popen(
        [sys.executable, "-m", "budgetreg", *words],
        cwd=folder,
        env={**environment(folder), **(variables or {})},
        preexec_fn=before,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        restore_signals=False,  # Python, which a fork is already, ignores some
        text=True,
        errors="replace",
    )


def ended(process: "subprocess.Popen[str]", limit: float | None = None) -> Answer:
    """Wait until a command ends, by default at most for `LIMIT` seconds, and return how."""
    hung = False
    try:
        out, err = process.communicate(timeout=limit or LIMIT)
    except subprocess.TimeoutExpired:
        hung = True
        end_session(process.pid)
        out, err = process.communicate()
    return Answer(process.returncode, out, err, hung)


def forked(line: Line, folder: Path, before: Callable[[], object] = lambda: None, limit: float | None = None) -> Answer:
    """Run a command in a fork of this process, which has imported all that the command needs.

    Parameters
    ----------
    line : str or sequence of str
        What follows ``budgetreg``.
    folder : Path
        Where it runs; its folders are those of `environment`.
    before : callable
        What the copy does first.
    limit : float, optional
        Seconds after which it is killed; `LIMIT` by default.
    """
    words = line.split() if isinstance(line, str) else line
    # What was to happen before another program starts happens instead of it.
    process = started(words, folder, before=partial(_answer_as_copy, words, environment(folder), before))
    answer = ended(process, limit)
    end_session(process.pid)  # with what it started
    return answer


def _answer_as_copy(words: Sequence[str], variables: Mapping[str, str], before: Callable[[], object]) -> None:
    code = 1
    try:
        os.closerange(3, 1 << 16)  # another program would have none of these files, one of which subprocess waits for
        os.environ.clear()
        os.environ.update(variables)
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
        _end_workers()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        with suppress(BaseException):
            os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _end_workers() -> None:
    """End the workers of joblib and remove its folders, as Python does at its end, but os._exit does not."""
    if "joblib" in sys.modules:
        from joblib.externals.loky import reusable_executor

        if reusable_executor._executor is not None:
            reusable_executor._executor.terminate(kill_workers=True)


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


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files in a folder by name, without times and what depends on their order."""
    contents = {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
    for name, content in contents.items():
        if name.endswith(("manifest.json", ".receipt.json", "journal.jsonl", "models.jsonl")):
            contents[name] = b""
        elif name.endswith("runs.csv"):
            contents[name] = without_seconds(content)
    return contents

"""Computing repetitions in a process, and showing how far all of them are: a bar on a terminal, lines elsewhere."""

import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from math import ceil, fsum, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from budgetreg.common.errors import ContractError, DataError, PluginError, UserError, described, too_large
from budgetreg.common.files import scratch_folder
from budgetreg.common.notices import AsIs, in_one_line
from budgetreg.config.catalogue import blamed
from budgetreg.protocol.plan import Plan
from budgetreg.runs.journal import FAILED, FINISHED, Entry, read_journal
from budgetreg.runs.tables import JOURNAL

PATIENCE_OF_LINES = 10.0
"""Seconds of work before the first line: lines stay, and short runs need none."""
_PATIENCE = 1.0  # seconds of work before a bar is shown
_PERIOD = 0.2  # seconds between two reads of the slots
_SHORT = 5.0  # seconds that need no estimate

Later = Callable[[float], float]
"""Given the seconds of a repetition, returns those of the runs that follow."""
Repetitions = Callable[[Plan, Sequence[int], Callable[[float], None]], list[dict[str, Any]]]
"""Given a plan, numbers of repetitions and a function to report their progress, returns their results."""


def batches(plan: Plan, repetitions: Sequence[int], workers: int) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield repetitions for workers to compute together, each time with the place of the first of them."""
    size = min(plan.repetitions_at_once, ceil(len(repetitions) / workers))
    for first in range(0, len(repetitions), size):
        yield first, repetitions[first : first + size]


def attempt(
    function: Repetitions, plan: Plan, repetitions: Sequence[int], progress: Callable[[float], None]
) -> list[Entry]:
    """Compute repetitions in this process.

    Parameters
    ----------
    function : callable
        As for `budgetreg.runs.runner.execute`.
    plan : Plan
        What is run.
    repetitions : sequence of int
        Which; they advance together.
    progress : callable
        Called with the fraction of them that is done, between 0 and 1.

    Returns
    -------
    list of dict
        The entry of each for the journal. If it failed, ``trace`` is its traceback, unless another package is to blame.

    Raises
    ------
    UserError
        If a repetition raises one, or needs more memory than there is.
    """
    started = time.perf_counter()
    entries: list[Entry]
    try:
        # One thread, because the last bits of a sum depend on their number; no warnings, because overflow is refused.
        with threadpool_limits(1), np.errstate(over="ignore", invalid="ignore", divide="ignore"), blamed():
            results = function(plan, repetitions, progress)
        _refuse_overflow(results)
        entries = [{"status": FINISHED, "result": result} for result in results]
    except UserError:
        raise
    except Exception as error:
        plugin = isinstance(error, PluginError)
        if isinstance(error, ContractError) and not plugin:
            raise
        if len(repetitions) > 1:  # one of them failed: each is tried alone
            entries = []
            for done, repetition in enumerate(repetitions):
                entries += attempt(function, plan, [repetition], partial(_share, progress, done, len(repetitions)))
            return entries
        if isinstance(error, MemoryError):
            raise too_large(plan.config.algo.name, plan.d, error) from error
        entries = [{"status": FAILED, "message": described(error), "trace": traceback.format_exc()}]
        if plugin:
            entries = [{"status": FAILED, "message": str(error)}]
    progress(1.0)
    seconds = (time.perf_counter() - started) / len(repetitions)
    numbered = zip(repetitions, entries, strict=True)
    return [{"repetition": repetition, **entry, "seconds": seconds} for repetition, entry in numbered]


def _share(progress: Callable[[float], None], done: int, of: int, fraction: float) -> None:
    """Report the progress of one repetition when some of the others are done."""
    progress((done + fraction) / of)


def _refuse_overflow(results: Sequence[dict[str, Any]]) -> None:
    """Refuse losses and models that are not finite; None is allowed, which stands for an error that is not defined."""
    for result in results:
        for point in result["curve"]:
            for name in ("test_mse", "excess_loss"):
                value = point.get(name)
                if value is not None and not isfinite(value):
                    raise _overflow(f"{name} is {value}", point["examples"])
        if not all(np.isfinite(array).all() for array in result["model"].values()):
            raise _overflow("what was learned is not finite", result["curve"][-1]["examples"])


def _overflow(what: str, examples: int) -> DataError:
    return DataError(
        f"{what} after {examples} examples because numbers became too large: scale the data (dataset.scale=max_abs, a "
        "target of about 1), or try smaller parameters"
    )


def reporter(slots: Path | None, slot: int, repetitions: int) -> Callable[[float], None]:
    """Return a function to report the progress of repetitions that advance together.

    Parameters
    ----------
    slots : Path or None
        The file of float64 fractions that `progress_bar` yields; None if nothing is shown.
    slot : int
        The place of the first repetition in it.
    repetitions : int
        Their number.

    Returns
    -------
    callable
        Takes a fraction between 0 and 1.
    """
    if slots is None:
        return lambda fraction: None
    fractions = np.memmap(slots, dtype=np.float64, mode="r+")

    def report(fraction: float) -> None:
        fractions[slot : slot + repetitions] = fraction

    return report


@contextmanager
def progress_bar(description: str, repetitions: int, later: Later | None = None) -> Iterator[Path | None]:
    """Show progress and the time left on stderr while the block runs.

    A terminal shows a bar, unless the block ends within about a second. Elsewhere, as in a file, a line stands for each
    repetition, without control characters, once the block has taken some seconds.

    Parameters
    ----------
    description : str
        What is being computed.
    repetitions : int
        The number of repetitions that the block computes.
    later : callable, optional
        For one of several runs: the time that is left for all of them is shown, too.

    Yields
    ------
    Path or None
        The file in which workers report (see `reporter`), with one slot per repetition; None if temporary files cannot
        be written, and nothing is shown.
    """
    with ExitStack() as stack:
        slots = None
        with suppress(OSError):
            folder = stack.enter_context(scratch_folder())
            # Zeros, not a sparse file: writing into its hole kills a process if the disk is full.
            (folder / "slots").write_bytes(bytes(8 * repetitions))
            # Here, as an interruption may remove the file while the watcher begins.
            fractions = np.memmap(folder / "slots", dtype=np.float64, mode="r")
            slots = folder / "slots"
        if slots is None:
            yield None
            return
        over = threading.Event()
        watch = _draw_bar if sys.stderr.isatty() else _print_lines
        watcher = threading.Thread(target=watch, args=(description, fractions, over, later), daemon=True)
        try:
            watcher.start()
            yield slots
        finally:
            over.set()
            if watcher.ident is not None:
                watcher.join()


def _draw_bar(description: str, fractions: np.ndarray, over: threading.Event, later: Later | None) -> None:
    started = time.monotonic()
    if over.wait(_PATIENCE):
        return
    file: Any = AsIs(sys.stderr)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.1f} of {task.total} repetitions"),
        TimeRemainingColumn(),
        TextColumn("left{task.fields[in_all]}"),
    )
    with Progress(*columns, console=Console(file=file), auto_refresh=False, transient=True) as bar:
        task = bar.add_task(in_one_line(description), total=len(fractions), in_all="")
        while True:
            done = float(fractions.sum())
            in_all = _in_all(time.monotonic() - started, done, len(fractions), later)
            bar.update(task, completed=done, in_all=in_all, refresh=True)
            if over.wait(_PERIOD):
                break


def _print_lines(description: str, fractions: np.ndarray, over: threading.Event, later: Later | None) -> None:
    """Print a line whenever as much is done as another repetition takes: repetitions may advance together."""
    started = time.monotonic()
    if over.wait(PATIENCE_OF_LINES):
        return
    shown, ended = 0, False
    while not ended:
        ended = over.wait(_PERIOD)  # what was done last has its line, too
        done = float(fractions.sum())
        if int(done) > shown:
            shown = int(done)
            elapsed = time.monotonic() - started
            rest = elapsed * (len(fractions) / done - 1)
            left = f", about {duration(rest)} left" if shown < len(fractions) else ""
            left += _in_all(elapsed, done, len(fractions), later)
            line = f"{in_one_line(description)}: {shown} of {len(fractions)} repetitions{left}"
            print(f"budgetreg: {line}", file=sys.stderr, flush=True)


def _in_all(elapsed: float, done: float, of: int, later: Later | None) -> str:
    """Return in words the time that is left for this run and those that follow, once it is known; else nothing."""
    if later is None or done <= 0:
        return ""
    each = elapsed / done
    return f", about {duration(each * (of - done) + later(each))} for all runs"


def duration(seconds: float) -> str:
    """Return a duration in its largest unit.

    Examples
    --------
    >>> duration(40.2), duration(170), duration(7300)
    ('40 s', '3 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class SweepClock:
    """Estimates how long the later runs of a sweep take, from how long the repetitions of the earlier ones took.

    A repetition is taken to last as long as those of the same learner on average; of a learner that has not run yet, as
    those of all others.

    Parameters
    ----------
    plans : sequence of Plan
        The runs, in order. Repetitions that their folders hold already take no time.
    now : callable
        Returns a time in seconds.
    """

    def __init__(self, plans: Sequence[Plan], now: Callable[[], float] = time.monotonic) -> None:
        self._names = [plan.config.algo.name for plan in plans]
        self._missing = [_missing(plan) for plan in plans]
        self._began = now()
        self._now, self._at, self._took = now, -1, list[tuple[str, float]]()  # by a repetition, with the learner

    def begin(self) -> str:
        """Begin the next run; return in words how long it and those after it take, if that is known and not short."""
        if self._at >= 0 and self._missing[self._at]:
            self._took.append((self._names[self._at], (self._now() - self._began) / self._missing[self._at]))
        self._at, self._began = self._at + 1, self._now()
        seconds = self._estimate(self._at, self._took)
        return f", about {duration(seconds)} left" if seconds >= _SHORT else ""

    def later(self, each: float) -> float:
        """Return the seconds of the runs after this one, given those of a repetition of this one."""
        return self._estimate(self._at + 1, [*self._took, (self._names[self._at], each)])

    def _estimate(self, first: int, took: Sequence[tuple[str, float]]) -> float:
        """Return the seconds of all runs from the first of them; 0 if no repetition has been computed yet."""
        times: dict[str, list[float]] = {}
        for name, each in took:
            times.setdefault(name, []).append(each)
        means = {name: fsum(values) / len(values) for name, values in times.items()}
        other = fsum(means.values()) / max(len(means), 1)
        left = zip(self._names[first:], self._missing[first:], strict=True)
        return fsum(missing * means.get(name, other) for name, missing in left)


def _missing(plan: Plan) -> int:
    """Return the number of a plan's repetitions that are not finished."""
    entries = read_journal(plan.folder / JOURNAL)
    done = {entry["repetition"] for entry in entries if entry["status"] == FINISHED}
    return len(set(range(plan.config.repetitions)) - done)

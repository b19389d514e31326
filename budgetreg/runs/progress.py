"""Computing repetitions in a process, and showing on a terminal how far all of them are."""

import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from math import ceil, isfinite
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
from budgetreg.protocol.passes import portion
from budgetreg.protocol.plan import Plan
from budgetreg.runs.journal import FAILED, FINISHED, Entry

_PATIENCE = 1.0  # seconds of work before a bar is shown
_PERIOD = 0.2  # seconds between two reads of the slots

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
            entries, n = [], len(repetitions)
            for done, repetition in enumerate(repetitions):
                entries += attempt(function, plan, [repetition], portion(progress, done / n, (done + 1) / n))
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
def progress_bar(description: str, repetitions: int) -> Iterator[Path | None]:
    """Show progress and the time left on a terminal while the block runs, unless it ends within about a second.

    Parameters
    ----------
    description : str
        What is being computed.
    repetitions : int
        The number of repetitions that the block computes.

    Yields
    ------
    Path or None
        The file in which workers report (see `reporter`), with one slot per repetition; None if nothing is shown,
        because stderr is no terminal or temporary files cannot be written.
    """
    with ExitStack() as stack:
        slots = None
        if sys.stderr.isatty():
            with suppress(OSError):
                folder = stack.enter_context(scratch_folder())
                # Zeros, not a sparse file: writing into its hole kills a process if the disk is full.
                (folder / "slots").write_bytes(bytes(8 * repetitions))
                slots = folder / "slots"
        if slots is not None:
            over = threading.Event()
            fractions = np.memmap(slots, dtype=np.float64, mode="r")
            watcher = threading.Thread(target=_draw_bar, args=(description, fractions, over), daemon=True)
            watcher.start()
            stack.callback(watcher.join)
            stack.callback(over.set)
        yield slots


def _draw_bar(description: str, fractions: np.ndarray, over: threading.Event) -> None:
    if over.wait(_PATIENCE):
        return
    file: Any = AsIs(sys.stderr)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.1f} of {task.total} repetitions"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(file=file), auto_refresh=False, transient=True) as bar:
        task = bar.add_task(in_one_line(description), total=len(fractions))
        while True:
            bar.update(task, completed=float(fractions.sum()), refresh=True)
            if over.wait(_PERIOD):
                break

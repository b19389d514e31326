"""A progress bar on the terminal while workers compute repetitions."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from budgetreg.execution.scratch import scratch_folder
from budgetreg.files.writing import os_errors_explained
from budgetreg.notices import AsIs, in_one_line

_PATIENCE = 1.0  # seconds of work before anything is shown
_PERIOD = 0.2  # seconds between two reads of the slots


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
    """Show a bar with the remaining time on stderr while the block runs.

    Nothing is shown if stderr is not a terminal, or if the block ends within about a second.

    Parameters
    ----------
    description : str
        What is being computed.
    repetitions : int
        The number of repetitions that the block computes.

    Yields
    ------
    Path or None
        The file in which workers report (see `reporter`), with one slot per repetition; None if nothing is shown.
    """
    if not sys.stderr.isatty():
        yield None
        return
    with ExitStack() as stack:
        with os_errors_explained("write temporary files"):
            slots = stack.enter_context(scratch_folder()) / "slots"
            # Zeros, not a sparse file: writing into its hole kills a process if the disk is full.
            slots.write_bytes(bytes(8 * repetitions))
        over = threading.Event()
        watcher = threading.Thread(target=_watch, args=(description, slots, over), daemon=True)
        watcher.start()
        try:
            yield slots
        finally:
            over.set()
            watcher.join()


def _watch(description: str, slots: Path, over: threading.Event) -> None:
    fractions = np.memmap(slots, dtype=np.float64, mode="r")
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

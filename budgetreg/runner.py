"""Executing a plan: what is missing is computed, written down as it arrives, and drawn at the end."""

import multiprocessing
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from budgetreg.errors import UserError
from budgetreg.journal import Entry
from budgetreg.progress import progress_bar, reporter
from budgetreg.store import FAILED, FINISHED, Store
from budgetreg.workers import exit_with_parent, interrupts_ignored, termination_as_interrupt

if TYPE_CHECKING:  # the runner takes any object with the attributes of a plan
    from budgetreg.plan import Plan

Repetition = Callable[["Plan", int, Callable[[float], None]], dict[str, Any]]


class WorkerDied(UserError):  # noqa: N818 - it says what happened
    """A worker process ended without an answer, usually for want of memory."""

    exit_code = 1


@dataclass(frozen=True)
class RunOutcome:
    """What became of a run.

    Attributes
    ----------
    folder : Path
        Where the results are.
    finished, failed : int
        Repetitions asked for that are finished or have failed.
    resumed : int
        Those of the finished ones that an earlier call had left.
    """

    folder: Path
    finished: int
    failed: int
    resumed: int


def execute(
    plan: "Plan",
    *,
    repetition_function: Repetition | None = None,
    draw: Callable[[Path], object] | None = None,
) -> RunOutcome:
    """Compute the repetitions of a plan that its folder does not hold yet.

    Parameters
    ----------
    plan : Plan
        What is run. ``plan.folder`` is where the results go.
    repetition_function : callable, optional
        What computes a repetition: ``function(plan, repetition, progress) -> result``; picklable.
        `protocol.run_repetition` unless given.
    draw : callable, optional
        What draws the finished run in a folder; the learning curve unless given.

    Returns
    -------
    RunOutcome
        A repetition that raises is counted as failed, its traceback printed; the next call tries it again.

    Raises
    ------
    UserError
        If the folder cannot be used, the disk is full, a worker dies, or a repetition raises one (bad data).
    KeyboardInterrupt
        On Ctrl-C or SIGTERM. Whatever is raised, what is finished is kept, and the tables hold it.
    """
    if multiprocessing.parent_process() is not None:  # ourselves a worker, of a launcher that runs a sweep
        exit_with_parent(os.getppid())
    with termination_as_interrupt(), Store.open(plan.folder, plan) as store:
        for note in (*plan.notes, *store.notes):
            _say(note)
        resumed = len(store.finished())
        try:
            _compute(plan, store, repetition_function)
        except BaseException:
            with suppress(UserError):  # the first error is the one to tell
                store.finish()
            raise
        store.finish()
        finished = store.finished()
        if finished:
            (draw or _draw_curve)(store.folder)
        for warning in edge_warnings([entry["result"]["run"]["edge"] for entry in finished]):
            _say(warning)
        return RunOutcome(store.folder, len(finished), len(store.failed()), resumed)


def edge_warnings(edges: Sequence[str]) -> list[str]:
    """Return one line per parameter whose best value lies on the edge of its grid in some repetitions.

    Parameters
    ----------
    edges : sequence of str
        The column ``edge`` of the repetitions, such as ``"B:low eta:high"``.
    """
    ends: dict[str, list[str]] = {}
    for edge in edges:
        for word in edge.split():
            name, end = word.split(":")
            ends.setdefault(name, []).append(end)
    return [
        f"the best {name} is on the {'or '.join(f'{end} ' for end in sorted(set(found)))}edge of its grid in "
        f"{len(found)} of {len(edges)} repetitions: widen algo.grid.{name}"
        for name, found in sorted(ends.items())
    ]


def _compute(plan: "Plan", store: Store, function: Repetition | None) -> None:
    missing = store.missing()
    if not missing:
        return
    config = plan.config
    with (
        progress_bar(f"{config.algo.name} on {plan.dataset}, k={config.k}", len(missing)) as slots,
        _outcomes(plan, missing, function or _protocol(), slots) as outcomes,
    ):
        for entry, trace in outcomes:
            if trace:
                print(f"repetition {entry['repetition']} failed:\n{trace}", file=sys.stderr)
            store.add(entry)


@contextmanager
def _outcomes(
    plan: "Plan", repetitions: Sequence[int], function: Repetition, slots: Path | None
) -> Iterator[Iterator[tuple[Entry, str]]]:
    """Give the outcomes as they arrive; however the block ends, no worker goes on computing."""
    backend = plan.config.backend.name
    n_jobs = min(plan.config.n_jobs, len(repetitions))
    tasks = (
        delayed(_attempt)(function, plan, repetition, slots, slot, os.getpid())
        for slot, repetition in enumerate(repetitions)
    )
    parallel = Parallel(n_jobs=n_jobs, backend=backend, return_as="generator_unordered", batch_size=1)
    with ExitStack() as stack:
        with interrupts_ignored():
            outcomes = parallel(tasks)
            stack.callback(_close, outcomes)
        try:
            yield outcomes
        except TerminatedWorkerError as error:
            raise WorkerDied(
                "a worker process died, perhaps for want of memory: the same command resumes the run; "
                "a smaller n_jobs needs less memory"
            ) from error


def _close(outcomes: Generator[object, None, None]) -> None:
    """End the workers if they are not done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joblib tells that we stop early
        outcomes.close()


def _attempt(
    function: Repetition, plan: "Plan", repetition: int, slots: Path | None, slot: int, parent: int
) -> tuple[Entry, str]:
    """Compute one repetition in whatever process this is; return its entry of the journal and a traceback."""
    if os.getpid() != parent:
        exit_with_parent(parent)
    progress = reporter(slots, slot)
    started = time.perf_counter()
    entry: Entry = {"repetition": repetition}
    trace = ""
    try:
        with threadpool_limits(1):  # as the last bits of a sum depend on the number of threads
            entry |= {"status": FINISHED, "result": function(plan, repetition, progress)}
    except UserError:
        raise
    except Exception as error:
        entry |= {"status": FAILED, "message": f"{type(error).__name__}: {error}"}
        trace = traceback.format_exc()
    progress(1.0)
    return entry | {"seconds": time.perf_counter() - started}, trace


def _protocol() -> Repetition:
    from budgetreg.protocol import run_repetition  # here, as a finished run needs none of what it loads

    return run_repetition


def _draw_curve(folder: Path) -> None:
    from budgetreg.plots import plot_folders  # here, as matplotlib is slow to load

    plot_folders([folder], folder, name="curve")


def _say(message: str) -> None:
    print(f"budgetreg: {message}", file=sys.stderr)

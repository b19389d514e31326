"""Worker processes: none outlives its parent, and each computes with one BLAS thread and keeps memory it has freed."""

import ctypes
import os
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache, partial
from types import FrameType
from typing import Any, NoReturn

from budgetreg.common.errors import Interrupted, UserError

_PERIOD = 0.5  # seconds between two checks of the parent
_AGAIN = 0.01  # seconds until an interrupt that was lost comes again
_BLAS = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM", "NUMEXPR_NUM")
_DEATHS = {
    "TerminatedWorkerError": "a worker process died, perhaps because memory ran out: the same command resumes the run; "
    "a smaller n_jobs needs less memory",
    "UncompletedJobError": "a job of the launcher died, perhaps because memory or time ran out: the same command "
    "resumes",
}


_ADDRESSES = 750_000
"""KB of addresses that the libraries need with one BLAS thread, and some for data (660,000 were enough for a run)."""

_KEPT = {"MMAP_THRESHOLD": (-3, 2**25), "TRIM_THRESHOLD": (-1, 2**26)}
"""Options of glibc's malloc: their numbers for mallopt, and bytes, the largest that it takes by itself."""


class WorkerDied(UserError):  # noqa: N818 - the name describes the event
    """A worker process ended without a result, usually because memory ran out."""

    exit_code = 1


def pin_blas_threads() -> None:
    """Set the variables that limit BLAS and OpenMP to one thread, in this process and those it starts.

    BLAS reads them when numpy loads, so call this before. They replace the user's own setting: sums in another order
    differ in their last bits, and the same configuration must give the same bytes.
    """
    os.environ |= {f"{library}_THREADS": "1" for library in _BLAS}


def keep_freed_memory() -> None:
    """Let malloc use freed arrays of up to 32 MB again, in this process and those it starts; glibc only.

    By default it returns them to the system, which hands them out again page by page, filled with zeros. AEMR, which
    makes the same arrays in each sweep, spent a third of its time on that.
    """
    os.environ |= {f"MALLOC_{name}_": str(size) for name, (_, size) in _KEPT.items()}
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        for number, size in _KEPT.values():
            mallopt(number, size)


def refuse_little_memory() -> None:
    """Refuse a limit of the address space in which libraries cannot be loaded: BLAS would retry for minutes.

    Raises
    ------
    UserError
        If the limit is too small.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0] // 1024
    if 0 <= limit < _ADDRESSES:
        raise UserError(
            f"the address space is limited to {limit:,} KB (ulimit -v), and numpy and scipy need {_ADDRESSES:,} KB: "
            "raise the limit"
        )


@contextmanager
def deaths_explained() -> Iterator[None]:
    """Turn the error of joblib or submitit about the death of a worker into a `WorkerDied`."""
    try:
        yield
    except Exception as error:
        explained = _DEATHS.get(type(error).__name__)  # by name, as these libraries are slow to load
        if explained:
            raise WorkerDied(explained) from error
        raise


@cache
def exit_with_parent(parent: int) -> None:
    """End this process as soon as its parent is gone, even if the parent was killed.

    Parameters
    ----------
    parent : int
        Process id of the parent.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PERIOD)
        os._exit(1)  # at once: nobody is left to take a result or a message

    threading.Thread(target=watch, name="exit-with-parent", daemon=True).start()


def watch_parent() -> None:
    """End this process with its parent if it is a worker."""
    from multiprocessing import parent_process  # here, as commands that compute nothing need none of what it loads

    parent = parent_process()
    if parent is not None and parent.pid is not None:
        exit_with_parent(parent.pid)


def watched_by_launched() -> None:
    """Make all workers that joblib starts for this process watch it from their start, and ignore Ctrl-C and SIGHUP.

    A launcher's workers run none of our code before they get a task. Without this, a worker whose parent was killed
    before would wait for minutes, and one that is interrupted while it imports would print a long traceback. A closed
    terminal would end joblib's resource tracker, and nobody would remove the semaphores.
    """
    from joblib import register_parallel_backend
    from joblib._parallel_backends import LokyBackend

    class Launched(LokyBackend):
        """A backend that starts its processes with Ctrl-C and SIGHUP ignored."""

        def configure(self, *sizes: Any, **options: Any) -> int:
            with interrupts_ignored():
                return int(super().configure(*sizes, **options))

        def submit(self, *task: object, **options: object) -> object:
            with interrupts_ignored():
                return super().submit(*task, **options)

    watching = {"initializer": exit_with_parent, "initargs": (os.getpid(),)}
    register_parallel_backend("loky", partial(Launched, **watching))


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C and SIGHUP in the block, and for good in the processes started in it, which inherit this.

    A terminal sends both to the parent and the workers; the parent ends the workers, and they print nothing.
    """
    with _handling(signal.SIGINT, signal.SIG_IGN), _handling(signal.SIGHUP, signal.SIG_IGN):
        yield


@contextmanager
def computing(
    tasks: Iterable[Any], n_jobs: int, backend: str = "loky", return_as: str = "generator"
) -> Iterator[Generator[Any, None, None]]:
    """Yield the results of joblib's tasks as they arrive; no worker computes after the block, however it ends.

    Parameters
    ----------
    tasks : iterable
        As `joblib.delayed` makes them.
    n_jobs : int
        Number of workers. With one, this process computes.
    backend : str
        That of joblib.
    return_as : str
        ``generator_unordered`` for results in the order in which they are ready.

    Raises
    ------
    WorkerDied
        If a worker ended without a result.
    """
    from joblib import Parallel  # here, as commands that compute nothing need none of what it loads

    # Workers watch their parent from their start, so that they end even if it is killed before they get a task.
    watched = n_jobs > 1 and backend == "loky"
    watching = {"initializer": exit_with_parent, "initargs": (os.getpid(),)} if watched else {}
    parallel = Parallel(n_jobs=n_jobs, backend=backend, return_as=return_as, batch_size=1, **watching)
    # A worker may die before all tasks are handed out.
    with deaths_explained(), ExitStack() as stack:
        with interrupts_ignored():
            arriving = parallel(tasks)
            stack.callback(_close, arriving)
        yield arriving


def _close(arriving: Generator[object, None, None]) -> None:
    """End the workers if they are not done."""
    with warnings.catch_warnings(action="ignore"):  # joblib warns that we stop early
        arriving.close()


def interrupts_told_apart() -> AbstractContextManager[None]:
    """Raise `Interrupted` on Ctrl-C in the block: code of another package may raise `KeyboardInterrupt`."""
    return _interrupted_by(signal.SIGINT)


def termination_as_interrupt() -> AbstractContextManager[None]:
    """Raise `Interrupted` on Ctrl-C, on SIGTERM of a batch system, and on SIGHUP of a closed terminal, in the block."""
    return _interrupted_by(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def _interrupted_by(*signals: signal.Signals) -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        if number == signal.SIGHUP:
            signal.signal(number, signal.SIG_IGN)  # the shell and the system each send it
            raise Interrupted(128 + number)
        raise Interrupted

    def lost(unraisable: Any) -> None:
        """Interrupt again where Python could not raise, such as in a callback of its garbage collector."""
        if isinstance(unraisable.exc_value, Interrupted):
            threading.Timer(_AGAIN, os.kill, [os.getpid(), signal.SIGTERM]).start()
        else:
            before(unraisable)

    before = sys.unraisablehook
    with ExitStack() as stack:
        for number in signals:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                stack.enter_context(_handling(number, interrupt))
        if signal.SIGTERM in signals:
            stack.callback(setattr, sys, "unraisablehook", before)
            sys.unraisablehook = lost
        yield


@contextmanager
def _handling(
    number: signal.Signals, handler: signal.Handlers | Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # handlers can only be set there
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before or signal.SIG_DFL)

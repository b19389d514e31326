"""Computing with the workers of a dask scheduler, on this machine or on others.

No data are sent: a worker gets the plan, which holds the path of the data, and maps them there. Data and
libraries must be those that the plan was made with, so that the results have the same bytes; otherwise the run ends
with one line.
"""

import asyncio
import logging
import pickle
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from threadpoolctl import threadpool_limits

from budgetreg.common.errors import ConfigError, UserError, described
from budgetreg.common.files import os_errors_explained, scratch_folder
from budgetreg.common.notices import say
from budgetreg.data.cache import Stamp, trust, verified
from budgetreg.protocol.plan import Plan
from budgetreg.runs.journal import Entry
from budgetreg.runs.manifest import libraries
from budgetreg.runs.progress import Repetitions, attempt, batches, reporter
from budgetreg.runs.workers import (
    WorkerDied,
    interrupts_ignored,
    keep_freed_memory,
    pin_blas_threads,
)

_PERIOD = 2.0  # seconds without a result after which the scheduler is asked whether it is there
_LOGGERS = ("distributed", "distributed.client", "tornado.application", "asyncio")


class ClusterLost(UserError):  # noqa: N818 - the name describes the event
    """The scheduler does not answer, or has stopped answering."""

    exit_code = 1


class Connection:
    """A connection with a scheduler.

    Attributes
    ----------
    client : distributed.Client
        The connection as dask knows it.
    place : str
        Where the scheduler is, in words.
    """

    def __init__(self, client: Any, place: str) -> None:
        self.client, self.place = client, place

    def threads(self) -> int:
        """Return the number of threads of all workers.

        Raises
        ------
        ClusterLost
            If the scheduler does not answer in time.
        """
        try:
            return sum(self.client.nthreads(callback_timeout=_limit()).values())
        except Exception as error:
            raise self.lost() from error

    def arriving(self, futures: Sequence[Any]) -> Iterator[Any]:
        """Yield futures as they end, in any order, even if they end because the scheduler is lost.

        Raises
        ------
        ClusterLost
            If the scheduler does not answer in time.
        """
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for future in futures:
            future.add_done_callback(ended.put)
        left = len(futures)
        while left:
            try:
                yield ended.get(timeout=_PERIOD)
                left -= 1
            except queue.Empty:
                self.threads()

    def lost(self) -> ClusterLost:
        """Return the error that the scheduler has stopped answering."""
        return ClusterLost(
            f"the dask scheduler {self.place} no longer answers: finished repetitions are kept, and the same command "
            "resumes the run, also with another backend"
        )


class _Withdrawn(BaseException):
    """Nobody waits for this task any more.

    Not an `Exception`, because the repetition has not failed; nor a `KeyboardInterrupt`, which ends dask's workers.
    """


@contextmanager
def arriving(
    plan: Plan, repetitions: Sequence[int], function: Repetitions, slots: Path | None
) -> Iterator[Iterator[list[Entry]]]:
    """Compute repetitions with all workers of the scheduler that the plan names, or with `n_jobs` that are started.

    If a worker dies, another one gets its repetitions. No worker goes on computing after the block, however it ends:
    waiting tasks are withdrawn at once, and running tasks when they next report their progress.

    Parameters
    ----------
    plan, function
        As for `budgetreg.runs.runner.execute`.
    repetitions : sequence of int
        Which; at least one.
    slots : Path or None
        Where to report the progress, see `budgetreg.runs.progress.reporter`.

    Yields
    ------
    iterator of list of dict
        The entries of repetitions that were computed together, as they arrive, see `budgetreg.runs.progress.attempt`.

    Raises
    ------
    ClusterLost
        If the scheduler does not answer, or stops answering.
    ConfigError
        If dask is not installed, or a worker has other versions of the libraries.
    DataError
        If a worker does not find the data, or finds different data.
    WorkerDied
        If workers die repeatedly.
    """
    n_workers = min(plan.config.n_jobs, len(repetitions))
    with connection(plan.config.backend.address, n_workers) as scheduler:
        yield _entries(scheduler, plan.located(), repetitions, function, slots)


def _entries(
    scheduler: Connection, plan: Plan, repetitions: Sequence[int], function: Repetitions, slots: Path | None
) -> Iterator[list[Entry]]:
    import cloudpickle  # dask brings it

    at_once = scheduler.threads()
    if not at_once:
        say(f"the dask scheduler {scheduler.place} has no workers yet: waiting for one")
    name = f"budgetreg-{uuid4().hex}"
    reports = {}
    for first, batch in batches(plan, repetitions, at_once or len(repetitions)):
        key = f"{name}-{first}"
        task = cloudpickle.dumps(partial(_attempt_there, key, function, plan, batch, libraries(), verified()))
        # Pickled here and unpickled by a lambda: the scheduler inspects each task, and need not import our package.
        future = scheduler.client.submit(lambda packed: pickle.loads(packed)(), task, key=key, pure=False)
        reports[future] = reporter(slots, first, len(batch))
    for future in scheduler.arriving(list(reports)):
        yield _result(scheduler, future)
        reports.pop(future)(1.0)


def _result(scheduler: Connection, future: Any) -> list[Entry]:
    from distributed.scheduler import KilledWorker

    try:
        result: list[Entry] = future.result(timeout=_limit())
    except UserError:
        raise
    except KilledWorker as error:
        raise WorkerDied(
            "dask workers died repeatedly, perhaps because memory ran out: the same command resumes the run"
        ) from error
    except Exception as error:
        if future.status != "error":  # the task has not failed: its scheduler is gone
            raise scheduler.lost() from error
        raise ConfigError(
            f"a worker of the dask scheduler {scheduler.place} cannot begin ({described(error)}): install the same "
            f"Python, budgetreg {libraries()['budgetreg']} and packages with learners or data there as here"
        ) from error
    return result


def _attempt_there(
    key: str,
    function: Repetitions,
    plan: Plan,
    repetitions: Sequence[int],
    versions: Mapping[str, str | None],
    stamps: Mapping[str, Stamp],
) -> list[Entry]:
    """Compute repetitions in a worker, unless its libraries or data differ from those that the plan was made with."""
    from distributed import get_worker

    worker = get_worker()
    try:
        here = libraries()
        apart = [f"{name} {here[name]} instead of {there}" for name, there in versions.items() if here[name] != there]
        if apart:
            raise ConfigError(f"it has {', '.join(apart)}: install the same versions there, and start it again")
        _compute_in_one_thread()
        trust(stamps)
        plan.refuse_other_data()
    except UserError as error:
        raise type(error)(f"the dask worker at {worker.address}: {error}") from error
    return attempt(function, plan, repetitions, _withdrawing(worker, key))


def _withdrawing(worker: Any, key: str) -> Callable[[float], None]:
    """Return a function to report progress that ends the task once nobody waits for it any more."""

    def report(fraction: float) -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise _Withdrawn

    return report


@cache
def _compute_in_one_thread() -> None:
    """Set up the process for good: tasks in threads of one worker would lift each other's limits of BLAS."""
    pin_blas_threads()  # for libraries that are loaded later
    keep_freed_memory()
    threadpool_limits(1)


@contextmanager
def connection(address: str | None, n_workers: int) -> Iterator[Connection]:
    """Connect to a scheduler for the block.

    Parameters
    ----------
    address : str or None
        Where it is; None starts one on this machine, with workers, and ends all of them after the block.
    n_workers : int
        The number of workers that are started.

    Raises
    ------
    ClusterLost
        If no scheduler answers in time.
    ConfigError
        If dask is not installed.
    """
    try:
        import distributed  # noqa: F401 - a process may have loaded parts of it
        from distributed.utils import LoopRunner
    except ImportError as error:
        raise ConfigError(f"backend=dask needs dask ({error}): pip install 'budgetreg[dask]'") from error
    place = "on this machine" if address is None else f"at {address}"
    with ExitStack() as stack:
        stack.enter_context(_without_log())
        runner = LoopRunner(asynchronous=False)
        runner.start()
        stack.callback(runner.stop)
        try:
            if address is None:
                address = _started(stack, runner.loop, n_workers)
            client = runner.run_sync(_connected, address)
        except UserError:
            raise
        except Exception as error:
            raise ClusterLost(f"no dask scheduler answers {place}: {_reason(error)}") from error
        stack.callback(_close, client, _PERIOD)  # then the scheduler withdraws tasks that nobody waits for
        yield Connection(client, place)


def _started(stack: ExitStack, loop: Any, n_workers: int) -> str:
    """Start a scheduler and workers on this machine, which the stack ends; return the scheduler's address."""
    import dask
    from distributed import LocalCluster

    with os_errors_explained("write temporary files"):
        folder = stack.enter_context(scratch_folder())
    stack.enter_context(dask.config.set({"temporary-directory": str(folder)}))
    with interrupts_ignored():
        cluster = LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # else it warns where its usual port is taken
            silence_logs=logging.CRITICAL,
            loop=loop,
        )
        cluster.shutdown_on_close = False  # else the interpreter's exit tries once more where closing was interrupted
        stack.callback(_close, cluster, 5 * _PERIOD)
    return str(cluster.scheduler_address)


async def _connected(address: str) -> Any:
    from distributed import Client

    client = Client(address, asynchronous=True, set_as_default=False)
    try:
        return await asyncio.wait_for(client, _limit() + 1)  # it takes longer than dask's own message
    except BaseException:
        with suppress(Exception):
            await client.close(timeout=1)
        raise


def _close(side: Any, seconds: float) -> None:
    """Close a client or a cluster, also if its scheduler or its workers no longer answer in time."""
    with suppress(Exception):
        side.close(timeout=seconds)


def _limit() -> float:
    """Return the seconds within which a scheduler has to answer."""
    import dask
    from dask.utils import parse_timedelta

    return float(parse_timedelta(dask.config.get("distributed.comm.timeouts.connect")))


def _reason(error: BaseException) -> str:
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    if isinstance(error, TimeoutError):
        return f"nothing came within {_limit():g} seconds"
    if isinstance(error, (MemoryError, ValueError)):  # dask reads the first bytes as a length
        return f"perhaps something else answers there ({described(error)})"
    return described(error)


@contextmanager
def _without_log() -> Iterator[None]:
    """Silence dask's log in the block, because our messages report the same in one line."""
    with ExitStack() as stack:
        for logger in map(logging.getLogger, _LOGGERS):
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
        yield

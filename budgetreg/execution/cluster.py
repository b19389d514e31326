"""Computing with the workers of a running dask scheduler, on this machine or on others.

No data are sent: a worker gets the plan, which says where the data lie, and maps them there. Data and libraries must be
those that the plan was made with, so that the results have the same bytes; otherwise the run ends with one line.
"""

import logging
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from threadpoolctl import threadpool_limits

from budgetreg.data.cache import Stamp, trust, verified
from budgetreg.errors import ConfigError, UserError
from budgetreg.execution.attempts import Outcome, Repetitions, attempt, batches
from budgetreg.execution.progress import reporter
from budgetreg.execution.workers import WorkerDied, pin_blas_threads
from budgetreg.notices import say
from budgetreg.protocol.plan import Plan
from budgetreg.results.provenance import libraries


class ClusterLost(UserError):  # noqa: N818 - it says what happened
    """The scheduler does not answer, or has stopped answering."""

    exit_code = 1


class _Withdrawn(BaseException):
    """Nobody waits for this task any more.

    Not an `Exception`, because the repetition has not failed; nor a `KeyboardInterrupt`, which ends dask's workers.
    """


@contextmanager
def outcomes(
    plan: Plan, repetitions: Sequence[int], function: Repetitions, slots: Path | None
) -> Iterator[Iterator[list[Outcome]]]:
    """Compute repetitions with all workers of the scheduler that the plan names.

    If a worker dies, another one gets its repetitions. No worker goes on computing after the block, however it ends:
    waiting tasks are withdrawn at once, and running tasks when they next report their progress.

    Parameters
    ----------
    plan, function
        As for `budgetreg.execution.runner.execute`.
    repetitions : sequence of int
        Which; at least one.
    slots : Path or None
        Where to report the progress, see `budgetreg.execution.progress.reporter`.

    Yields
    ------
    iterator of list of (dict, str)
        The outcomes of repetitions that were computed together, as they arrive.

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
    try:
        from distributed import Client
    except ImportError as error:
        raise ConfigError(f"backend=dask needs dask ({error}): pip install 'budgetreg[dask]'") from error
    address = plan.config.backend.address
    with _without_log():
        try:
            client = Client(address, set_as_default=False)
        except OSError as error:
            raise ClusterLost(f"no dask scheduler answers at {address} ({error})") from error
        with closing(client):  # then the scheduler withdraws tasks that nobody waits for
            yield _arriving(client, plan.located(), repetitions, function, slots)


def _arriving(
    client: Any, plan: Plan, repetitions: Sequence[int], function: Repetitions, slots: Path | None
) -> Iterator[list[Outcome]]:
    import cloudpickle  # dask brings it
    from distributed import as_completed

    address = plan.config.backend.address
    at_once = sum(client.nthreads().values())
    if not at_once:
        say(f"the dask scheduler at {address} has no workers yet: waiting for some")
    name = f"budgetreg-{uuid4().hex}"
    reports = {}
    for first, batch in batches(plan, repetitions, at_once or len(repetitions)):
        key = f"{name}-{first}"
        task = cloudpickle.dumps(partial(_attempt_there, key, function, plan, batch, libraries(), verified()))
        # Pickled here and unpickled by a lambda: the scheduler inspects each task, and need not import our package.
        future = client.submit(lambda packed: pickle.loads(packed)(), task, key=key, pure=False)
        reports[future] = reporter(slots, first, len(batch))
    for future in as_completed(list(reports), loop=client.loop):
        yield _result(future, address)
        reports.pop(future)(1.0)


def _result(future: Any, address: str | None) -> list[Outcome]:
    from distributed.scheduler import KilledWorker

    try:
        result: list[Outcome] = future.result()
    except UserError:
        raise
    except KilledWorker as error:
        raise WorkerDied(
            "dask workers died repeatedly, perhaps because memory ran out: the same command resumes the run"
        ) from error
    except Exception as error:
        if future.status != "error":  # the task has not failed: its scheduler is gone
            raise ClusterLost(
                f"the dask scheduler at {address} no longer answers: finished repetitions are kept, and the same "
                "command resumes the run, also with another backend"
            ) from error
        raise ConfigError(
            f"a dask worker of {address} cannot begin ({type(error).__name__}: {error}): install the same Python, "
            f"budgetreg {libraries()['budgetreg']} and packages with learners or data there as here"
        ) from error
    return result


def _attempt_there(
    key: str,
    function: Repetitions,
    plan: Plan,
    repetitions: Sequence[int],
    versions: Mapping[str, str | None],
    stamps: Mapping[str, Stamp],
) -> list[Outcome]:
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
    """Limit BLAS for the life of the process: tasks in threads of one worker would lift each other's limits."""
    pin_blas_threads()  # for libraries that are loaded later
    threadpool_limits(1)


@contextmanager
def _without_log() -> Iterator[None]:
    """Silence dask's log in the block, because our messages say the same in one line."""
    with ExitStack() as stack:
        for logger in map(logging.getLogger, ("distributed", "distributed.client")):
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
        yield

"""Computing with the workers of a dask scheduler, on this machine or on others.

No data are sent: a worker gets the plan, which holds the path of the data, and maps them there. Data and
libraries must be those that the plan was made with, so that the results have the same bytes; otherwise the run ends
with one line.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from threadpoolctl import threadpool_limits

from budgetreg.data.cache import Stamp, trust, verified
from budgetreg.errors import ConfigError, UserError, described
from budgetreg.notices import say
from budgetreg.protocol.plan import Plan
from budgetreg.runs.attempts import Outcome, Repetitions, attempt, batches
from budgetreg.runs.progress import reporter
from budgetreg.runs.provenance import libraries
from budgetreg.runs.scheduler import Connection, connection
from budgetreg.runs.workers import WorkerDied, keep_freed_memory, pin_blas_threads


class _Withdrawn(BaseException):
    """Nobody waits for this task any more.

    Not an `Exception`, because the repetition has not failed; nor a `KeyboardInterrupt`, which ends dask's workers.
    """


@contextmanager
def outcomes(
    plan: Plan, repetitions: Sequence[int], function: Repetitions, slots: Path | None
) -> Iterator[Iterator[list[Outcome]]]:
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
    n_workers = min(plan.config.n_jobs, len(repetitions))
    with connection(plan.config.backend.address, n_workers) as scheduler:
        yield _arriving(scheduler, plan.located(), repetitions, function, slots)


def _arriving(
    scheduler: Connection, plan: Plan, repetitions: Sequence[int], function: Repetitions, slots: Path | None
) -> Iterator[list[Outcome]]:
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
    for future in scheduler.arriving(dict(reports)):
        yield _result(scheduler, future)
        reports.pop(future)(1.0)


def _result(scheduler: Connection, future: Any) -> list[Outcome]:
    from distributed.scheduler import KilledWorker

    try:
        result: list[Outcome] = scheduler.result(future)
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
    """Set up the process for good: tasks in threads of one worker would lift each other's limits of BLAS."""
    pin_blas_threads()  # for libraries that are loaded later
    keep_freed_memory()
    threadpool_limits(1)

"""Computing by the workers of a dask scheduler that is there already, on this machine or on others.

No data are sent: a worker gets the plan, which says where they lie, and maps them there. Data and libraries have to be
those that the plan was made with, or the run ends in one line; so the bytes are the same as here.
"""

import logging
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from math import ceil
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from threadpoolctl import threadpool_limits

from budgetreg.data.seals import Stamp, trust, verified
from budgetreg.errors import ConfigError, UserError
from budgetreg.execution.attempts import Outcome, Repetitions, attempt
from budgetreg.execution.progress import reporter
from budgetreg.execution.workers import WorkerDied, pin_blas_threads
from budgetreg.notices import say
from budgetreg.results.provenance import libraries

if TYPE_CHECKING:
    from budgetreg.protocol.plan import Plan


class ClusterLost(UserError):  # noqa: N818 - it says what happened
    """The scheduler does not answer, or no longer."""

    exit_code = 1


class _Withdrawn(BaseException):
    """Nobody waits for this task any more; no `Exception`, as it is no failure of a repetition."""


@contextmanager
def outcomes(
    plan: "Plan", repetitions: Sequence[int], function: Repetitions, slots: Path | None
) -> Iterator[Iterator[list[Outcome]]]:
    """Have repetitions computed by all workers of the scheduler that the plan names.

    Those of a worker that dies are given to another one. However the block ends, no worker goes on computing: what
    waits is withdrawn at once, and what is being computed when it next tells its progress.

    Parameters
    ----------
    plan, function
        As for `budgetreg.execution.runner.execute`.
    repetitions : sequence of int
        Which; at least one.
    slots : Path or None
        Where to report what has arrived, see `budgetreg.execution.progress.reporter`.

    Yields
    ------
    iterator of list of (dict, str)
        What came of those that were computed together, as they arrive.

    Raises
    ------
    ClusterLost
        If the scheduler does not answer, or no longer.
    ConfigError
        If dask is not installed, or a worker has other versions of what computes.
    DataError
        If a worker does not see the data, or others.
    WorkerDied
        If workers die again and again.
    """
    distributed, address = _distributed(), plan.config.backend.address
    with _without_log():
        try:
            client = distributed.Client(address, set_as_default=False)
        except OSError as error:
            raise ClusterLost(f"no dask scheduler answers at {address} ({error})") from error
        try:
            yield _arriving(client, plan.located(), repetitions, function, slots)
        finally:
            client.close()  # the scheduler withdraws what nobody waits for any more


def _arriving(
    client: Any, plan: "Plan", repetitions: Sequence[int], function: Repetitions, slots: Path | None
) -> Iterator[list[Outcome]]:
    import cloudpickle  # dask brings it

    distributed, address = _distributed(), plan.config.backend.address
    at_once = sum(client.nthreads().values())
    if not at_once:
        say(f"the dask scheduler at {address} has no workers yet: waiting for some")
    together = min(plan.repetitions_at_once, ceil(len(repetitions) / (at_once or len(repetitions))))
    name = f"budgetreg-{uuid4().hex}"
    told = {}
    for first in range(0, len(repetitions), together):
        key, own = f"{name}-{first}", repetitions[first : first + together]
        task = cloudpickle.dumps(partial(_attempt_there, key, function, plan, own, libraries(), verified()))
        # Packed, and opened by what travels whole: the scheduler looks into each task, and needs not know ours.
        future = client.submit(lambda packed: pickle.loads(packed)(), task, key=key, pure=False)
        told[future] = reporter(slots, first, len(own))
    for future in distributed.as_completed(list(told), loop=client.loop):
        yield _result(future, address)
        told.pop(future)(1.0)


def _result(future: Any, address: str | None) -> list[Outcome]:
    from distributed.scheduler import KilledWorker

    try:
        result: list[Outcome] = future.result()
    except UserError:
        raise
    except KilledWorker as error:
        raise WorkerDied(
            "dask workers died again and again, perhaps for want of memory: the same command resumes the run"
        ) from error
    except Exception as error:
        if future.status != "error":  # not an error of the task: we wait in vain
            raise ClusterLost(
                f"the dask scheduler at {address} is lost; what is finished is kept: the same command resumes, "
                "also with another backend"
            ) from error
        raise ConfigError(
            f"a dask worker of {address} cannot begin ({type(error).__name__}: {error}): workers need the Python, the "
            f"budgetreg {libraries()['budgetreg']} and the packages with learners or data that are installed here"
        ) from error
    return result


def _attempt_there(
    key: str,
    function: Repetitions,
    plan: "Plan",
    repetitions: Sequence[int],
    versions: Mapping[str, str | None],
    stamps: Mapping[str, Stamp],
) -> list[Outcome]:
    """Compute repetitions in a worker, unless what it would compute with is not what the plan was made with."""
    worker = _distributed().get_worker()
    try:
        _refuse_other_versions(versions)
        _compute_in_one_thread()
        trust(stamps)
        plan.refuse_other_data()
    except UserError as error:
        raise type(error)(f"the dask worker at {worker.address}: {error}") from error
    return attempt(function, plan, repetitions, _withdrawing(worker, key))


def _withdrawing(worker: Any, key: str) -> Callable[[float], None]:
    """Return the function with which a task says how far it is, which ends it once nobody waits for it any more."""

    def report(fraction: float) -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise _Withdrawn

    return report


def _refuse_other_versions(wanted: Mapping[str, str | None]) -> None:
    found = libraries()
    apart = [f"{name} {found[name]} instead of {version}" for name, version in wanted.items() if found[name] != version]
    if apart:
        raise ConfigError(f"it has {', '.join(apart)}: install the same versions there, and start it again")


@cache
def _compute_in_one_thread() -> None:
    """Limit BLAS for good: tasks in threads of one worker would lift each other's limits."""
    pin_blas_threads()  # of what is loaded later
    threadpool_limits(1)


def _distributed() -> ModuleType:
    try:
        import distributed
    except ImportError as error:
        raise ConfigError(f"backend=dask needs dask ({error}): pip install 'budgetreg[dask]'") from error
    return distributed


@contextmanager
def _without_log() -> Iterator[None]:
    """Keep dask from telling in its own words what we tell in one line."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)

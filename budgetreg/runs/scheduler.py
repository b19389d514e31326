"""Talking to a dask scheduler, on this machine or another one, which must answer within dask's own time limit."""

import asyncio
import logging
import queue
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from budgetreg.errors import ConfigError, UserError, described
from budgetreg.files import os_errors_explained
from budgetreg.runs.scratch import scratch_folder
from budgetreg.runs.workers import interrupts_ignored

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

    def arriving(self, futures: Mapping[Any, object]) -> Iterator[Any]:
        """Yield futures as they end, in any order, even if they end because the scheduler is lost.

        Raises
        ------
        ClusterLost
            If the scheduler does not answer in time.
        """
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for future in futures:
            future.add_done_callback(ended.put)
        for _ in range(len(futures)):
            while True:
                try:
                    future = ended.get(timeout=_PERIOD)
                    break
                except queue.Empty:
                    self.threads()
            yield future

    def result(self, future: Any) -> Any:
        """Return the result of a future that has ended, or raise what it has raised.

        Raises
        ------
        ClusterLost
            If the scheduler does not answer in time.
        """
        while True:
            try:
                return future.result(timeout=_limit())
            except TimeoutError:
                if future.status == "error":  # the task itself has raised it
                    raise
                self.threads()

    def lost(self) -> ClusterLost:
        """Return the error that the scheduler has stopped answering."""
        return ClusterLost(
            f"the dask scheduler {self.place} no longer answers: finished repetitions are kept, and the same command "
            "resumes the run, also with another backend"
        )


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
        stack.callback(_close, client)  # then the scheduler withdraws tasks that nobody waits for
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
    stack.callback(cluster.close)
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


def _close(client: Any) -> None:
    with suppress(Exception):  # a scheduler that does not answer
        client.close(timeout=_PERIOD)


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

"""Life and death of worker processes: none may outlive its parent."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import FrameType

_PERIOD = 0.5  # seconds between two looks at the parent


@cache
def exit_with_parent(parent: int) -> None:
    """End this process as soon as its parent is gone, also one that was killed and could tell nobody.

    Parameters
    ----------
    parent : int
        Process id of the parent.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PERIOD)
        os._exit(1)  # at once: there is nobody left to take a result or a message

    threading.Thread(target=watch, name="exit-with-parent", daemon=True).start()


def watch_from_all_workers() -> None:
    """Have every worker process that joblib starts from now on watch this one, whoever asks joblib for it.

    Hydra's joblib launcher starts workers without a word to us; those that wait for work would outlive us by minutes.
    """
    from joblib import register_parallel_backend  # here, as most who import this need no joblib
    from joblib.parallel import LokyBackend

    register_parallel_backend("loky", partial(LokyBackend, initializer=exit_with_parent, initargs=(os.getpid(),)))


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C in the block, and forever in the processes started in it, which inherit that.

    A terminal sends Ctrl-C to parent and workers alike; the parent ends the workers, without noise of theirs.
    """
    with _handling(signal.SIGINT, signal.SIG_IGN):
        yield


@contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """Treat a polite request to end (SIGTERM, e.g. of a batch system) like Ctrl-C in the block."""
    with _handling(signal.SIGTERM, signal.default_int_handler):
        yield


@contextmanager
def _handling(
    number: signal.Signals, handler: signal.Handlers | Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only there can handlers be set
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before or signal.SIG_DFL)

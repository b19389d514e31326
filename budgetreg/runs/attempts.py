"""Computing repetitions in this process; each one, finished or failed, becomes an entry of the journal."""

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil, isfinite
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from budgetreg.config.catalogue import blamed
from budgetreg.errors import ContractError, DataError, PluginError, UserError, described, too_large
from budgetreg.protocol.plan import Plan
from budgetreg.runs.journal import FAILED, FINISHED, Entry

Repetitions = Callable[[Plan, Sequence[int], Callable[[float], None]], list[dict[str, Any]]]


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
            entries = []
            for done, repetition in enumerate(repetitions):
                entries += attempt(function, plan, [repetition], partial(_share, progress, done, len(repetitions)))
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


def _share(progress: Callable[[float], None], done: int, of: int, fraction: float) -> None:
    """Report the progress of one repetition when some of the others are done."""
    progress((done + fraction) / of)


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

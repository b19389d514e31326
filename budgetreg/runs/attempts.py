"""Computing repetitions in this process; each one, finished or failed, becomes an entry of the journal."""

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil, isfinite
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from budgetreg.config.extensions import blamed
from budgetreg.errors import ContractError, DataError, PluginError, UserError, described, too_large
from budgetreg.protocol.plan import Plan
from budgetreg.runs.journal import FAILED, FINISHED, Entry

Repetitions = Callable[[Plan, Sequence[int], Callable[[float], None]], list[dict[str, Any]]]

Outcome = tuple[Entry, str]
"""The entry of a repetition for the journal, and the traceback if it failed, unless another package is to blame."""


def batches(plan: Plan, repetitions: Sequence[int], workers: int) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield repetitions for workers to compute together, each time with the place of the first of them."""
    size = min(plan.repetitions_at_once, ceil(len(repetitions) / workers))
    for first in range(0, len(repetitions), size):
        yield first, repetitions[first : first + size]


def attempt(
    function: Repetitions, plan: Plan, repetitions: Sequence[int], progress: Callable[[float], None]
) -> list[Outcome]:
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
    list of (dict, str)
        The entry of each for the journal, and the traceback if it failed.

    Raises
    ------
    UserError
        If a repetition raises one, or needs more memory than there is.
    """
    started = time.perf_counter()
    outcomes: list[dict[str, Any]]
    trace = ""
    try:
        # One thread, because the last bits of a sum depend on their number; no warnings, because overflow is refused.
        with threadpool_limits(1), np.errstate(over="ignore", invalid="ignore", divide="ignore"), blamed():
            results = function(plan, repetitions, progress)
        _refuse_overflow(results)
        outcomes = [{"status": FINISHED, "result": result} for result in results]
    except UserError:
        raise
    except Exception as error:
        plugin = isinstance(error, PluginError)
        if isinstance(error, ContractError) and not plugin:
            raise
        if len(repetitions) > 1:  # one of them failed: each is tried alone
            alone: list[Outcome] = []
            for done, repetition in enumerate(repetitions):
                alone += attempt(function, plan, [repetition], partial(_share, progress, done, len(repetitions)))
            return alone
        if isinstance(error, MemoryError):
            raise too_large(plan.config.algo.name, plan.d, error) from error
        outcomes = [{"status": FAILED, "message": str(error) if plugin else described(error)}]
        trace = "" if plugin else traceback.format_exc()
    progress(1.0)
    seconds = (time.perf_counter() - started) / len(repetitions)
    return [
        ({"repetition": repetition, **outcome, "seconds": seconds}, trace)
        for repetition, outcome in zip(repetitions, outcomes, strict=True)
    ]


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

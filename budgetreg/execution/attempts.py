"""Computing repetitions in whatever process this is; what fails becomes an entry of the journal, too."""

import time
import traceback
from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from budgetreg.errors import DataError, UserError
from budgetreg.results.journal import FAILED, FINISHED, Entry

if TYPE_CHECKING:
    from budgetreg.protocol.plan import Plan

Repetitions = Callable[["Plan", Sequence[int], Callable[[float], None]], list[dict[str, Any]]]

Outcome = tuple[Entry, str]
"""What came of a repetition: its entry of the journal, and the traceback if it failed."""


def attempt(
    function: Repetitions, plan: "Plan", repetitions: Sequence[int], progress: Callable[[float], None]
) -> list[Outcome]:
    """Compute repetitions in whatever process this is.

    Parameters
    ----------
    function : callable
        As for `budgetreg.execution.runner.execute`.
    plan : Plan
        What is run.
    repetitions : sequence of int
        Which; they advance together.
    progress : callable
        Told the fraction of them that is done, between 0 and 1.

    Returns
    -------
    list of (dict, str)
        For each its entry of the journal, and the traceback if it failed.

    Raises
    ------
    UserError
        If a repetition raises one.
    """
    started = time.perf_counter()
    outcomes: list[dict[str, Any]]
    trace = ""
    try:
        # One thread, as the last bits of a sum depend on their number; no warnings, as what overflows is refused.
        with threadpool_limits(1), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            results = function(plan, repetitions, progress)
        _refuse_overflow(results)
        outcomes = [{"status": FINISHED, "result": result} for result in results]
    except UserError:
        raise
    except Exception as error:
        if len(repetitions) > 1:  # it is one of them: the others have done nothing wrong
            shares = (_share(progress, done, len(repetitions)) for done in range(len(repetitions)))
            return [
                outcome
                for one, share in zip(repetitions, shares, strict=True)
                for outcome in attempt(function, plan, [one], share)
            ]
        outcomes = [{"status": FAILED, "message": f"{type(error).__name__}: {error}"}]
        trace = traceback.format_exc()
    progress(1.0)
    seconds = (time.perf_counter() - started) / len(repetitions)
    return [
        ({"repetition": repetition, **outcome, "seconds": seconds}, trace)
        for repetition, outcome in zip(repetitions, outcomes, strict=True)
    ]


def _share(progress: Callable[[float], None], done: int, of: int) -> Callable[[float], None]:
    """Return what is told the fraction of one more repetition, when so many are done."""
    return lambda own: progress((done + own) / of)


def _refuse_overflow(results: Sequence[dict[str, Any]]) -> None:
    """Refuse losses that are no numbers; what is undefined, such as an error rate without classes, may be."""
    for point in (point for result in results for point in result["curve"]):
        for name in ("test_mse", "excess_loss"):
            value = point.get(name)
            if value is not None and not isfinite(value):
                raise DataError(
                    f"{name} is {value} after {point['examples']} examples: numbers became too large to compute with; "
                    "scale the data (dataset.scale=max_abs, a target of about 1), or take smaller parameters"
                )

"""The time that several runs, one after the other, still take."""

import time
from collections.abc import Callable, Sequence
from math import fsum

from budgetreg.protocol.plan import Plan
from budgetreg.runs.journal import FINISHED, read_journal
from budgetreg.runs.progress import duration
from budgetreg.runs.schema import JOURNAL

_SHORT = 5.0  # seconds that need no estimate


class SweepClock:
    """Estimates how long the later runs of a sweep take, from how long the repetitions of the earlier ones took.

    A repetition is taken to last as long as those of the same learner on average; of a learner that has not run yet, as
    those of all others.

    Parameters
    ----------
    plans : sequence of Plan
        The runs, in order. Repetitions that their folders hold already take no time.
    now : callable
        Returns a time in seconds.
    """

    def __init__(self, plans: Sequence[Plan], now: Callable[[], float] = time.monotonic) -> None:
        self._names = [plan.config.algo.name for plan in plans]
        self._missing = [_missing(plan) for plan in plans]
        self._began = now()
        self._now, self._at, self._took = now, -1, list[tuple[str, float]]()  # by a repetition, with the learner

    def begin(self) -> str:
        """Begin the next run; return in words how long it and those after it take, if that is known and not short."""
        if self._at >= 0 and self._missing[self._at]:
            self._took.append((self._names[self._at], (self._now() - self._began) / self._missing[self._at]))
        self._at, self._began = self._at + 1, self._now()
        seconds = self._estimate(self._at, self._took)
        return f", about {duration(seconds)} left" if seconds >= _SHORT else ""

    def later(self, each: float) -> float:
        """Return the seconds of the runs after this one, given those of a repetition of this one."""
        return self._estimate(self._at + 1, [*self._took, (self._names[self._at], each)])

    def _estimate(self, first: int, took: Sequence[tuple[str, float]]) -> float:
        """Return the seconds of all runs from the first of them; 0 if no repetition has been computed yet."""
        times: dict[str, list[float]] = {}
        for name, each in took:
            times.setdefault(name, []).append(each)
        means = {name: fsum(values) / len(values) for name, values in times.items()}
        other = fsum(means.values()) / max(len(means), 1)
        left = zip(self._names[first:], self._missing[first:], strict=True)
        return fsum(missing * means.get(name, other) for name, missing in left)


def _missing(plan: Plan) -> int:
    """Return the number of a plan's repetitions that are not finished."""
    entries = read_journal(plan.folder / JOURNAL)
    done = {entry["repetition"] for entry in entries if entry["status"] == FINISHED}
    return len(set(range(plan.config.repetitions)) - done)

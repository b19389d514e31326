"""Results compared with the same results computed again: the same bytes, or where they differ most."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf

import numpy as np

from budgetreg.algorithms.learner import Learner
from budgetreg.runs.schema import CELL, CURVES, RUNS

PROMISED = 1e-9
"""Largest relative difference on another processor, whose sums may differ in their last digits."""

_HERE = "the same bytes with these versions on processors of this family"
_ELSEWHERE = f"the same to {PROMISED:g} on others"
NOT_PORTABLE = (
    "results differ between processor types, but have the same distribution, because round-off grows without bound"
)

Rows = Sequence[Mapping[str, str]]
Tables = Mapping[str, Rows]
Models = Mapping[int, Mapping[str, np.ndarray]]
"""What repetitions have learned, by their number: arrays by name."""
_MODEL, _NOTHING = "model.", np.empty(0)
_NO_RESULTS = {"seconds", CELL}


def promised(learner: Learner) -> str:
    """Return how closely the numbers of a learner are the same when they are computed again."""
    return f"{_HERE}; {_ELSEWHERE if learner.bitwise_portable else NOT_PORTABLE}"


@dataclass(frozen=True)
class Difference:
    """The place where two results differ most.

    Attributes
    ----------
    column : str
        The column; ``examples`` if a checkpoint is missing, ``status`` if a repetition is missing, and ``model.w`` for
        the array w of what was learned.
    repetition : int
    examples : int or None
        The checkpoint; None in ``runs.csv``, which has none.
    relative : float
        The difference divided by the larger value; for arrays the largest difference divided by the largest entry. It
        is 0 if only the bytes differ, and infinite if a value is not a number.
    """

    column: str
    repetition: int
    examples: int | None
    relative: float

    @property
    def in_model(self) -> bool:
        """Whether it is in what was learned."""
        return self.column.startswith(_MODEL)

    @property
    def within_promise(self) -> bool:
        """Whether another processor may cause it."""
        return self.relative <= PROMISED


def largest_difference(
    there: Tables, here: Tables, repetitions: Sequence[int], models: tuple[Models, Models] = ({}, {})
) -> Difference | None:
    """Compare some repetitions byte by byte, in both tables and in what they have learned.

    Parameters
    ----------
    there, here : mapping of str to sequence of mapping
        The rows of ``curves.csv`` and ``runs.csv``, as text. Columns that are not in the tables there are not compared.
    repetitions : sequence of int
        Which of them are compared.
    models : tuple of mapping
        What they have learned, there, where it may not have been kept, and here.

    Returns
    -------
    Difference or None
        None if nothing differs. The largest difference otherwise, but first one beyond `PROMISED`, and of these first
        one in the tables, because it has a checkpoint.
    """
    chosen = set(repetitions)
    differences = chain(_in_tables(there, here, chosen), _in_models(*models, chosen))
    return max(differences, key=lambda each: (not each.within_promise, not each.in_model, each.relative), default=None)


def _in_tables(there: Tables, here: Tables, repetitions: set[int]) -> Iterator[Difference]:
    for name, missing in ((CURVES, "examples"), (RUNS, "status")):
        was, now = (_by_place(tables[name], repetitions) for tables in (there, here))
        for place in sorted(was.keys() | now.keys(), key=lambda place: (place[0], place[1] or 0)):
            if place not in was or place not in now:
                yield Difference(missing, *place, inf)
                continue
            for column, value in was[place].items():
                again = now[place].get(column, "")
                if value != again and column not in _NO_RESULTS:
                    yield Difference(column, *place, _relative(_number(value), _number(again)))


def _in_models(there: Models, here: Models, repetitions: set[int]) -> Iterator[Difference]:
    for repetition in sorted(there.keys() & here.keys() & repetitions):
        was, now = there[repetition], here[repetition]
        for name in sorted(was.keys() | now.keys()):
            arrays = was.get(name, _NOTHING), now.get(name, _NOTHING)
            if arrays[0].shape != arrays[1].shape or arrays[0].tobytes() != arrays[1].tobytes():
                yield Difference(f"{_MODEL}{name}", repetition, None, _relative(*arrays))


def _by_place(rows: Rows, repetitions: set[int]) -> dict[tuple[int, int | None], Mapping[str, str]]:
    return {
        (int(row["repetition"]), int(row["examples"]) if "examples" in row else None): row
        for row in rows
        if int(row["repetition"]) in repetitions
    }


def _number(text: str) -> np.ndarray:
    try:
        return np.array([float(text)])
    except ValueError:
        return np.array([np.nan])


def _relative(was: np.ndarray, now: np.ndarray) -> float:
    """Return the largest difference of two arrays divided by their largest entry."""
    if was.shape != now.shape or not (np.isfinite(was).all() and np.isfinite(now).all()):
        return inf
    apart = float(np.abs(was - now).max(initial=0.0))
    return apart / float(max(np.abs(was).max(initial=0.0), np.abs(now).max(initial=0.0))) if apart else 0.0

"""Results compared with the same ones computed again: the same bytes, or the column in which they differ most."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, isfinite

import numpy as np

from budgetreg.learners.declaration import Learner
from budgetreg.results.schema import ADDED, CELL, CURVES, RUNS

PROMISED = 1e-9
"""Largest relative difference on another processor, whose sums may differ in their last digits."""

_HERE = "the same bytes with these versions on processors of this family"
_ELSEWHERE = f"on others the same to {PROMISED:g}"
CHAOTIC = "on others other numbers of the same law, as round-off grows without bound in its path"

Rows = Sequence[Mapping[str, str]]
Models = Mapping[int, Mapping[str, np.ndarray]]
"""What repetitions have learned, by their number: arrays by name."""
_MODEL, _NOTHING = "model.", np.empty(0)
_APART = {"seconds", CELL}
"""Columns that are no results: the time it took, and where a row was merged."""


def promised(learner: Learner) -> str:
    """Return what is promised of the numbers of a learner when they are computed again."""
    return f"{_HERE}; {_ELSEWHERE if learner.bitwise_portable else CHAOTIC}"


@dataclass(frozen=True)
class Difference:
    """Where two results differ most.

    Attributes
    ----------
    column : str
        In which column; ``examples`` if a checkpoint is missing, ``status`` if a repetition is; ``model.w`` if it is in
        the array w of what was learned.
    repetition : int
        Of which repetition.
    examples : int or None
        At which checkpoint; None in ``runs.csv``, which has none.
    relative : float
        The difference divided by the larger of the two, of arrays the largest difference by the largest number; 0 if
        only the bytes differ, infinite if one is no number.
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
        """Whether it is as small as another processor may make it."""
        return self.relative <= PROMISED


def largest_difference(
    there: Mapping[str, Rows],
    here: Mapping[str, Rows],
    repetitions: Sequence[int],
    models: tuple[Models, Models] = ({}, {}),
) -> Difference | None:
    """Compare both tables of some repetitions, and what they have learned, byte by byte.

    Parameters
    ----------
    there, here : mapping of str to sequence of mapping
        The rows of ``curves.csv`` and ``runs.csv``, as text.
    repetitions : sequence of int
        Which of them are compared.
    models : tuple of mapping
        What is there of what they have learned, which may be nothing, and what was learned here.

    Returns
    -------
    Difference or None
        The largest of what is beyond `PROMISED`, in the tables if there is any, as these tell the checkpoint; else the
        largest; None if they are the same.
    """
    found = chain(_differences(there, here, set(repetitions)), _in_models(*models, set(repetitions)))
    return max(found, key=lambda one: (not one.within_promise, not one.in_model, one.relative), default=None)


def _differences(there: Mapping[str, Rows], here: Mapping[str, Rows], repetitions: set[int]) -> Iterator[Difference]:
    for name, missing in ((CURVES, "examples"), (RUNS, "status")):
        was, now = (_by_place(tables[name], repetitions) for tables in (there, here))
        for place in sorted(was.keys() | now.keys(), key=lambda place: (place[0], place[1] or 0)):
            if place in was and place in now:
                yield from _in_row(was[place], now[place], *place)
            else:
                yield Difference(missing, *place, inf)


def _in_models(there: Models, here: Models, repetitions: set[int]) -> Iterator[Difference]:
    for repetition in sorted(there.keys() & here.keys() & repetitions):
        was, now = there[repetition], here[repetition]
        for name in sorted(was.keys() | now.keys()):
            one, other = was.get(name, _NOTHING), now.get(name, _NOTHING)
            if one.shape != other.shape or one.tobytes() != other.tobytes():
                yield Difference(f"{_MODEL}{name}", repetition, None, _apart(one, other))


def _by_place(rows: Rows, repetitions: set[int]) -> dict[tuple[int, int | None], Mapping[str, str]]:
    return {
        (int(row["repetition"]), int(row["examples"]) if "examples" in row else None): row
        for row in rows
        if int(row["repetition"]) in repetitions
    }


def _in_row(
    was: Mapping[str, str], now: Mapping[str, str], repetition: int, examples: int | None
) -> Iterator[Difference]:
    for column in {**was, **now}:
        one, other = was.get(column, ""), now.get(column, "")  # a column that came later is empty before
        if column in ADDED and not one:
            continue  # not recorded
        if column not in _APART and one != other:
            yield Difference(column, repetition, examples, _relative(one, other))


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    if one.shape != other.shape or not (np.isfinite(one).all() and np.isfinite(other).all()):
        return inf
    apart = float(np.abs(one - other).max(initial=0.0))
    return apart / max(np.abs(one).max(initial=0.0), np.abs(other).max(initial=0.0)) if apart else 0.0


def _relative(one: str, other: str) -> float:
    try:
        a, b = float(one), float(other)
    except ValueError:
        return inf
    if not (isfinite(a) and isfinite(b)):
        return inf
    return abs(a - b) / max(abs(a), abs(b)) if a != b else 0.0

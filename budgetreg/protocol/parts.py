"""The rows of a repetition: which ones train, come first as the pilot, are held out in folds, and test."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from budgetreg.data.dataset import Dataset
from budgetreg.errors import DataError
from budgetreg.protocol.configuration import Config
from budgetreg.protocol.tuning import folds
from budgetreg.streams import generator


class Parts(NamedTuple):
    """The rows of a repetition, all arrays of int."""

    train: np.ndarray
    """Training rows, ascending."""
    test: np.ndarray
    """Rows that are tested on, ascending, all of them complete."""
    pilot: np.ndarray
    """Training rows that are bought in full first."""
    order: np.ndarray
    """The other training rows, in the order in which they are presented."""


def parts_of(config: Config, data: Dataset, n_test: int, n_pilot: int, repetition: int) -> Parts:
    """Split the rows of a repetition.

    Raises
    ------
    DataError
        If too few rows are complete for the pilot or the test.
    """
    n = data.y.size
    if config.dataset.split == "official":
        train, test = np.arange(n - n_test), np.arange(n - n_test, n)
    else:
        shuffled = generator("split", config.seed, data.name, repetition).permutation(n)
        train, test = np.sort(shuffled[n_test:]), np.sort(shuffled[:n_test])
    order = train if data.ordered else generator("order", config.seed, data.name, repetition).permutation(train)
    if data.available is not None:
        order = _pilot_first(n_pilot, data, order, repetition, config.seed)
        if not config.dataset.untested:
            part = f"the test part of repetition {repetition} of {data.name}"
            test = complete_rows(data.complete, test, part, "a larger dataset.test_fraction")
    return Parts(train, test, order[:n_pilot], order[n_pilot:])


def fold_parts(
    config: Config, data: Dataset, order: np.ndarray, n_folds: int, repetition: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each fold its training rows in their order, and the held-out rows that are complete.

    Parameters
    ----------
    config : Config
    data : Dataset
    order : ndarray of int
        As `parts_of` returns it: the pilot was bought, and is in every fold.
    n_folds, repetition : int

    Raises
    ------
    DataError
        If no held-out row of a fold is complete.
    """
    rng = generator("folds", config.seed, data.name, repetition)
    for f, (training, rows) in enumerate(zip(*folds(order, n_folds, rng), strict=True)):
        if data.available is not None:
            part = f"fold {f} of repetition {repetition} of {data.name}"
            rows = complete_rows(data.complete, rows, part, "fewer tuning.folds")
        yield training, rows


def refuse_incomplete(config: Config, data: Dataset, n_test: int, n_pilot: int, n_folds: int) -> None:
    """Refuse data whose missing values leave some part of some repetition without the complete rows that it needs.

    Raises
    ------
    DataError
    """
    for repetition in range(config.repetitions if data.available is not None else 0):
        order = parts_of(config, data, n_test, n_pilot, repetition).order
        if n_folds:
            for _ in fold_parts(config, data, order, n_folds, repetition):
                pass


def complete_rows(complete: np.ndarray, rows: np.ndarray, part: str, remedy: str) -> np.ndarray:
    """Return those of some rows that are complete (n,).

    Raises
    ------
    DataError
        If none is, with the name of the part of the data and a remedy.
    """
    rows = rows[complete[rows]]
    if not rows.size:
        raise DataError(f"{part} has no complete row to test on; {remedy} may have some")
    return rows


def _pilot_first(n: int, data: Dataset, order: np.ndarray, repetition: int, seed: int) -> np.ndarray:
    """Return training rows in their order, after a pilot of n complete rows.

    The pilot comes from anywhere in the order. If it were the first complete rows, complete rows would be rarer at the
    beginning of the rest than at its end.
    """
    complete = np.sort(order[data.complete[order]])
    if complete.size < n:
        raise DataError(
            f"pilot={n}: repetition {repetition} of {data.name} has only {complete.size} complete training rows; "
            "use a smaller pilot"
        )
    pilot = generator("pilot", seed, data.name, repetition).permutation(complete)[:n]
    return np.concatenate([pilot, order[~np.isin(order, pilot)]])

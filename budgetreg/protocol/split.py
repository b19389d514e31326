"""A repetition's data: which examples train, come first as the pilot, and test."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from budgetreg.algorithms.learner import Missing
from budgetreg.data.dataset import Dataset
from budgetreg.data.registry import load
from budgetreg.metering.table import Table
from budgetreg.protocol.parts import parts_of
from budgetreg.protocol.plan import Plan
from budgetreg.protocol.side_information import pilot_moments, second_moments, shares, table_of
from budgetreg.protocol.spending import LEAST_ROWS
from budgetreg.tasks import Judge, Task, Unjudged


@dataclass(frozen=True)
class Split:
    """One repetition's data.

    Attributes
    ----------
    repetition : int
    table : Table
    judge : Judge
        The test; it judges nothing if all rows are learned from.
    pilot : ndarray of int, shape (N,)
        Rows that are bought in full first.
    order : ndarray of int, shape (m,)
        The other training rows, in the order in which they are presented.
    moments : ndarray of float, shape (d,), or None
        Second moments of the attributes, for learners that are given them.
    complete : ndarray of bool, shape (n,)
        Which rows have no missing value, so that predictions can be tested on them.
    offset : int
        Number of its first row in the table of the repetitions that run together.
    first_row : int
        Number of its first row in their set of cells, in which not even equal data share a row.
    """

    repetition: int
    table: Table
    judge: Judge
    pilot: np.ndarray
    order: np.ndarray
    moments: np.ndarray | None
    complete: np.ndarray
    offset: int = 0
    first_row: int = 0


def split_data(plan: Plan, repetition: int) -> Split:
    """Split the data of a repetition; seed, data and repetition decide it.

    Raises
    ------
    DataError
        If too few rows are complete for the pilot or the test, or two attributes never have values together.
    """
    config, task = plan.config, plan.config.algo.task
    data = load(config.dataset, config.seed, repetition, targets=config.algo.predicts)
    train, test, pilot, order = parts_of(config, data, plan.n_test, plan.pilot, repetition)
    constant = float(data.y[train].mean()) if plan.intercept else 0.0
    if config.dataset.split == "official" and not plan.pilot and not plan.gaps:
        table, judge = _official(data, config.dataset.center, config.dataset.own_data, plan.n_train, task, constant)
    else:
        scaled = config.dataset.scaled_by_pilot and plan.pilot >= LEAST_ROWS
        table = table_of(config.dataset.center, data, train, pilot, scaled)
        if plan.gaps and config.algo.missing is Missing.WEIGHED:
            # Without the pilot, whose rows were chosen for being complete.
            table = replace(table, together=shares(data, np.setdiff1d(train, pilot)))
        judge = (
            Unjudged() if config.dataset.untested else task.test(data, table, test, constant, config.dataset.own_data)
        )
    moments = None
    if config.algo.given_moments:
        known = config.algo.given_moments == "given"
        moments = second_moments(table, train) if known else pilot_moments(table, pilot)
    return Split(repetition, table, judge, pilot, order, moments, data.complete)


@lru_cache(maxsize=1)
def _official(
    data: Dataset, center: str, own_data: bool, n_train: int, task: Task, constant: float
) -> tuple[Table, Judge]:
    """Return what the repetitions of an official split share: they differ in their order only."""
    table = table_of(center, data, np.arange(n_train))
    return table, task.test(data, table, np.arange(n_train, data.y.size), constant, own_data)

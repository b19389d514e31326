"""The data of a repetition: which rows train, come first as the pilot, are held out in folds, and test.

What is known of the attributes before the pass comes from full rows that no budget pays for, or from the pilot. Its
rows are bought first, and charged. As they are few, their second moments are shrunk.

Test rows may have missing values. The expected loss of a row, given its values and its target, estimates its loss if
all were there, as in `budgetreg.study.error`. One draw from that distribution, the same for all learners, stands for
the expectation.

References
----------
J. Schäfer, K. Strimmer. A Shrinkage Approach to Large-Scale Covariance Matrix Estimation. Statistical Applications in
Genetics and Molecular Biology 4(1), 2005.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from budgetreg.algorithms.learner import Missing
from budgetreg.algorithms.tasks import Judge, Task, Unjudged
from budgetreg.common.errors import DataError
from budgetreg.common.streams import generator
from budgetreg.data.dataset import Dataset, as_values, means, row_blocks
from budgetreg.data.registry import load
from budgetreg.metering.table import Table
from budgetreg.protocol.configuration import Config
from budgetreg.protocol.spending import LEAST_ROWS
from budgetreg.revealed.columns import negligible

_NONE = np.empty(0, dtype=np.intp)

_TOGETHER = 1000
"""Most attributes whose correlations are used together; more are divided into groups of neighbours."""

_SMALLEST_EIGENVALUE = 1e-3
"""Of correlations, so that attributes that determine each other can be conditioned on."""


@dataclass(frozen=True)
class Split:
    """One repetition's data.

    Attributes
    ----------
    repetition : int
    data : Dataset
    table : Table
        The data as the learner sees them.
    judge : Judge
        The test; it judges nothing if all rows are learned from.
    pilot : ndarray of int, shape (N,)
        Rows that are bought in full first.
    order : ndarray of int, shape (m,)
        The other training rows, in the order in which they are presented.
    moments : ndarray of float, shape (d,), or None
        Second moments of the attributes, for learners that are given them.
    offset : int
        Number of its first row in the table of the repetitions that run together.
    first_row : int
        Number of its first row in their set of cells, in which not even equal data share a row.
    """

    repetition: int
    data: Dataset
    table: Table
    judge: Judge
    pilot: np.ndarray
    order: np.ndarray
    moments: np.ndarray | None
    offset: int = 0
    first_row: int = 0


def split_data(config: Config, n_test: int, n_pilot: int, repetition: int) -> Split:
    """Split the data of a repetition; seed, data and repetition decide it.

    Raises
    ------
    DataError
        If too few rows are complete for the pilot, or two attributes never have values together.
    """
    task, center, own_data = config.algo.task, config.dataset.center, config.dataset.own_data
    data = load(config.dataset, config.seed, repetition, targets=config.algo.predicts)
    train, test, pilot, order = parts_of(config, data, n_test, n_pilot, repetition)
    constant = float(data.y[train].mean()) if config.intercept == "mean" else 0.0
    if config.dataset.split == "official" and not n_pilot and data.available is None:
        table, judge = _official(data, center, own_data, len(train), task, constant)
    else:
        table = table_of(center, data, train, pilot, config.dataset.scaled_by_pilot and n_pilot >= LEAST_ROWS)
        if data.available is not None and config.algo.missing is Missing.WEIGHED:
            # Without the pilot, whose rows were chosen for being complete.
            table = replace(table, together=shares(data, np.setdiff1d(train, pilot)))
        if config.dataset.untested:
            judge = Unjudged()
        elif data.available is None:
            judge = task.test(data, table, test, constant, own_data)
        else:
            X = completed(data, train, test, config.seed, repetition)
            whole = replace(table, X=X, y=data.y[test], available=None, together=None)
            judge = task.test(data, whole, np.arange(test.size), constant, own_data)
    moments = None
    if config.algo.given_moments:
        known = config.algo.given_moments == "given"
        moments = second_moments(table, train) if known else pilot_moments(table, pilot)
    return Split(repetition, data, table, judge, pilot, order, moments)


@lru_cache(maxsize=1)
def _official(
    data: Dataset, center: str, own_data: bool, n_train: int, task: Task, constant: float
) -> tuple[Table, Judge]:
    """Return what the repetitions of an official split share: they differ in their order only."""
    table = table_of(center, data, np.arange(n_train))
    return table, task.test(data, table, np.arange(n_train, data.y.size), constant, own_data)


class Parts(NamedTuple):
    """The rows of a repetition, all arrays of int."""

    train: np.ndarray
    """Training rows, ascending."""
    test: np.ndarray
    """Rows that are tested on, ascending; see `completed` for those with missing values."""
    pilot: np.ndarray
    """Training rows that are bought in full first."""
    order: np.ndarray
    """The other training rows, in the order in which they are presented."""


def parts_of(config: Config, data: Dataset, n_test: int, n_pilot: int, repetition: int) -> Parts:
    """Split the rows of a repetition.

    Raises
    ------
    DataError
        If too few rows are complete for the pilot.
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
        rows = rows[data.complete[rows]]
        if not rows.size:
            part = f"fold {f} of repetition {repetition} of {data.name}"
            raise DataError(f"{part} has no complete row to choose parameters on; fewer tuning.folds may have some")
        yield training, rows


def folds(order: np.ndarray, n_folds: int, rng: np.random.Generator) -> tuple[np.ndarray, list[np.ndarray]]:
    """Cut a training part into folds.

    Parameters
    ----------
    order : ndarray of int, shape (m,)
        Training rows in the order in which they are presented; folds keep it.
    n_folds : int
        Number of folds F.
    rng : numpy.random.Generator
        Decides which rows each fold holds out.

    Returns
    -------
    training : ndarray of int, shape (F, m')
        Training rows of each fold; all have as many as the fold that holds out most.
    held_out : list of F ndarrays of int
        Held-out rows of each fold.
    """
    fold = rng.permutation(order.size) % n_folds
    length = order.size - -(-order.size // n_folds)
    training = np.stack([order[fold != f][:length] for f in range(n_folds)])
    return training, [order[fold == f] for f in range(n_folds)]


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


def completed(data: Dataset, train: np.ndarray, rows: np.ndarray, seed: int, repetition: int) -> np.ndarray:
    """Return some rows, shape (n, d), with draws for missing values, given the row's other values and its target.

    The distribution is normal. Its moments are those of all values of training rows, of up to as many rows as a block
    has. Correlations between attributes, and those with the target, are shrunk by the share of their squares that is
    expected by chance.
    """
    values, mask, d = as_values(data.X), data.available, data.X.shape[1]
    assert mask is not None
    rng = generator("completed", seed, data.name, repetition)
    sample, complete = next(row_blocks(rng.permutation(train), d)), []
    known, X = (np.where(mask[index], values.rows(index), np.nan).astype(np.float64) for index in (sample, rows))
    for columns in np.array_split(np.arange(d), -(-d // _TOGETHER)):
        A, B = (np.column_stack([Y[:, columns], data.y[at]]) for Y, at in ((known, sample), (X, rows)))
        there = ~np.isnan(A)
        pairs = np.maximum(there.T.astype(float) @ there, 1)
        n = pairs.diagonal()
        mean = np.where(there, A, 0).sum(axis=0) / n
        Z = np.where(there, A - mean, 0)
        deviations = np.sqrt(np.square(Z).sum(axis=0) / n)
        units = np.where(deviations > 0, deviations, 1)
        R = np.clip((Z / units).T @ (Z / units) / pairs, -1, 1)
        chance = np.square(1 - R**2) / pairs  # the variance of a correlation
        for matrix in (R, chance):
            np.fill_diagonal(matrix, 0)
        for part in (np.s_[:-1, :-1], np.s_[-1:, :-1]):
            squares = max(np.square(R[part]).sum(), np.finfo(float).tiny)
            R[part] *= max(1 - chance[part].sum() / squares, 0)
        R[:-1, -1] = R[-1, :-1]
        eigenvalues, U = np.linalg.eigh(R + np.eye(len(R)))
        precision = (U / np.maximum(eigenvalues, _SMALLEST_EIGENVALUE)) @ U.T
        hidden, Z = np.isnan(B), (B - mean) / units
        for z, holes in zip(Z, hidden, strict=True):
            if holes.any():
                V = np.linalg.inv(precision[np.ix_(holes, holes)])
                expected = -V @ (precision[np.ix_(holes, ~holes)] @ z[~holes])
                z[holes] = expected + np.linalg.cholesky(V) @ rng.normal(size=len(V))
        complete.append(np.where(hidden, mean + deviations * Z, B)[:, :-1])
    return np.hstack(complete)


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


def table_of(center: str, data: Dataset, train: np.ndarray, pilot: np.ndarray = _NONE, scaled: bool = False) -> Table:
    """Return the data as the learner sees them.

    Parameters
    ----------
    center : str
        What is subtracted from attributes: ``full``, their means over the training part; ``revealed``, their means in
        the pilot, from which running means continue; nothing new for ``none``, and for ``revealed`` without a pilot.
    data : Dataset
    train : ndarray of int
        Rows of the training part.
    pilot : ndarray of int, optional
        Rows of the pilot; none by default.
    scaled : bool
        Whether attributes are divided by their standard deviations in the pilot.
    """
    values, scale = as_values(data.X), data.scale
    known = values.rows(pilot).astype(np.float64) * scale
    unit = 1 / spreads(known) if scaled else 1.0
    scale = scale * unit if scaled else scale
    shift = data.shift
    if center == "full":
        shift = means(values, train) * scale
        if data.available is not None:
            shift = shift * (train.size / _counts(data.available, train))
    elif center == "revealed" and len(known):
        shift = known.mean(axis=0) * unit
    return Table(data.X, data.y, scale, shift, data.available)


def shares(data: Dataset, rows: np.ndarray) -> np.ndarray:
    """Return the share of rows in which attributes i and j both have a value, shape (d, d), for data with a mask.

    If the masks were permuted over the examples at random, this would be each example's probability to have both: an
    estimate that is divided by it is unbiased, however few the rows are.

    Raises
    ------
    DataError
        If two attributes never have values together, so that nothing is known of their product.
    """
    assert data.available is not None
    together = np.zeros((data.X.shape[1],) * 2)
    for block in row_blocks(rows, data.X.shape[1]):
        mask = data.available[block].astype(np.float64)
        together += mask.T @ mask
    if not together.all():
        i, j = min(np.argwhere(together == 0).tolist(), key=lambda pair: (pair[0] != pair[1], *pair))
        names = [data.label(place) for place in (i, j)]
        which = f"attribute {names[0]} never has" if i == j else f"attributes {names[0]} and {names[1]} never both have"
        raise DataError(f"{data.name}: {which} a value in {len(rows)} training examples; leave one column out")
    return together / len(rows)


def _counts(available: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return how many of some rows have a value of each attribute, shape (d,); 1 where none has."""
    counts = np.zeros(available.shape[1])
    for block in row_blocks(rows, available.shape[1]):
        counts += np.count_nonzero(available[block], axis=0)
    return np.maximum(counts, 1)


def spreads(X: np.ndarray) -> np.ndarray:
    """Return the standard deviations of the attributes in a few rows, shape (n, d), all above 0.

    An attribute that is constant in these rows gets its absolute value, or the median of the other standard deviations
    if it is 0. One that varies too little to show its scale, see `budgetreg.revealed.columns.negligible`, gets the
    largest value in the table. A larger pilot or `dataset.ranges` gives a better scale.
    """
    deviations, size = X.std(axis=0, ddof=1), np.abs(X).mean(axis=0)
    constant = deviations <= 1e-12 * np.abs(X).max(axis=0)
    median = np.median(deviations[~constant]) if not constant.all() else 1.0
    small = ~constant & negligible(deviations, np.abs(X.mean(axis=0)), len(X))
    largest = np.maximum(deviations, size).max()
    return np.where(constant, np.where(size > 0, size, median), np.where(small, largest, deviations))


def second_moments(table: Table, train: np.ndarray) -> np.ndarray:
    """Return ``E x_i^2`` over the rows `train`, shape (d,), which DDAERR and DDAELR are given."""
    total, mask = np.zeros(table.d), table.available
    for rows in row_blocks(train, table.d):
        X = table.rows(rows)
        total += np.square(X if mask is None else np.where(mask[rows], X, 0.0)).sum(axis=0)
    return total / (train.size if mask is None else _counts(mask, train))


def pilot_moments(table: Table, pilot: np.ndarray) -> np.ndarray:
    """Return ``E x_i^2`` over a pilot, shape (d,), shrunk to their mean as if that were one more of its rows."""
    squares = np.square(table.rows(pilot)).sum(axis=0)
    return (squares + squares.mean() / pilot.size) / (pilot.size + 1)

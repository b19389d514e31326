"""Knowledge of the attributes before the pass, from full rows that no budget pays for, or from a pilot.

A pilot consists of full rows that are bought first, and charged. As its rows are few, its second moments are shrunk.
"""

import numpy as np

from budgetreg.data.dataset import Dataset, as_values, means, row_blocks
from budgetreg.errors import DataError
from budgetreg.metering.table import Table
from budgetreg.revealed.columns import negligible

_NONE = np.empty(0, dtype=np.intp)


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

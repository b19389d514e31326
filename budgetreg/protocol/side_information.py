"""What is known of the attributes beforehand: from full rows of the training part, outside any budget and said so.

Or from a pilot: full rows that are bought first, and charged. What it tells of second moments is shrunk, as its rows
are few.
"""

import numpy as np

from budgetreg.data import Dataset
from budgetreg.data.values import as_values, means, panels
from budgetreg.metering.accessor import Table


def table_of(
    center: str, data: Dataset, train: np.ndarray, pilot: np.ndarray | None = None, *, scaled: bool = False
) -> Table:
    """Return the data as the learner meets them.

    Parameters
    ----------
    center : str
        What attributes count from: ``full``, their means over the training part; ``revealed``, their means in the
        pilot, from which running means go on; ``none``, and ``revealed`` without a pilot: where the data count from.
    data : Dataset
    train : ndarray of int
        Rows of the training part.
    pilot : ndarray of int, optional
        Rows of the pilot.
    scaled : bool
        Whether attributes are divided by their standard deviations in the pilot.
    """
    values, scale = as_values(data.X), data.scale
    known = np.empty((0, values.shape[1])) if pilot is None else values.rows(pilot).astype(np.float64) * scale
    unit = 1 / spreads(known) if scaled else 1.0
    scale = scale * unit if scaled else scale
    if center == "full":
        return Table(data.X, data.y, scale, means(values, train) * scale)
    if center == "revealed" and len(known):
        return Table(data.X, data.y, scale, known.mean(axis=0) * unit)
    return Table(data.X, data.y, scale, data.shift)


def spreads(X: np.ndarray) -> np.ndarray:
    """Return the standard deviations of the attributes in a few rows, shape (n, d), all above 0.

    Those that are the same in all rows are taken to be as spread as their absolute value, or the median attribute if
    they are 0 throughout; what rows this few cannot tell, more of them or `dataset.ranges` can.
    """
    told = X.std(axis=0, ddof=1)
    constant = told <= 1e-12 * np.abs(X).max(axis=0)
    usual = np.median(told[~constant]) if not constant.all() else 1.0
    size = np.abs(X).mean(axis=0)
    return np.where(constant, np.where(size > 0, size, usual), told)


def second_moments(table: Table, train: np.ndarray) -> np.ndarray:
    """Return ``E x_i^2`` over the rows `train`, shape (d,): what DDAERR and DDAELR are given."""
    total = np.zeros(table.d)
    for rows in panels(train, table.d):
        total += np.square(table.rows(rows)).sum(axis=0)
    return total / train.size


def pilot_moments(table: Table, pilot: np.ndarray) -> np.ndarray:
    """Return ``E x_i^2`` as a pilot tells it, shape (d,), shrunk to their mean as if that were one more of its rows."""
    squares = np.square(table.rows(pilot)).sum(axis=0)
    return (squares + squares.mean() / pilot.size) / (pilot.size + 1)

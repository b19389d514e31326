"""What is known of the attributes beforehand, from full rows of the training part: outside any budget, and said so."""

import numpy as np

from budgetreg.data import Dataset
from budgetreg.data.values import as_values, means, panels
from budgetreg.metering.accessor import Table


def table_of(center: str, data: Dataset, train: np.ndarray) -> Table:
    """Return the data as the learner meets them: if `center` is 'full', less their means over rows `train`."""
    shift = means(as_values(data.X), train) * data.scale if center == "full" else None
    return Table(data.X, data.y, data.scale, shift)


def second_moments(table: Table, train: np.ndarray) -> np.ndarray:
    """Return ``E x_i^2`` over the rows `train`, shape (d,): what DDAERR and DDAELR are given."""
    total = np.zeros(table.d)
    for rows in panels(train, table.d):
        total += np.square(table.rows(rows)).sum(axis=0)
    return total / train.size

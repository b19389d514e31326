"""The probability of the larger of two labels, given a regressor's score, from values that were paid for.

The model is that of linear discriminant analysis, of which least squares on a two-valued target is another form (Fisher
1936): given the label, the score ``s = b + <w, x - c>`` is normal, with one variance for both labels.

Let labels be -1 and +1, ``p`` the share of +1, so that ``Var y = 4 p (1 - p)`` and ``E y = 2 p - 1``. The residuals of
least squares do not correlate with the score: ``Cov(s, y) = Var s = R^2 Var y`` and ``E s = E y``, where ``R^2`` is the
share of the target's variance that the score explains. Hence the two means of the score are ``2 R^2`` apart,
``m1 = 2 p - 1 + 2 (1 - p) R^2`` and ``m0 = 2 p - 1 - 2 p R^2``, and its variance given the label is
``v = Var s - p (1 - p) (2 R^2)^2 = 4 p (1 - p) R^2 (1 - R^2)``. Bayes' rule gives

    log(P / (1 - P)) = log(p / (1 - p)) + (m1 - m0) (s - (m0 + m1) / 2) / v
                     = log(p / (1 - p)) + (1 - 2 p) / (2 p (1 - p)) + s / (2 p (1 - p) (1 - R^2)),

so that a regressor needs two more numbers, ``p`` and ``R^2``. Shrunk regressors, and those whose parameters were
cross-validated, have ``Cov(s, y) = Var s`` nearly; a regressor that overfits has not, and is surer than it should be.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

import numpy as np

from budgetreg.data.dataset import BLOCK_ENTRIES, row_blocks
from budgetreg.metering.table import Table

_Cells = tuple[np.ndarray, np.ndarray, np.ndarray]


def probability(scores: np.ndarray, share: float, explained: float) -> np.ndarray:
    """Return the probability of the label +1 for each score, shape (n,), between 0 and 1.

    Parameters
    ----------
    scores : ndarray of float, shape (n,)
    share : float
        Share p of the label +1, between 0 and 1.
    explained : float
        Share R^2 of the target's variance that the score explains, at least 0 and below 1. If it is 0, every
        probability is the share of the label.
    """
    if explained == 0:
        return np.full(len(scores), share)
    unit = 2 * share * (1 - share)
    logits = np.log(share / (1 - share)) + (1 - 2 * share) / unit + scores / (unit * (1 - explained))
    return 1 / (1 + np.exp(-np.clip(logits, -700, 700)))


def calibrated(y: np.ndarray, explained: float, examples: int) -> dict[str, np.ndarray]:
    """Return what `probability` needs, as arrays of a model; nothing if there is only one label.

    Parameters
    ----------
    y : ndarray of float, shape (n,)
        Labels of the training part, -1 and +1, which are free.
    explained : float
        An estimate of R^2; it is kept below ``1 - 1 / examples``, as so few cannot show more.
    examples : int
        Examples that were seen.
    """
    share = float((y > 0).mean())
    if not 0 < share < 1:
        return {}
    return {"share": np.array(share), "explained": np.array(min(max(explained, 0.0), 1 - 1 / max(examples, 2)))}


def explained_by_folds(losses: np.ndarray, y: np.ndarray) -> float:
    """Return R^2 by the mean squared errors (F,) on held-out folds, which tuning has paid for."""
    return 1 - float(losses.mean()) / float(y.var())


def explained_by_cells(
    table: Table, model: Mapping[str, np.ndarray], rows: np.ndarray, cells: np.ndarray, variance: float
) -> float:
    """Return R^2 as ``Cov(s, y) / Var y``, from the covariances of single attributes with the target.

    The covariance of attribute i is that over the examples in which it was seen, so that no example has to be seen in
    full. As the regressor was fitted to the same values, one standard error is subtracted.

    Parameters
    ----------
    table : Table
        The data, of which only rows and cells are read.
    model : mapping
        ``w`` and ``c``, both of shape (d,), in units of the stored values.
    rows : ndarray of int
        Rows that were seen in full.
    cells : ndarray of int
        Other cells that were seen, as ``row * d + attribute``.
    variance : float
        That of the labels.
    """
    w, d, n = model["w"], table.d, len(table.y)
    sums = np.zeros((4, d))  # by attribute: number, sum of values, sum of targets, sum of products
    for row, attribute, value in _blocks(table, model["c"], rows, cells):
        y = table.y[row]
        for i, weights in enumerate((np.ones(value.size), value, y, value * y)):
            sums[i] += np.bincount(attribute, weights, d)
    count = np.maximum(sums[0], 1)
    mean_value, mean_target = sums[1] / count, sums[2] / count
    terms, seen = np.zeros(n), np.zeros(n, dtype=bool)  # of each example, which add up to the covariance
    for row, attribute, value in _blocks(table, model["c"], rows, cells):
        product = (value - mean_value[attribute]) * (table.y[row] - mean_target[attribute])
        terms += np.bincount(row, w[attribute] / count[attribute] * product, n)
        seen[row] = True
    m = np.count_nonzero(seen)
    if m < 2:
        return 0.0
    error = np.sqrt(m * terms[seen].var(ddof=1))
    return float((terms.sum() - error) / variance)


def _blocks(table: Table, c: np.ndarray, rows: np.ndarray, cells: np.ndarray) -> Iterator[_Cells]:
    """Yield rows, attributes and values less c of all cells that have a value."""
    stored, d = replace(table, scale=1.0, shift=None), table.d
    whole = (np.repeat(block, d) * d + np.tile(np.arange(d), block.size) for block in row_blocks(rows, d))
    single = (cells[start : start + BLOCK_ENTRIES] for start in range(0, cells.size, BLOCK_ENTRIES))
    for some in chain(whole, single):
        row, attribute = np.divmod(some, d)
        if table.available is not None:
            there = table.available[row, attribute]
            row, attribute = row[there], attribute[there]
        yield row, attribute, stored.entries(row, attribute) - c[attribute]

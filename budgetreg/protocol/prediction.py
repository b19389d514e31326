"""What is predicted: from at most `predict_k` attributes, and the probability of the larger of two labels.

**A budget at prediction.** A learner that models attributes and target jointly, or estimates their moments from what it
stores, predicts ``E[y | x_S]``, where forward selection in these moments chooses the set S. Of any other learner the
weights of S are kept, the largest ``|w_i| s_i`` with the standard deviations s of the values that it saw; where an
intercept is learned, their means replace the other attributes.

**Probabilities** follow from a regressor's score, by values that were paid for. The model is that of linear
discriminant analysis, of which least squares on a two-valued target is another form (Fisher 1936): given the label, the
score ``s = b + <w, x - c>`` is normal, with one variance for both labels.

Let labels be -1 and +1, ``p`` the share of +1, so that ``Var y = 4 p (1 - p)`` and ``E y = 2 p - 1``. The residuals of
least squares do not correlate with the score: ``Cov(s, y) = Var s = R^2 Var y`` and ``E s = E y``, where ``R^2`` is the
share of the target's variance that the score explains. Hence the two means of the score are ``2 R^2`` apart,
``m1 = 2 p - 1 + 2 (1 - p) R^2`` and ``m0 = 2 p - 1 - 2 p R^2``, and its variance given the label is
``v = Var s - p (1 - p) (2 R^2)^2 = 4 p (1 - p) R^2 (1 - R^2)``. Bayes' rule gives

    log(P / (1 - P)) = log(p / (1 - p)) + (m1 - m0) (s - (m0 + m1) / 2) / v
                     = log(p / (1 - p)) + (1 - 2 p) / (2 p (1 - p)) + s / (2 p (1 - p) (1 - R^2)),

so that a regressor needs two more numbers, ``p`` and ``R^2``. Of an incomplete row the score is its expectation given
what is present, which explains less: of ``Var s``, the part ``w'V w`` is left, V the covariance of x given that. Shrunk
regressors, and those whose parameters were cross-validated, have ``Cov(s, y) = Var s`` nearly; one that overfits has
not, and is surer than it should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from budgetreg.algorithms.conditional import conditional_variances
from budgetreg.data.dataset import BLOCK_ENTRIES, row_blocks
from budgetreg.metering.table import Origin, Table

_STRENGTH = 1e-9
"""Ridge by which forward selection is well defined if attributes determine each other, in units of their variances."""


class Narrowed(NamedTuple):
    """A regressor that depends on few attributes."""

    outputs: np.ndarray
    """Shape (d, 1)."""
    origin: Origin
    attributes: np.ndarray
    """The attributes on which it depends, sorted."""


def narrowed(
    outputs: np.ndarray,
    setting: int,
    origin: Origin,
    most: int,
    seen: Callable[[], tuple[np.ndarray, np.ndarray, int]],
    *,
    intercept: bool,
) -> Narrowed:
    """Return the regressor of a setting on at most as many attributes as a prediction may see.

    Parameters
    ----------
    outputs : ndarray of float, shape (d, G)
        Regressors.
    setting : int
    origin : Origin
    most : int
        Attributes that a prediction may see.
    seen : callable
        Returns the means and the standard deviations (d,) of the values that the learner saw, 0 where it saw none,
        and their number.
    intercept : bool
        Whether an intercept is learned.
    """
    w = np.zeros((len(outputs), 1))
    moments = origin.moments or origin.selection
    if moments is not None:
        from budgetreg.algorithms.fixed_subset import forward_selection  # here, as few runs need it

        mean, C = moments()
        # Estimated moments are as uncertain as those of as many values; a model has a prior.
        strength = _STRENGTH if origin.moments is not None else most * len(w) / max(seen()[2], 1)
        variances = C.diagonal()[:-1]
        there = variances > 0 if origin.left_out is None else (variances > 0) & ~origin.left_out
        candidates = [[int(i)] for i in np.flatnonzero(there)]
        chosen = forward_selection(C[:-1, :-1], C[:-1, -1], strength, min(most, len(candidates)), candidates)
        S = np.sort(np.array(chosen, dtype=np.intp))
        A = C[np.ix_(S, S)]
        w[S, 0] = np.linalg.solve(A + strength * np.diag(A.diagonal()), C[S, -1])
        return Narrowed(w, origin._replace(intercept=float(mean[-1] - mean[S] @ w[S, 0])), S)
    mean, deviation, _ = seen()
    full = outputs[:, setting]
    S = np.sort(np.argsort(-np.abs(full) * deviation, kind="stable")[:most])
    w[S, 0] = full[S]
    b = float(origin.intercept[setting] if isinstance(origin.intercept, np.ndarray) else origin.intercept)
    if intercept and origin.shift is None:
        b += float(mean @ (full - w[:, 0]))
    return Narrowed(w, origin._replace(intercept=b), S)


def spread(table: Table, rows: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the means and the standard deviations (d,) of values, 0 where there are none, and their number.

    Parameters
    ----------
    table : Table
    rows : ndarray of int
        Rows all of whose values count.
    cells : ndarray of int
        Further values, ``row * d + attribute``.
    """
    X, attributes = table.rows(rows), cells % table.d
    values = table.entries(cells // table.d, attributes)
    count = len(rows) + np.bincount(attributes, minlength=table.d)
    mean = (X.sum(axis=0) + np.bincount(attributes, values, table.d)) / np.maximum(count, 1)
    squares = np.square(X - mean).sum(axis=0) + np.bincount(attributes, np.square(values - mean[attributes]), table.d)
    return mean, np.sqrt(squares / np.maximum(count, 1)), int(count.sum())


def probability(scores: np.ndarray, share: float, explained: float | np.ndarray) -> np.ndarray:
    """Return the probability of the label +1 for each score, shape (n,), between 0 and 1.

    Parameters
    ----------
    scores : ndarray of float, shape (n,)
    share : float
        Share p of the label +1, between 0 and 1.
    explained : float or ndarray of float, shape (n,)
        Share R^2 of the target's variance that the score explains, at least 0 and below 1. Where it is 0, the
        probability is the share of the label.
    """
    if not np.any(explained):
        return np.full(len(scores), share)
    unit = 2 * share * (1 - share)
    logits = np.log(share / (1 - share)) + (1 - 2 * share) / unit + scores / (unit * (1 - explained))
    return np.where(explained, 1 / (1 + np.exp(-np.clip(logits, -700, 700))), share)


def explained_of_rows(explained: float, covariance: np.ndarray, w: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return the share R^2 that the scores of incomplete rows explain, shape (n,).

    Parameters
    ----------
    explained : float
        That of complete rows.
    covariance : ndarray of float, shape (d, d)
        Of the attributes.
    w : ndarray of float, shape (d,)
    X : ndarray of float, shape (n, d)
        NaN marks what is unknown.
    """
    signal = float(w @ covariance @ w)
    hidden = conditional_variances(covariance, w, X)
    return explained * np.clip(1 - hidden / (signal or 1.0), 0.0, 1.0)


def calibrated(y: np.ndarray, explained: float, examples: int) -> dict[str, np.ndarray]:
    """Return what `probability` needs, as arrays of a model. If there is only one label, nothing is explained.

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
    explained = min(max(explained, 0.0), 1 - 1 / max(examples, 2)) if 0 < share < 1 else 0.0
    return {"share": np.array(share), "explained": np.array(explained)}


def explained_by_folds(losses: np.ndarray, y: np.ndarray) -> float:
    """Return R^2 by the mean squared errors (F,) on held-out folds, which tuning has paid for; 0 for equal targets."""
    variance = float(y.var())
    return 1 - float(losses.mean()) / variance if variance else 0.0


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


def _blocks(
    table: Table, c: np.ndarray, rows: np.ndarray, cells: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
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

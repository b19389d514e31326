"""A budget at prediction: regressors of at most `predict_k` attributes, chosen from what was learned and paid for.

A learner that models attributes and target jointly, or estimates their moments from what it stores, predicts
``E[y | x_S]``, where forward selection in these moments chooses the set S. Of any other learner the weights of S are
kept, the largest ``|w_i| s_i`` with the standard deviations s of the values that it saw; where an intercept is
learned, their means replace the other attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

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

"""Errors of regressors on held-out examples, which are seen in full: evaluation is outside the budget.

Predictions are matrix products whose shapes depend on the configuration alone, never on how replicas were batched,
so that their last bits do not either.
"""

import numpy as np

from budgetreg.data.values import row_blocks
from budgetreg.metering.table import Table


def squared_error(table: Table, index: np.ndarray, W: np.ndarray, intercept: np.ndarray | float = 0.0) -> np.ndarray:
    """Mean squared error ``mean((intercept + <w, x> - y)^2)`` of each regressor.

    Parameters
    ----------
    table : Table
        The data.
    index : ndarray of int, shape (n,)
        Held-out rows.
    W : ndarray of float, shape (d, G)
        Regressors.
    intercept : float or ndarray of float, shape (G,)

    Returns
    -------
    ndarray of float, shape (G,)
    """
    total = np.zeros(W.shape[1])
    for rows in row_blocks(index, table.d):
        total += np.square(table.rows(rows) @ W + intercept - table.y[rows, None]).sum(axis=0)
    return total / index.size


def svr_loss(
    table: Table, index: np.ndarray, W: np.ndarray, delta: float, intercept: np.ndarray | float = 0.0
) -> np.ndarray:
    """Mean loss of support-vector regression, ``mean(max(|intercept + <w, x> - y| - delta, 0))``, of each regressor.

    Parameters and result as in `squared_error`, in units of the target.
    """
    total = np.zeros(W.shape[1])
    for rows in row_blocks(index, table.d):
        total += np.maximum(np.abs(table.rows(rows) @ W + intercept - table.y[rows, None]) - delta, 0).sum(axis=0)
    return total / index.size


def error_columns(
    table: Table,
    index: np.ndarray,
    w: np.ndarray,
    two_valued: bool,
    delta: float | None = None,
    intercept: float = 0.0,
    constant: float = 0.0,
) -> dict[str, float | None]:
    """Test columns of the curve for one regressor.

    Parameters
    ----------
    table : Table
        The data.
    index : ndarray of int, shape (n,)
        Test rows.
    w : ndarray of float, shape (d,)
        Regressor.
    two_valued : bool
        Whether targets are -1 and +1.
    delta : float, optional
        That of the SVR loss, for learners of it.
    intercept : float
        What is predicted beside ``<w, x>``.
    constant : float
        A prediction without attributes, with which the error is compared.

    Returns
    -------
    dict
        ``test_mse``; ``test_relative``, divided by that of the constant, ``mean((y - c)^2)``; ``test_error_rate``, the
        fraction of signs that are wrong, None unless targets are two-valued; ``test_svr_loss`` if there is a delta.
    """
    y = table.y[index]
    predictions = np.concatenate([table.rows(rows) @ w + intercept for rows in row_blocks(index, table.d)])
    mse = float(np.square(predictions - y).mean())
    error_rate = float((np.sign(predictions) != y).mean()) if two_valued else None
    columns = {
        "test_mse": mse,
        "test_relative": mse / float(np.square(y - constant).mean()),
        "test_error_rate": error_rate,
    }
    if delta is not None:
        columns["test_svr_loss"] = float(np.maximum(np.abs(predictions - y) - delta, 0).mean())
    return columns

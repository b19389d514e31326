"""What a figure's axis, or a sweep, can run over, by name: columns of the curves, keys, and their combinations."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from budgetreg.config.nested import flatten
from budgetreg.errors import ConfigError, DataError, nearest
from budgetreg.results.schema import COST, PAID_COST, RUNS
from budgetreg.results.series import Series


def _components(series: Series) -> int:
    return int(series.config["algo"]["n_components"])


def _paid(series: Series, curve: pd.DataFrame) -> np.ndarray:
    """Return what pilot, tuning and final run pay for: what tuning has revealed or seen in full, it paid beforehand."""
    cells, rows = _of_tuning(series, "cells_tuning", "rows_full")
    return np.maximum(curve["attributes"].to_numpy(dtype=float) + cells, rows * series.d)


def _paid_cost(series: Series, curve: pd.DataFrame) -> np.ndarray:
    """Return the same in money."""
    cells, rows = _of_tuning(series, "cost_cells_tuning", "cost_rows_full")
    return np.maximum(_cost(series, curve) + cells, rows)


def _of_tuning(series: Series, *columns: str) -> tuple[float, ...]:
    """Return the means over repetitions of what runs tell of their tuning."""
    runs = series.runs.reindex(columns=list(columns))
    if runs.empty or runs.isna().any(axis=None):
        raise DataError(
            f"{series.folder}: what tuning of {series.label} paid for is not known, as {RUNS} does not count cells: "
            "run it again, into another folder"
        )
    return tuple(runs.mean())


def _cost(series: Series, curve: pd.DataFrame) -> np.ndarray:
    if COST not in curve:
        raise ConfigError(f"x: {COST}: {series.label or series.algo} has no prices (dataset.costs)")
    return curve[COST].to_numpy(dtype=float)


# Along a curve: from a series and its mean curve.
ALONG: Mapping[str, Callable[[Series, pd.DataFrame], np.ndarray]] = {
    "attributes": lambda series, curve: curve["attributes"].to_numpy(dtype=float),
    "paid": _paid,
    "examples": lambda series, curve: curve["examples"].to_numpy(dtype=float),
    COST: _cost,
    PAID_COST: _paid_cost,
    # m (r/d)^2/n: what the excess of a subspace depends on, if Theorem 7 of Gonen et al. 2016 is sharp.
    "effective_examples": lambda series, curve: (
        curve["examples"].to_numpy(dtype=float) * (series.k / series.d) ** 2 / _components(series)
    ),
}


def can_be_had(x: np.ndarray) -> np.ndarray:
    """Return which checkpoints of a curve can be had, bool: of those at the same place the last.

    Parameters
    ----------
    x : ndarray, shape (C,)
        Where they lie, never falling. Several lie at one place where what tuning saw in full pays for all of them.
    """
    return np.append(np.diff(x) > 0, True)


# Of a whole series.
OF: Mapping[str, Callable[[Series], float]] = {
    "k": lambda series: float(series.k),
    "d": lambda series: float(series.d),
    "d/k": lambda series: series.d / series.k,
}


def along(name: str, series: Series, curve: pd.DataFrame) -> np.ndarray:
    """Return a variable at each checkpoint, whose mean attributes and examples are given.

    Raises
    ------
    ConfigError
        If there is no such variable, or the series has no prices.
    DataError
        If its runs, older ones, do not tell what was paid.
    """
    if name not in ALONG:
        raise ConfigError(f"x: {name}: no such variable{nearest(name, ALONG)}; variables: {', '.join(ALONG)}")
    return ALONG[name](series, curve)


def of(name: str, series: Series) -> object:
    """Return a variable of a series: one of `OF`, or a key of its configuration such as ``dataset.alpha``.

    Raises
    ------
    ConfigError
        If it has no such variable.
    """
    if name in OF:
        return OF[name](series)
    flat = flatten(series.config)
    if name not in flat:
        raise ConfigError(f"{name}: no such key{nearest(name, flat)} or variable ({', '.join(OF)})")
    return flat[name]

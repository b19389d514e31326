"""Variables of a figure's axes and of sweeps, by name: columns of the curves, keys, and combinations of them."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from budgetreg.config.nested import flatten
from budgetreg.errors import ConfigError, DataError, nearest
from budgetreg.runs.schema import COST, PAID_COST, RUNS
from budgetreg.runs.series import Series


def _paid(series: Series, curve: pd.DataFrame) -> np.ndarray:
    """Return what pilot, tuning and final run pay for; what tuning revealed or saw in full was paid before them."""
    cells, rows = _of_tuning(series, "cells_tuning", "rows_full")
    return np.maximum(_column("attributes")(series, curve) + cells, rows * (series.full_row or series.d))


def _paid_cost(series: Series, curve: pd.DataFrame) -> np.ndarray:
    """Return the same in money."""
    cells, rows = _of_tuning(series, "cost_cells_tuning", "cost_rows_full")
    return np.maximum(_cost(series, curve) + cells, rows)


def _of_tuning(series: Series, *columns: str) -> tuple[float, ...]:
    """Return the means over repetitions of columns about tuning."""
    runs = series.runs.reindex(columns=list(columns))
    if runs.empty or runs.isna().any(axis=None):
        raise DataError(
            f"{series.folder}: what tuning of {series.label} paid for is not known, because {RUNS} does not count "
            "cells: run it again, into another folder"
        )
    return tuple(runs.mean())


def _cost(series: Series, curve: pd.DataFrame) -> np.ndarray:
    if COST not in curve:
        raise ConfigError(f"x: {COST}: {series.label or series.algo} has no prices: set dataset.costs")
    return _column(COST)(series, curve)


def _column(name: str) -> Callable[[Series, pd.DataFrame], np.ndarray]:
    return lambda series, curve: curve[name].to_numpy(dtype=float)


def _effective_examples(series: Series, curve: pd.DataFrame) -> np.ndarray:
    """Return m (r/d)^2/n, which decides the excess of a subspace if Theorem 7 of Gonen et al. 2016 is sharp."""
    return (
        _column("examples")(series, curve)
        * (series.attributes_per_example / series.d) ** 2
        / int(series.config["algo"]["n_components"])
    )


ALONG: Mapping[str, Callable[[Series, pd.DataFrame], np.ndarray]] = {
    "attributes": _column("attributes"),
    "paid": _paid,
    "examples": _column("examples"),
    COST: _cost,
    PAID_COST: _paid_cost,
    "effective_examples": _effective_examples,
}
"""Variables along a curve, as functions of a series and its mean curve."""

OF: Mapping[str, Callable[[Series], float]] = {
    "k": lambda series: series.attributes_per_example,
    "d": lambda series: float(series.d),
    "d/k": lambda series: series.d / series.attributes_per_example,
}
"""Variables of a whole series."""


def along(name: str, series: Series, curve: pd.DataFrame) -> np.ndarray:
    """Return a variable at each checkpoint of a series' mean curve.

    Raises
    ------
    ConfigError
        If there is no such variable, or the series has no prices.
    DataError
        If its runs do not record what was paid.
    """
    if name not in ALONG:
        raise ConfigError(f"x: {name}: no such variable{nearest(name, ALONG)}; variables: {', '.join(ALONG)}")
    return ALONG[name](series, curve)


def of(name: str, series: Series) -> object:
    """Return a variable of a whole series: one of `OF`, or a key of its configuration such as ``dataset.alpha``.

    Raises
    ------
    ConfigError
        If there is no such variable.
    """
    if name in OF:
        return OF[name](series)
    flat = flatten(series.config)
    if name not in flat:
        raise ConfigError(f"{name}: no such key{nearest(name, flat)} or variable ({', '.join(OF)})")
    return flat[name]


def attainable(x: np.ndarray) -> np.ndarray:
    """Return which checkpoints are the last at their place, bool.

    Parameters
    ----------
    x : ndarray, shape (C,)
        Where they lie, in increasing order. Several lie at the same place if what tuning saw in full pays for them all.
    """
    return np.append(np.diff(x) > 0, True)

"""The bill of a run, tuning included."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd  # which is slow to load

    from budgetreg.runs.reading import Results
    from budgetreg.runs.series import Series

_ATTRIBUTES = ("attributes_total", "cells_tuning", "rows_full")
_MONEY = ("cost_total", "cost_cells_tuning", "cost_rows_full")
"""Columns of ``runs.csv``: paid for learning, for other cells of tuning, and for rows seen in full."""


@dataclass(frozen=True)
class Payments:
    """The payments of some repetitions together.

    A cell that was bought can be used again: what tuning revealed is counted without the cells that the final run has
    revealed, too, and the sum is at least that of the rows that tuning saw in full.

    Attributes
    ----------
    final, tuning, rows : float
        Paid for the final run, for other cells that candidates and folds revealed, and for rows seen in full.
    total : float
        In all.
    """

    final: float
    tuning: float
    rows: float
    total: float


def attributes_paid(results: "Results", repetition: int | None = None) -> Payments | None:
    """Return what repetitions of a run, all or one, have paid for, in attributes; None if it was not recorded."""
    data = results.manifest["data"]
    full_row = data.get("full_row", data["d"])  # fewer, if some attributes are free or bought together
    return _bill(_asked(results, repetition), _ATTRIBUTES, full_row)


def money_paid(results: "Results", repetition: int | None = None) -> Payments | None:
    """Return the same in money; None if there are no prices."""
    return _bill(_asked(results, repetition), _MONEY, 1)


def series_paid(series: "Series") -> tuple[Payments | None, Payments | None]:
    """Return what all repetitions of a series have paid for, in attributes and in money; None as above."""
    return _bill(series.runs, _ATTRIBUTES, series.full_row or series.d), _bill(series.runs, _MONEY, 1)


def _asked(results: "Results", repetition: int | None) -> "pd.DataFrame":
    wanted = results.curves["repetition"] if repetition is None else [repetition]
    return results.runs[results.runs["repetition"].isin(wanted)]


def _bill(runs: "pd.DataFrame", columns: Sequence[str], unit_of_rows: int) -> Payments | None:
    values = runs.reindex(columns=list(columns)).to_numpy(dtype=float)
    if not values.size or np.isnan(values).any():
        return None
    final, tuning, rows = values[:, 0], values[:, 1], values[:, 2] * unit_of_rows
    total = np.maximum(final + tuning, rows)
    return Payments(*(float(part.sum()) for part in (final, tuning, rows, total)))

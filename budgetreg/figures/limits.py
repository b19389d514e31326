"""What the y axis of a panel shows, and what lies outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

import numpy as np
import pandas as pd

from budgetreg.figures.axes import RELATIVE, Axis

_ROUNDING = 1e-12  # relative to the largest value of a logarithmic axis


@dataclass(frozen=True)
class Range:
    """What a panel's y axis shows.

    Attributes
    ----------
    low, high
        Limits of the axis.
    log
        Whether the axis is logarithmic.
    clipped
        Number of mean values above `high` or undefined.
    largest
        Largest of them; NaN if there are none.
    below
        Number of mean values that lie below a logarithmic axis, zeros among them.
    """

    low: float
    high: float
    log: bool
    clipped: int
    largest: float
    below: int = 0


def y_range(
    curves: Sequence[pd.DataFrame], y: Axis = RELATIVE, may_be_log: bool = True, published: Sequence[float] = ()
) -> Range:
    """Choose what the y axis shows of some mean curves.

    Online learners can be far worse than seeing no attribute on their first examples. The axis ends at twice
    the worst value (that of seeing none included) of the later half of the checkpoints, so that such beginnings do
    not flatten what matters. It is logarithmic if the values shown span more than a decade and a half. An axis that is
    logarithmic in any case shows all values that are more than rounding.

    Parameters
    ----------
    curves
        As `budgetreg.results.series.mean_curve` returns them.
    y
        What is drawn of them.
    may_be_log
        Whether an axis that is not logarithmic in any case becomes so by its values.
    published
        Values of published curves: an axis that is not logarithmic in any case shows those that do not pass its end.

    Returns
    -------
    Range
    """
    if y.log:
        return _log_range(np.concatenate([curve[y.column].to_numpy() for curve in curves]))
    zero = [] if y.zero is None else [y.zero]
    late = np.concatenate([*(curve[y.column].to_numpy()[len(curve) // 2 :] for curve in curves), zero])
    means = np.concatenate([curve[y.column].to_numpy() for curve in curves])
    cap = max(2 * late[np.isfinite(late)].max(initial=0), y.most) or 1.0
    shown = means[means <= cap]
    away = means[~(means <= cap)]
    largest = float(np.fmax.reduce(away)) if away.size else float("nan")
    inside = np.concatenate([shown, zero, [value for value in published if value <= cap]])
    inside = inside if inside.size else np.array([0.0, 1.0])
    low, high = inside.min(), inside.max()
    if may_be_log and low > 0 and log10(high / low) > 1.5:
        return Range(low / 1.3, cap if away.size else high * 1.3, True, away.size, largest)
    half_bands = np.concatenate([curve[f"{y.column}_sd"].fillna(0).to_numpy() for curve in curves])
    half_bands = half_bands[means <= cap]
    low = max(0.0, (shown - half_bands).min(initial=low))
    high = min(cap, (shown + half_bands).max(initial=high))
    margin = 0.06 * max(high - low, 0.1 * (y.zero or high))
    top = cap if away.size else high + 1.5 * margin
    return Range(max(0.0, low - 1.5 * margin), top, False, away.size, largest)


def _log_range(means: np.ndarray) -> Range:
    known = means[np.isfinite(means)]
    shown = known[known > _ROUNDING * known.max(initial=0)]
    low, high = (shown.min(), shown.max()) if shown.size else (1.0, 1.0)
    return Range(low / 1.3, high * 1.3, True, means.size - known.size, float("nan"), known.size - shown.size)

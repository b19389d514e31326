"""Choose the range of a panel's y axis, and count the values outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

import numpy as np
import pandas as pd

from budgetreg.figures.axes import RELATIVE, Axis

_ROUNDING = 1e-12  # relative to the largest value of a logarithmic axis


@dataclass(frozen=True)
class Range:
    """The range of a y axis.

    Attributes
    ----------
    low, high : float
        Limits of the axis.
    log : bool
        Whether the axis is logarithmic.
    clipped : int
        Number of mean values above `high` or undefined.
    largest : float
        Largest of these values; NaN if there are none.
    below : int
        Number of mean values below a logarithmic axis, including zeros.
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
    """Return the range of the y axis for some mean curves.

    On their first examples, online learners can be far worse than the predictor that sees no attribute. The axis ends
    at twice the worst value of the later half of the checkpoints, or of that predictor, so that the rest of the curves
    stays readable. It is logarithmic if its values span more than a decade and a half. An axis that is always
    logarithmic shows all values that are more than rounding.

    Parameters
    ----------
    curves : sequence of DataFrame
        Mean curves, as `budgetreg.results.series.mean_curve` returns them.
    y : Axis
    may_be_log : bool
        Whether the values may make the axis logarithmic.
    published : sequence of float
        Values of published curves; an axis that is not always logarithmic shows those that do not pass its end.

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

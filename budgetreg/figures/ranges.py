"""The range of the y axis: what the curves need, without the first values of online learners."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

import numpy as np
import pandas as pd

from budgetreg.figures.axes import RELATIVE, Axis

LOW, HIGH = "low", "high"
"""Columns of a mean curve: the edges of its band, NaN where it has none."""
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
    rounding : float
        Values of an axis that is always logarithmic are shown if they are larger than this.
    """

    low: float
    high: float
    log: bool
    rounding: float = 0.0

    def above(self, curves: Sequence[pd.DataFrame], y: Axis) -> tuple[int, float]:
        """Return how many mean values lie above the axis or are undefined, and the largest of them."""
        means = _means(curves, y)
        away = means[~(means <= self.high)]
        return away.size, float(np.fmax.reduce(away)) if away.size else float("nan")

    def below(self, curves: Sequence[pd.DataFrame], y: Axis) -> int:
        """Return how many mean values an axis that is always logarithmic cannot show, as they are rounding or 0."""
        return int((_means(curves, y) <= self.rounding).sum()) if y.log else 0


def y_range(
    curves: Sequence[pd.DataFrame],
    y: Axis = RELATIVE,
    may_be_log: bool = True,
    published: Sequence[float] = (),
    top: float | None = None,
    bottom: float | None = None,
) -> Range:
    """Return the range of the y axis for some mean curves.

    On their first examples, online learners can be far worse than the predictor that sees no attribute. The axis ends
    at twice the worst value of the later half of the checkpoints, or of that predictor, so that the rest of the curves
    stays readable. It is logarithmic if its values span more than a decade and a half. An axis that is always
    logarithmic shows all values that are more than rounding.

    Parameters
    ----------
    curves : sequence of DataFrame
        Mean curves, as `budgetreg.runs.series.mean_curve` returns them, with the columns `LOW` and `HIGH`.
    y : Axis
    may_be_log : bool
        Whether the values may make the axis logarithmic.
    published : sequence of float
        Values of published curves; an axis that is not always logarithmic shows those that do not pass its end.
    top : float, optional
        Where the axis ends; None: as described above.
    bottom : float, optional
        Where a logarithmic axis begins, and the least that another one shows; None: below all values.

    Returns
    -------
    Range
    """
    means = _means(curves, y)
    zero = [] if y.zero is None else [y.zero]
    if y.log:
        known = means[np.isfinite(means)]
        rounding = _ROUNDING * known.max(initial=0)
        shown = np.concatenate([known[known > rounding], zero, published])
        low, high = (shown.min(), shown.max()) if shown.size else (1.0, 1.0)
        return Range(bottom or low / 1.3, top or high * 1.3, True, rounding)
    late = np.concatenate([*(curve[y.column].to_numpy()[len(curve) // 2 :] for curve in curves), zero])
    cap = top or max(2 * late[np.isfinite(late)].max(initial=0), y.most) or 1.0
    shown = means[means <= cap]
    inside = np.concatenate([shown, zero, [value for value in published if value <= cap]])
    inside = inside if inside.size else np.array([0.0, 1.0])
    low, high = inside.min(), inside.max()
    ends_at_cap = top is not None or shown.size < means.size
    least = max(low, bottom or 0.0)
    if may_be_log and least > 0 and log10(high / least) > 1.5:
        return Range(bottom or low / 1.3, cap if ends_at_cap else high * 1.3, True)
    edges = np.concatenate([curve[[LOW, HIGH]].to_numpy(dtype=float)[curve[y.column] <= cap] for curve in curves])
    low = max(0.0, np.nanmin(edges, initial=low))
    high = min(cap, np.nanmax(edges, initial=high))
    margin = 0.06 * max(high - low, 0.1 * (y.zero or high))
    return Range(max(bottom or 0.0, low - 1.5 * margin), cap if ends_at_cap else high + 1.5 * margin, False)


def _means(curves: Sequence[pd.DataFrame], y: Axis) -> np.ndarray:
    return np.concatenate([curve[y.column].to_numpy(dtype=float) for curve in curves])

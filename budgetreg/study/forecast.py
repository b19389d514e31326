"""Forecasts of the error when more values are bought.

The reducible part of the error shrinks as in `budgetreg.study.learning_curve`, the rest stays. It is assumed
that further values are bought at random, first of the examples of which least was bought. Well chosen orders bring
more.
"""

from collections.abc import Sequence

import numpy as np

from budgetreg.data.groups import Groups
from budgetreg.streams import generator
from budgetreg.study.error import Interval
from budgetreg.study.joint import JointModel
from budgetreg.study.learning_curve import LearningCurve

_GAIN, _OTHER = 0.3, 0.05
"""Standard errors of a forecast beyond that of the error now: a share of the gain, on a logarithmic scale, and what the
forecast for little money is off."""


def forecast(
    model: JointModel,
    values: np.ndarray,
    targets: np.ndarray,
    error: Interval,
    spendings: Sequence[float],
    prices: np.ndarray,
    *,
    groups: Groups | None = None,
    per_example: int | None = None,
    seed: int = 0,
) -> list[Interval]:
    """Return the errors with all attributes after further spendings, with intervals of 90 %.

    Parameters
    ----------
    model : JointModel
        What was learned from the values.
    values : ndarray of float, shape (n, d)
        NaN for values that were not bought.
    targets : ndarray of float, shape (n,)
        NaN for unknown targets. Values are bought of examples with a target alone.
    error : Interval
        The error now, see `budgetreg.study.error.estimate_error`.
    spendings : sequence of float
        What is spent in addition, at least 0 each. What exceeds the price of all that is left changes nothing.
    prices : ndarray of float, shape (d,)
        What attributes cost, at least 0; of a group, the price of its first attribute counts, once.
    groups : Groups, optional
        Attributes that are bought together; by default each is alone.
    per_example : int, optional
        Most attributes, or groups, of an example; by default all.
    seed : int
        Of the values that are taken to be bought.
    """
    labelled = ~np.isnan(targets)
    known = ~np.isnan(values[labelled])
    curve = LearningCurve(model, known, float(np.var(targets[labelled])))
    if not known.any():
        return [error for _ in spendings]
    rng = generator("values of a forecast", seed, len(known))
    order = _order(known, prices, groups, per_example, rng)
    later = [_bought(known, order, prices, groups, spending) for spending in spendings]
    ratios = curve.ratios(later)
    return [
        Interval.around(error.estimate * float(r), float(np.hypot(error.relative, _OTHER + _GAIN * abs(np.log(r)))))
        for r in ratios
    ]


def _order(
    known: np.ndarray, prices: np.ndarray, groups: Groups | None, per_example: int | None, rng: np.random.Generator
) -> np.ndarray:
    """Return what is left to buy, in order, as examples and heads of groups, shape (m, 2)."""
    n, d = known.shape
    heads = np.arange(d) if groups is None else groups.head_of
    units, unit_of = np.unique(heads, return_inverse=True)
    whole = np.ones((n, len(units)), dtype=bool)
    for j in range(d):
        whole[:, unit_of[j]] &= known[:, j]
    draws = np.where(whole, -1.0, rng.random(whole.shape))
    # How many an example has once this one is bought: those it has come first, the others in random order.
    level = draws.argsort(axis=1).argsort(axis=1) + 1
    example, unit = np.nonzero(~whole & (level <= (per_example or len(units))))
    order = np.lexsort((rng.random(len(example)), level[example, unit], prices[units[unit]] > 0))
    return np.stack([example, units[unit]], axis=1)[order]


def _bought(
    known: np.ndarray, order: np.ndarray, prices: np.ndarray, groups: Groups | None, spending: float
) -> np.ndarray:
    """Return what is known after a spending, bool of shape (n, d)."""
    costs = np.cumsum(prices[order[:, 1]])
    example, head = order[: np.searchsorted(costs, spending * (1 + 1e-9), side="right")].T
    later = known.copy()
    later[example, head] = True
    if groups is None:
        return later
    chosen = np.zeros_like(known)
    chosen[example, head] = True
    return np.asarray(later | chosen[:, groups.head_of])

"""Forecasts of the error when more values are bought, which a study keeps together with its estimates of the error.

The reducible part of the error shrinks by the learning curve of `budgetreg.study.error`, the rest stays. It is assumed
that further values are bought at random, first of the examples of which least was bought. Well chosen orders bring
more.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budgetreg.common.streams import generator
from budgetreg.data.dataset import Groups
from budgetreg.study.error import ENOUGH, ErrorEstimate, Interval, LearningCurve, estimate_error
from budgetreg.study.file import StudyFile
from budgetreg.study.model import JointModel, fitted
from budgetreg.study.state import State

_FURTHER = (0.5, 1.0, 2.0)
"""For how many times the money that was spent there is a forecast."""


@dataclass(frozen=True)
class Estimates:
    """Estimates of the error of a study at a moment.

    Attributes
    ----------
    spent : float
        What was charged by then.
    error : ErrorEstimate
        The error, relative to that of the mean target.
    further : sequence of (float, Interval)
        Further spendings, at most the price of all that can still be bought, and the errors with all attributes after
        them.
    """

    spent: float
    error: ErrorEstimate
    further: Sequence[tuple[float, Interval]]


def estimates_of(state: State) -> Estimates:
    """Compute the estimates of a study.

    Raises
    ------
    DataError
        If too little is known.
    """
    model = fitted(state)
    error = estimate_error(state.values, state.y, seed=int(state.facts["seed"]), algo=state.facts["algo"], model=model)
    left = left_to_buy(state)
    spendings = sorted({min(state.spent * times, left) for times in _FURTHER} - {0.0})
    return Estimates(state.spent, error, list(zip(spendings, forecast_of(state, model, error, spendings), strict=True)))


def left_to_buy(state: State) -> float:
    """Return the price of all that can still be bought of the examples with a target; what is on order counts too."""
    left = ~(state.known | state.unavailable | state.excluded) & state.known_targets[:, None]
    return float((state.by_unit(left) * state.costs).sum())


def forecast_of(state: State, model: JointModel, error: ErrorEstimate, spendings: Sequence[float]) -> list[Interval]:
    """Return the errors with all attributes after further spendings."""
    return forecast(
        model,
        state.values,
        state.y,
        error.complete,
        spendings,
        state.costs,
        groups=state.groups,
        seed=int(state.facts["seed"]),
        excluded=state.unavailable | state.excluded,
    )


def keep(store: StudyFile, state: State, estimates: Estimates) -> None:
    """Record the estimates of a state; in a block of `StudyFile.writing`."""

    def numbers(interval: Interval) -> list[float]:
        return [interval.estimate, interval.low, interval.high]

    content = {
        "complete": numbers(estimates.error.complete),
        "as_bought": numbers(estimates.error.as_bought),
        "judged": estimates.error.judged,
        "further": [[spending, *numbers(interval)] for spending, interval in estimates.further],
    }
    row = (state.version, estimates.spent, json.dumps(content))
    store.change("INSERT INTO estimates VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [row])


def kept(store: StudyFile) -> dict[int, Estimates]:
    """Return all estimates that were recorded, by the version of the state, in their order."""
    result = {}
    for version, spent, text in store.rows("SELECT state, spent, content FROM estimates ORDER BY state"):
        content = json.loads(text)
        judged = content.get("judged", ENOUGH)  # which estimates of earlier versions lack
        error = ErrorEstimate(Interval(*content["complete"]), Interval(*content["as_bought"]), judged)
        further = [(spending, Interval(*numbers)) for spending, *numbers in content["further"]]
        result[version] = Estimates(spent, error, further)
    return result


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
    excluded: np.ndarray | None = None,
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
    excluded : ndarray of bool, shape (n, d), optional
        Values that cannot be bought any more.
    """
    labelled = ~np.isnan(targets)
    known = ~np.isnan(values[labelled])
    curve = LearningCurve(model, known, float(np.var(targets[labelled])))
    if not known.any():
        return [error for _ in spendings]
    rng = generator("values of a forecast", seed, len(known))
    closed = np.zeros_like(known) if excluded is None else excluded[labelled]
    order = _order(known | closed, prices, groups, per_example, rng)
    later = [known | (_bought(known, order, prices, groups, spending) & ~closed) for spending in spendings]
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
